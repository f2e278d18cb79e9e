"""A server in a process of its own: messages over its pipes, all of them bounded.

A server that floods its output is slowed down: its pipe fills up and it has to wait. Lines on its standard output that
are not messages are skipped. A line that is too long ends the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections import deque
from secrets import token_hex
from typing import TYPE_CHECKING

import anyio
import mcp_types as types
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

from moonbox.mcp.streams import MessageReader, MessageWriter
from moonbox.mcp.upstreams.errors import ConnectionLost, with_last_output
from moonbox.tools.results import scrub
from moonbox.wording import visible

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
    from typing import Any

    from moonbox.config.mcp import ServerSettings

UNREQUESTED_PER_SECOND = 1024 * 1024
"""Bytes of messages that are not responses, and of lines that are not messages."""
STDERR_PER_SECOND = 1024 * 1024
_MESSAGE_COST, _LINE_COST = 1_000, 16
"""What each costs in addition to its bytes."""
_CHUNK = 65_536
_LAST_OUTPUT_SECONDS = 0.2
_GRACE_SECONDS = 1.0
_GUARD = """
read -r line || kill -s KILL -- "-$1"  # the end of its input means that the host is gone
for attempt in 1 2 3 4 5 6 7 8 9 10; do  # those that are being started meanwhile are found the next time
  found=$(grep -lsF -e "$2" /proc/[0-9]*/environ)
  [ -n "$found" ] || exit 0
  for file in $found; do
    pid=${file#/proc/}
    kill -s KILL "${pid%/environ}"
  done
done
"""
_MARK = "MOONBOX_SERVER"
_SAFE_VARIABLES = ("LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ")


class ServerProcess:
    """Starts the server, carries its messages, and ends it together with everything that it started."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self._throttle = Throttle(UNREQUESTED_PER_SECOND)
        self._expected = 0  # responses that we wait for, which are not throttled
        self._process: _Process | None = None
        self._reason = ""
        self.output = OutputTail()
        self.ended = asyncio.Event()
        """Set when nothing more can come from it."""
        self.refusal = ""

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[tuple[MessageReader, MessageWriter]]:
        """The transport's two streams; ends the process on the way out."""
        mark = token_hex(16)
        self._process = process = await self._started(mark)
        guard = Guard(process.pid, mark)
        reader = MessageReader(self._read, self._parse, self._reading_ended, max_line=self.settings.max_message)
        writer = MessageWriter(self._write, self._count)
        watchers = [asyncio.create_task(self._read_stderr(process)), asyncio.create_task(self._watch(process))]
        try:
            yield reader, writer
        finally:
            try:
                await _uninterrupted(_stop(process, watchers))
            finally:
                await _uninterrupted(asyncio.to_thread(guard.dismiss))

    async def _started(self, mark: str) -> _Process:
        """The process; a start that is cancelled is waited for all the same, so that the process can be ended."""
        starting = asyncio.ensure_future(_start(self.settings, mark))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            await _uninterrupted(_stop_started(starting))
            raise

    def end(self, reason: str) -> None:
        """Declare it ended; `reason` says why, and is empty if its exit status does."""
        if not self.ended.is_set():
            self._reason = reason
            self.ended.set()

    def end_reason(self) -> str:
        """How it ended, with its last line of output."""
        status = None if self._process is None else self._process.status
        reason = self._reason or ("it closed its output" if status is None else _describe_status(status))
        last = self.output.last_line() if not self._reason and (status is None or status > 0) else ""
        return with_last_output(reason, last)

    # The pipes

    async def _read(self) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            return await self._process.stdout.read(_CHUNK)
        except OSError:
            return b""

    async def _parse(self, line: bytes) -> SessionMessage | None:
        line = line.strip()
        if not line:
            return None
        message = None
        if line.startswith(b"{"):
            with contextlib.suppress(ValueError):
                message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        if message is None:
            self.output.add(b"stdout: " + line[:500] + b"\n")
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError) and self._expected:
            self._expected -= 1
        else:
            await self._throttle.spend(len(line) + (_LINE_COST if message is None else _MESSAGE_COST))
        return None if message is None else SessionMessage(message)

    async def _reading_ended(self, reason: str) -> None:
        if not reason and self._process is not None:
            await self._process.wait(_LAST_OUTPUT_SECONDS)  # so that waiting calls learn its exit status
        self.end(reason)

    async def _write(self, data: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            await self._process.stdin.drain()
        except OSError:
            self.end("" if await self._process.wait(_LAST_OUTPUT_SECONDS) else "it closed its input")
            raise anyio.BrokenResourceError from None

    def _count(self, item: SessionMessage) -> None:
        self._expected += isinstance(item.message, types.JSONRPCRequest)

    async def _read_stderr(self, process: _Process) -> None:
        assert process.stderr is not None
        throttle = Throttle(STDERR_PER_SECOND)
        while chunk := await process.stderr.read(_CHUNK):
            self.output.add_lines(chunk)
            await throttle.spend(len(chunk))

    async def _watch(self, process: _Process) -> None:
        """Notice its exit even while one of its children holds the pipes open."""
        await process.exited.wait()
        await asyncio.sleep(_LAST_OUTPUT_SECONDS)  # the reader may still be at its last output
        self.end("")


class _Process(asyncio.subprocess.SubprocessStreamProtocol):
    """A process with its pipes as streams, and its exit as an event.

    `asyncio.subprocess.Process.wait` returns only when the pipes are closed too, which a grandchild may prevent.
    """

    def __init__(self) -> None:
        super().__init__(limit=_CHUNK, loop=asyncio.get_running_loop())
        self.exited = asyncio.Event()
        self.transport: asyncio.SubprocessTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(transport, asyncio.SubprocessTransport)
        self.transport = transport

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()

    @property
    def pid(self) -> int:
        return self.transport.get_pid()

    @property
    def status(self) -> int | None:
        return self.transport.get_returncode()

    async def wait(self, seconds: float) -> bool:
        """Whether it has exited by then."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.exited.wait()
        return self.exited.is_set()


async def _start(settings: ServerSettings, mark: str) -> _Process:
    assert settings.command is not None
    try:
        _, process = await asyncio.get_running_loop().subprocess_exec(
            _Process,
            settings.command,
            *settings.args,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**safe_environment(), **settings.env, _MARK: mark},
            cwd=settings.cwd,
            start_new_session=True,
        )
    except (OSError, ValueError) as problem:
        raise ConnectionLost(_start_error(settings, problem)) from None
    return process


async def _stop_started(starting: asyncio.Future[_Process]) -> None:
    with contextlib.suppress(ConnectionLost):
        await _stop(await starting, [])


async def _stop(process: _Process, watchers: list[asyncio.Task[None]]) -> None:
    """Close its input and wait; then SIGTERM; then SIGKILL."""
    if process.stdin is not None:
        process.stdin.close()
    for signal_number in (None, signal.SIGTERM, signal.SIGKILL):
        if signal_number is not None:
            _signal_group(process, signal_number)
        if await process.wait(_GRACE_SECONDS):
            break
    _signal_group(process, signal.SIGKILL)  # children that it left behind
    process.transport.close()  # a grandchild outside of the group may hold the pipes open
    for task in watchers:
        task.cancel()
    await asyncio.gather(*watchers, return_exceptions=True)


def _signal_group(process: _Process, number: signal.Signals) -> None:
    """Signal the process and everything that it started: it leads a process group of its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


class Guard:
    """A small process that outlives this one, and then kills a server with all that it started, however this one ended.

    Those are its process group and, on Linux, every process with the server's mark in its environment: daemons and
    others that have left the group inherit it. They are killed also when the server has ended while this process lives.

    The server's pipes close with this process too, but a server may ignore that. The kernel's own signal for it reaches
    neither what the server has started nor, where the thread that started the server ends first, the right moment.
    """

    def __init__(self, group: int, mark: str) -> None:
        try:
            self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
                ["/bin/sh", "-c", _GUARD, "moonbox-guard", str(group), f"{_MARK}={mark}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )
        except OSError:  # there is no shell
            self._process = None

    def dismiss(self) -> None:
        """The server has ended. Waits until what it has left behind has ended too."""
        if self._process is not None:
            with contextlib.suppress(OSError):
                self._process.communicate(b"\n")


async def _uninterrupted(work: Coroutine[Any, Any, None]) -> None:
    """Finish this however often the waiting task is cancelled before; then let it be cancelled."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError as problem:
                cancelled = problem
    if cancelled is not None:
        raise cancelled
    task.result()


class Throttle:
    """A token bucket: a caller that spends more than `per_second` waits."""

    def __init__(
        self,
        per_second: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = anyio.sleep,
    ) -> None:
        self._rate = per_second
        self._left = per_second
        self._clock = clock
        self._sleep = sleep
        self._seen = clock()

    async def spend(self, amount: float) -> None:
        now = self._clock()
        self._left = min(self._rate, self._left + (now - self._seen) * self._rate) - amount
        self._seen = now
        if self._left < 0:
            await self._sleep(-self._left / self._rate)


class OutputTail:
    """The end of what a process wrote."""

    def __init__(self, max_bytes: int = 8_192) -> None:
        self.on_line: Callable[[str], None] = lambda _: None
        """Called with each line of what was written to standard error, once it is complete."""
        self._max_bytes = max_bytes
        self._begun = b""
        self._parts: deque[bytes] = deque()
        self._size = 0
        self.private = False
        """It may say something about the call of one client, and is not shown to others."""

    def add_lines(self, chunk: bytes) -> None:
        """Add what was read, and pass complete lines on; a line that does not end is passed on in pieces."""
        self.add(chunk)
        *lines, self._begun = (self._begun + chunk).split(b"\n")
        if len(self._begun) > self._max_bytes:
            lines, self._begun = [*lines, self._begun], b""
        for line in lines:
            if text := line[: self._max_bytes].decode("utf-8", "replace").strip():
                self.on_line(text)

    def add(self, text: bytes) -> None:
        text = text[-self._max_bytes :]
        self._parts.append(text)
        self._size += len(text)
        while self._size - len(self._parts[0]) > self._max_bytes:
            self._size -= len(self._parts.popleft())

    def text(self) -> str:
        return b"".join(self._parts)[-self._max_bytes :].decode("utf-8", "replace")

    def last_line(self) -> str:
        """The last line, for people, scripts and clients: without secrets and terminal control characters."""
        if self.private:
            return ""
        lines = [line.strip() for line in self.text().splitlines() if line.strip()]
        return visible(scrub(lines[-1][-300:]), keep="") if lines else ""


def safe_environment() -> dict[str, str]:
    """The variables of ours that every server gets: paths, the user's folder, the locale; no secrets."""
    more = {name: os.environ[name] for name in _SAFE_VARIABLES if name in os.environ}
    return {**get_default_environment(), **more}


def _describe_status(status: int) -> str:
    if status >= 0:
        return f"it exited with status {status}"
    try:
        return f"it was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"it was killed by signal {-status}"


def _start_error(settings: ServerSettings, problem: Exception) -> str:
    if isinstance(problem, FileNotFoundError):
        if settings.cwd is not None and not settings.cwd.is_dir():
            return f"the folder {settings.cwd} does not exist"
        hint = "; put its arguments into args" if " " in (settings.command or "") else ""
        return f"there is no program '{settings.command}'{hint}"
    if isinstance(problem, PermissionError):
        return f"no permission to run '{settings.command}'"
    return f"'{settings.command}' cannot be started: {problem}"
