"""The ledger: a conversation as the provider bills it, every request sending again all that came before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True)
class Bill:
    """What one conversation, or several, came to in tokens."""

    definitions: int = 0
    """Tool definitions and the addition to the system prompt, once."""
    context: int = 0
    """All that the model has before it at the end."""
    read: int = 0
    """Input over all requests."""
    written: int = 0
    """Output over all requests: calls, scripts, replies."""
    requests: int = 0

    @property
    def total(self) -> int:
        return self.read + self.written

    def __add__(self, other: Bill) -> Bill:
        return Bill(
            self.definitions + other.definitions,
            self.context + other.context,
            self.read + other.read,
            self.written + other.written,
            self.requests + other.requests,
        )


@dataclass
class Ledger:
    """Adds up one conversation. Texts are counted by themselves: what providers put between messages is left out."""

    count: Callable[[str], int]
    head: Sequence[str]
    """The definitions and the system prompt's addition."""
    _definitions: int = field(init=False)
    _context: int = field(init=False)
    _read: int = 0
    _written: int = 0
    _requests: int = 0

    def __post_init__(self) -> None:
        self._definitions = self._context = sum(self.count(text) for text in self.head)

    def told(self, *texts: str) -> None:
        """The user's message, or results of calls: read with the next request."""
        self._context += sum(self.count(text) for text in texts)

    def wrote(self, *texts: str) -> None:
        """One request: the model reads the context and writes these."""
        tokens = sum(self.count(text) for text in texts)
        self._read += self._context
        self._written += tokens
        self._context += tokens
        self._requests += 1

    @property
    def bill(self) -> Bill:
        return Bill(self._definitions, self._context, self._read, self._written, self._requests)
