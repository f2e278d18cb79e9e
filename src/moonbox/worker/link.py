"""The host's end of one worker: its socket, framed and bounded, and its control. Knows nothing of what is said."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from time import monotonic
from typing import TYPE_CHECKING, Any, Self

from moonbox.errors import WorkerError
from moonbox.native import extension
from moonbox.worker.control import Bell
from moonbox.worker.encoding import Reader
from moonbox.worker.protocol import HEADER, READY

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.worker.control import Control, CpuClock, WorkerProcess
    from moonbox.worker.jail import Layer

__all__ = ["Gone", "Link", "Unread"]

_NATIVE = extension("worker._wire")
WIRE: Any = getattr(_NATIVE, "Wire", None)
"""Makes the native exchange of a socket, which reads the system's clock by itself; None where there is none."""

_CHUNK = 1 << 18
_FIRST = 1 << 14  # bytes; most frames are shorter, and more than that the C library would map and unmap each time
_LARGEST_FRAME = 1 << 20
_IN_PLACE = 1 << 22  # bytes; beyond that a buffer that grows, whose pages are reused, is quicker than new pages
_LONGEST_POLL = 1e9  # milliseconds; the system call takes no more than 31 bits


class Gone(WorkerError):
    """The worker has ended, or hung up."""

    def __init__(self) -> None:
        super().__init__("the worker is gone")


class Unread(WorkerError):
    """The worker does not read what it is sent."""

    def __init__(self) -> None:
        super().__init__("it does not read what it is sent")


