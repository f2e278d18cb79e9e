"""Questions to a trail: which runs it has, and how the tools did."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from moonbox.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from moonbox.audit.records import Run, RunState


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One line of a listing."""

    id: str
    started: float
    language: str
    repl: str
    state: RunState
    kind: str | None
    """The error's kind; None unless the run failed."""
    calls: int
    failed_calls: int
    open_calls: int
    """Calls without an end: they are running, or it is in doubt whether they took effect."""
    wall: float
    title: str
    """The first line of the source that is neither empty nor a comment; for a tool script, its name."""

    @property
    def ok(self) -> bool:
        return self.state == "ok"

    @property
    def result(self) -> str:
        """The error's kind, or else the state."""
        return self.kind or self.state

    @property
    def calls_text(self) -> str:
        """The number of calls, and of those that failed or have no end."""
        doubt = "running" if self.state == "running" else "in doubt"
        parts = [f"{n:,} {what}" for n, what in ((self.failed_calls, "failed"), (self.open_calls, doubt)) if n]
        return f"{self.calls:,}" + (f" ({', '.join(parts)})" if parts else "")

    @classmethod
    def of(cls, run: Run) -> RunSummary:
        return cls(
            id=run.id,
            started=run.started,
            language=run.language,
            repl=run.repl,
            state=run.state,
            kind=run.error.kind if run.error is not None and run.state == "failed" else None,
            calls=len(run.calls),
            failed_calls=sum(call.failed for call in run.calls),
            open_calls=sum(call.status == "in_flight" for call in run.calls),
            wall=run.usage.wall,
            title=f"tool script {run.tool}"[:200] if run.tool else title(run.source),
        )

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "ok": self.ok}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs are wanted; None stands for any."""

    ok: bool | None = None
    """True for runs that succeeded, False for runs that failed."""
    state: str | None = None
    kind: str | None = None
    """The error's kind."""
    tool: str | None = None
    """Runs that called this tool."""
    repl: str | None = None
    language: str | None = None
    since: float | None = None
    until: float | None = None
    labels: Mapping[str, str] | None = None
    """Runs with all of these labels."""
    text: str | None = None
    """Somewhere in the record: the source, arguments, results, output, error. Letter case does not matter."""

    @property
    def reads_records(self) -> bool:
        """Whether it asks for what only the whole record of a run tells."""
        return bool(self.labels) or self.text is not None


@dataclass(frozen=True, slots=True)
class RunPage:
    """A page of a listing, the latest run first."""

    runs: tuple[RunSummary, ...]
    next: str | None = None
    """What to give as `before` for the page after this one; None at the end of the trail."""
    searched_back_to: float | None = None
    """When the earliest run began that was looked at: a rare match may be on a later page."""


@dataclass(frozen=True, slots=True)
class ToolStats:
    """How one tool did. Times are in seconds, over the calls that reached the tool."""

    tool: str
    calls: int
    failures: int
    p50: float
    p95: float
    bytes_in: int
    bytes_out: int


@dataclass(frozen=True, slots=True)
class DayStats:
    """What happened on one day (UTC)."""

    day: str
    runs: int
    failures: int
    calls: int
    wall: float


@dataclass(frozen=True, slots=True)
class Stats:
    """What a trail holds: tools with most calls first, days with the latest first."""

    runs: int
    failures: int
    calls: int
    kinds: dict[str, int]
    """How many runs failed with each kind of error."""
    states: dict[str, int]
    """How many runs are in each state."""
    tools: tuple[ToolStats, ...]
    days: tuple[DayStats, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def pick(prefix: str, ids: Sequence[str]) -> str:
    """The one id that is or starts with `prefix`; raises UsageError for none and for several."""
    if prefix in ids:
        return prefix
    if not ids:
        raise UsageError(f"no run has an id that starts with {prefix!r}")
    if len(ids) > 1:
        raise UsageError(
            f"several runs have an id that starts with {prefix!r}: {', '.join(ids[:5])}{', …' if len(ids) > 5 else ''}"
        )
    return ids[0]


def labels_of(texts: Iterable[str]) -> dict[str, str] | None:
    """The labels that texts such as "user=ann" name; None for no texts."""
    labels = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UsageError(f"invalid label {text[:200]!r}; write a name and a text, such as user=ann")
        labels[name] = value
    return labels or None


def moment(text: str, now: float) -> float:
    """A point in time: "45m", "12h" or "7d" ago, or a date or time in ISO 8601 (local unless it says otherwise)."""
    if age := re.fullmatch(r"(\d+)([smhdw])", text.strip()):
        return now - int(age[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}[age[2]]
    try:
        return dt.datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(
            f"invalid time {text!r}; write an age such as 45m, 12h or 7d, or a date such as 2026-01-31"
        ) from None


def percentile(ordered: Sequence[float], percent: int) -> float:
    """The smallest element that at least `percent` of them do not exceed; 0 when there are none."""
    return ordered[(len(ordered) * percent + 99) // 100 - 1] if ordered else 0.0


def title(source: str) -> str:
    """The first line of a script that is neither empty nor a comment, or else the first that is not empty."""
    lines = [line.strip() for line in source[:4000].splitlines() if line.strip()]
    first = next((line for line in lines if not line.startswith(("--", "//"))), lines[0] if lines else "")
    return first[:200]
