"""Workers on the nodes of a cluster, for the pool of a Sandbox."""

from __future__ import annotations

import hashlib
import secrets
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from msgspec import msgpack

from moonbox.cluster import wire
from moonbox.errors import ClosedError, WorkerError
from moonbox.wording import counted
from moonbox.worker.link import Link
from moonbox.worker.sources import WorkerShortage

if TYPE_CHECKING:
    from moonbox.cluster.membership import Membership

SILENCE_SECONDS = 5.0
"""A host that does not answer a heartbeat for so long is lost."""
ORDER_SECONDS = 60.0
"""How long an order may take, such as the start of a zygote, while heartbeats are answered."""
START_SECONDS = 60.0
"""How long a Sandbox waits for a node that has room, for example while one is replaced."""
_BEATS = 5
_LOOK_SECONDS = 0.05


class HostConnection:
    """The connection to the host of one node, for orders, and one for heartbeats. Thread-safe.

    A host that does not answer a heartbeat within `silence` seconds is lost: all its connections are closed, also those
    of its workers. A front end does not use them again, so that nothing that the node does later has an effect.
    """

    def __init__(self, node: str, address: tuple[str, int], token: bytes, silence: float = SILENCE_SECONDS) -> None:
        self.node = node
        self.lost = False
        """Its workers are gone, and so is what their scripts had defined."""
        self._address, self._token, self._silence = address, token, silence
        self._asking, self._sending = threading.Lock(), threading.Lock()
        self._links: WeakValueDictionary[int, RemoteLink] = WeakValueDictionary()
        self._closed = threading.Event()
        self._heart = self._connect(wire.CONTROL, secrets.token_bytes(wire.NAME_SIZE))
        try:
            self.status = self._beat()
            """What the host said of itself last."""
            self._sock = self._connect(wire.CONTROL, secrets.token_bytes(wire.NAME_SIZE))
        except OSError as problem:
            self._heart.close()
            raise wire.HostLost(f"the host of node {node[:8]} does not answer: {problem}") from None
        except BaseException:
            self._heart.close()
            raise
        self._sock.settimeout(ORDER_SECONDS)
        threading.Thread(target=self._watch, name="moonbox-heartbeat", daemon=True).start()

    @property
    def workers(self) -> int:
        """How many workers this front end has there."""
        return len(self._links)

    def spawn(self, digest: bytes, config: dict[str, Any]) -> Link | None:
        """A new worker; None where the node is full, or was when it was heard of last."""
        if not self.status.room:
            return None
        name = secrets.token_bytes(wire.NAME_SIZE)
        sock = self._connect(wire.WORKER, name)
        try:
            answer: wire.SpawnAnswer = self._ask(wire.SpawnOrder(digest, name, None), wire.SpawnAnswer)
            if isinstance(answer, wire.ConfigUnknown):  # the host has no zygote for it yet
                answer = self._ask(wire.SpawnOrder(digest, name, msgpack.encode(config)), wire.SpawnAnswer)
            if isinstance(answer, wire.WorkerSpawned):
                return self._link(sock, answer)
        except BaseException:
            sock.close()
            raise
        sock.close()
        if isinstance(answer, wire.NodeFull):
            self.status.room = 0
            return None
        raise WorkerError(f"node {self.node[:8]}: {getattr(answer, 'message', 'it does not take its configuration')}")

    def kill(self, worker: int) -> str:
        """End a worker; how it had ended in words, which are empty where its host, or its zygote, is gone."""
        try:
            ended: wire.WorkerEnded = self._ask(wire.KillOrder(worker), wire.WorkerEnded)
        except wire.HostLost:
            return ""
        return ended.how

    def tell(self, order: wire.ActOrder) -> None:
        """Give an order that has no answer."""
        with self._sending:
            try:
                wire.send(self._sock, order)
            except OSError:
                self.close()

    def refresh(self) -> wire.HostStatus:
        """Ask the host for its status now."""
        self.status = self._ask(wire.StatusOrder(), wire.HostStatus)
        return self.status

    def close(self) -> None:
        """Hang up, which ends the workers there. No worker of this connection is used again."""
        self.lost = True
        self._closed.set()
        for sock in (self._sock, self._heart):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for reference in self._links.valuerefs():
            if (link := reference()) is not None:
                link.cut()

    def _connect(self, kind: bytes, name: bytes) -> socket.socket:
        return wire.connect(self._address, self._token, kind, name, self._silence)

    def _link(self, sock: socket.socket, spawned: wire.WorkerSpawned) -> RemoteLink:
        control = RemoteControl(self, spawned.worker)
        link = RemoteLink(sock, control, spawned.pid, kill=control.kill, native=spawned.native)
        self._links[spawned.worker] = link
        if self.lost:  # since a moment ago
            link.cut()
        self.status.room = max(0, self.status.room - 1)
        self.status.workers += 1
        return link

    def _ask(self, order: wire.Order, kind: Any) -> Any:
        """Give an order and wait for its answer; raises HostLost."""
        with self._asking:
            try:
                with self._sending:
                    wire.send(self._sock, order)
                return wire.receive(self._sock, kind, wire.LONGEST_ANSWER)
            except OSError as problem:
                self.close()
                raise wire.HostLost(f"the host of node {self.node[:8]} does not answer: {problem}") from None
            except BaseException:  # interrupted: its answer would be read as that of the next order
                self.close()
                raise

    def _watch(self) -> None:
        """Send heartbeats until one is not answered, or the connection is closed."""
        while not self._closed.wait(self._silence / _BEATS):
            try:
                self.status = self._beat()
            except OSError:
                break
        self.close()
        with self._asking, self._sending:  # no thread uses the sockets
            self._sock.close()
            self._heart.close()

    def _beat(self) -> wire.HostStatus:
        wire.send(self._heart, wire.StatusOrder())
        status: wire.HostStatus = wire.receive(self._heart, wire.HostStatus, wire.LONGEST_ANSWER, self._silence)
        return status


