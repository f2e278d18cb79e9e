"""Lines: the SDK's streams of messages straight over byte streams, without a task between a message and its reader."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType
    from typing import Self

    from mcp.shared.message import SessionMessage

    Item = SessionMessage | Exception

__all__ = ["Incoming", "Outgoing"]

_MUCH = 16_384


class Incoming:
    """Messages from lines of bytes.

    chunks    awaits the next bytes; empty at the end
    parsed    makes an item of a line, or nothing of a line that is none; may take its time
    ended     is told once why there will be nothing more: "" for the end of the stream
    """

    def __init__(
        self,
        chunks: Callable[[], Awaitable[bytes]],
        parsed: Callable[[bytes], Awaitable[Item | None]],
        ended: Callable[[str], Awaitable[None]],
        *,
        longest: int,
    ) -> None:
        self._chunks = chunks
        self._parsed = parsed
        self._ended = ended
        self._longest = longest
        self._lines: deque[bytes] = deque()
        self._rest = bytearray()
        self._closed = False

    async def receive(self) -> Item:
        while not self._closed:
            while self._lines:
                item = await self._parsed(self._lines.popleft())
                if item is not None:
                    return item
            await self._read()
        raise anyio.EndOfStream

    async def _read(self) -> None:
        chunk = await self._chunks()
        if len(chunk) >= _MUCH:
            await anyio.lowlevel.checkpoint()  # bytes that are there already must not keep others waiting for long
        problem: str | None = None if chunk else ""
        first, *more = chunk.split(b"\n")
        self._rest += first
        for part in more:
            self._lines.append(bytes(self._rest))
            self._rest = bytearray(part)
        if len(self._rest) > self._longest:
            problem = f"it wrote a line of more than {self._longest:,} bytes"
        if problem is not None:
            await self._ended(problem)
            self._closed = True

    async def aclose(self) -> None:
        self._closed = True

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class Outgoing:
    """Messages to lines of bytes; `write` raises what the SDK understands as the end."""

    def __init__(self, write: Callable[[bytes], Awaitable[None]], sent: Callable[[SessionMessage], None]) -> None:
        self._write = write
        self._sent = sent
        self._closed = False

    async def send(self, item: SessionMessage, /) -> None:
        if self._closed:
            raise anyio.ClosedResourceError
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._sent(item)
        await self._write(text.encode() + b"\n")

    async def aclose(self) -> None:
        self._closed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
