"""Serving over stdio: one client, on our own standard input and output, which carry nothing but the protocol."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import sys
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from moonbox.mcp.server.server import MoonboxServer

__all__ = ["serve_stdio", "standard_streams"]

_LONGEST_LINE = 64 * 1024 * 1024
_CHUNK = 256 * 1024


async def serve_stdio(server: MoonboxServer, streams: Any) -> None:
    """Serve on these streams until the client goes."""
    read, write = streams
    async with server.running():
        await server.app.run(read, write, server.app.create_initialization_options())


@contextlib.asynccontextmanager
async def standard_streams() -> AsyncIterator[Any]:
    """Take standard input and output over; until this ends, whatever else prints, prints to standard error.

    Pipes and sockets are read by the event loop itself: no thread stands between a message and its answer, and a
    signal need not wait for the client's next line.
    """
    if not all(_is_pipe(fd) for fd in (0, 1)):
        with contextlib.redirect_stdout(sys.stderr):
            async with stdio_server() as streams:
                yield streams
        return
    with (
        _diverted(0, os.devnull, os.O_RDONLY) as stdin,
        _diverted(1, 2, 0) as stdout,
        contextlib.redirect_stdout(sys.stderr),
    ):
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_CHUNK)
        source, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(stdin, "rb", buffering=0)
        )
        sink, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(stdout, "wb", 0))
        writer = asyncio.StreamWriter(sink, protocol, None, loop)
        incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as group:
            group.start_soon(_receive, reader, incoming)
            group.start_soon(_send, outgoing, writer)
            try:
                yield read, write
            finally:
                group.cancel_scope.cancel()
                for stream in (incoming, read, write, outgoing):
                    stream.close()
                source.close()
                sink.close()


async def _receive(reader: asyncio.StreamReader, incoming: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    line = bytearray()
    async with incoming:
        while chunk := await reader.read(_CHUNK):
            *whole, rest = chunk.split(b"\n")
            for part in whole:
                line += part
                if line.strip():
                    await incoming.send(_parsed(bytes(line)))
                line.clear()
            line += rest
            if len(line) > _LONGEST_LINE:
                return  # no client means this; end as if it had gone


async def _send(outgoing: MemoryObjectReceiveStream[SessionMessage], writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        async with outgoing:
            async for item in outgoing:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                writer.write(text.encode() + b"\n")
                await writer.drain()


def _parsed(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as problem:
        return problem


def _is_pipe(fd: int) -> bool:
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


@contextlib.contextmanager
def _diverted(fd: int, instead: str | int, flags: int) -> Any:
    """A private copy of a standard stream, whose number stands for something else meanwhile."""
    private = os.dup(fd)
    other = os.open(instead, flags) if isinstance(instead, str) else os.dup(instead)
    os.dup2(other, fd)
    os.close(other)
    back = os.dup(private)  # the private copy is closed with its transport
    try:
        yield private
    finally:
        sys.stdout.flush()  # what was printed meanwhile by whoever held on to the old object
        os.dup2(back, fd)
        os.close(back)
