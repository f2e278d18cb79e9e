"""Workers on the nodes of a cluster, for the pool of a Sandbox."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from typing import TYPE_CHECKING, Any

from msgspec import msgpack

from moonbox.cluster import wire
from moonbox.cluster.wire import HostLost
from moonbox.errors import ClosedError, WorkerError
from moonbox.wording import counted
from moonbox.worker.link import Link
from moonbox.worker.sources import WorkerShortage

if TYPE_CHECKING:
    from moonbox.cluster.membership import Membership

ANSWER_SECONDS = 10.0
"""A host that does not answer for so long is lost."""
START_SECONDS = 60.0
"""How long a Sandbox waits for a node that has room, for example while one is replaced."""


class HostConnection:
    """The connection to the host of one node, for orders. Thread-safe."""

    def __init__(self, node: str, address: tuple[str, int], token: bytes) -> None:
        self.node = node
        self.lost = False
        """Its workers are gone, and so is what their scripts had defined."""
        self.status: dict[str, Any] = {}
        """What the host said of itself last."""
        self._address, self._token = address, token
        self._asking, self._sending = threading.Lock(), threading.Lock()
        self._sock = wire.connect(address, token, wire.CONTROL, secrets.token_bytes(wire.NAME_SIZE), ANSWER_SECONDS)
        self.ask("status")

    def spawn(self, digest: bytes, config: dict[str, Any]) -> Link | None:
        """A new worker; None where the node is full."""
        name = secrets.token_bytes(wire.NAME_SIZE)
        sock = wire.connect(self._address, self._token, wire.WORKER, name, ANSWER_SECONDS)
        try:
            kind, *answer = self.ask("spawn", digest, name, None)
            if kind == "unknown":  # the host has no zygote for it yet
                kind, *answer = self.ask("spawn", digest, name, config)
            if kind == "ok":
                pid, worker, native, _ = answer
                control = RemoteControl(self, worker)
                self.status["room"] -= 1
                return RemoteLink(sock, control, pid, kill=control.kill, native=native)
        except BaseException:
            sock.close()
            raise
        sock.close()
        if kind == "full":
            return None
        raise WorkerError(f"node {self.node[:8]}: {answer[0]}")

    def ask(self, *order: Any) -> list[Any]:
        """Give an order and wait for its answer; raises HostLost."""
        with self._asking:
            try:
                with self._sending:
                    wire.send(self._sock, list(order))
                answer = wire.receive(self._sock)
            except OSError as problem:
                self.close()
                raise HostLost(f"the host of node {self.node[:8]} does not answer: {problem}") from None
            except BaseException:  # interrupted: its answer would be read as that of the next order
                self.close()
                raise
        if isinstance(answer[-1], dict):
            self.status = answer[-1]
        return answer

    def tell(self, *order: Any) -> None:
        """Give an order that has no answer."""
        with self._sending:
            try:
                wire.send(self._sock, list(order))
            except OSError:
                self.close()

    def close(self) -> None:
        """Hang up, which ends the workers there. No worker of this connection is used again."""
        self.lost = True
        self._sock.close()


class RemoteControl:
    """Control of a worker through the host of its node."""

    __slots__ = ("host", "worker")

    def __init__(self, host: HostConnection, worker: int) -> None:
        self.host = host
        self.worker = worker

    def interrupt(self, number: int, reason: int) -> None:
        self.host.tell("act", "interrupt", self.worker, number, reason)

    def freeze(self, memory: int) -> bool:
        self.host.tell("act", "freeze", self.worker, memory)
        return True

    def thaw(self) -> None:
        self.host.tell("act", "thaw", self.worker)

    def release(self) -> None:
        self.host.tell("act", "release", self.worker)

    def kill(self) -> str:
        """End it; how it had ended in words, which are empty where its host, or its zygote, is gone."""
        try:
            return str(self.host.ask("kill", self.worker)[1])
        except HostLost:
            return ""


class RemoteLink(Link):
    """The front end's end of a worker on a node."""

    def kill(self) -> str:
        """The same. A worker whose end is unknown went with its host: no script has ended it."""
        status = "" if self.host_lost else super().kill()
        self.host_lost = not status
        return status


class ClusterSource:
    """Spawns each worker on the node with the most room."""

    def __init__(self, hosts: Membership, config: dict[str, Any]) -> None:
        self.hosts = hosts
        self._closed = threading.Event()
        self.configure(config)

    def configure(self, config: dict[str, Any]) -> None:
        self._config = config
        self._digest = hashlib.sha256(msgpack.encode(config)).digest()

    def spawn(self) -> Link:
        deadline = time.monotonic() + START_SECONDS
        while True:
            link = self._try_spawn()
            if link is not None:
                return link
            if self._closed.wait(0.05):
                raise ClosedError("the Sandbox is closed")
            if time.monotonic() > deadline:
                connections = self.hosts.connections()
                workers = sum(each.status["workers"] for each in connections)
                raise WorkerShortage(
                    f"no node of the cluster has room for another worker: {counted(len(connections), 'node')} "
                    f"with {counted(workers, 'worker')}; add a node, or close a Repl"
                )

    def _try_spawn(self) -> Link | None:
        """A worker on the node with the most room; None where every node is full or lost."""
        by_room = sorted(self.hosts.connections(), key=lambda each: each.status["room"], reverse=True)
        for connection in by_room:
            try:
                link = connection.spawn(self._digest, self._config)
            except HostLost:
                continue
            if link is not None:
                return link
        return None

    def close(self) -> None:
        self._closed.set()
        self.hosts.close()
