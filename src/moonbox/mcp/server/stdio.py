"""Serving over stdio: one client, on our own standard input and output, which carry nothing but the protocol."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import sys
import threading
from typing import TYPE_CHECKING, Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter

from moonbox.mcp.lines import Incoming, Outgoing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moonbox.mcp.server.server import MoonboxServer

__all__ = ["serve_stdio", "taken_over"]

_LONGEST_LINE = 64 * 1024 * 1024
_CHUNK = 256 * 1024
_LAST_ANSWERS = 2.0
"""Seconds for answers that are still owed when a client has closed its side."""


@contextlib.contextmanager
def taken_over() -> Iterator[tuple[int, int]]:
    """Take standard input and output over: two private files; until this ends, whatever prints, prints to stderr."""
    with (
        _diverted(0, os.devnull, os.O_RDONLY) as stdin,
        _diverted(1, 2, 0) as stdout,
        contextlib.redirect_stdout(sys.stderr),
    ):
        yield stdin, stdout


async def serve_stdio(server: MoonboxServer, stdin: int, stdout: int) -> None:
    """Serve on these files until the client goes.

    Pipes and sockets are read by the event loop itself: no thread stands between a message and its answer, and a signal
    need not wait for the client's next line.
    """
    wire = _Wire(await _reader(stdin), await _writer(stdout))
    incoming = Incoming(wire.chunk, wire.parsed, wire.settled, longest=_LONGEST_LINE)
    try:
        async with server.running():
            outgoing = Outgoing(wire.write, wire.sent)
            await server.app.run(incoming, outgoing, server.app.create_initialization_options())
    finally:
        wire.close()


class _Wire:
    """The client's side of the pipes, and the answers that it is owed."""

    def __init__(self, reader: asyncio.StreamReader, writer: Any) -> None:
        self._reader = reader
        self._writer = writer
        self._owed = 0
        self._answered = asyncio.Event()

    async def chunk(self) -> bytes:
        return await self._reader.read(_CHUNK)

    async def parsed(self, line: bytes) -> SessionMessage | Exception | None:
        if not line.strip():
            return None
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError as problem:
            return problem
        self._owed += isinstance(message, JSONRPCRequest)
        return SessionMessage(message)

    async def write(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except ConnectionError:
            raise anyio.BrokenResourceError from None

    def sent(self, item: SessionMessage) -> None:
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._owed -= 1
            self._answered.set()

    async def settled(self, _: str) -> None:
        """Answers to what the client asked before it closed its side still go out, if they come soon."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_ANSWERS):
                while self._owed > 0:
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
    else:  # a file or a terminal, which no event loop can wait for
        threading.Thread(target=_feed, args=(fd, reader, loop), daemon=True).start()
    return reader


def _feed(fd: int, reader: asyncio.StreamReader, loop: asyncio.AbstractEventLoop) -> None:
    with contextlib.suppress(RuntimeError, OSError):  # the loop has been closed meanwhile
        while chunk := os.read(fd, _CHUNK):
            loop.call_soon_threadsafe(reader.feed_data, chunk)
        loop.call_soon_threadsafe(reader.feed_eof)


async def _writer(fd: int) -> Any:
    sink = os.fdopen(fd, "wb", buffering=0)
    if not _is_pipe(fd):
        return _FileWriter(sink)
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sink)
    return asyncio.StreamWriter(transport, protocol, None, loop)


class _FileWriter:
    """Writes to a file or a terminal, neither of which makes us wait."""

    def __init__(self, sink: Any) -> None:
        self._sink = sink

    def write(self, data: bytes) -> None:
        while data:
            data = data[self._sink.write(data) :]

    async def drain(self) -> None:
        """Written is written."""

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
    """A private copy of a standard stream, whose number stands for something else meanwhile."""
    private = os.dup(fd)
    other = os.open(instead, flags) if isinstance(instead, str) else os.dup(instead)
    os.dup2(other, fd)
    os.close(other)
    back = os.dup(private)  # the private copy belongs to whoever is given it
    try:
        yield private
    finally:
        sys.stdout.flush()  # what was printed meanwhile by whoever held on to the old object
        os.dup2(back, fd)
        os.close(back)
