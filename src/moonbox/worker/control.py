"""Control of a worker that does not listen: interrupt, freeze, release; over a socket, or through its zygote.

A Bell ends the wait of whoever waits for a worker; a CpuClock tells what it has spent.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from time import clock_gettime
from typing import Protocol

from moonbox.worker.protocol import STOP
from moonbox.worker.zygote import FREEZE, INTERRUPT, NOTE, RELEASE, THAW

__all__ = [
    "Bell",
    "Control",
    "CpuClock",
    "Notes",
    "SocketControl",
    "WorkerProcess",
    "ZygoteControl",
    "socket_pairs",
    "wait_at_most",
]

_SECONDS = 5.0


class Control(Protocol):
    """What can be done to a worker that does not listen; none of it blocks for long, and none of it fails."""

    def interrupt(self, number: int, reason: int) -> None:
        """Stop the run of that number."""

    def freeze(self, memory: int) -> bool:
        """Let it compute no more until `thaw`, and end it if it holds far more memory; False where that cannot be."""

    def thaw(self) -> None: ...

    def release(self) -> None:
        """It is no longer needed and ends, whatever it is doing."""


class WorkerProcess(Protocol):
    """What a worker runs in."""

    def kill(self) -> str:
        """End it now; words for how it had ended, "" when nothing is known."""


class CpuClock:
    """Tells the seconds of processor time that a worker has spent, by a clock that the system has for it."""

    __slots__ = ("_latest", "_number")

    def __init__(self, number: int) -> None:
        self._number = number
        self._latest = 0.0

    def __call__(self) -> float:
        with contextlib.suppress(OSError):  # gone: it spends no more
            self._latest = clock_gettime(self._number)
        return self._latest


class Bell:
    """Ends a wait for file descriptors, its own among them, from another thread."""

    def __init__(self) -> None:
        self._ear, self._button = socket.socketpair()
        self._ear.setblocking(False)
        self._button.setblocking(False)
        self.number = self._ear.fileno()

    def ring(self) -> None:
        with contextlib.suppress(OSError):  # full: it has rung often enough
            self._button.send(b"!")

    def has_rung(self, ready: list[tuple[int, int]]) -> bool:
        """Whether it is among those that are ready, as `poll` lists them; from here on it is silent again."""
        if ready[0][0] != self.number and ready[-1][0] != self.number:
            return False
        with contextlib.suppress(BlockingIOError):
            self._ear.recv(4096)
        return True

    def close(self) -> None:
        self._ear.close()
        self._button.close()


class SocketControl:
    """Control of a worker in this process, over a socket of its own; there is nothing that could freeze it."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        sock.setblocking(False)

    def interrupt(self, number: int, reason: int) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._sock.send(STOP.pack(number, reason))

    def freeze(self, memory: int) -> bool:
        return False

    def thaw(self) -> None:
        return

    def release(self) -> None:
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()


class Notes:
    """The way to a zygote for what needs no answer; it reads them at once, whatever its workers do."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lock = threading.Lock()
        wait_at_most(sock, _SECONDS)

    def send(self, action: int, serial: int, number: int = 0, reason: int = 0) -> None:
        note = NOTE.pack(action, serial, number, reason)
        with self._lock:
            try:  # noqa: SIM105 - each worker comes this way
                self._sock.sendall(note)
            except OSError:  # the zygote is gone, and its workers with it
                pass

    def close(self) -> None:
        with self._lock:
            self._sock.close()


class ZygoteControl:
    """Control of a worker through its zygote: a Repl takes one descriptor of this process."""

    __slots__ = ("notes", "serial")

    def __init__(self, notes: Notes, serial: int) -> None:
        self.notes = notes
        self.serial = serial

    def interrupt(self, number: int, reason: int) -> None:
        self.notes.send(INTERRUPT, self.serial, number, reason)

    def freeze(self, memory: int) -> bool:
        self.notes.send(FREEZE, self.serial, memory)
        return True

    def thaw(self) -> None:
        self.notes.send(THAW, self.serial)

    def release(self) -> None:
        self.notes.send(RELEASE, self.serial)


def wait_at_most(sock: socket.socket, seconds: float) -> None:
    """Let a blocking socket give up after so long: by the kernel, where Python would poll before each step."""
    whole = int(seconds)
    limit = struct.pack("@ll", whole, int((seconds - whole) * 1_000_000))
    sock.setblocking(True)
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        sock.setsockopt(socket.SOL_SOCKET, option, limit)


def socket_pairs() -> tuple[socket.socket, socket.socket, socket.socket, socket.socket]:
    """(our main, our control, worker's main, worker's control)"""
    main, theirs = socket.socketpair()
    try:
        control, theirs_control = socket.socketpair()
    except OSError:
        main.close()
        theirs.close()
        raise
    return main, control, theirs, theirs_control
