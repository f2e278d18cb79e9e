"""Messages as lines of bytes for the SDK, and serving over our own standard input and output, which carry nothing else.

The SDK's own transports over stdio bound neither the length of a line nor how much of it waits. Its server reads in a
thread that a signal does not end, and its client gives no access to the process that it starts.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import sys
import threading
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol

import anyio
import anyio.lowlevel
import mcp_types as types
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.shared.message import SessionMessage

from moonbox.threads import soon

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moonbox.mcp.server.server import MoonboxServer

    Item = SessionMessage | Exception

CHUNK = 65_536
_LARGE_READ = 16_384
_MAX_LINE = 64 * 1024 * 1024
_LAST_RESPONSES_SECONDS = 2.0
"""For responses that are still due when the client has closed its side."""


class Side(Protocol):
    """Who is at the other end of a LineStream."""

    async def parse(self, line: bytes) -> Item | None:
        """The item of a line, None if the line is to be skipped; may wait."""

    def sent(self, message: types.JSONRPCMessage) -> None:
        """Called before a message is written."""

    async def finish(self, reason: str) -> None:
        """Called once with the reason why nothing more will come: "" for the end of the stream."""

    async def lost(self) -> None:
        """Called when a message cannot be written."""


@dataclass(eq=False)
class LineStream(ObjectReceiveStream["Item"], ObjectSendStream[SessionMessage]):
    """Both of the SDK's streams of one connection, directly over pipes, without a task in between."""

    _reader: asyncio.StreamReader
    _writer: Any
    _side: Side
    _max_line: int
    _lines: deque[bytes] = field(default_factory=deque)
    _rest: bytearray = field(default_factory=bytearray)
    _closed: bool = False

    async def receive(self) -> Item:
        while not self._closed:
            while self._lines:
                item = await self._side.parse(self._lines.popleft())
                if item is not None:
                    return item
            await self._read_lines()
        raise anyio.EndOfStream

    async def _read_lines(self) -> None:
        chunk = b""
        with contextlib.suppress(OSError):
            chunk = await self._reader.read(CHUNK)
        if len(chunk) >= _LARGE_READ:
            await anyio.lowlevel.checkpoint()  # a read that never has to wait would keep other tasks from running
        reason: str | None = None if chunk else ""
        first, *more = chunk.split(b"\n")
        self._rest += first
        for part in more:
            self._lines.append(bytes(self._rest))
            self._rest = bytearray(part)
        if len(self._rest) > self._max_line:
            reason = f"it sent a message of more than {self._max_line:,} bytes (max_message)"
        if reason is not None:
            await self._side.finish(reason)
            self._closed = True

    async def send(self, item: SessionMessage, /) -> None:
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._side.sent(item.message)
        try:
            self._writer.write(text.encode() + b"\n")
            await self._writer.drain()
        except OSError:
            await self._side.lost()
            raise anyio.BrokenResourceError from None

    async def aclose(self) -> None:
        self._closed = True


@contextlib.contextmanager
def capture_stdio() -> Iterator[tuple[int, int]]:
    """Private copies of standard input and output; until this ends, everything that is printed goes to stderr."""
    private, back = (os.dup(0), os.dup(1)), (os.dup(0), os.dup(1))  # the caller closes the private ones
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield private
    finally:
        sys.stdout.flush()  # what was printed in between through a reference to the old object
        for standard, descriptor in enumerate(back):
            os.dup2(descriptor, standard)
            os.close(descriptor)


async def serve_stdio(server: MoonboxServer, stdin: int, stdout: int) -> None:
    """Serve on these file descriptors until the client disconnects.

    Unlike the SDK's transport, this reads pipes and sockets on the event loop itself: no thread is between a message
    and its response, and a signal need not wait for the client's next line.
    """
    writer = await _writer(stdout)
    stream = LineStream(await _reader(stdin), writer, _StdioClient(), _MAX_LINE)
    try:
        async with server.running():
            await server.app.run(stream, stream, server.app.create_initialization_options())
    finally:
        writer.close()


class _StdioClient:
    """The client at the other end of our standard input and output, and the responses that are due to it."""

    def __init__(self) -> None:
        self._due = 0
        self._answered = asyncio.Event()

    async def parse(self, line: bytes) -> Item | None:
        if not line.strip():
            return None
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError as problem:
            return problem
        self._due += isinstance(message, types.JSONRPCRequest)
        return SessionMessage(message)

    def sent(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._due -= 1
            self._answered.set()

    async def finish(self, _: str) -> None:
        """Responses to requests from before the client closed its side still go out, if they come soon."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_RESPONSES_SECONDS):
                while self._due > 0:
                    self._answered.clear()
                    await self._answered.wait()

    async def lost(self) -> None:
        """It has closed its side of the pipe; the end of our input says so too."""


async def _reader(fd: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=CHUNK)
    loop = asyncio.get_running_loop()
    if _is_pipe(fd):
        source = os.fdopen(fd, "rb", buffering=0)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    else:  # no event loop can wait for a file or a terminal: a thread feeds what it reads to the loop
        threading.Thread(target=_feed, args=(fd, reader, loop), daemon=True).start()
    return reader


def _feed(fd: int, reader: asyncio.StreamReader, loop: asyncio.AbstractEventLoop) -> None:
    with contextlib.suppress(OSError):
        while chunk := os.read(fd, CHUNK):
            soon(loop, partial(reader.feed_data, chunk))
    soon(loop, reader.feed_eof)


async def _writer(fd: int) -> Any:
    """A StreamWriter, or something like one for a file or a terminal, which never block for long."""
    if _is_pipe(fd):
        loop = asyncio.get_running_loop()
        sink = os.fdopen(fd, "wb", buffering=0)
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sink)
        return asyncio.StreamWriter(transport, protocol, None, loop)
    file = os.fdopen(fd, "wb")

    async def flush() -> None:
        file.flush()

    return SimpleNamespace(write=file.write, drain=flush, close=file.close)


def _is_pipe(fd: int) -> bool:
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
