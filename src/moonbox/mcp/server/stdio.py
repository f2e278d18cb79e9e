"""Serving over stdio: one client, on our own standard input and output, which carry only the protocol."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

from moonbox.mcp.streams import MessageReader, MessageWriter
from moonbox.threads import soon

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moonbox.mcp.server.server import MoonboxServer

_MAX_LINE = 64 * 1024 * 1024
_CHUNK = 256 * 1024
_LAST_RESPONSES_SECONDS = 2.0
"""For responses that are still due when the client has closed its side."""


@contextlib.contextmanager
def capture_stdio() -> Iterator[tuple[int, int]]:
    """Private copies of standard input and output; until this ends, everything that is printed goes to stderr."""
    with (
        _diverted(0, os.devnull, os.O_RDONLY) as stdin,
        _diverted(1, 2, 0) as stdout,
        contextlib.redirect_stdout(sys.stderr),
    ):
        yield stdin, stdout


async def serve_stdio(server: MoonboxServer, stdin: int, stdout: int) -> None:
    """Serve on these file descriptors until the client disconnects.

    Unlike the SDK's transport, this reads pipes and sockets on the event loop itself: no thread is between a message
    and its response, and a signal need not wait for the client's next line.
    """
    pipes = _ClientPipes(await _reader(stdin), await _writer(stdout))
    reader = MessageReader(pipes.read, pipes.parse, pipes.wait_for_responses, max_line=_MAX_LINE)
    writer = MessageWriter(pipes.write, pipes.sent)
    try:
        async with server.running():
            await server.app.run(reader, writer, server.app.create_initialization_options())
    finally:
        pipes.close()


class _ClientPipes:
    """The pipes to the client, and the responses that are due."""

    def __init__(self, reader: asyncio.StreamReader, writer: Any) -> None:
        self._reader = reader
        self._writer = writer
        self._due = 0
        self._answered = asyncio.Event()

    async def read(self) -> bytes:
        return await self._reader.read(_CHUNK)

    async def parse(self, line: bytes) -> SessionMessage | Exception | None:
        if not line.strip():
            return None
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError as problem:
            return problem
        self._due += isinstance(message, types.JSONRPCRequest)
        return SessionMessage(message)

    async def write(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except ConnectionError:
            raise anyio.BrokenResourceError from None

    def sent(self, item: SessionMessage) -> None:
        if isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError):
            self._due -= 1
            self._answered.set()

    async def wait_for_responses(self, _: str) -> None:
        """Responses to requests from before the client closed its side still go out, if they come soon."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_RESPONSES_SECONDS):
                while self._due > 0:
                    self._answered.clear()
                    await self._answered.wait()

    def close(self) -> None:
        self._writer.close()


async def _reader(fd: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=_CHUNK)
    loop = asyncio.get_running_loop()
    if _is_pipe(fd):
        source = os.fdopen(fd, "rb", buffering=0)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    else:  # no event loop can wait for a file or a terminal: a thread feeds what it reads to the loop
        threading.Thread(target=_feed, args=(fd, reader, loop), daemon=True).start()
    return reader


def _feed(fd: int, reader: asyncio.StreamReader, loop: asyncio.AbstractEventLoop) -> None:
    with contextlib.suppress(OSError):
        while chunk := os.read(fd, _CHUNK):
            soon(loop, partial(reader.feed_data, chunk))
    soon(loop, reader.feed_eof)


async def _writer(fd: int) -> Any:
    sink = os.fdopen(fd, "wb", buffering=0)
    if not _is_pipe(fd):
        return _FileWriter(sink)
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sink)
    return asyncio.StreamWriter(transport, protocol, None, loop)


class _FileWriter:
    """Writes to a file or a terminal, which never block for long."""

    def __init__(self, sink: Any) -> None:
        self._sink = sink

    def write(self, data: bytes) -> None:
        while data:
            data = data[self._sink.write(data) :]

    async def drain(self) -> None:
        """Nothing is buffered."""

    def close(self) -> None:
        self._sink.close()


def _is_pipe(fd: int) -> bool:
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


@contextlib.contextmanager
def _diverted(fd: int, instead: str | int, flags: int) -> Iterator[int]:
    """A private copy of a standard stream, whose own descriptor leads elsewhere until it is given back."""
    private = os.dup(fd)
    other = os.open(instead, flags) if isinstance(instead, str) else os.dup(instead)
    os.dup2(other, fd)
    os.close(other)
    back = os.dup(private)  # the caller closes the private copy
    try:
        yield private
    finally:
        sys.stdout.flush()  # what was printed in between through a reference to the old object
        os.dup2(back, fd)
        os.close(back)
