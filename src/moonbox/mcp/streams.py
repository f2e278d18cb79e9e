"""Message streams: the SDK's read and write streams directly over lines of bytes, without a task in between.

The SDK's own transports over stdio bound neither the length of a line nor how much of it waits. Its server reads in a
thread that a signal does not end, and its client gives no access to the process that it starts.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Self

    from mcp.shared.message import SessionMessage

    Item = SessionMessage | Exception

_LARGE_READ = 16_384


class _MessageStream:
    """What the SDK expects of either stream besides `receive` or `send`."""

    def __init__(self) -> None:
        self._closed = False

    async def aclose(self) -> None:
        self._closed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class MessageReader(_MessageStream):
    """Messages from lines of bytes.

    read      awaits the next bytes; empty at the end of the stream
    parse     turns a line into an item, or into None if the line is to be skipped; may wait
    finish    is called once with the reason why nothing more will come: "" for the end of the stream
    """

    def __init__(
        self,
        read: Callable[[], Awaitable[bytes]],
        parse: Callable[[bytes], Awaitable[Item | None]],
        finish: Callable[[str], Awaitable[None]],
        *,
        max_line: int,
    ) -> None:
        super().__init__()
        self._read = read
        self._parse = parse
        self._finish = finish
        self._max_line = max_line
        self._lines: deque[bytes] = deque()
        self._rest = bytearray()

    async def receive(self) -> Item:
        while not self._closed:
            while self._lines:
                item = await self._parse(self._lines.popleft())
                if item is not None:
                    return item
            await self._read_lines()
        raise anyio.EndOfStream

    async def _read_lines(self) -> None:
        chunk = await self._read()
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
            await self._finish(reason)
            self._closed = True

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class MessageWriter(_MessageStream):
    """Messages as lines of bytes; `write` raises anyio.BrokenResourceError when the other side is gone."""

    def __init__(self, write: Callable[[bytes], Awaitable[None]], sent: Callable[[SessionMessage], None]) -> None:
        super().__init__()
        self._write = write
        self._sent = sent

    async def send(self, item: SessionMessage, /) -> None:
        if self._closed:
            raise anyio.ClosedResourceError
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._sent(item)
        await self._write(text.encode() + b"\n")
