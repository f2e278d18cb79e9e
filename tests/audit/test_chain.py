"""The hash chain: what was changed, removed, added or swapped behind moonbox's back is named."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from moonbox.audit.chain import START, digest, link
from moonbox.audit.files import Retention
from moonbox.audit.jsonlines import JsonLinesSink
from moonbox.audit.sinks import open_sink, open_trail
from moonbox.audit.sqlite import SqliteSink
from moonbox.errors import AuditError
from tests.audit.runs import make_run

if TYPE_CHECKING:
    from collections.abc import Callable

    Edit = Callable[[list[str]], list[str]]

WRITER = Path(__file__).with_name("writer.py")


def _written(path: Path, count: int = 5, **options: object) -> None:
    with contextlib.closing(open_sink(path, **options)) as sink:  # type: ignore[arg-type]
        for n in range(count):
            run = make_run(f"run-{n}", started=1000.0 + n)
            sink.start_run(make_run(f"run-{n}", started=1000.0 + n, calls=()))  # type: ignore[attr-defined]
            sink.start_call(run.id, run.calls[0])  # type: ignore[attr-defined]
            sink.write(run)


@pytest.fixture(params=["trail.db", "trail.jsonl"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / str(request.param)


def test_an_untouched_trail_fits(path: Path) -> None:
    _written(path)
    report = open_trail(path).verify()
    assert (report.ok, report.records, report.pruned, len(report.head)) == (True, 15, 0, 64)
    assert report.counted == "15 records: 5 complete runs, 5 starts of runs, 5 starts and ends of calls"
    assert open_trail(path).verify(expect=report.head).ok


def test_an_unfinished_run_is_read_back_with_its_calls(path: Path) -> None:
    with contextlib.closing(open_sink(path)) as sink:
        whole = make_run("a")
        sink.start_run(make_run("a", calls=(), values=()))  # type: ignore[attr-defined]
        sink.start_call("a", make_run().calls[1])  # type: ignore[attr-defined]
        trail = open_trail(path)
        assert [(item.id, item.state, item.calls) for item in trail.list()] == [("a", "running", 1)]
        assert [item.id for item in trail.list(tool="get_expenses")] == ["a"]
        seen = trail.get("a")
        assert seen.calls == make_run().calls[1:2]
        ended = replace(seen.calls[0], duration=9.0)
        sink.end_call("a", ended)  # type: ignore[attr-defined]
        assert open_trail(path).get("a").calls == (ended,)
        assert open_trail(path).list()[0].calls == 1
        assert (seen.error, seen.state) == (None, "running")
        assert trail.verify().ok
        sink.write(whole)
    assert open_trail(path).get("a") == whole
    assert [item.state for item in open_trail(path).list()] == ["ok"]
    assert open_trail(path).verify().ok


def _line_edit(number: int, old: str, new: str) -> Edit:
    def edit(lines: list[str]) -> list[str]:
        assert old in lines[number]
        return [*lines[:number], lines[number].replace(old, new), *lines[number + 1 :]]

    return edit


UNFIT = "does not fit the lines before it"
NO_HASH = "has no hash, but the lines before it have"
NOT_PRUNED = "records were removed here, but not by `moonbox audit prune` or the trail's retention"
FORGED = '{"id":"forged","source":"","started":1003.5}\n'
EDITS: dict[str, tuple[Edit, str]] = {
    "a result is changed": (_line_edit(5, "9.5", "1.5"), f"line 6 (run run-1) {UNFIT}"),
    "a line is removed": (lambda lines: [*lines[:5], *lines[6:]], f"line 6 (run run-2) {UNFIT}"),
    "two lines are swapped": (
        lambda lines: [*lines[:5], lines[8], *lines[6:8], lines[5], *lines[9:]],
        f"line 6 (run run-2) {UNFIT}",
    ),
    "the first line is removed": (lambda lines: lines[1:], f"line 1 (run run-0) {UNFIT}"),
    "a line is put in": (lambda lines: [*lines[:5], FORGED, *lines[5:]], f"line 7 (run run-1) {UNFIT}"),
    "a line is added": (lambda lines: [*lines, FORGED], f"line 16 (run forged) {NO_HASH}"),
    "a line loses its hash": (
        lambda lines: [*lines[:14], lines[14].split(',"chain"')[0] + "}\n"],
        f"line 15 (run run-4) {NO_HASH}",
    ),
    "a line becomes a stub": (
        lambda lines: [*lines[:5], '{"pruned":true,"chain"' + lines[5].rpartition(',"chain"')[2], *lines[6:]],
        f"line 6: {NOT_PRUNED}",
    ),
    "all hashes are gone": (
        lambda lines: [line.rpartition(',"chain"')[0] + "}\n" for line in lines],
        "no line has a hash: an older version wrote the trail; the next run that is written seals it",
    ),
}


@pytest.mark.parametrize("what", EDITS)
def test_lines_that_were_tampered_with_are_named(tmp_path: Path, what: str) -> None:
    path = tmp_path / "trail.jsonl"
    _written(path)
    edit, problem = EDITS[what]
    path.write_text("".join(edit(path.read_text().splitlines(keepends=True))))
    assert open_trail(path).verify().problem == problem


UNFIT_RECORD = "does not fit the records before it"
SHOWN = "what listings and statistics show of the run was changed"
STATEMENTS = {
    "UPDATE runs SET record = replace(record, '9.5', '1.5') WHERE id = 'run-1'": (
        "record 6 (run run-1): the run was changed"
    ),
    "DELETE FROM runs WHERE id = 'run-1'": "record 6 (run run-1): the run is missing",
    "UPDATE runs SET kind = NULL, title = 'nothing' WHERE id = 'run-1'": f"record 6 (run run-1): {SHOWN}",
    "DELETE FROM calls WHERE tool = 'send' AND run IN (SELECT seq FROM runs WHERE id = 'run-2')": (
        f"record 9 (run run-2): {SHOWN}"
    ),
    "DELETE FROM chain WHERE run = 'run-1'; DELETE FROM runs WHERE id = 'run-1'": (
        f"record 7 (run run-2) {UNFIT_RECORD}"
    ),
    "DELETE FROM chain WHERE position = 1": f"record 2 (run run-0) {UNFIT_RECORD}",
    "UPDATE chain SET kind = 'pruned', run = '' WHERE run = 'run-1'; DELETE FROM runs WHERE id = 'run-1'": (
        f"record 4: {NOT_PRUNED}"
    ),
    "UPDATE chain SET digest = upper(digest) WHERE position = 6": f"record 6 (run run-1) {UNFIT_RECORD}",
    "INSERT INTO runs SELECT 99, 'forged', started, language, repl, kind, calls, failed_calls, wall, title, record "
    "FROM runs WHERE id = 'run-0'": "run forged was not written by moonbox: the chain does not have it",
    "INSERT INTO intents VALUES ('run-0', 7, '{}')": (
        "call 7 of run run-0 was not written by moonbox: the chain does not have it"
    ),
    "UPDATE intents SET record = '{}' WHERE run = 'open'": "record 17 (run open): the record of call 1 was changed",
    "DELETE FROM intents WHERE run = 'open'": "record 17 (run open): the record of call 1 is missing",
}


@pytest.mark.parametrize("sql", STATEMENTS)
def test_tables_that_were_tampered_with_are_named(tmp_path: Path, sql: str) -> None:
    path = tmp_path / "trail.db"
    _written(path)
    with contextlib.closing(SqliteSink(path)) as sink:
        sink.start_run(make_run("open", calls=()))
        sink.start_call("open", make_run().calls[0])
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(sql)
    assert open_trail(path).verify().problem == STATEMENTS[sql]


@pytest.mark.parametrize("record", ["garbage", "[]", '{"id": 5}', '{"id": "a", "source": 3, "values": 7}', "[" * 9000])
def test_a_record_that_is_none_is_named_and_harms_no_other(tmp_path: Path, record: str) -> None:
    """Also where somebody has written the hashes anew."""
    _written(path := tmp_path / "trail.db", 2)
    trail = open_trail(path)
    assert isinstance(trail, SqliteSink)
    trail.start_run(make_run("open", calls=(), started=2000.0))
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE runs SET record = ? WHERE id IN ('run-1', 'open')", (record,))
        changed = "UPDATE chain SET digest = ? WHERE run IN ('run-1', 'open') AND kind IN ('run', 'start')"
        db.execute(changed, (digest(record.encode()),))
        before = START
        for place, *parts in db.execute(
            "SELECT position, kind, run, call, digest FROM chain ORDER BY position"
        ).fetchall():
            before = link(before, *map(str, parts))
            db.execute("UPDATE chain SET hash = ? WHERE position = ?", (before, place))
    assert trail.verify().problem == "record 6 (run run-1): it is not the record of a run"
    assert [run.state for run in trail.list()] == ["unfinished", "ok", "ok"]
    assert [run.id for run in trail.list(labels={"user": "ann"})] == []
    assert trail.get("run-0").id == "run-0"
    for id in ("run-1", "open"):
        with pytest.raises(AuditError, match=f"the record of run {id} in .* is damaged, or was tampered with"):
            trail.get(id)


def test_a_note_of_a_pruning_that_is_none_is_left_out(tmp_path: Path) -> None:
    _written(path := tmp_path / "trail.db", 2)
    trail = open_trail(path)
    trail.prune(keep=1)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        (last,) = db.execute("SELECT hash FROM chain WHERE kind = 'pruned' ORDER BY position DESC LIMIT 1").fetchone()
        db.execute(
            "UPDATE chain SET digest = '[]', hash = ? WHERE kind = 'prune'", (link(last, "prune", "", "0", "[]"),)
        )
    assert not trail.verify().ok
    assert trail.prune(keep=0) == 1


def test_records_cut_from_the_end_are_found_by_the_hash_that_was_noted(path: Path) -> None:
    _written(path)
    head = open_trail(path).verify().head
    if path.suffix == ".db":
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.executescript(
                "DELETE FROM chain WHERE run = 'run-4'; DELETE FROM calls WHERE run = "
                "(SELECT seq FROM runs WHERE id = 'run-4'); DELETE FROM runs WHERE id = 'run-4'"
            )
    else:
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-3]))
    trail = open_trail(path)
    assert trail.verify().ok
    assert trail.verify(expect=head).problem == (
        f"no record has the expected hash {head}: records were removed from the end, or replaced"
    )


def test_a_pruned_trail_fits_and_counts_what_went(path: Path) -> None:
    _written(path, 8)
    trail = open_trail(path)
    with contextlib.closing(open_sink(path)) as sink:
        sink.write(make_run("late", started=500.0))  # the oldest, written last
        assert trail.prune(keep=6) == 3
        assert (trail.verify().ok, trail.verify().pruned) == (True, 3)
        sink.write(make_run("new", started=2000.0))
        assert trail.prune(older_than=time.time() - 1004.5) == 3
        assert trail.prune(keep=1) == 3
        report = trail.verify()
        assert (report.problem, report.pruned) == (None, 9)
        sink.write(make_run("newer", started=2001.0))
    assert [run.id for run in trail.list()] == ["newer", "new"]
    assert open_trail(path).verify().ok
    if path.suffix == ".jsonl":  # what pruning left is itself protected
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if not line.startswith('{"prune":')))
        assert not open_trail(path).verify().ok


def test_a_trail_of_an_older_version_is_sealed_by_the_next_run(tmp_path: Path) -> None:
    path = tmp_path / "trail.jsonl"
    path.write_text("".join(make_run(f"old-{n}", started=float(n)).to_json() + "\n" for n in range(4)) + '{"torn')
    assert open_trail(path).verify().problem is not None
    with contextlib.closing(JsonLinesSink(path)) as sink:
        sink.write(make_run("new", started=10.0))
        assert sink.verify().ok
        text = path.read_text()
        path.write_text(text.replace("old-1", "odd-1"))
        assert sink.verify().problem == "line 6 does not fit the lines before it"
        path.write_text(text)
        assert sink.prune(keep=3) == 2
        assert [run.id for run in sink.list()] == ["new", "old-3", "old-2"]
        assert (sink.verify().problem, sink.verify().pruned) == (None, 2)


def test_the_chain_holds_with_several_writers_that_are_pruned_meanwhile(path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, str(WRITER), str(path), f"p{n}", "20"], stdout=subprocess.PIPE)
        for n in range(2)
    ]
    sink = open_sink(path)

    def work(name: str) -> None:
        for n in range(20):
            sink.write(make_run(f"{name}-{n}", started=time.time()))

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        open_trail(path).prune(keep=10)
    for writer in writers:
        writer.communicate(timeout=60)
    sink.close()
    report = open_trail(path).verify()
    assert report.problem is None
    assert report.pruned + len(open_trail(path).list(1000)) == 80


def test_a_sqlite_trail_from_before_the_chain_is_taken_into_it(tmp_path: Path) -> None:
    path = tmp_path / "trail.db"
    _written(path, 3)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(
            "DROP TABLE chain; DROP TABLE intents; DELETE FROM migrations WHERE position = 2; PRAGMA user_version = 2"
        )
    with contextlib.closing(SqliteSink(path)) as sink:
        assert (sink.verify().ok, sink.verify().records) == (True, 3)


TRAILS = Path(__file__).with_name("trails")


def test_a_trail_of_the_version_before_is_read_verified_and_continued(path: Path) -> None:
    """The version before wrote no ends of calls, and did not say which process wrote."""
    if path.suffix == ".db":
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.executescript((TRAILS / "without_ends.sql").read_text())
    else:
        path.write_bytes((TRAILS / "without_ends.jsonl").read_bytes())
    trail = open_trail(path)
    found = [(item.state, item.kind, item.calls, item.failed_calls, item.open_calls) for item in trail.list()]
    assert found == [("unfinished", None, 2, 0, 2), ("failed", "check", 0, 0, 0), ("ok", None, 1, 0, 0)]
    cut = trail.get(trail.list(1)[0].id)
    assert ([call.status for call in cut.calls], cut.state) == (["in_flight", "in_flight"], "unfinished")
    assert (trail.stats().failures, trail.stats().states) == (1, {"failed": 1, "ok": 1, "unfinished": 1})
    assert (trail.verify().problem, trail.verify().records) == (None, 7)
    with contextlib.closing(open_sink(path)) as sink:
        sink.write(make_run("new"))
    assert (open_trail(path).verify().problem, open_trail(path).verify().records) == (None, 8)


@pytest.mark.parametrize(
    ("retention", "most"),
    [(Retention(max_bytes=100_000), 20), (Retention(max_bytes=None, max_runs=20), 21), (None, 80)],
)
def test_a_trail_keeps_what_its_retention_says(path: Path, retention: Retention | None, most: int) -> None:
    with contextlib.closing(open_sink(path, retention=retention)) as sink:
        for n in range(80):
            sink.write(make_run(f"run-{n:03}", started=float(n), output="x" * 5000))
    trail = open_trail(path)
    kept = [run.id for run in trail.list(1000)]
    assert len(kept) <= most
    assert kept == [f"run-{n:03}" for n in range(79, 79 - len(kept), -1)]
    assert (trail.verify().problem, trail.verify().pruned) == (None, 80 - len(kept))
    if retention is not None and retention.max_bytes:
        assert path.stat().st_size < 2 * retention.max_bytes


def test_runs_that_are_too_old_go_by_themselves(path: Path) -> None:
    with contextlib.closing(open_sink(path, retention=None)) as sink:
        sink.write(make_run("old", started=1.0))
    with contextlib.closing(open_sink(path, retention=Retention(max_age=3600))) as sink:
        sink.write(make_run("new", started=time.time()))
    assert [run.id for run in open_trail(path).list()] == ["new"]


def test_a_call_that_comes_after_the_end_of_its_run_changes_nothing(path: Path) -> None:
    with contextlib.closing(open_sink(path)) as sink:
        sink.write(make_run("a"))
        sink.start_call("a", make_run().calls[0])  # type: ignore[attr-defined]
        assert open_trail(path).get("a") == make_run("a")
        assert open_trail(path).list()[0].calls == 3
        assert open_trail(path).verify().ok


def test_a_tool_cannot_make_its_run_look_unfinished(path: Path) -> None:
    from moonbox.errors import ScriptError

    with contextlib.closing(open_sink(path)) as sink:
        sink.write(make_run("a", error=ScriptError("tool", "no", code="unfinished")))
    assert [(run.state, run.kind) for run in open_trail(path).list()] == [("failed", "tool")]
    assert json.loads(open_trail(path).get("a").to_json())["error"]["code"] == "unfinished"
