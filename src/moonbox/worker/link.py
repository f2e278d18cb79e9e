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

__all__ = ["Gone", "Link", "TimedOut", "Woken", "socket_pairs"]

_CHUNK = 1 << 18
_LARGEST_FRAME = 1 << 20
_LONGEST_POLL = 1e9  # milliseconds; the system call takes no more than 31 bits


class Gone(WorkerError):
    """The worker has ended, or hung up."""

    def __init__(self) -> None:
        super().__init__("the worker is gone")


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
        self._sending = threading.Lock()
        self._using = threading.Lock()
        self._users = 0
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

    def send(self, data: bytes, timeout: float | None = None) -> None:
        """Send all of it. Raises TimedOut when the worker does not take it in time, WorkerError when it is gone."""
        view = memoryview(data)
        self.sent += len(data)
        deadline = None if timeout is None else time.monotonic() + timeout
        if not self._sending.acquire(timeout=-1 if timeout is None else max(0.0, timeout)):
            raise TimedOut
        try:
            while view:
                try:
                    view = view[self._sock.send(view) :]
                except BlockingIOError:
                    self._wait_to_send(deadline)
        except (OSError, ValueError):
            raise Gone from None
        finally:
            self._sending.release()

    def _wait_to_send(self, deadline: float | None) -> None:
        rest = None if deadline is None else deadline - time.monotonic()
        if rest is not None and rest <= 0:
            raise TimedOut
        poll = select.poll()
        poll.register(self._sock.fileno(), select.POLLOUT)
        poll.poll(_milliseconds(rest))

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
        """Whether the worker, which has nothing to say now, still holds its end and says nothing."""
        if self.closed:
            return False
        try:
            if self.greeting is not None and not self._reader.pending and not self._poll.poll(0):
                return True  # without the exception that reading nothing would raise
            while self.greeting is None and self._read():
                found = self._reader.next()
                if found is not None and found[0] == protocol.READY:
                    self.greeting = found[1]
                elif found is not None:
                    return False
            return self.greeting is None or not (self._reader.pending or self._read())
        except (WorkerError, OSError, ValueError):
            return False

    def _wait(self, deadline: float | None) -> None:
        """Wait for bytes, and read them."""
        rest = None if deadline is None else deadline - time.monotonic()
        try:
            ready = self._poll.poll(_milliseconds(rest))
        except (OSError, ValueError):
            raise Gone from None
        if not ready:
            raise TimedOut
        if self._bell is not None and any(fd == self._bell_fd for fd, _ in ready):
            with contextlib.suppress(BlockingIOError):
                self._bell.recv(4096)
            raise Woken
        self._read()

    def _read(self) -> bool:
        try:
            data = self._sock.recv(_CHUNK)
        except BlockingIOError:
            return False
        except (OSError, ValueError):
            data = b""
        if not data:
            raise Gone
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
            raise Gone from None
        if not rest:
            return
        try:
            await asyncio.get_running_loop().sock_sendall(self._sock, rest)
        except (OSError, ValueError):
            raise Gone from None

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
                raise Gone
            self.received += len(data)
            self._reader.feed(data)

    def stop(self, number: int, reason: int) -> None:
        """Tell the worker to stop that run; never blocks."""
        with contextlib.suppress(OSError, ValueError):
            self._control.send(protocol.STOP.pack(number, reason))

    def hang_up(self) -> None:
        """Nothing more goes either way: whoever waits here is told that the worker is gone, and the worker ends."""
        self.closed = True
        for end in (self._sock, self._control):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Hang up, and let go of the sockets as soon as nobody uses them."""
        with self._using:
            self.hang_up()
            self._release_unless_used()

    def in_use(self) -> Link:
        """While somebody waits on the sockets, `close` by another thread leaves them open: numbers are used again."""
        return self

    def __enter__(self) -> None:
        with self._using:
            if self.closed:
                raise Gone
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._using:
            self._users -= 1
            self._release_unless_used()

    def _release_unless_used(self) -> None:
        if self.closed and not self._users:
            self._sock.close()
            self._control.close()


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else min(max(0.0, seconds * 1000), _LONGEST_POLL)


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
