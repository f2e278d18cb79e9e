"""A model without a provider: what it sees, what it says, and a script of what it says next."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Brain", "Called", "Refused", "Result", "Say", "Scripted", "Seen", "Turn", "Use"]


class Refused(Exception):
    """The provider would answer this request with an error."""

    def __init__(self, message: str, status: int = 400) -> None:
        self.message, self.status = message, status
        super().__init__(message)


@dataclass(frozen=True)
class Use:
    """A tool call that the model makes. `arguments` is a dict, or text that is sent as it is (malformed JSON, say)."""

    name: str
    arguments: Any = field(default_factory=dict)
    freeform: bool = False
    """A call of a custom tool, whose input is text and not JSON."""


@dataclass(frozen=True)
class Say:
    """Text that the model writes."""

    text: str


@dataclass(frozen=True)
class Turn:
    """One answer of the model: text, calls, or both. `cut` means that it ended at the limit of tokens."""

    text: str = ""
    uses: tuple[Use, ...] = ()
    cut: bool = False
    paused: bool = False
    """Anthropic: the turn is not over; the same messages and this answer are to be sent again."""

    @classmethod
    def of(cls, said: Any) -> Turn:
        """From a Turn, a Say, a Use, or several Uses."""
        match said:
            case Turn():
                return said
            case Say(text):
                return cls(text)
            case Use():
                return cls(uses=(said,))
            case [*uses]:
                return cls(uses=tuple(uses))
        raise TypeError(f"a turn is a Say, a Use, a list of Uses or a Turn, not {said!r}")


@dataclass(frozen=True)
class Called:
    """A call that the conversation has already."""

    id: str
    name: str
    arguments: Any


@dataclass(frozen=True)
class Result:
    """The answer to a call that the conversation has already."""

    id: str
    name: str
    text: str
    is_error: bool | None = None
    """None where the wire format has no word for it."""


@dataclass(frozen=True)
class Seen:
    """One request, read and found acceptable."""

    model: str
    system: str
    prompts: tuple[str, ...]
    """What the user wrote."""
    called: tuple[Called, ...]
    results: tuple[Result, ...]
    tools: dict[str, dict[str, Any]]
    """Each tool that is offered: {"description", "parameters"}."""
    streaming: bool
    body: dict[str, Any]
    answered: bool
    """The last thing in the conversation is a result: the model goes on, nobody has asked anything new."""


Brain = Callable[[Seen], Any]
"""What the model says to a request: anything that `Turn.of` takes."""


class Scripted:
    """Says its turns one after another. A turn may be a function of what is seen."""

    def __init__(self, *turns: Any) -> None:
        self._turns = list(turns)
        self._lock = threading.Lock()

    def __call__(self, seen: Seen) -> Any:
        with self._lock:
            if not self._turns:
                raise Refused("the script of this model is over", 500)
            turn = self._turns.pop(0)
        return turn(seen) if callable(turn) else turn

    @property
    def left(self) -> int:
        """Turns not said yet."""
        return len(self._turns)