class RemoteControl:
    """Control of a worker through the host of its node."""

    __slots__ = ("host", "worker")

    def __init__(self, host: HostConnection, worker: int) -> None:
        self.host = host
        self.worker = worker

    def interrupt(self, number: int, reason: int) -> None:
        self.host.tell(wire.ActOrder("interrupt", self.worker, [number, reason]))

    def freeze(self, memory: int) -> bool:
        self.host.tell(wire.ActOrder("freeze", self.worker, [memory]))
        return True

    def thaw(self) -> None:
        self.host.tell(wire.ActOrder("thaw", self.worker, []))

    def release(self) -> None:
        self.host.tell(wire.ActOrder("release", self.worker, []))

    def kill(self) -> str:
        return self.host.kill(self.worker)


class RemoteLink(Link):
    """The front end's end of a worker on a node."""

    def cut(self) -> None:
        """The node is lost: a thread that waits here gets Gone, and nothing that the worker sends is read."""
        with self._changing:
            if not self.closed:
                with suppress(OSError):
                    self._sock.shutdown(socket.SHUT_RDWR)

    def kill(self) -> str:
        """The same. A worker whose end is unknown went with its host: no script has ended it."""
        status = "" if self.host_lost else super().kill()
        self.host_lost = not status
        return status


class ClusterSource:
    """Spawns each worker on the node that is used least, by its count of workers and its free memory."""

    def __init__(self, hosts: Membership, config: dict[str, Any]) -> None:
        self.hosts = hosts
        self._closed = threading.Event()
        self.configure(config)

    def configure(self, config: dict[str, Any]) -> None:
        self._configured = hashlib.sha256(msgpack.encode(config)).digest(), config

    def spawn(self) -> Link:
        link = self._try_spawn()
        if link is None:
            with self.hosts.one_waits():
                link = self._wait_for_room()
        return link

    def _wait_for_room(self) -> Link:
        deadline = time.monotonic() + START_SECONDS
        while (link := self._try_spawn()) is None:
            if self._closed.wait(_LOOK_SECONDS):
                raise ClosedError("the Sandbox is closed")
            if refusal := self.hosts.refusal():
                raise WorkerError(refusal)
            if time.monotonic() > deadline:
                connections = self.hosts.connections()
                workers = sum(each.status.workers for each in connections)
                raise WorkerShortage(
                    f"no node of the cluster has room for another worker: {counted(len(connections), 'node')} "
                    f"with {counted(workers, 'worker')}; {self.hosts.advice()}"
                )
        return link

    def _try_spawn(self) -> Link | None:
        """A worker on the node that is used least; None where every node is full or lost."""
        for connection in sorted(self.hosts.connections(), key=_use):
            try:
                link = connection.spawn(*self._configured)
            except wire.HostLost:
                continue
            if link is not None:
                return link
        return None

    def close(self) -> None:
        self._closed.set()
        self.hosts.close()


def _use(connection: HostConnection) -> tuple[float, int]:
    """Nodes are filled in proportion: the part of its room that is taken, then the rest."""
    status = connection.status
    return status.workers / max(1, status.workers + status.room), -status.room
