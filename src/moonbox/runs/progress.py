"""Progress: how far a script says that it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from moonbox.errors import ToolError
from moonbox.wording import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST_TEXT = 200
_LARGEST = 2**63


class Progress(Struct, frozen=True):
    """How far a script says that it is."""

    done: float
    total: float | None = None
    text: str = ""

    @classmethod
    def of(cls, arguments: Sequence[Any]) -> Progress:
        """From what the script gave; raises ToolError where that makes no sense."""
        done, total, text = (*arguments[:3], None, None, None)[:3]
        if not _is_number(done) or not (total is None or _is_number(total)) or not isinstance(text, str | None):
            message = "write: progress(done, total, text), two numbers and a text; total and text may be left out"
            raise ToolError(message, code="invalid")
        return cls(done, total, " ".join((text or "").split())[:_LONGEST_TEXT])


def progress_words(progress: Progress) -> str:
    """For a line of text: `3 of 10, rows`."""
    amount = f"{progress.done:g}" + (f" of {progress.total:g}" if progress.total is not None else "")
    return amount + (f", {visible(progress.text, keep='')}" if progress.text else "")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST
