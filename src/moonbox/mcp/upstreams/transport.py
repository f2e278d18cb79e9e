"""A transport: how the messages of one server come and go, what it wrote besides, and why it has ended."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from moonbox.tools.results import scrub
from moonbox.wording import visible

if TYPE_CHECKING:
    from collections.abc import Callable
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
        self._reason = ""

    @property
    def pid(self) -> int | None:
        """Its process, if we started one."""
        return None

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
