"""Pages of a trail: order, filters, search, neighbours, what comes next; the same from every sink."""

from __future__ import annotations

import contextlib
import datetime as dt
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from moonbox import Run
from moonbox.audit.jsonlines import JsonLinesSink
from moonbox.audit.query import RunFilter, moment, percentile, title
from moonbox.audit.records import Call, CallError, Usage
from moonbox.audit.reports import compare, economy_of
from moonbox.audit.sinks import MemorySink
from moonbox.audit.sqlite import SqliteSink
from moonbox.errors import ScriptError, UsageError
from moonbox.values import pack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

COUNT = 60


def record(number: int) -> Run:
    ok = number % 5 != 0
    call = Call(1, f"tool_{number % 3}", {"n": number}, "ok", packed=pack({"row": number}), started=float(number))
    return Run(
        id=f"{number:032x}",
        source=f'return {number} -- 100%_sure "quoted" \\ {"Ädel Needle" if number == 3 else ""}',
        labels={"third": str(number % 3)},
        language="rhai" if number % 4 == 0 else "lua",
        values=(number,),
        calls=(call,),
        started=float(number // 2),  # two at a time begin at the same moment
        repl=f"repl{number // 6}" if number != 59 else "",
        error=None if ok else ScriptError("limit" if number % 10 == 0 else "runtime", "broken", line=1),
    )


@pytest.fixture(params=["memory", "jsonl", "sqlite"])
def trail(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    sinks: dict[str, Callable[[], Any]] = {
        "memory": MemorySink,
        "jsonl": lambda: JsonLinesSink(tmp_path / "runs.jsonl"),
        "sqlite": lambda: SqliteSink(tmp_path / "runs.db"),
    }
    sink: Any = sinks[request.param]()
    for number in range(COUNT):
        sink.write(record(number))
    yield sink
    sink.close()


def numbers(runs: Any) -> list[int]:
    return [int(run.id, 16) for run in runs]


def walk(trail: Any, limit: int, where: RunFilter | None = None) -> list[int]:
    found, before = [], None
    while True:
        page = trail.page(limit, before=before, where=where)
        found += numbers(page.runs)
        before = page.next
        if before is None:
            return found


@pytest.mark.parametrize("limit", [4, 60, 100])
def test_pages_join_to_the_whole_trail_latest_first(trail: Any, limit: int) -> None:
    assert walk(trail, limit) == list(range(COUNT - 1, -1, -1))


FILTERS: dict[str, tuple[RunFilter, Any]] = {
    "ok": (RunFilter(ok=True), lambda n: n % 5),
    "failed": (RunFilter(ok=False), lambda n: n % 5 == 0),
    "kind": (RunFilter(kind="limit"), lambda n: n % 10 == 0),
    "tool": (RunFilter(tool="tool_1"), lambda n: n % 3 == 1),
    "labels": (RunFilter(labels={"third": "1"}), lambda n: n % 3 == 1),
    "language": (RunFilter(language="rhai"), lambda n: n % 4 == 0),
    "repl": (RunFilter(repl="repl2"), lambda n: n // 6 == 2),
    "since": (RunFilter(since=20.0), lambda n: n // 2 >= 20),
    "text": (RunFilter(text="return 4"), lambda n: str(n).startswith("4")),
    "letter case": (RunFilter(text="NEEDLE"), lambda n: n == 3),
    "marks of LIKE": (RunFilter(text='100%_SURE "quoted" \\ '), lambda n: True),
    "no wildcards": (RunFilter(text="100__sure"), lambda n: False),
    "in results": (RunFilter(text="row"), lambda n: True),
    "several": (RunFilter(ok=False, tool="tool_0", language="lua"), lambda n: n % 5 == 0 and n % 3 == 0 and n % 4),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters_choose_the_same_runs_in_every_sink(trail: Any, name: str) -> None:
    where, wanted = FILTERS[name]
    assert walk(trail, 7, where) == [number for number in range(COUNT - 1, -1, -1) if wanted(number)]


def test_an_unknown_start_is_an_error(trail: Any) -> None:
    with pytest.raises(UsageError, match="unknown run 'nope'"):
        trail.page(5, before="nope")


def test_neighbours_are_of_the_same_repl(trail: Any) -> None:
    earlier, later = trail.neighbours(record(14))
    assert (numbers([earlier]), numbers([later])) == ([13], [15])
    first, _ = trail.neighbours(record(12))
    assert first is None
    assert trail.neighbours(record(59)) == (None, None)
    assert trail.neighbours(replace(record(1), id="f" * 32)) == (None, None)


def test_statistics_of_the_latest_runs(trail: Any) -> None:
    stats = trail.stats(latest=6)
    assert stats.runs == 6
    assert {item.tool for item in stats.tools} == {"tool_0", "tool_1", "tool_2"}


def test_a_rare_match_is_looked_for_in_stretches(tmp_path: Path) -> None:
    sink = SqliteSink(tmp_path / "runs.db")
    with contextlib.closing(sqlite3.connect(tmp_path / "runs.db")) as db, db:
        # 12,500 runs at once: one at a time would take a while
        row = "INSERT INTO runs (id, started, language, repl, kind, calls, failed_calls, wall, title, record)"
        db.executemany(
            f"{row} VALUES (?, ?, 'lua', 'r', NULL, 0, 0, 0, 't', ?)",
            ((f"{n:032x}", float(n), "needle" if n == 5 else "hay") for n in range(12_500)),
        )
    first = sink.page(10, where=RunFilter(text="needle"))
    assert (first.runs, first.searched_back_to) == ((), 2_500.0)
    second = sink.page(10, before=first.next, where=RunFilter(text="needle"))
    assert (numbers(second.runs), second.next) == ([5], None)
    sink.close()


def test_the_tail_tells_what_any_process_wrote(tmp_path: Path) -> None:
    ours, theirs = SqliteSink(tmp_path / "runs.db"), SqliteSink(tmp_path / "runs.db")
    ours.write(record(1))
    mark, runs = ours.tail()
    assert runs == ()
    theirs.write(record(2))
    theirs.write(record(3))
    mark, runs = ours.tail(mark)
    assert numbers(runs) == [2, 3]
    assert ours.tail(mark) == (mark, ())
    ours.close()
    theirs.close()


def test_the_economy_counts_what_the_model_did_not_read() -> None:
    run = Run(
        id="1",
        source="x" * 40,
        values=(1,),
        calls=(
            Call(1, "rows", {}, "ok", packed=pack(["r" * 1000])),
            Call(2, "rows", {}, "error", error=CallError("bad", "no")),
        ),
    )
    economy = economy_of(run, run.for_model(), len)
    assert (economy["calls"], economy["answer"], economy["script"]) == (2, 1, 41)
    assert economy["direct"] > 1000
    assert economy["spared"] == economy["direct"] - 41
    assert economy_of(replace(run, calls=()), "1", len)["spared"] == -41


def test_two_runs_are_compared_call_by_call() -> None:
    def run(source: str, *calls: Call, wall: float) -> Run:
        return Run(id=source, source=source, calls=calls, usage=Usage(wall=wall), values=(len(calls),))

    one, two = Call(1, "a", {"n": 1}, "ok", duration=0.1), Call(2, "b", {"n": 2}, "ok", duration=0.2)
    failed = Call(2, "b", {"n": 2}, "error", error=CallError("x", "y"), duration=0.3)
    extra = Call(3, "c", {}, "ok")
    result = compare(run("same\nold", one, two, wall=1.0), run("same\nnew", one, failed, extra, wall=2.0))
    assert result["figures"]["wall"] == (1.0, 2.0)
    assert [line for line in result["diff"] if line[0] in "+-"] == [("-", "old"), ("+", "new")]
    statuses = [(pair["tool"], pair["a_status"], pair["b_status"]) for pair in result["calls"]]
    assert statuses == [("a", "ok", "ok"), ("b", "ok", "error"), ("c", None, "ok")]
    assert (result["same_values"], result["same_output"], result["hidden_calls"]) == (False, True, 0)
    assert compare(run("s", wall=1), run("s", wall=1))["diff"] == []


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("\n\n  return 1\nx", "return 1"),
        ("-- what it does\n// or this\nlocal x = 1", "local x = 1"),
        ("-- only words", "-- only words"),
        ("  \n", ""),
        ("x" * 999, "x" * 200),
    ],
)
def test_title(source: str, line: str) -> None:
    assert title(source) == line


def test_moment() -> None:
    assert moment("90s", 1000.0) == 910.0
    assert moment("2h", 10_000.0) == 2800.0
    assert moment("1w", 604_800.0) == 0.0
    assert moment("2026-01-31T00:00:00+00:00", 0.0) == dt.datetime(2026, 1, 31, tzinfo=dt.UTC).timestamp()
    with pytest.raises(UsageError) as caught:
        moment("yesterday", 0.0)
    assert str(caught.value) == (
        "invalid time 'yesterday'; write an age such as 45m, 12h or 7d, or a date such as 2026-01-31"
    )


@pytest.mark.parametrize(
    ("count", "p50", "p95"), [(0, 0, 0), (1, 1, 1), (2, 1, 2), (3, 2, 3), (20, 10, 19), (100, 50, 95), (101, 51, 96)]
)
def test_percentile_is_an_element(count: int, p50: int, p95: int) -> None:
    ordered = [float(number) for number in range(1, count + 1)]
    assert (percentile(ordered, 50), percentile(ordered, 95)) == (p50, p95)
