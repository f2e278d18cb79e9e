"""Which runs go when a trail is pruned."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moonbox.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Pruning"]


@dataclass(frozen=True, slots=True)
class Pruning:
    """A run goes when it began more than `older_than` seconds ago, or when `keep` others began after it."""

    older_than: float | None = None
    keep: int | None = None

    def __post_init__(self) -> None:
        if self.older_than is None and self.keep is None:
            raise UsageError("prune needs older_than=SECONDS, keep=COUNT, or both")
        if (self.older_than is not None and self.older_than < 0) or (self.keep is not None and self.keep < 0):
            raise UsageError("older_than and keep must not be negative")

    @property
    def border(self) -> float:
        """Runs that began before this moment go."""
        return time.time() - self.older_than if self.older_than is not None else float("-inf")

    def of_lines(self, lines: Iterable[bytes]) -> set[int]:
        """The numbers of the lines whose runs go; a line that is no run stays."""
        begun = [(started, number) for number, line in enumerate(lines) if (started := _started(line)) is not None]
        border = self.border
        doomed = {number for started, number in begun if started < border}
        if self.keep is not None:
            begun.sort(reverse=True)
            doomed.update(number for _, number in begun[self.keep :])
        return doomed


def _started(line: bytes) -> float | None:
    try:
        started = json.loads(line)["started"]
    except (ValueError, TypeError, KeyError):
        return None
    return float(started) if isinstance(started, int | float) else None