class Link:
    """Sends and receives frames, blocking or awaited.

    One thread at a time sends and receives. `wake`, `interrupt`, `hang_up` and `close` are safe from any thread. Use it
    as a context manager while waiting on it: `close` by another thread then leaves the socket open until the wait is
    over, because the operating system would give its number to others. Outside of that the worker is idle, and whoever
    keeps house may freeze it.
    """

    greeting: bytes | None = None
    """What the worker said of its jail, once it has."""
    configured: object = None
    """What the worker was configured with last; None for what its source gives every worker."""
    memory = 0
    """Bytes that its scripts may hold; 0 for what its source gives every worker."""
    closed = False
    on_thaw: Callable[[], object] | None = None
    """Called when a frozen worker is used again."""
    _frozen = False
    _bell: Bell | None = None
    _poll: select.poll | None = None

    def __init__(
        self,
        sock: socket.socket,
        control: Control,
        pid: int | None,
        process: WorkerProcess,
        *,
        native: bool = False,
        cpu: CpuClock | None = None,
    ) -> None:
        self.pid = pid
        self.cpu = cpu
        """Tells the seconds of processor time that the worker has spent; None where the system does not tell."""
        self.native = native
        """The worker's loop is the native one, which reads MessagePack."""
        self._process = process
        self._sock = sock
        self._wire = None if WIRE is None else WIRE(sock.fileno(), HEADER.unpack_from, pid or 0)
        self._control = control
        self.reader = Reader(_LARGEST_FRAME)
        """Holds what has arrived; its `largest` is how large a frame may be."""
        # A use begins and ends in one step. Whoever uses it says so before it looks whether it is closed or frozen, and
        # the other way round: so one of two threads sees the other, and only then the lock is needed.
        self._uses: list[None] = []
        self._changing = threading.Lock()
        self._idle_since = monotonic()
        sock.setblocking(False)

    def _poller(self) -> select.poll:
        """Made when it is first asked for: the native exchange does without."""
        poll = self._poll
        if poll is None:
            poll = self._poll = select.poll()
            poll.register(self._sock.fileno(), select.POLLIN)
        return poll

    def wait_until_ready(self, deadline: float) -> None:
        """Until the worker has said that it is locked in; WorkerError where it does not."""
        while self.greeting is None:
            if not self._poller().poll(max(0.0, (deadline - monotonic()) * 1000)):
                raise WorkerError("the worker did not start in time")
            frame = self.reader.next() if self._read() else None
            if frame is not None:
                if frame[0] != READY:
                    raise WorkerError("the worker did not say how it is locked in")
                self.greeting = frame[1]

    def fileno(self) -> int:
        """The number of its main socket; -1 when it has been released."""
        return self._sock.fileno()

    def layers(self) -> tuple[Layer, ...]:
        """What the worker said of its jail."""
        from moonbox.worker.jail import Layer

        return Layer.read(self.greeting or b"")

    # Blocking

    def exchange(self, data: bytes, deadline: float | None, give_up: float | None) -> tuple[int, bytes] | None:
        """Send all of it and receive the next frame, as `send` and `receive` do, mostly in one go.

        Unread when the worker has not taken the data by the time to give up.
        """
        reader = self.reader
        if self._wire is not None and WIRE is not None and self._bell is None and not reader.buffer:
            try:
                got = self._wire.exchange(data, -1.0 if deadline is None else deadline)
            except OSError:
                raise Gone from None
            if type(got) is tuple:  # most often it is one whole frame
                if got[0] != READY and len(got[1]) <= reader.largest:
                    return got
                return self._after(reader.take(HEADER.pack(got[0], len(got[1])) + got[1]), deadline)
            if got is None:
                return None
            if type(got) is bytes:
                if not got:
                    raise Gone
                return self._after(reader.take(got), deadline)
            data = data[got:]
        # Half a frame would make the worker useless, so that there may be more time to send than to receive.
        if data and not self.send(data, give_up):
            raise Unread
        return self.receive(deadline)

    def _after(self, frame: tuple[int, bytes] | None, deadline: float | None) -> tuple[int, bytes] | None:
        """This frame, the one after a greeting, or the whole of one of which a part has arrived."""
        if frame is not None:
            if frame[0] != READY or self.greeting is not None:
                return frame
            self.greeting = frame[1]
        return self._rest_of_large(deadline) or self.receive(deadline)

    def _rest_of_large(self, deadline: float | None) -> tuple[int, bytes] | None:
        """A large frame whose beginning has arrived, received where it stays; None for all else and at the deadline."""
        buffer = self.reader.buffer
        kind, length = HEADER.unpack_from(buffer) if len(buffer) > HEADER.size else (READY, 0)
        if not _FIRST <= length < _IN_PLACE or kind == READY or self._wire is None:
            return None
        start = bytes(memoryview(buffer)[HEADER.size :])
        try:
            payload = self._wire.fill(start, length, -1.0 if deadline is None else deadline)
        except OSError:
            raise Gone from None
        if len(payload) == length:
            buffer.clear()
            return kind, payload
        buffer += payload[len(start) :]
        return None

    def send(self, data: bytes, deadline: float | None = None) -> bool:
        """Send all of it; False when the worker does not take it before the deadline. Gone when it cannot."""
        view = memoryview(data)
        try:
            while view:
                try:
                    view = view[self._sock.send(view) :]
                except BlockingIOError:
                    if not self._wait_to_send(deadline):
                        return False
        except (OSError, ValueError):
            raise Gone from None
        return True

    def receive(self, deadline: float | None = None) -> tuple[int, bytes] | None:
        """The next frame; None at the deadline or when woken. WorkerError when the worker is gone or malicious."""
        reader = self.reader
        frame = reader.next() if reader.buffer else None
        while frame is None:
            try:
                rest = None if deadline is None else min(max(0.0, (deadline - monotonic()) * 1000), _LONGEST_POLL)
                ready = (self._poll or self._poller()).poll(rest)
                if not ready or (self._bell is not None and self._bell.has_rung(ready)):
                    return None
                data = self._sock.recv(_CHUNK if reader.buffer else _FIRST)
            except BlockingIOError:
                continue
            except (OSError, ValueError):
                raise Gone from None
            if not data:
                raise Gone
            frame = reader.take(data)
            if frame is not None and frame[0] == READY and self.greeting is None:
                self.greeting = frame[1]
                frame = reader.next() if reader.buffer else None
        return frame

    def wake(self) -> None:
        """Make `receive` return. Nothing is lost when nobody waits: the next wait ends at once."""
        with self._changing:
            if self._bell is not None:
                self._bell.ring()

    def let_wake(self) -> None:
        """From here on `wake` is heard. Not by default: most workers never need the sockets that this takes."""
        with self._changing:
            if self._bell is None and not self.closed:
                self._bell = Bell()
                self._poller().register(self._bell.number, select.POLLIN)

    def stop_waking(self) -> None:
        """The wait is over: give the bell's descriptors back."""
        if self._bell is None:
            return
        with self._changing:
            bell, self._bell = self._bell, None
            if bell is not None:
                self._poller().unregister(bell.number)
                bell.close()

    def alive(self) -> bool:
        """Whether the worker, which has nothing to say now, still holds its end and says nothing."""
        if self.closed:
            return False
        reader, wire = self.reader, self._wire if self._bell is None else None
        try:
            while self.greeting is None:
                if wire is not None and not reader.buffer:  # mostly one whole frame
                    got = wire.exchange(b"", 0.0)
                else:
                    got = self._sock.recv(_FIRST) if self._poller().poll(0) else None
                if got is None:
                    return True  # it is on its way
                frame = reader.take(got) if type(got) is bytes else got
                if not got or (frame is not None and frame[0] != READY):
                    return False
                self.greeting = None if frame is None else frame[1]
            if not reader.buffer:  # the usual case, without an exception
                if wire is not None and wire.is_quiet():
                    return True
                ready = (self._poll or self._poller()).poll(0)
                if not ready or (self._bell is not None and self._bell.has_rung(ready) and len(ready) == 1):
                    return True
            return not (reader.buffer or self._read())
        except (WorkerError, OSError, ValueError):
            return False

    # Awaited

    def send_now(self, data: bytes) -> bytes:
        """Send what can be sent without waiting; the rest, nearly always empty, is for `asend`."""
        try:
            return data[self._sock.send(data) :]
        except BlockingIOError:
            return data
        except (OSError, ValueError):
            raise Gone from None

    async def asend(self, rest: bytes) -> None:
        """Send what `send_now` left; one caller at a time."""
        from asyncio import get_running_loop  # slow to load: only where it is there already

        try:
            await get_running_loop().sock_sendall(self._sock, rest)
        except (OSError, ValueError):
            raise Gone from None

    async def areceive(self) -> tuple[int, bytes]:
        """The next frame; cancel it to give up waiting."""
        from asyncio import get_running_loop

        loop = get_running_loop()
        reader = self.reader
        while True:
            frame = reader.next()
            if frame is not None:
                if frame[0] != READY or self.greeting is not None:
                    return frame
                self.greeting = frame[1]
                continue
            try:
                data = await loop.sock_recv(self._sock, _CHUNK if reader.buffer else _FIRST)
            except (OSError, ValueError):
                data = b""
            if not data:
                raise Gone
            reader.buffer += data

    # The end

    def interrupt(self, number: int, reason: int) -> None:
        """Tell the worker to stop that run."""
        self._control.interrupt(number, reason)

    def touch(self) -> None:
        """It is about to be used: it counts as idle from now on only."""
        self._idle_since = monotonic()

    def freeze_idle(self, before: float) -> bool:
        """Freeze the worker if nobody has used it since then. False: it has to be looked at again."""
        with self._changing:
            if self._frozen or self.closed:
                return True
            self._frozen = True
            if self._uses or self._idle_since > before:
                self._frozen = False
                return False
            self._frozen = self._control.freeze(self.memory)
            return True

    def hang_up(self) -> None:
        """Nothing more goes either way: whoever waits here is told that the worker is gone, and the worker ends."""
        with self._changing:
            self._end(tell=True)

    def _end(self, *, tell: bool) -> None:
        if not self.closed:
            self.closed = True
            if tell:
                with contextlib.suppress(OSError):
                    self._sock.shutdown(socket.SHUT_RDWR)
            self._control.release()

    def close(self) -> None:
        """Hang up, and let go of the sockets as soon as nobody uses them."""
        with self._changing:
            self._end(tell=bool(self._uses))
            if not self._uses:
                self._release()

    def kill(self) -> str:
        """End the worker now, and close; words for how it had ended."""
        status = self._process.kill()
        self.close()
        return status

    def __enter__(self) -> Self:
        self.begin_use()
        return self

    def __exit__(self, *_: object) -> None:
        self.end_use()

    def begin_use(self) -> None:
        """The same as entering it, more quickly; `end_use` must follow."""
        self._uses.append(None)
        if self.closed:
            self.end_use()
            raise Gone
        if self._frozen:
            with self._changing:
                thawed, self._frozen = self._frozen, False
                if thawed:
                    self._control.thaw()
            if thawed and self.on_thaw is not None:
                self.on_thaw()

    def end_use(self) -> None:
        self._idle_since = monotonic()
        self._uses.pop()
        if self.closed:
            with self._changing:
                if not self._uses:
                    self._release()

    def _release(self) -> None:
        self._sock.close()
        bell, self._bell = self._bell, None
        if bell is not None:
            bell.close()

    def _wait_to_send(self, deadline: float | None) -> bool:
        if deadline is not None and monotonic() >= deadline:
            return False
        poll = select.poll()
        poll.register(self._sock.fileno(), select.POLLOUT)
        poll.poll(None if deadline is None else min(max(0.0, (deadline - monotonic()) * 1000), _LONGEST_POLL))
        return True

    def _read(self) -> bool:
        try:
            data = self._sock.recv(_CHUNK if self.reader.buffer else _FIRST)
        except BlockingIOError:
            return False
        except (OSError, ValueError):
            data = b""
        if not data:
            raise Gone
        self.reader.buffer += data
        return True
