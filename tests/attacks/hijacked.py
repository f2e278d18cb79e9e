"""A worker that somebody else has taken over: it speaks over the real sockets, and says what a test tells it to."""

from __future__ import annotations

import contextlib
import json
import marshal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from moonbox import Sandbox
from moonbox.worker import protocol
from moonbox.worker.control import CpuClock, SocketControl, socket_pairs
from moonbox.worker.link import Link
from moonbox.worker.protocol import HEADER, frame

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    Script = Callable[["Peer"], None]


class Peer:
    """The worker's end of one link."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    def send(self, kind: int, payload: bytes | Any) -> None:
        """A frame; anything but bytes is sent as JSON."""
        self.raw(frame(kind, payload if isinstance(payload, bytes) else json.dumps(payload).encode()))

    def raw(self, data: bytes) -> None:
        self.sock.sendall(data)

    def receive(self) -> tuple[int, Any]:
        kind, length = HEADER.unpack(self._exactly(HEADER.size))
        payload = self._exactly(length)
        if kind == protocol.RUN:
            number, seed = protocol.RUN_HEAD.unpack_from(payload)
            return kind, (payload[protocol.RUN_HEAD.size :], number, seed)
        if kind == protocol.HALT:
            return kind, payload[0]
        if kind == protocol.CHECK:
            return kind, payload
        return kind, marshal.loads(payload) if payload else None

    def wait_for(self, kind: int) -> Any:
        while True:
            got, value = self.receive()
            if got == kind:
                return value

    def done(self, **changes: Any) -> None:
        self.send(protocol.DONE, done(**changes))

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.sock.recv(size - len(data))
            if not more:
                raise ConnectionError
            data += more
        return data


class HijackedSource:
    """Workers that follow scripts: the first one the first script, and so on; the last script is used again."""

    def __init__(self, *scripts: Script) -> None:
        self._scripts = list(scripts)
        self.spawned = 0
        self._threads: list[threading.Thread] = []

    def spawn(self) -> Link:
        main, control, theirs, theirs_control = socket_pairs()
        script = self._scripts[min(self.spawned, len(self._scripts) - 1)]
        self.spawned += 1

        def live() -> None:
            with theirs, theirs_control, contextlib.suppress(OSError):  # the host hung up
                script(Peer(theirs))

        thread = threading.Thread(target=live, daemon=True)
        thread.start()
        self._threads.append(thread)
        cpu = CpuClock(time.pthread_getcpuclockid(thread.ident or 0)) if sys.platform == "linux" else None
        return Link(main, SocketControl(control), cpu=cpu)

    def configure(self, config: dict[str, Any]) -> None:
        pass

    def close(self) -> None:
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), "the host did not hang up"


def hijacked_box(*scripts: Script, **options: Any) -> Sandbox:
    """A Sandbox whose workers follow these scripts."""

    return Sandbox(isolation=HijackedSource(*scripts), min_workers=0, max_workers=8, **options)


def done(**changes: Any) -> dict[str, Any]:
    """How a run ended, as an honest worker would say it."""
    return {
        "kind": "ok",
        "limit": "",
        "message": "",
        "operations": None,
        "memory": 0,
        "cpu": 0.0,
        "cut": 0,
        "values": [42],
        "frames": [],
        "extra": {},
        **changes,
    }


def says(said: bytes) -> Script:
    """Says that, when it is to run something, and nothing more."""

    def hijacked(peer: Peer) -> None:
        peer.send(protocol.READY, b"")
        peer.wait_for(protocol.RUN)
        peer.raw(said)
        peer.receive()

    return hijacked


def honest(peer: Peer) -> None:
    """Every run returns 42."""
    peer.send(protocol.READY, b"")
    while True:
        peer.wait_for(protocol.RUN)
        peer.done()
