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
from secrets import token_hex
from typing import TYPE_CHECKING

import anyio
import mcp_types as types
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

from moonbox.mcp.server.limits import TokenBucket
from moonbox.mcp.streams import MessageReader, MessageWriter
from moonbox.mcp.upstreams.errors import ConnectionLost, with_last_output
from moonbox.mcp.upstreams.transport import Transport
from moonbox.threads import to_its_end, unbroken

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

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


class ServerProcess(Transport):
    """Starts the server, carries its messages, and ends it together with everything that it started."""

    def __init__(self, settings: ServerSettings) -> None:
        super().__init__(settings)
        self._unrequested = TokenBucket(UNREQUESTED_PER_SECOND, UNREQUESTED_PER_SECOND)
        self._expected = 0  # responses that we wait for, which are not throttled
        self._process: _Process | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[tuple[MessageReader, MessageWriter]]:
        """The transport's two streams; ends the process on the way out."""
        mark, guard = token_hex(16), None
        watchers: list[asyncio.Task[None]] = []
        starting = asyncio.ensure_future(_start(self.settings, mark))
        try:
            self._process = process = await asyncio.shield(starting)
            guard = ProcessGuard(process.pid, mark)
            watchers += [asyncio.create_task(self._read_stderr(process)), asyncio.create_task(self._watch(process))]
            reader = MessageReader(self._read, self._parse, self._reading_ended, max_line=self.settings.max_message)
            yield reader, MessageWriter(self._write, self._count)
        finally:
            with anyio.CancelScope(shield=True):
                await to_its_end(_stop(starting, watchers, guard))

    def end_reason(self) -> str:
        if self._reason:
            return self._reason
        status = None if self._process is None else self._process.status
        reason = "it closed its output" if status is None else _describe_status(status)
        return with_last_output(reason, self.output.last_line() if status is None or status > 0 else "")

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
            await self._unrequested.pay(len(line) + (_LINE_COST if message is None else _MESSAGE_COST))
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
        bucket = TokenBucket(STDERR_PER_SECOND, STDERR_PER_SECOND)
        while chunk := await process.stderr.read(_CHUNK):
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
            if await process.wait(_GRACE_SECONDS):
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
        os.killpg(process.pid, number)


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
