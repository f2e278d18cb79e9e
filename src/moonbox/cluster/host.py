"""The host of one node: starts jailed workers for front ends, each on a TCP connection of its own.

A front end has one connection for orders. The socket of each further connection is handed to a worker, so that scripts
and answers go directly between the front end and the worker. When the connection for orders ends, so do its workers.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import threading
from collections import OrderedDict
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import msgpack

from moonbox._version import __version__
from moonbox.cluster import wire
from moonbox.cluster.entrance import GREETING_SECONDS, Entrance
from moonbox.errors import WorkerError
from moonbox.worker.sources import ProcessSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moonbox.worker.control import ZygoteControl

UNCLAIMED_SECONDS = 30.0
"""How long a connection waits for its worker. Its front end may have failed before it gave the order."""
_MOST_SOURCES = 16
"""Zygotes that are kept; of more, those without workers end."""
WORKER_BYTES = 8 << 20
"""What a worker is expected to take on average. A node whose free memory shrinks faster takes fewer of them."""
_RESERVE = 0.1
"""The part of a node's memory that is left to others."""

_RECLAIMED = ("active_file", "inactive_file", "slab_reclaimable")
"""What a container's kernel gives back when processes need memory, by its names in `memory.stat`."""


class NodeHost:
    """Serves front ends, from threads of its own. It is an actor of Ray, and ends with its process."""

    def __init__(self, ip: str, places: int = 0) -> None:
        """`places` is how many workers the node takes at most; 0 where free memory alone decides."""
        self._places = places
        self._starting = 0
        self._token = secrets.token_bytes(wire.TOKEN_SIZE)
        listener = socket.create_server((ip, 0), backlog=1024)
        self._address: tuple[str, int] = listener.getsockname()[:2]
        self._lock = threading.Lock()  # guards the count above and the three below
        self._sources: OrderedDict[bytes, ProcessSource] = OrderedDict()
        self._arrived: dict[bytes, socket.socket] = {}  # connections that no worker has yet
        self._front_ends: set[_FrontEnd] = set()
        self._arrival = threading.Condition(self._lock)
        self._entrance = Entrance(listener, self._token, self._admit)

    def where(self) -> tuple[tuple[str, int], bytes, str]:
        """Its address, its token and its version."""
        return self._address, self._token, __version__

    def status(self) -> wire.HostStatus:
        """How many workers and front ends there are, and how many more workers fit."""
        free, total = memory()
        with self._lock:
            workers = self._count()
        room = max(0, int((free - total * _RESERVE) / WORKER_BYTES))
        if self._places:
            room = min(room, max(0, self._places - workers))
        return wire.HostStatus(workers, room, max(0, free), __version__)

    @contextmanager
    def one_more(self) -> Iterator[bool]:
        """Whether there is room for another worker. The worker that the block starts counts from now on."""
        has_room = self.status().room > 0
        with self._lock:
            self._starting += 1
            fits = not self._places or self._count() <= self._places  # front ends may start some at the same time
        try:
            yield has_room and fits
        finally:
            with self._lock:
                self._starting -= 1

    def _count(self) -> int:
        return self._starting + sum(len(front_end.workers) for front_end in self._front_ends)

    # Connections

    def _admit(self, sock: socket.socket, kind: bytes, name: bytes) -> None:
        """A connection that gave the token."""
        if kind == wire.CONTROL:
            threading.Thread(target=self._serve, args=(sock,), name="moonbox-front-end", daemon=True).start()
            return
        with self._lock:
            self._arrived[name] = sock
            self._arrival.notify_all()
        asyncio.get_running_loop().call_later(UNCLAIMED_SECONDS, self._expire, name)

    def _expire(self, name: bytes) -> None:
        """Close a connection that has waited for its worker for too long."""
        with self._lock:
            if (sock := self._arrived.pop(name, None)) is not None:
                sock.close()

    def _serve(self, sock: socket.socket) -> None:
        front_end = _FrontEnd(self, sock)
        with self._lock:
            self._front_ends.add(front_end)
        front_end.serve()
        with self._lock:
            self._front_ends.discard(front_end)

    # For the front ends

    def source(self, digest: bytes, config: bytes | None) -> ProcessSource | None:
        """The zygote that makes workers with this configuration, for all front ends; None where it is not known."""
        with self._lock:
            if digest not in self._sources and config is not None:
                self._sources[digest] = ProcessSource(msgpack.decode(config))
            found = self._sources.get(digest)
            if found is not None:
                self._sources.move_to_end(digest)
            used = {source for each in self._front_ends for source, _ in list(each.workers.values())}
            spare = [key for key, source in self._sources.items() if source not in used and source is not found]
            ended = [self._sources.pop(key) for key in spare[: max(0, len(self._sources) - _MOST_SOURCES)]]
        for source in ended:
            source.close()
        return found

    def connection(self, name: bytes) -> socket.socket:
        """The connection of that name, for a worker. It may be on its way."""
        deadline = monotonic() + GREETING_SECONDS
        with self._lock:
            while name not in self._arrived:
                if not self._arrival.wait(deadline - monotonic()):
                    raise WorkerError("the connection for the worker did not arrive")
            return self._arrived.pop(name)


