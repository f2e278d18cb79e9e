"""The pool: starts the zygote, keeps spare workers warm, hands them out and makes sure that they end."""

from __future__ import annotations

import array
import contextlib
import marshal
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from moonbox.errors import ClosedError, PoolTimeout, WorkerError
from moonbox.worker.jail.status import describe_exit
from moonbox.worker.link import Link, socket_pairs
from moonbox.worker.zygote import LENGTH

__all__ = ["Ending", "Pool", "ProcessSource", "WorkerSource"]

_START_SECONDS = 20.0
_BREATH = 0.01
_REPLY_SECONDS = 5.0


class Ending(Protocol):
    """How a worker can be ended, and what became of it."""

    def kill(self) -> str:
        """End it now; words for how it had ended, "" when nothing is known."""


class WorkerSource(Protocol):
    """Where workers come from: a zygote process, or threads of this one."""

    def spawn(self) -> Link:
        """A new worker that has been configured; its READY is still to be read."""

    def configure(self, config: dict[str, Any]) -> None:
        """What workers spawned from now on start with."""

    def close(self) -> None: ...


class Pool:
    """Hands out workers: at most `most` at once, of which some wait ready-made."""

    def __init__(self, source: WorkerSource, *, spares: int, most: int) -> None:
        self._source = source
        self._want_spares = spares
        self._most = most
        self._spares: deque[Link] = deque()
        self._live = 0  # handed out, spare, or being made
        self._closed = False
        self._changed = threading.Condition()
        self._out: set[Link] = set()
        self._awaiting: list[Future[None]] = []
        self._refiller: threading.Thread | None = None

    def checkout(self, timeout: float | None) -> Link:
        """A worker for one Repl. Waits while `most` are out; PoolTimeout after `timeout` seconds."""
        link = self.try_checkout()
        deadline = None if timeout is None else time.monotonic() + timeout
        while link is None:
            with self._changed:
                self._check_open()
                if not self._spares and self._live >= self._most:
                    rest = None if deadline is None else deadline - time.monotonic()
                    if (rest is not None and rest <= 0) or not self._changed.wait(rest):
                        raise self._all_in_use(timeout)
                    continue
            link = self.try_checkout()
        return link

    async def acheckout(self, timeout: float | None) -> Link:
        """The same, awaited. Cancelled, it leaves no worker behind."""
        import asyncio

        try:
            async with asyncio.timeout(timeout):
                while True:
                    change = self._next_change()
                    link = self.try_spare() or await self._try_elsewhere()
                    if link is not None:
                        return link
                    await asyncio.wrap_future(change)
        except TimeoutError:
            raise self._all_in_use(timeout) from None

    async def _try_elsewhere(self) -> Link | None:
        """`try_checkout` in a thread, because starting a worker blocks; nobody may be there any more to take it."""
        import asyncio

        future: Future[Link | None] = Future()

        def attempt() -> None:
            try:
                link = self.try_checkout()
            except BaseException as problem:  # noqa: BLE001 - raised where it is awaited
                with contextlib.suppress(InvalidStateError):
                    future.set_exception(problem)
                return
            try:
                future.set_result(link)
            except InvalidStateError:  # cancelled
                if link is not None:
                    self.discard(link)

        threading.Thread(target=attempt, name="moonbox-checkout", daemon=True).start()
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if not future.cancelled() and (link := future.result()) is not None:
                self.discard(link)
            raise

    def _next_change(self) -> Future[None]:
        """Done when a worker may have become free."""
        with self._changed:
            self._check_open()
            self._awaiting.append(Future())
            return self._awaiting[-1]

    def _tell(self) -> None:
        """To those who wait: a worker may have become free. The lock is held."""
        self._changed.notify_all()
        awaiting, self._awaiting = self._awaiting, []
        for future in awaiting:
            with contextlib.suppress(InvalidStateError):
                future.set_result(None)

    def _all_in_use(self, timeout: float | None) -> PoolTimeout:
        return PoolTimeout(
            f"all {self._most} workers are in use and none became free within {timeout:g} s; "
            "close a Repl, or raise Sandbox(max_workers=…)"
        )

    def try_spare(self) -> Link | None:
        """A spare worker if there is one; never blocks."""
        with self._changed:
            self._check_open()
            while self._spares:
                link = self._spares.popleft()
                if link.alive():
                    self._out.add(link)
                    self._wake_refiller()
                    return link
                link.close()
                self._live -= 1
                self._tell()
        return None

    def try_checkout(self) -> Link | None:
        """A worker if one can be had without waiting for another to be returned."""
        link = self.try_spare()
        if link is not None:
            return link
        with self._changed:
            self._check_open()
            if self._live >= self._most:
                return None
            self._live += 1
            self._wake_refiller()
        return self._make(out=True)

    def discard(self, link: Link) -> None:
        """A worker that is no longer needed, dead or alive."""
        link.close()
        with self._changed:
            if link in self._out:
                self._out.discard(link)
                self._live -= 1
                self._tell()

    def configure(self, config: dict[str, Any]) -> None:
        """Change what new workers start with; spares made before are replaced."""
        self._source.configure(config)
        with self._changed:
            stale, self._spares = self._spares, deque()
            self._live -= len(stale)
            self._tell()
        for link in stale:
            link.close()

    def warm(self) -> None:
        """Begin to make spares in the background."""
        with self._changed:
            if not self._closed:
                self._wake_refiller()

    def close(self) -> None:
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._tell()
            links = [*self._spares, *self._out]
            refiller = self._refiller
        if refiller is not None and refiller is not threading.current_thread():
            refiller.join()
        links = list({*links, *self._spares, *self._out})
        for link in links:
            link.close()
        self._source.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the Sandbox is closed")

    def _make(self, *, out: bool) -> Link:
        try:
            link = self._source.spawn()
        except BaseException:
            with self._changed:
                self._live -= 1
                self._tell()
            raise
        with self._changed:
            (self._out.add if out else self._spares.append)(link)
            self._tell()
        return link

    def _wake_refiller(self) -> None:
        if len(self._spares) < self._want_spares and self._live < self._most:
            if self._refiller is None:
                self._refiller = threading.Thread(target=self._refill, name="moonbox-pool", daemon=True)
                self._refiller.start()
            self._changed.notify_all()

    def _refill(self) -> None:
        while True:
            with self._changed:
                while not self._closed and (len(self._spares) >= self._want_spares or self._live >= self._most):
                    self._changed.wait()
                in_no_hurry = bool(self._spares)
            if in_no_hurry:
                time.sleep(_BREATH)  # whoever has just taken a worker runs first: forking beside it would slow it down
            with self._changed:
                if self._closed:
                    return
                if len(self._spares) >= self._want_spares or self._live >= self._most:
                    continue
                self._live += 1
            try:
                self._make(out=False)
            except (WorkerError, OSError):
                # The next checkout makes its own attempt and reports; trying again at once would only spin.
                with self._changed:
                    self._changed.wait(0.5)


