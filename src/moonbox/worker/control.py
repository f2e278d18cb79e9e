"""Control of a worker beside its main socket: interrupt, freeze, release; over a socket, or through its zygote.

A Bell ends a wait for a worker from another thread. A CpuClock reads the processor time that a worker has spent.
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

_SECONDS = 5.0


class Control(Protocol):
    """Acts on a worker that may be busy or hostile. No method fails or blocks for long."""

    def interrupt(self, number: int, reason: int) -> None:
        """Stop the run of that number."""

    def freeze(self, memory: int) -> bool:
        """Suspend it until `thaw`, or end it if it holds far more than `memory` bytes. False where not supported."""

    def thaw(self) -> None: ...

    def release(self) -> None:
        """End it, whatever it is doing."""


class CpuClock:
    """Reads the seconds of processor time that a worker has spent, from its clock in the operating system."""

    __slots__ = ("_latest", "_number")

    def __init__(self, number: int) -> None:
        self._number = number
        self._latest = 0.0

    def __call__(self) -> float:
        with contextlib.suppress(OSError):  # it has ended
            self._latest = clock_gettime(self._number)
        return self._latest


class Bell:
    """Ends a poll that includes its descriptor, from another thread."""

    def __init__(self) -> None:
        self._read_end, self._write_end = socket.socketpair()
        self._read_end.setblocking(False)
        self._write_end.setblocking(False)
        self.number = self._read_end.fileno()

    def ring(self) -> None:
        with contextlib.suppress(OSError):  # full: it has rung already
            self._write_end.send(b"!")

    def has_rung(self, ready: list[tuple[int, int]]) -> bool:
        """Whether it is among the ready descriptors that `poll` returned; resets it."""
        if ready[0][0] != self.number and ready[-1][0] != self.number:
            return False
        with contextlib.suppress(BlockingIOError):
            self._read_end.recv(4096)
        return True

    def close(self) -> None:
        self._read_end.close()
        self._write_end.close()


class SocketControl:
    """Control of a worker in this process, over a socket. Such a worker cannot be frozen."""

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
    """Sends notes to a zygote: orders that have no answer."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lock = threading.Lock()
        wait_at_most(sock, _SECONDS)

    def send(self, action: int, serial: int, number: int = 0, reason: int = 0) -> None:
        note = NOTE.pack(action, serial, number, reason)
        with self._lock:
            try:  # noqa: SIM105 - on the way of every checkout
                self._sock.sendall(note)
            except OSError:  # the zygote is gone, and its workers with it
                pass

    def close(self) -> None:
        with self._lock:
            self._sock.close()


class ZygoteControl:
    """Control of a worker through its zygote, without a descriptor of its own."""

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
    """Set the kernel's timeout for a blocking socket; Python's own would poll before each operation."""
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