class _FrontEnd:
    """One front end: its orders, and the workers that it has."""

    def __init__(self, host: NodeHost, sock: socket.socket) -> None:
        self.workers: dict[int, tuple[ProcessSource, ZygoteControl]] = {}
        self._host = host
        self._sock = sock
        self._latest = 0

    def serve(self) -> None:
        """Until it hangs up; then its workers end."""
        try:
            while True:
                answer = self._answer(wire.receive(self._sock, wire.Order, wire.LONGEST_ORDER))
                if answer is not None:
                    wire.send(self._sock, answer)
        except (OSError, ValueError, TypeError, RecursionError):
            pass
        finally:
            self._sock.close()
            for _, control in list(self.workers.values()):
                control.release()

    def _answer(self, order: wire.Order) -> wire.Message | None:
        match order:
            case wire.SpawnOrder():
                return self._spawn(order)
            case wire.KillOrder():
                found = self.workers.pop(order.worker, None)
                return wire.WorkerEnded("" if found is None else found[0].kill(found[1]))
            case wire.StatusOrder():
                return self._host.status()
            case wire.ActOrder():
                self._act(order)
        return None

    def _spawn(self, order: wire.SpawnOrder) -> wire.SpawnAnswer:
        source = self._host.source(order.digest, order.config)
        if source is None:
            return wire.ConfigUnknown()
        try:
            with self._host.connection(order.name) as sock, self._host.one_more() as has_room:
                if not has_room:
                    return wire.NodeFull()
                pid, control, native = source.fork(sock.fileno())
                self._latest += 1
                self.workers[self._latest] = source, control
        except WorkerError as problem:
            return wire.SpawnFailed(str(problem)[:1_000])
        return wire.WorkerSpawned(pid, self._latest, native)

    def _act(self, order: wire.ActOrder) -> None:
        """Interrupt, freeze, thaw or release a worker; nothing where it is gone."""
        if order.worker in self.workers:
            getattr(self.workers[order.worker][1], order.action)(*order.details)
            if order.action == "release":
                del self.workers[order.worker]


def memory(root: Path = Path("/")) -> tuple[int, int]:
    """Free bytes and all bytes of memory, of the container where there is a limit. Page cache is free memory."""
    page = os.sysconf("SC_PAGE_SIZE")
    free = total = page * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError, LookupError):  # no Linux
        lines = dict(line.split(":", 1) for line in (root / "proc/meminfo").read_text(encoding="ascii").splitlines())
        free = int(lines["MemAvailable"].split()[0]) * 1024
    group = root / "sys/fs/cgroup"
    with suppress(OSError, ValueError):  # no container, or none with a limit
        limit = int((group / "memory.max").read_text(encoding="ascii"))
        used = int((group / "memory.current").read_text(encoding="ascii"))
        with suppress(OSError, ValueError):
            counts = dict(line.split() for line in (group / "memory.stat").read_text(encoding="ascii").splitlines())
            used -= sum(int(counts.get(name, 0)) for name in _RECLAIMED)
        free, total = min(free, limit - max(0, used)), min(total, limit)
    return free, total