@dataclass(frozen=True, slots=True)
class _Process:
    """A worker process; it is killed through its parent, so that no other process can be hit."""

    source: ProcessSource
    pid: int

    def kill(self) -> str:
        return self.source.kill(self.pid)


class ProcessSource:
    """Workers forked from a zygote process, which is started when first needed and again if it dies."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._closed = False

    def spawn(self) -> Link:
        main, control, theirs, theirs_control = socket_pairs()
        try:
            with theirs, theirs_control:
                _, pid = self._request(("spawn",), (theirs.fileno(), theirs_control.fileno()))
        except BaseException:
            main.close()
            control.close()
            raise
        return Link(main, control, pid, _Process(self, pid))

    def configure(self, config: dict[str, Any]) -> None:
        self._config = config
        if self._socket is not None:
            self._request(("configure", config))

    def kill(self, pid: int) -> str:
        try:
            _, status = self._request(("kill", pid), restart=False)
        except WorkerError:
            return ""
        return "" if status is None else describe_exit(status)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._end()

    @property
    def zygote_pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def _request(self, request: tuple[Any, ...], fds: tuple[int, ...] = (), *, restart: bool = True) -> Any:
        with self._lock:
            if self._closed:
                raise WorkerError("the Sandbox is closed")
            if self._socket is None and not restart:
                raise WorkerError("the zygote is gone")
            for attempt in (1, 2, 3):
                try:
                    if self._socket is None:
                        self._start()
                    return self._exchange(request, fds)
                except (OSError, WorkerError) as problem:
                    self._end()
                    if attempt == 3 or not restart:
                        raise WorkerError(f"the zygote process does not answer: {problem}") from None
        raise AssertionError

    def _start(self) -> None:
        if not sys.executable:
            raise WorkerError('there is no Python interpreter to start workers with; use Sandbox(isolation="inline")')
        ours, theirs = socket.socketpair()
        ours.settimeout(_START_SECONDS)
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", _boot(theirs.fileno())],
                    pass_fds=(theirs.fileno(),),
                    env={},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    start_new_session=True,
                    cwd="/",
                )
            except OSError as problem:
                ours.close()
                raise WorkerError(f"the zygote process cannot be started: {problem}") from problem
        self._socket = ours
        try:
            self._exchange(("configure", self._config), ())
        except (OSError, WorkerError) as problem:
            self._end()
            raise WorkerError(f"the zygote process did not come up: {problem}") from problem
        ours.settimeout(_REPLY_SECONDS)

    def _exchange(self, request: tuple[Any, ...], fds: tuple[int, ...]) -> Any:
        assert self._socket is not None
        payload = marshal.dumps(request)
        payload = LENGTH.pack(len(payload)) + payload
        if fds:
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
            payload = payload[self._socket.sendmsg([payload], rights) :]
        self._socket.sendall(payload)
        (length,) = LENGTH.unpack(self._exactly(LENGTH.size))
        return marshal.loads(self._exactly(length))

    def _exactly(self, size: int) -> bytes:
        assert self._socket is not None
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise WorkerError("it ended")
            data += more
        return data

    def _end(self) -> None:
        """Hang up and see the zygote go; it takes its workers along."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            try:
                self._process.wait(2.0)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._process.pid, signal.SIGKILL)
                self._process.wait()
            self._process = None


def _boot(fd: int) -> str:
    """The zygote's program: only the folders of moonbox and lupa are on its path."""
    import lupa

    import moonbox

    folders = [str(Path(module.__path__[0]).parent) for module in (moonbox, lupa)]
    return f"import sys; sys.path[:0] = {folders!r}; from moonbox.worker.zygote import main; main({fd})"
