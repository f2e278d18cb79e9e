"""A transport: how the messages of one server come and go, what it wrote besides, and why it has ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from abc import ABC, abstractmethod
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

from moonbox.mcp.caller import is_set_within
from moonbox.mcp.server.limits import TokenBucket
from moonbox.mcp.stdio import CHUNK, LineStream
from moonbox.mcp.upstreams.status import ConnectionLost, with_last_output
from moonbox.threads import to_its_end, unbroken
from moonbox.tools.results import scrub
from moonbox.wording import visible

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

    from moonbox.config.mcp import ServerSettings


class Transport(ABC):
    """A server that is started or reached while `connect` lasts."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.output = OutputTail()
        self.ended = asyncio.Event()
        """Set when the connection is of no more use."""
        self.refusal = ""
        """The HTTP status with which it refused the latest request; empty if it did not."""
        self.pid: int | None = None
        """Its process, if we started one."""
        self._reason = ""

    @abstractmethod
    def connect(self) -> AbstractAsyncContextManager[Any]:
        """The two streams of messages, as the SDK has them."""

    def end(self, reason: str = "") -> None:
        """Declare it ended; `reason` says why, and is empty if the transport itself knows."""
        if not self.ended.is_set():
            self._reason = reason
            self.ended.set()

    def end_reason(self) -> str:
        """How it ended, with its last line of output where that may explain it."""
        return self._reason or "the connection was lost"


class OutputTail:
    """The end of what a process wrote."""

    def __init__(self, max_bytes: int = 8_192) -> None:
        self.on_line: Callable[[str], None] = lambda _: None
        """Called with each line of what was written to standard error, once it is complete."""
        self.private = False
        """It may say something about the call of one client, and is not shown to others."""
        self._max_bytes = max_bytes
        self._begun = b""
        self._end = b""

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
        self._end = (self._end + text)[-self._max_bytes :]

    def text(self) -> str:
        return self._end.decode("utf-8", "replace")

    def last_line(self) -> str:
        """The last line, for people, scripts and clients: without secrets and terminal control characters."""
        if self.private:
            return ""
        lines = [line.strip() for line in self.text().splitlines() if line.strip()]
        return visible(scrub(lines[-1][-300:]), keep="") if lines else ""


UNREQUESTED_PER_SECOND = 1024 * 1024
"""Bytes of messages that are not responses, and of lines that are not messages."""
STDERR_PER_SECOND = 1024 * 1024
_MESSAGE_COST, _LINE_COST = 1_000, 16
"""What each costs in addition to its bytes."""
_LAST_OUTPUT_SECONDS = 0.2
_GRACE_SECONDS = 1.0
_GUARD = """
read -r line || kill -s KILL -- "-$1"  # the end of its input means that the host is gone
for attempt in 1 2 3 4 5 6 7 8 9 10; do  # the next attempt finds processes that start now
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


class ServerProcess(Transport):
    """Starts the server, carries its messages, and ends it together with everything that it started."""

    def __init__(self, settings: ServerSettings) -> None:
        super().__init__(settings)
        self._unrequested = TokenBucket(UNREQUESTED_PER_SECOND, UNREQUESTED_PER_SECOND)
        self._expected = 0  # responses that we wait for, which are not throttled
        self._process: _Process | None = None

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[tuple[LineStream, LineStream]]:
        """The transport's two streams; ends the process on the way out."""
        mark, guard = token_hex(16), None
        watchers: list[asyncio.Task[None]] = []
        starting = asyncio.ensure_future(_start(self.settings, mark))
        try:
            self._process = process = await asyncio.shield(starting)
            self.pid = process.transport.get_pid()
            guard = ProcessGuard(self.pid, mark)
            watchers += [asyncio.create_task(self._read_stderr(process)), asyncio.create_task(self._watch(process))]
            assert process.stdout is not None
            stream = LineStream(process.stdout, process.stdin, self, self.settings.max_message)
            yield stream, stream
        finally:
            with anyio.CancelScope(shield=True):
                await to_its_end(_stop(starting, watchers, guard))

    def end_reason(self) -> str:
        if self._reason:
            return self._reason
        status = None if self._process is None else self._process.transport.get_returncode()
        reason = "it closed its output" if status is None else _describe_status(status)
        return with_last_output(reason, self.output.last_line() if status is None or status > 0 else "")

    # The pipes

    async def parse(self, line: bytes) -> SessionMessage | None:
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
            await self._unrequested.pay(len(line) + (_LINE_COST if message is None else _MESSAGE_COST))
        return None if message is None else SessionMessage(message)

    def sent(self, message: types.JSONRPCMessage) -> None:
        self._expected += isinstance(message, types.JSONRPCRequest)

    async def finish(self, reason: str) -> None:
        if not reason:
            await self._exited()  # so that waiting calls learn its exit status
        self.end(reason)

    async def lost(self) -> None:
        self.end("" if await self._exited() else "it closed its input")

    async def _exited(self) -> bool:
        return self._process is not None and await is_set_within(self._process.exited, _LAST_OUTPUT_SECONDS)

    async def _read_stderr(self, process: _Process) -> None:
        assert process.stderr is not None
        bucket = TokenBucket(STDERR_PER_SECOND, STDERR_PER_SECOND)
        while chunk := await process.stderr.read(CHUNK):
            self.output.add_lines(chunk)
            await bucket.pay(len(chunk))

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
        super().__init__(limit=CHUNK, loop=asyncio.get_running_loop())
        self.exited = asyncio.Event()
        self.transport: asyncio.SubprocessTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(transport, asyncio.SubprocessTransport)
        self.transport = transport

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


async def _start(settings: ServerSettings, mark: str) -> _Process:
    assert settings.command is not None
    # Every server gets paths, the user's folder and the locale; no other variables of ours, which may be secrets.
    more = {name: os.environ[name] for name in _SAFE_VARIABLES if name in os.environ}
    try:
        _, process = await asyncio.get_running_loop().subprocess_exec(
            _Process,
            settings.command,
            *settings.args,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**get_default_environment(), **more, **settings.env, _MARK: mark},
            cwd=settings.cwd,
            start_new_session=True,
        )
    except (OSError, ValueError) as problem:
        raise ConnectionLost(_start_error(settings, problem)) from None
    return process


async def _stop(
    starting: asyncio.Future[_Process], watchers: list[asyncio.Task[None]], guard: ProcessGuard | None
) -> None:
    """Close its input and wait; then SIGTERM; then SIGKILL. A start that was given up is waited for."""
    try:
        process = await starting
    except ConnectionLost:
        return
    try:
        if process.stdin is not None:
            process.stdin.close()
        for signal_number in (None, signal.SIGTERM, signal.SIGKILL):
            if signal_number is not None:
                _signal_group(process, signal_number)
            if await is_set_within(process.exited, _GRACE_SECONDS):
                break
        _signal_group(process, signal.SIGKILL)  # children that it left behind
        process.transport.close()  # a grandchild outside of the group may hold the pipes open
        for task in watchers:
            task.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)
    finally:
        if guard is not None:
            await unbroken(guard.dismiss)


def _signal_group(process: _Process, number: signal.Signals) -> None:
    """Signal the process and everything that it started: it leads a process group of its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.transport.get_pid(), number)


class ProcessGuard:
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
