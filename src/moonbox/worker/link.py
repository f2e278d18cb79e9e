"""The host's end of one worker: its two sockets, framed and bounded. Knows nothing of what is said."""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

from moonbox.errors import WorkerError
from moonbox.worker import protocol
from moonbox.worker.incoming import Reader

if TYPE_CHECKING:
    from moonbox.worker.pool import Ending

__all__ = ["Link", "TimedOut", "Woken", "socket_pairs"]

_CHUNK = 1 << 18
_SPIN = 0.00006
_LARGEST_FRAME = 1 << 20


class TimedOut(Exception):
    """Nothing came in time."""


class Woken(Exception):
    """Somebody rang the bell that `receive` was told to listen to."""


class Link:
    """Sends and receives frames, blocking or awaited."""

    def __init__(self, sock: socket.socket, control: socket.socket, pid: int | None, ending: Ending) -> None:
        self.pid = pid
        self.ending = ending
        self._sock = sock
        self._control = control
        self._reader = Reader(_LARGEST_FRAME)
        self._poll = select.poll()
        self._poll.register(sock.fileno(), select.POLLIN)
        self._quick = 0
        self._sending = threading.Lock()
        self._bell: socket.socket | None = None
        self._bell_fd = -1
        self.greeting: bytes | None = None
        """What the worker said of its jail, once it has."""
        self.sent = 0
        self.received = 0
        self.closed = False
        sock.setblocking(False)
        control.setblocking(False)

    def allow_frames_of(self, largest: int) -> None:
        self._reader.largest = largest

    def send(self, data: bytes) -> None:
        """Send all of it; WorkerError when the worker is gone."""
        view = memoryview(data)
        self.sent += len(data)
        try:
            with self._sending:
                while view:
                    try:
                        view = view[self._sock.send(view) :]
                    except BlockingIOError:
                        select.select([], [self._sock], [])
        except (OSError, ValueError):
            raise WorkerError("the worker is gone") from None

    def receive(self, timeout: float | None, bell: socket.socket | None = None) -> tuple[int, bytes]:
        """The next frame. Raises TimedOut, Woken, or WorkerError when the worker is gone or breaks the protocol."""
        deadline = None if timeout is None else time.monotonic() + timeout
        if bell is not self._bell:
            self._listen_to(bell)
        while True:
            found = self._frame()
            if found is not None:
                return found
            self._wait(deadline)

    def _frame(self) -> tuple[int, bytes] | None:
        found = self._reader.next()
        if found is not None and found[0] == protocol.READY and self.greeting is None:
            self.greeting = found[1]
            found = self._reader.next()
        return found

    def _listen_to(self, bell: socket.socket | None) -> None:
        if self._bell is not None:
            with contextlib.suppress(KeyError, ValueError):
                self._poll.unregister(self._bell_fd)
        self._bell = bell
        if bell is not None:
            self._bell_fd = bell.fileno()
            self._poll.register(self._bell_fd, select.POLLIN)

    def alive(self) -> bool:
        """Whether the worker still holds its end. Reads what is there."""
        try:
            while self._read():
                pass
        except WorkerError:
            return False
        return not self.closed

    def _wait(self, deadline: float | None) -> None:
        """Read what is there, or wait for it: spinning briefly while answers have been coming quickly."""
        if self._quick > 0:
            end = time.monotonic() + _SPIN
            while True:
                if self._read():
                    self._quick = min(self._quick + 1, 8)
                    return
                if time.monotonic() > end:
                    break
            self._quick -= 4
        elif self._read():
            self._quick = 4
            return
        began = time.monotonic()
        milliseconds = None if deadline is None else max(0.0, (deadline - began) * 1000)
        try:
            ready = self._poll.poll(milliseconds)
        except (OSError, ValueError):
            raise WorkerError("the worker is gone") from None
        if not ready:
            raise TimedOut
        if self._bell is not None and any(fd == self._bell_fd for fd, _ in ready):
            with contextlib.suppress(BlockingIOError):
                self._bell.recv(4096)
            raise Woken
        if time.monotonic() - began < _SPIN * 2:
            self._quick = 4
        self._read()

    def _read(self) -> bool:
        try:
            data = self._sock.recv(_CHUNK)
        except BlockingIOError:
            return False
        except (OSError, ValueError):
            data = b""
        if not data:
            raise WorkerError("the worker is gone")
        self.received += len(data)
        self._reader.feed(data)
        return True

    async def asend(self, data: bytes) -> None:
        """Send all of it, awaited; callers take turns."""
        self.sent += len(data)
        try:
            rest = data[self._sock.send(data) :]  # nearly always all of it at once
        except BlockingIOError:
            rest = data
        except (OSError, ValueError):
            raise WorkerError("the worker is gone") from None
        if not rest:
            return
        try:
            await asyncio.get_running_loop().sock_sendall(self._sock, rest)
        except (OSError, ValueError):
            raise WorkerError("the worker is gone") from None

    async def areceive(self) -> tuple[int, bytes]:
        """The next frame, awaited; cancel it to give up waiting."""
        loop = asyncio.get_running_loop()
        while True:
            found = self._frame()
            if found is not None:
                return found
            try:
                data = await loop.sock_recv(self._sock, _CHUNK)
            except (OSError, ValueError):
                data = b""
            if not data:
                raise WorkerError("the worker is gone")
            self.received += len(data)
            self._reader.feed(data)

    def stop(self, number: int, reason: int) -> None:
        """Tell the worker to stop that run; never blocks."""
        with contextlib.suppress(OSError, ValueError):
            self._control.send(protocol.STOP.pack(number, reason))

    def close(self) -> None:
        """Hang up; the worker ends by itself."""
        if not self.closed:
            self.closed = True
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)
            self._sock.close()
            self._control.close()


def socket_pairs() -> tuple[Any, Any, Any, Any]:
    """(our main, our control, worker's main, worker's control)"""
    main, theirs = socket.socketpair()
    try:
        control, theirs_control = socket.socketpair()
    except OSError:
        main.close()
        theirs.close()
        raise
    return main, control, theirs, theirs_control
