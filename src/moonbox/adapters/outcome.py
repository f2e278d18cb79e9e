"""How a conversation with a model ended, and what it has cost in tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from moonbox.wording import counted

if TYPE_CHECKING:
    from moonbox.codemode.mode import Reply

ResponseT = TypeVar("ResponseT")
MessageT = TypeVar("MessageT")


@dataclass(frozen=True, slots=True)
class Tokens:
    """What the model read and wrote in all its turns, as its provider counted; 0 where it does not say."""

    input: int = 0
    output: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output

    @classmethod
    def of(cls, response: Any) -> Tokens:
        """Of one answer, in any of the providers' forms."""
        usage = _part(response, "usage") or _part(response, "usage_metadata") or _part(response, "usageMetadata")
        return cls(_sum(usage, _READ), _sum(usage, _WRITTEN))

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(self.input + other.input, self.output + other.output)


# Each provider uses names of its own. Anthropic counts what it reads from its cache beside the other input.
_READ = (
    *("prompt_tokens", "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
    *("prompt_token_count", "promptTokenCount"),
)
_WRITTEN = (
    *("completion_tokens", "output_tokens", "candidates_token_count", "thoughts_token_count"),
    *("candidatesTokenCount", "thoughtsTokenCount"),
)


def _part(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def _sum(usage: Any, names: tuple[str, ...]) -> int:
    counts = [_part(usage, name) for name in names]
    return sum(count for count in counts if isinstance(count, int) and not isinstance(count, bool))


@dataclass(frozen=True, slots=True, repr=False)
class Outcome(Generic[ResponseT, MessageT]):
    """How a conversation with the model ended."""

    text: str
    """What the model said last."""
    response: ResponseT
    """Its last answer."""
    messages: list[MessageT]
    """The whole conversation, ready to be continued."""
    replies: tuple[Reply, ...]
    """Every answer to a call, with the Run behind it."""
    finished: bool
    """False when `max_turns` were used up while the model still called tools."""
    tokens: Tokens = field(default_factory=Tokens)
    """What the model read and wrote, over all turns."""

    def __repr__(self) -> str:
        text = self.text if len(self.text) <= 60 else self.text[:59] + "…"
        state = "finished" if self.finished else "not finished"
        failed = sum(reply.is_error for reply in self.replies)
        replies = counted(len(self.replies), "reply", "replies") + (f" ({failed} failed)" if failed else "")
        return f"<Outcome {text!r}, {state}, {replies}, {self.tokens.input:,} + {self.tokens.output:,} tokens>"
