"""Retry: when a tool that fails for a moment is tried again, within the same call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from moonbox.errors import ToolDefinitionError, ToolError

_MOST, _LONGEST = 100, 86_400
_CODES = ("unavailable", "rate_limited", "timeout", "conflict", "tool_error")


@dataclass(frozen=True, kw_only=True)
class Retry:
    """How often a tool is tried, and how long to wait before the next try.

    Each wait is `factor` times the one before, at most `longest`, and up to half shorter at random. If the service
    says how long to wait (`Retry-After`), it is at least that long. A wait that the run's time does not allow is not
    begun: then the call fails as it did.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid", "strict": True, "use_attribute_docstrings": True}

    times: int = 5
    """How often the tool is called at most, the first time included."""
    first: float = 0.5
    """Seconds to wait after the first failure."""
    factor: float = 2.0
    """By how much each further wait is longer."""
    longest: float = 60.0
    """The longest of these waits, in seconds."""
    on: tuple[str, ...] = ("unavailable", "rate_limited", "timeout")
    """The codes of failures after which the tool is tried again; also `conflict` and `tool_error`."""

    def __post_init__(self) -> None:
        if isinstance(self.times, bool) or not isinstance(self.times, int) or not 2 <= self.times <= _MOST:
            raise ToolDefinitionError(f"retry: times must be a whole number from 2 to {_MOST}, not {self.times!r}")
        for name, least, most in (("first", 0, _LONGEST), ("factor", 1, 1_000), ("longest", 0, _LONGEST)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
                raise ToolDefinitionError(f"retry: {name} must be a number from {least} to {most}, not {value!r}")
        object.__setattr__(self, "on", tuple(self.on))
        if unknown := [code for code in self.on if code not in _CODES]:
            raise ToolDefinitionError(f"retry: on must have codes of {', '.join(_CODES)}; not {unknown[0]!r}")

    def seconds(self, tries: int, error: ToolError, random: float) -> float | None:
        """How long to wait after so many tries, the last of which failed so; None where that was the last try."""
        if tries >= self.times or error.code not in self.on:
            return None
        wait = min(self.first * float(self.factor) ** (tries - 1), self.longest)
        return max(wait * (1 - random / 2), error.retry_after or 0.0)


def retry_after(header: str, now: float) -> float | None:
    """The seconds that a header `Retry-After` asks for, as a number or a date; None where it is neither."""
    try:
        if header.strip().isdecimal():
            return float(header.strip()[:9])
        from email.utils import parsedate_to_datetime  # slow to load

        return max(0.0, parsedate_to_datetime(header).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None
