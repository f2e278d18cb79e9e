"""How long a trail keeps its runs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moonbox.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Pruning:
    """A run is removed when it began more than `older_than` seconds ago, when `keep` others began after it,
    or when those written after it take `max_bytes` already."""

    older_than: float | None = None
    keep: int | None = None
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.older_than is None and self.keep is None and self.max_bytes is None:
            raise UsageError("prune needs older_than=SECONDS, keep=COUNT or max_bytes=BYTES")
        if any(value is not None and value < 0 for value in (self.older_than, self.keep, self.max_bytes)):
            raise UsageError("older_than, keep and max_bytes must not be negative")

    def of_runs(self, runs: Sequence[tuple[str, float, int]]) -> set[str]:
        """The ids of the runs to remove, of all runs as (id, started, bytes) in the order they were written."""
        removed = set[str]()
        if self.older_than is not None:
            border = time.time() - self.older_than
            removed = {id for id, started, _ in runs if started < border}
        if self.keep is not None:
            latest = sorted(((started, place, id) for place, (id, started, _) in enumerate(runs)), reverse=True)
            removed.update(id for _, _, id in latest[self.keep :])
        if self.max_bytes is not None:
            left = self.max_bytes
            for id, _, size in reversed(runs):
                if id not in removed:
                    left -= size
                    if left < 0:
                        removed.add(id)
        return removed


@dataclass(frozen=True, slots=True)
class Retention:
    """What a trail keeps by itself: runs past these bounds are removed as new ones are written."""

    max_age: float | None = None
    """Seconds since a run began."""
    max_runs: int | None = None
    max_bytes: int | None = 1_000_000_000

    def __post_init__(self) -> None:
        if any(value is not None and value <= 0 for value in (self.max_age, self.max_runs, self.max_bytes)):
            raise UsageError("max_age, max_runs and max_bytes of a Retention must be above 0")

    @property
    def pruning(self) -> Pruning | None:
        """What is removed when it is time; None when everything is kept.

        Of bytes and runs a quarter more than necessary goes, so that not every run has the trail rewritten.
        """
        if self == Retention(None, None, None):
            return None
        return Pruning(
            self.max_age,
            None if self.max_runs is None else max(1, self.max_runs * 3 // 4),
            None if self.max_bytes is None else self.max_bytes * 3 // 4,
        )
