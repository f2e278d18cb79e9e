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
from moonbox.worker.encoding import FrameReader
from moonbox.worker.protocol import READY

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from moonbox.worker.control import Control, CpuClock
    from moonbox.worker.jail import Layer

_Wire: Any = getattr(extension("worker._wire"), "Wire", None)
_CHUNK = 1 << 18
_FIRST = 1 << 14  # bytes; most frames are shorter, and the C library maps and unmaps larger blocks each time
_LARGEST_FRAME = 1 << 20
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

    One thread at a time sends and receives. `wake`, `interrupt`, `hang_up` and `close` are safe from any thread. Enter
    it as a context manager to use it: then `close` by another thread leaves the socket open until the use is over,
    because the operating system would give its number to another socket. An idle worker, not in use, may be frozen.
    """

    greeting: bytes | None = None
    """What the worker said of its jail."""
    template: object = None
    """What its source has given it; None where that is not known."""
    configured: object = None
    """What the worker was configured with since; None if with nothing."""
    memory = 0
    """Bytes that its scripts may hold; 0 for what its source gives every worker."""
    closed = False
    host_lost = False
    """The worker is gone because its machine is; known after `kill`."""
    on_thaw: Callable[[], object] | None = None
    """Called when a frozen worker is used again."""
    bell: Bell | None = None
    """Ends a wait for the worker from another thread; None where nothing may."""
    _frozen = False
    _poll: select.poll | None = None

    def __init__(
        self,
        sock: socket.socket,
        control: Control,
        pid: int | None = None,
        *,
        kill: Callable[[], str] | None = None,
        native: bool = False,
        cpu: CpuClock | None = None,
    ) -> None:
        self.pid = pid
        self.cpu = cpu
        """Gives the seconds of processor time that the worker has spent; None where the system does not."""
        self.native = native
        """The worker's loop is the native one, which reads MessagePack."""
        self.reader = FrameReader(_LARGEST_FRAME)
        """Holds what has arrived; its `largest` is how large a frame may be."""
        self._kill = kill  # ends its process, if it has one, and describes how it had ended
        self._sock = sock
        self._wire = None if _Wire is None else _Wire(sock.fileno())
        self._control = control
        self._uses = 0
        self._changing = threading.RLock()  # guards `closed`, `_uses`, `_frozen` and `bell`
        self._idle_since = monotonic()
        sock.setblocking(False)

    def wait_until_ready(self, deadline: float) -> None:
        """Until the worker has said that it is locked in; raises WorkerError where it does not."""
        while self.greeting is None:
            if not self._poller().poll(max(0.0, (deadline - monotonic()) * 1000)):
                raise WorkerError("the worker did not start in time")
            self.take()
            if self.next_frame() is not None:
                raise WorkerError("the worker sent a frame before it was asked for anything")

    def fileno(self) -> int:
        """The number of its main socket; -1 when it has been released."""
        return self._sock.fileno()

    def layers(self) -> tuple[Layer, ...]:
        """What the worker said of its jail."""
        from moonbox.worker.jail import Layer

        return Layer.read(self.greeting or b"")

    # Blocking

    def exchange(self, data: bytes, deadline: float | None, give_up: float | None) -> tuple[int, bytes] | None:
        """Send all of it and receive the next frame, as `send` and `receive` do; in one system call each, mostly.

        Raises Unread when the worker has not taken the data by the time to give up. That is later than the deadline:
        half a frame would make the worker useless.
        """
        reader = self.reader
        if self._wire is not None and self.bell is None and not reader.buffer:
            try:
                got = self._wire.exchange(data, -1.0 if deadline is None else deadline, reader.buffer, reader.largest)
            except OSError:
                raise Gone from None
            if type(got) is tuple:  # nearly always it is one whole frame
                return got if self.greeting is not None else self._greeted(got) or self.receive(deadline)
            if got is None:
                return None
            if got is True:
                return self.receive(deadline)
            if got == b"":
                raise Gone
            data = data[got:]
        if data and not self.send(data, give_up):
            raise Unread
        return self.receive(deadline)

    def send(self, data: bytes, deadline: float | None = None) -> bool:
        """Send all of it; False when the worker does not take it before the deadline. Raises Gone when it cannot."""
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
        """The next frame; None at the deadline or when woken. Raises WorkerError when the worker is gone or hostile."""
        frame = self.next_frame()
        while frame is None:
            try:
                rest = None if deadline is None else min(max(0.0, (deadline - monotonic()) * 1000), _LONGEST_POLL)
                ready = self._poller().poll(rest)
            except (OSError, ValueError):
                raise Gone from None
            if not ready or (self.bell is not None and self.bell.has_rung(ready)):
                return None
            self.take()
            frame = self.next_frame()
        return frame

    def wake(self) -> None:
        """Make `receive` return. Where no thread waits, the next wait ends at once."""
        with self._changing:
            if self.bell is not None:
                self.bell.ring()

    def let_wake(self) -> None:
        """From here on `wake` has an effect. Most runs never need the two sockets that this takes."""
        with self._changing:
            if self.bell is None and not self.closed:
                self.bell = Bell()
                self._poller().register(self.bell.number, select.POLLIN)

    def stop_waking(self) -> None:
        """From here on `wake` has no effect; its sockets are closed."""
        with self._changing:
            bell, self.bell = self.bell, None
            if bell is not None:
                self._poller().unregister(bell.number)
                bell.close()

    def alive(self) -> bool:
        """Whether the worker, which has nothing to say now, holds its end and says nothing."""
        with self._changing:  # the descriptor cannot be released
            if self.closed:
                return False
            try:
                while (self._poll or self._poller()).poll(0) and self.take():
                    if self.next_frame() is not None:
                        return False
                return self.greeting is None or not self.reader.buffer
            except WorkerError:
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

    def start_reading(self, loop: asyncio.AbstractEventLoop, ready: Callable[[], object]) -> None:
        """Have the loop call `ready` whenever there is something to `take`, until `stop_reading`."""
        try:
            loop.add_reader(self._sock.fileno(), ready)
        except (OSError, ValueError):
            raise Gone from None

    def stop_reading(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.remove_reader(self._sock.fileno())

    # The end

    def interrupt(self, number: int, reason: int) -> None:
        """Make the worker stop that run."""
        self._control.interrupt(number, reason)

    def touch(self) -> None:
        """It is about to be used: it counts as idle from now on only."""
        self._idle_since = monotonic()

    def idle_seconds(self) -> float:
        """How long ago it was used; 0 while it is in use."""
        return 0.0 if self._uses else monotonic() - self._idle_since

    def freeze_idle(self, before: float) -> bool:
        """Freeze the worker if it has not been used since then. False: it has to be looked at again."""
        with self._changing:
            if self._frozen or self.closed:
                return True
            if self._uses or self._idle_since > before:
                return False
            self._frozen = self._control.freeze(self.memory)
            return True

    def hang_up(self) -> None:
        """Nothing more goes either way: a thread that waits here gets Gone, and the worker ends."""
        with self._changing:
            self._end(tell=True)

    def close(self) -> None:
        """Hang up, and close the sockets as soon as they are not in use."""
        with self._changing:
            self._end(tell=self._uses > 0)
            if not self._uses:
                self._release()

    def kill(self) -> str:
        """End the worker now, and close; words for how it had ended."""
        status = self._kill() if self._kill is not None else ""
        self.close()
        return status

    def __enter__(self) -> Self:
        with self._changing:
            if self.closed:
                raise Gone
            self._uses += 1
            thaws, self._frozen = self._frozen, False
            if thaws:
                self._control.thaw()
        if thaws and self.on_thaw is not None:
            self.on_thaw()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changing:
            self._uses -= 1
            self._idle_since = monotonic()
            if self.closed and not self._uses:
                self._release()

    def _end(self, *, tell: bool) -> None:
        if not self.closed:
            self.closed = True
            if tell:
                with contextlib.suppress(OSError):
                    self._sock.shutdown(socket.SHUT_RDWR)
            self._control.release()

    def _release(self) -> None:
        self._sock.close()
        bell, self.bell = self.bell, None
        if bell is not None:
            bell.close()

    # Bytes

    def _poller(self) -> select.poll:
        """Made when it is first needed: the native exchange does without."""
        poll = self._poll
        if poll is None:
            poll = self._poll = select.poll()
            poll.register(self._sock.fileno(), select.POLLIN)
        return poll

    def _wait_to_send(self, deadline: float | None) -> bool:
        if deadline is not None and monotonic() >= deadline:
            return False
        poll = select.poll()
        poll.register(self._sock.fileno(), select.POLLOUT)
        poll.poll(None if deadline is None else min(max(0.0, (deadline - monotonic()) * 1000), _LONGEST_POLL))
        return True

    def next_frame(self) -> tuple[int, bytes] | None:
        """The next whole frame of what was taken; None while there is none.

        The first of all is the greeting: it is kept, and the one after it returned.
        """
        frame = self.reader.next()
        return frame if frame is None or self.greeting is not None else self._greeted(frame)

    def _greeted(self, frame: tuple[int, bytes]) -> tuple[int, bytes] | None:
        """Keep the greeting; what comes behind it."""
        if frame[0] != READY:
            raise WorkerError("the worker did not say how it is locked in")
        self.greeting = frame[1]
        return self.reader.next()

    def take(self) -> bool:
        """Take what has arrived; False where nothing has. Raises Gone when the worker is gone."""
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
