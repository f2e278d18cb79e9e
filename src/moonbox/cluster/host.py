"""The host of one node: starts jailed workers for front ends, each on a TCP connection of its own.

A front end has one connection for orders. The socket of each further connection is handed to a worker, so that scripts
and answers go directly between the front end and the worker. When the connection for orders ends, so do its workers.
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import threading
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from moonbox._version import __version__
from moonbox.cluster import wire
from moonbox.errors import WorkerError
from moonbox.worker.sources import ProcessSource

if TYPE_CHECKING:
    from moonbox.worker.control import ZygoteControl

_GREETING_SECONDS = 5.0
UNCLAIMED_SECONDS = 30.0
"""How long a connection waits for its worker. Its front end may have failed before it gave the order."""
_MOST_SOURCES = 16
"""Zygotes that are kept; of more, those without workers end."""
WORKER_BYTES = 8 << 20
"""What a worker is expected to take on average. A node whose free memory shrinks faster takes fewer of them."""
_RESERVE = 0.1
"""The part of a node's memory that is left to others."""


class NodeHost:
    """Serves front ends, from threads of its own. It is an actor of Ray, and ends with its process."""

    def __init__(self, ip: str) -> None:
        self._token = secrets.token_bytes(wire.TOKEN_SIZE)
        self._listener = socket.create_server((ip, 0), backlog=1024)
        self._lock = threading.Lock()  # guards the three below
        self._sources: OrderedDict[bytes, ProcessSource] = OrderedDict()
        self._arrived: dict[bytes, socket.socket] = {}  # connections that no worker has yet
        self._front_ends: set[_FrontEnd] = set()
        self._arrival = threading.Condition(self._lock)
        threading.Thread(target=self._accept, name="moonbox-host", daemon=True).start()

    def where(self) -> tuple[tuple[str, int], bytes]:
        """Its address and its token."""
        return self._listener.getsockname()[:2], self._token

    def status(self) -> dict[str, Any]:
        """How many workers and front ends there are, and how many more workers fit."""
        free, total = memory()
        with self._lock:
            workers = sum(len(front_end.workers) for front_end in self._front_ends)
        room = max(0, int((free - total * _RESERVE) / WORKER_BYTES))
        return {"workers": workers, "room": room, "free_memory": free, "version": __version__}

    # Connections

    def _accept(self) -> None:
        while True:
            with suppress(OSError):  # no descriptors are left, which passes
                sock, _ = self._listener.accept()
                threading.Thread(target=self._greet, args=(sock,), name="moonbox-greet", daemon=True).start()

    def _greet(self, sock: socket.socket) -> None:
        """Find out what a connection is for. One without the token is closed."""
        try:
            sock.settimeout(_GREETING_SECONDS)
            greeting = wire.exactly(sock, wire.GREETING_SIZE)
            wire.watch(sock)
            sock.settimeout(None)
        except OSError:
            sock.close()
            return
        token, kind, name = greeting[: wire.TOKEN_SIZE], greeting[wire.TOKEN_SIZE :][:1], greeting[-wire.NAME_SIZE :]
        if not hmac.compare_digest(token, self._token):
            sock.close()
        elif kind == wire.WORKER:
            with self._lock:
                self._arrived[name] = sock
                self._arrival.notify_all()
                if not self._arrival.wait_for(lambda: self._arrived.get(name) is not sock, UNCLAIMED_SECONDS):
                    self._arrived.pop(name).close()
        else:
            front_end = _FrontEnd(self, sock)
            with self._lock:
                self._front_ends.add(front_end)
            front_end.serve()
            with self._lock:
                self._front_ends.discard(front_end)

    # For the front ends

    def source(self, digest: bytes, config: dict[str, Any] | None) -> ProcessSource | None:
        """The zygote that makes workers with this configuration, for all front ends; None where it is not known."""
        with self._lock:
            if digest not in self._sources and config is not None:
                self._sources[digest] = ProcessSource(config)
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
        deadline = monotonic() + _GREETING_SECONDS
        with self._lock:
            while name not in self._arrived:
                if not self._arrival.wait(deadline - monotonic()):
                    raise WorkerError("the connection for the worker did not arrive")
            self._arrival.notify_all()
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
                kind, *order = wire.receive(self._sock)
                answer = getattr(self, f"_{kind}")(*order) if kind in _ORDERS else ["failed", f"unknown order {kind!r}"]
                if answer is not None:
                    wire.send(self._sock, answer)
        except (OSError, ValueError, TypeError):
            pass
        finally:
            self._sock.close()
            for _, control in list(self.workers.values()):
                control.release()

    def _spawn(self, digest: bytes, name: bytes, config: dict[str, Any] | None) -> list[Any]:
        """Start a worker on the connection of that name. The configuration is needed once for each zygote."""
        status, source = self._host.status(), self._host.source(digest, config)
        if source is None:
            return ["unknown"]
        try:
            with self._host.connection(name) as sock:
                if not status["room"]:
                    return ["full", status]
                pid, control, native = source.fork(sock.fileno())
        except WorkerError as problem:
            return ["failed", str(problem)]
        self._latest += 1
        self.workers[self._latest] = source, control
        return ["ok", pid, self._latest, native, status]

    def _kill(self, worker: int) -> list[Any]:
        """End it; how it had ended in words, which are empty where its zygote is gone, and all workers with it."""
        found = self.workers.pop(worker, None)
        return ["ok", "" if found is None else found[0].kill(found[1])]

    def _status(self) -> list[Any]:
        return ["ok", self._host.status()]

    def _act(self, action: str, worker: int, *details: int) -> None:
        """Interrupt, freeze, thaw or release a worker; nothing where it is gone."""
        if worker in self.workers and action in _ACTIONS:
            getattr(self.workers[worker][1], action)(*details)
            if action == "release":
                del self.workers[worker]


_ORDERS = {"spawn", "kill", "status", "act"}
_ACTIONS = {"interrupt", "freeze", "thaw", "release"}


def memory() -> tuple[int, int]:
    """Free bytes and all bytes of memory, of the container where there is a limit."""
    page = os.sysconf("SC_PAGE_SIZE")
    free = total = page * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no Linux
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines())
        free = int(lines["MemAvailable"].split()[0]) * 1024
    with suppress(OSError, ValueError):  # no container, or none with a limit
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii"))
        used = int(Path("/sys/fs/cgroup/memory.current").read_text(encoding="ascii"))
        free, total = min(free, limit - used), min(total, limit)
    return free, total
