"""A server in a process of its own: messages over its pipes, every one of them bounded.

A server that floods its output is slowed down (its pipe fills up and it waits), not obeyed; one that writes anything
but messages to its standard output is heard all the same; one line that is too long ends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections import deque
from typing import TYPE_CHECKING

import anyio
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter

from moonbox.audit.terminal import visible
from moonbox.mcp.lines import Incoming, Outgoing
from moonbox.mcp.upstreams.faults import Lost
from moonbox.tools.results import scrub

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine
    from typing import Any

    from anyio.abc import Process
    from mcp.client._transport import TransportStreams

    from moonbox.mcp.upstreams.settings import ServerSettings

__all__ = ["Pace", "ServerProcess", "Tail", "safe_environment"]

UNASKED_PER_SECOND = 1024 * 1024
"""Bytes of messages that nobody asked for, and of lines that are no messages."""
STDERR_PER_SECOND = 1024 * 1024
_MESSAGE_COST, _LINE_COST = 1_000, 16
"""What each costs beside its bytes."""
_CHUNK = 65_536
_LOOK = 0.2
_GRACE = 1.0
_ALSO_SAFE = ("LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ")


class ServerProcess:
    """Starts the server, carries its messages, and ends it with everything that it started."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._pace = Pace(UNASKED_PER_SECOND)
        self._owed = 0  # answers that we wait for, which are not slowed down
        self._process: Process | None = None
        self.tail = Tail()
        self.ended = anyio.Event()
        """Set when nothing more can come from it."""
        self.how = ""

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[TransportStreams]:
        """The two streams of the transport; ends the process on the way out."""
        self._process = process = await self._started()
        assert process.stdout is not None
        incoming = Incoming(self._chunk, self._parsed, self._reading_ended, longest=self._settings.max_message)
        outgoing = Outgoing(self._write, self._count)
        async with anyio.create_task_group() as group:
            group.start_soon(self._read_errors, process)
            group.start_soon(self._watch, process)
            try:
                yield incoming, outgoing
            finally:
                try:
                    await _to_the_end(self._stop(process))
                finally:
                    group.cancel_scope.cancel()

    async def _started(self) -> Process:
        """Whoever gives up while it starts waits until it has, so that it can be ended in good order."""
        starting = asyncio.ensure_future(_open(self._settings))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            await _to_the_end(self._stop_when(starting))
            raise

    async def _stop_when(self, starting: asyncio.Future[Process]) -> None:
        with contextlib.suppress(Lost):
            await self._stop(await starting)

    # The pipes

    async def _chunk(self) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            return await self._process.stdout.receive(_CHUNK)
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            return b""

    async def _parsed(self, line: bytes) -> SessionMessage | None:
        line = line.strip()
        if not line:
            return None
        message = None
        if line.startswith(b"{"):
            with contextlib.suppress(ValueError):
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        if message is None:
            self.tail.add(b"stdout: " + line[:500])
        if isinstance(message, JSONRPCResponse | JSONRPCError) and self._owed:
            self._owed -= 1
        else:
            await self._pace.spend(len(line) + (_LINE_COST if message is None else _MESSAGE_COST))
        return None if message is None else SessionMessage(message)

    async def _reading_ended(self, how: str) -> None:
        if not how and self._process is not None:
            await _exited(self._process, _LOOK)  # whoever waits for an answer is told how it ended
        self._end(how)

    async def _write(self, data: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            await self._process.stdin.send(data)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            self._end("" if await _exited(self._process, _LOOK) else "it reads no more")
            raise anyio.BrokenResourceError from None

    def _count(self, item: SessionMessage) -> None:
        self._owed += isinstance(item.message, JSONRPCRequest)

    async def _read_errors(self, process: Process) -> None:
        assert process.stderr is not None
        pace = Pace(STDERR_PER_SECOND)
        with contextlib.suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            while True:
                chunk = await process.stderr.receive(_CHUNK)
                self.tail.add(chunk)
                await pace.spend(len(chunk))

    # The end

    async def _watch(self, process: Process) -> None:
        """Notice its death even while a child of its own holds the pipes open."""
        while process.returncode is None:
            await anyio.sleep(_LOOK)
        await anyio.sleep(_LOOK)  # what it wrote last may still be read
        self._end("")

    def _end(self, how: str) -> None:
        if not self.ended.is_set():
            self.how = how
            self.ended.set()

    def obituary(self) -> str:
        """How it ended, with its last words."""
        status = None if self._process is None else self._process.returncode
        how = self.how or ("it closed its output" if status is None else _status(status))
        last = self.tail.last_line() if not self.how and (status is None or status > 0) else ""
        return f"{how}; it said: {last}" if last else how

    async def _stop(self, process: Process) -> None:
        """Close its input and wait; then ask; then make it."""
        if process.stdin is not None:
            with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                await process.stdin.aclose()
        for signal_number in (None, signal.SIGTERM, signal.SIGKILL):
            if signal_number is not None:
                # It leads a group of its own: whatever it started goes with it.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal_number)
            if await _exited(process, _GRACE):
                break
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # what it left behind
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                    await stream.aclose()
        # A grandchild may hold the pipes: asyncio would keep its transport, and warn of it, until that ends.
        transport = getattr(getattr(process, "_process", None), "_transport", None)
        if transport is not None:
            transport.close()


async def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Finish this however often the task that waits for it is cancelled; then it is."""
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


async def _open(settings: ServerSettings) -> Process:
    assert settings.command is not None
    try:
        return await anyio.open_process(
            [settings.command, *settings.args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**safe_environment(), **settings.env},
            cwd=settings.cwd,
            start_new_session=True,
        )
    except (OSError, ValueError) as problem:
        raise Lost(_not_started(settings, problem)) from None


class Pace:
    """A bucket that fills again: whoever empties it waits."""

    def __init__(self, per_second: float) -> None:
        self._rate = per_second
        self._left = per_second
        self._seen = time.monotonic()

    async def spend(self, amount: float) -> None:
        now = time.monotonic()
        self._left = min(self._rate, self._left + (now - self._seen) * self._rate) - amount
        self._seen = now
        if self._left < 0:
            await anyio.sleep(-self._left / self._rate)


class Tail:
    """The last of what a process said."""

    def __init__(self, most: int = 8_192) -> None:
        self._most = most
        self._parts: deque[bytes] = deque()
        self._size = 0

    def add(self, text: bytes) -> None:
        text = text[-self._most :]
        if not text.endswith(b"\n"):
            text += b"\n" if text.startswith(b"stdout: ") else b""
        self._parts.append(text)
        self._size += len(text)
        while self._size - len(self._parts[0]) > self._most:
            self._size -= len(self._parts.popleft())

    def text(self) -> str:
        return b"".join(self._parts)[-self._most :].decode("utf-8", "replace")

    def last_line(self) -> str:
        """The last line, without what looks like a secret or steers a terminal: people, scripts and clients see it."""
        lines = [line.strip() for line in self.text().splitlines() if line.strip()]
        return visible(scrub(lines[-1][-300:]), keep="") if lines else ""


def safe_environment() -> dict[str, str]:
    """What every server may know of ours: where programs and the user's folder are, and the language; no secrets."""
    also = {name: os.environ[name] for name in _ALSO_SAFE if name in os.environ}
    return {**get_default_environment(), **also}


async def _exited(process: Process, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while process.returncode is None:
        if time.monotonic() > deadline:
            return False
        await anyio.sleep(0.01)
    return True


def _status(status: int) -> str:
    if status >= 0:
        return f"it ended with status {status}"
    try:
        return f"it was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"it was ended by signal {-status}"


def _not_started(settings: ServerSettings, problem: Exception) -> str:
    if isinstance(problem, FileNotFoundError):
        if settings.cwd is not None and not settings.cwd.is_dir():
            return f"there is no folder {settings.cwd}"
        advice = "; its arguments belong in args" if " " in (settings.command or "") else ""
        return f"there is no program '{settings.command}'{advice}"
    if isinstance(problem, PermissionError):
        return f"'{settings.command}' may not be run"
    return f"'{settings.command}' cannot be started: {problem}"
