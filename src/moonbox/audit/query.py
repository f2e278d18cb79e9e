"""Questions to a trail: which runs it has, and how the tools did."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from moonbox.audit.compact import clean
from moonbox.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from moonbox.audit.records import Call, Run, RunState

TIMED = ("ok", "error", "timeout")
"""Statuses of calls whose duration says something about the tool."""


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

    def accepts(self, run: Run) -> bool:
        """Whether a run at hand is wanted."""
        return (
            (self.ok is None or run.state == ("ok" if self.ok else "failed"))
            and (self.state is None or run.state == self.state)
            and (self.kind is None or RunSummary.of(run).kind == self.kind)
            and (self.tool is None or any(call.tool == self.tool for call in run.calls))
            and (self.repl is None or run.repl == self.repl)
            and (self.language is None or run.language == self.language)
            and (self.since is None or run.started >= self.since)
            and (self.until is None or run.started < self.until)
            and (self.labels or {}).items() <= run.labels.items()
            and (self.text is None or written(self.text).lower() in run.to_json().lower())
        )


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


class RunReader:
    """A Trail over runs that are read one after the other, oldest first."""

    def runs(self) -> Iterator[Run]:
        """Every run, in the order they were written."""
        raise NotImplementedError

    def list(self, limit: int = 50, offset: int = 0, **where: Any) -> tuple[RunSummary, ...]:
        """Summaries, the latest run first; `where` are fields of RunFilter."""
        check_page(limit, offset)
        wanted = RunFilter(**where)
        matches = [run for run in self._latest_first() if wanted.accepts(run)]
        return tuple(RunSummary.of(run) for run in matches[offset : offset + limit])

    def count(self, where: RunFilter) -> int:
        """How many runs are wanted."""
        return sum(where.accepts(run) for run in self.runs())

    def get(self, id: str) -> Run:
        """The run with that id, or with the only id that starts with it; raises UsageError for none or several."""
        runs = {run.id: run for run in self.runs() if run.id.startswith(id)}
        return runs[pick(id, tuple(runs))]

    def stats(self, *, since: float | None = None, latest: int | None = None) -> Stats:
        """How runs and tools did, since a moment or over so many of the latest runs."""
        return statistics(self.runs(), since=since, latest=latest)

    def page(self, limit: int = 50, *, before: str | None = None, where: RunFilter | None = None) -> RunPage:
        """Summaries of the runs before the one with that id, the latest first."""
        check_page(limit, 0)
        ordered = self._latest_first()
        if before is not None:
            places = [place for place, run in enumerate(ordered) if run.id == before]
            if not places:
                raise UsageError(f"unknown run {before!r}")
            ordered = ordered[places[0] + 1 :]
        wanted = where or RunFilter()
        matches = [run for run in ordered if wanted.accepts(run)]
        following = matches[limit - 1].id if limit and len(matches) > limit else None
        return RunPage(tuple(RunSummary.of(run) for run in matches[:limit]), following)

    def neighbours(self, run: Run) -> tuple[RunSummary | None, RunSummary | None]:
        """The runs before and after it in the same Repl."""
        if not run.repl:
            return None, None
        same = sorted((other for other in self.runs() if other.repl == run.repl), key=lambda other: other.started)
        place = next((index for index, other in enumerate(same) if other.id == run.id), None)
        if place is None:
            return None, None
        earlier = RunSummary.of(same[place - 1]) if place else None
        return earlier, RunSummary.of(same[place + 1]) if place + 1 < len(same) else None

    def _latest_first(self) -> Sequence[Run]:
        ordered = [*self.runs()]
        ordered.reverse()  # of runs that started at the same time, the one written last comes first
        ordered.sort(key=lambda run: run.started, reverse=True)
        return ordered


def check_page(limit: int, offset: int) -> None:
    if limit < 0 or offset < 0:
        raise UsageError(f"limit and offset must not be negative: {limit}, {offset}")


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


def statistics(runs: Iterable[Run], *, since: float | None = None, latest: int | None = None) -> Stats:
    """Statistics over runs at hand: those since a moment, or the latest ones."""
    kept = [run for run in runs if since is None or run.started >= since]
    if latest is not None:
        kept = sorted(kept, key=lambda run: run.started)[-latest:] if latest else []
    by_tool: dict[str, list[Call]] = defaultdict(list)
    by_day: dict[str, list[Run]] = defaultdict(list)
    for run in kept:
        by_day[dt.datetime.fromtimestamp(run.started, dt.UTC).date().isoformat()].append(run)
        for call in run.calls:
            by_tool[call.tool].append(call)
    tools = [_tool_stats(tool, calls) for tool, calls in by_tool.items()]
    days = [_day_stats(day, day_runs) for day, day_runs in by_day.items()]
    return Stats(
        runs=len(kept),
        failures=sum(run.state == "failed" for run in kept),
        calls=sum(len(run.calls) for run in kept),
        kinds=dict(sorted(Counter(run.error.kind for run in kept if run.error and run.state == "failed").items())),
        states=dict(sorted(Counter(run.state for run in kept).items())),
        tools=tuple(sorted(tools, key=lambda item: (-item.calls, item.tool))),
        days=tuple(sorted(days, key=lambda item: item.day, reverse=True)),
    )


def percentile(ordered: Sequence[float], percent: int) -> float:
    """The smallest element that at least `percent` of them do not exceed; 0 when there are none."""
    return ordered[(len(ordered) * percent + 99) // 100 - 1] if ordered else 0.0


def title(source: str) -> str:
    """The first line of a script that is neither empty nor a comment, or else the first that is not empty."""
    lines = [line.strip() for line in source[:4000].splitlines() if line.strip()]
    first = next((line for line in lines if not line.startswith(("--", "//"))), lines[0] if lines else "")
    return first[:200]


def written(text: str) -> str:
    """The text as it stands inside a record, which is JSON."""
    return json.dumps(clean(text), ensure_ascii=False)[1:-1]


def _tool_stats(tool: str, calls: Sequence[Call]) -> ToolStats:
    times = sorted(call.duration for call in calls if call.status in TIMED)
    return ToolStats(
        tool=tool,
        calls=len(calls),
        failures=sum(call.failed for call in calls),
        p50=percentile(times, 50),
        p95=percentile(times, 95),
        bytes_in=sum(call.bytes_in for call in calls),
        bytes_out=sum(call.bytes_out for call in calls),
    )


def _day_stats(day: str, runs: Sequence[Run]) -> DayStats:
    return DayStats(
        day=day,
        runs=len(runs),
        failures=sum(run.state == "failed" for run in runs),
        calls=sum(len(run.calls) for run in runs),
        wall=sum(run.usage.wall for run in runs),
    )
