"""Sinks in memory, in files of JSON lines and in databases, and how a sink is named."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moonbox.audit.jsonlines import JsonLinesSink
from moonbox.audit.query import DayStats, RunSummary, ToolStats, TrailStats
from moonbox.audit.sinks import MemorySink, Sink, default_path, open_sink, open_trail
from moonbox.audit.sqlite import SqliteSink
from moonbox.errors import AuditError, ClosedError, UsageError
from tests.audit.runs import FAILURE, make_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moonbox.audit.records import Run

    TrailSink = MemorySink | JsonLinesSink | SqliteSink


@pytest.fixture(params=["memory", "trail.jsonl", "trail.db"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> Sink:
    name = request.param
    sink = open_sink(name if name == "memory" else tmp_path / name)
    request.addfinalizer(sink.close)
    return sink


def test_every_sink_gives_back_what_was_written(sink: TrailSink) -> None:
    runs = [make_run(f"run-{n}", started=1000.0 + n, values=(n, b"\xff", float("inf"))) for n in range(3)]
    for run in runs:
        sink.write(run)
    assert [sink.get(run.id) for run in runs] == runs
    assert [found.id for found in sink.list()] == ["run-2", "run-1", "run-0"]


def test_every_sink_stays_readable_when_it_is_closed(sink: TrailSink) -> None:
    sink.write(make_run("a"))
    sink.close()
    assert (sink.get("a"), sink.stats().runs, len(sink.list())) == (make_run("a"), 1, 1)


def test_every_sink_lists_by_the_same_rules(sink: TrailSink) -> None:
    sink.write(make_run("a", started=10.0, repl="x"))
    sink.write(make_run("b", started=30.0, repl="y", error=FAILURE, calls=()))
    sink.write(make_run("c", started=20.0, repl="x", calls=make_run().calls[:1]))
    sink.write(make_run("d", started=20.0, repl="y"))

    def ids(**where: object) -> str:
        return "".join(run.id for run in sink.list(**where))  # type: ignore[arg-type]

    assert ids() == "bdca"
    assert ids(limit=2) == "bd"
    assert ids(limit=2, offset=1) == "dc"
    assert ids(ok=False) == ids(text="total", kind="runtime") == "b"
    assert ids(tool="send", repl="x") == "a"
    with pytest.raises(UsageError, match=r"^limit and offset must not be negative: -1, 0$"):
        ids(limit=-1)
    (summary,) = sink.list(ok=False)
    assert summary == RunSummary("b", 30.0, "lua", "y", "failed", "runtime", 0, 0, 0, 0.5, "return total")
    assert summary.to_dict() == {**dataclasses.asdict(summary), "ok": False}


def test_every_sink_finds_a_run_by_a_prefix_that_only_it_has(sink: TrailSink) -> None:
    for id in ("abc1", "abc2", "abc", "b%_x", "b%_y"):
        sink.write(make_run(id))
    assert sink.get("abc1").id == "abc1"
    assert sink.get("abc").id == "abc", "a whole id is never ambiguous"
    assert sink.get("b%_x").id == "b%_x"
    with pytest.raises(UsageError, match=r"^several runs have an id that starts with 'b%': b%_x, b%_y$"):
        sink.get("b%")
    with pytest.raises(UsageError, match=r"^no run has an id that starts with '%'$"):
        sink.get("%")


def test_every_sink_counts_the_same(sink: TrailSink) -> None:
    sink.write(make_run("a", started=0.0))
    sink.write(make_run("b", started=86_400.0, error=FAILURE))
    stats = sink.stats()
    assert stats == TrailStats(
        runs=2,
        failures=1,
        calls=6,
        kinds={"runtime": 1},
        states={"failed": 1, "ok": 1},
        tools=(ToolStats("get_expenses", 4, 0, 0.02, 0.04, 34, 4), ToolStats("send", 2, 2, 0.0, 0.0, 0, 0)),
        days=(DayStats("1970-01-02", 1, 1, 3, 0.5), DayStats("1970-01-01", 1, 0, 3, 0.5)),
    )
    assert stats.to_dict()["days"][1] == {"day": "1970-01-01", "runs": 1, "failures": 0, "calls": 3, "wall": 0.5}
    later = sink.stats(since=1.0)
    assert (later.runs, later.calls, later.tools[0].calls, len(later.days)) == (1, 3, 2, 1)


class _Broken:
    """A stranger's sink, whose connection is lost."""

    def __init__(self, problem: Exception) -> None:
        self._problem = problem

    def write(self, run: Run) -> None:
        raise self._problem

    def close(self) -> None:
        """Nothing to close."""


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (ConnectionResetError("the log server is gone"), "the audit trail cannot be written: the log server is gone"),
        (OSError(28, "No space left on device"), "the audit trail cannot be written: the disk is full"),
        (TimeoutError(), "the audit trail cannot be written: TimeoutError"),
        (AuditError("no room"), "no room"),
    ],
)
def test_a_failure_of_any_sink_is_an_audit_error_with_the_run(tmp_path: Path, problem: Exception, message: str) -> None:
    from moonbox import CodeMode, Sandbox, tool

    @tool
    def add(a: int) -> int:
        """Add."""
        return a + 1

    with Sandbox([add], audit=_Broken(problem)) as box, CodeMode(box) as mode, box.repl() as repl:

        async def ways() -> None:
            await box.acall("add", {"a": 1})

        for way in (
            lambda: mode.handle("lua_repl", {"source_code": "return tools.add{a = 1}"}),
            lambda: repl.run("return tools.add{a = 1}"),
            lambda: box.call("add", {"a": 1}),
            lambda: asyncio.run(ways()),
        ):
            with pytest.raises(AuditError, match=f"^{message}") as caught:
                way()
            assert (caught.value.run.value, [call.tool for call in caught.value.run.calls]) == (2, ["add"])
    with pytest.raises(AuditError) as unread:
        JsonLinesSink(tmp_path / "none.jsonl", create=False).list()
    assert unread.value.run is None


def test_memory_keeps_the_latest() -> None:
    sink = MemorySink(capacity=2)
    for n in range(3):
        sink.write(make_run(str(n), started=float(n)))
    assert [run.id for run in sink.list()] == ["2", "1"]
    with pytest.raises(UsageError, match=r"^MemorySink needs a capacity of at least 1, not 0$"):
        MemorySink(capacity=0)


@pytest.mark.parametrize("fsync", [False, True])
def test_json_lines_are_one_line_each_and_owned_alone(tmp_path: Path, fsync: bool) -> None:
    path = tmp_path / "deep" / "er" / "trail.jsonl"
    sink = JsonLinesSink(path, fsync=fsync)
    sink.write(make_run("a", output="one\ntwo\u2028three"))
    sink.write(make_run("b"))
    sink.close()
    sink.close()
    assert [json.loads(line)["id"] for line in path.read_bytes().split(b"\n")[:-1]] == ["a", "b"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    with pytest.raises(ClosedError, match=r"is closed$"):
        sink.write(make_run("c"))


def test_json_lines_go_on_after_a_failed_re_creation_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "trail.jsonl"
    sink = JsonLinesSink(path)
    sink.write(make_run("a"))
    path.unlink()
    path.mkdir()
    with pytest.raises(AuditError, match="Is a directory"):
        sink.write(make_run("b"))
    path.rmdir()
    sink.write(make_run("c"))
    assert [run.id for run in sink.list()] == ["c"]
    sink.close()


def test_json_lines_go_on_after_a_writer_was_killed_half_way(tmp_path: Path) -> None:
    path = tmp_path / "trail.jsonl"
    path.write_text(make_run("a").to_json() + "\n" + make_run("torn").to_json()[:99])
    sink = JsonLinesSink(path)
    assert [run.id for run in sink.list()] == ["a"]
    sink.write(make_run("b"))
    assert sorted(run.id for run in sink.list()) == ["a", "b"]
    sink.close()


def test_json_lines_are_whole_when_threads_and_a_forked_process_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "trail.jsonl"
    sink = JsonLinesSink(path)
    long = "x" * 200_000  # more than a pipe or a page takes at once

    def work(name: str) -> None:
        for n in range(15):
            sink.write(make_run(f"{name}-{n}", output=long))

    sink.write(make_run("first"))
    child = os.fork()
    if child == 0:
        work("child")
        os._exit(0)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, [f"thread{n}" for n in range(3)]))
    assert os.waitpid(child, 0)[1] == 0
    ids = [json.loads(line)["id"] for line in path.read_bytes().splitlines()]
    wanted = {f"{who}-{n}" for who in ("child", "thread0", "thread1", "thread2") for n in range(15)}
    assert (len(ids), set(ids)) == (61, wanted | {"first"})
    sink.close()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("memory", MemorySink),
        ("sqlite:{}/trail", SqliteSink),
        ("jsonl:{}/trail", JsonLinesSink),
        ("{}/trail.db", SqliteSink),
        ("{}/trail.SQLITE3", SqliteSink),
        ("{}/trail.jsonl", JsonLinesSink),
    ],
)
def test_sinks_by_name(name: str, kind: type, tmp_path: Path) -> None:
    sink = open_sink(name.format(tmp_path))
    assert type(sink) is kind
    sink.close()


def test_wrong_names_say_what_is_right() -> None:
    with pytest.raises(UsageError) as caught:
        open_sink("trail.txt")
    assert str(caught.value) == (
        "unknown audit sink 'trail.txt'; use 'memory', 'sqlite:PATH', 'jsonl:PATH' "
        "or a path that ends in .db, .sqlite or .jsonl"
    )
    with pytest.raises(UsageError, match=r"^the audit sink 'sqlite:' has no path; write sqlite:PATH$"):
        open_sink("sqlite:")
    with pytest.raises(UsageError, match="runs in memory can only be read by the program that made them"):
        open_trail("memory")


def test_a_trail_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    for name in ("a.db", "a.jsonl"):
        with pytest.raises(UsageError, match=f"^there is no audit trail at {tmp_path / name}$"):
            open_trail(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_an_error_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("a.db", "a.jsonl"):
        with pytest.raises(AuditError, match=r"^cannot open the audit trail .*: (Not a directory|File exists)$"):
            open_sink(tmp_path / "file" / name)


def test_default_path(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOONBOX_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/ada")
    assert default_path() == Path("/home/ada/.local/state/moonbox/audit.db")
    monkeypatch.setenv("XDG_STATE_HOME", "relative/is/ignored")
    assert default_path() == Path("/home/ada/.local/state/moonbox/audit.db")
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert default_path() == Path("/state/moonbox/audit.db")
    monkeypatch.setenv("MOONBOX_HOME", "~/box")
    assert default_path() == Path("/home/ada/box/audit.db")


@pytest.fixture(params=["trail.jsonl", "trail.db"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> JsonLinesSink | SqliteSink:
    found = open_sink(tmp_path / str(request.param))
    request.addfinalizer(found.close)
    assert isinstance(found, JsonLinesSink | SqliteSink)
    return found


def test_every_file_is_pruned_by_the_same_rules(store: JsonLinesSink | SqliteSink) -> None:
    now = time.time()
    for hours in (4, 0, 5, 1, 2, 3):
        store.write(make_run(f"run-{hours}", started=now - hours * 3600 - 60))
    assert store.prune(older_than=4 * 3600, dry_run=True) == 2
    assert len(store.list()) == 6
    assert store.prune(older_than=4 * 3600) == 2
    assert store.prune(keep=3, dry_run=True) == 1
    assert store.prune(keep=3) == 1
    assert [run.id for run in store.list()] == ["run-0", "run-1", "run-2"]
    store.write(make_run("new", started=now))
    assert [run.id for run in store.list()] == ["new", "run-0", "run-1", "run-2"]
    assert store.prune(keep=0) == 4
    assert store.prune(keep=0) == 0
    with pytest.raises(UsageError, match=r"^prune needs older_than=SECONDS, keep=COUNT or max_bytes=BYTES$"):
        store.prune()
    with pytest.raises(UsageError, match="must not be negative"):
        store.prune(older_than=-1.0)


def test_pruning_gives_the_space_back(store: JsonLinesSink | SqliteSink) -> None:
    for n in range(50):
        store.write(make_run(f"run-{n}", started=float(n), output="telling " * 1000))
    files = [store.path, store.path.with_name("trail.db-wal")]
    before = sum(file.stat().st_size for file in files if file.exists())
    assert store.prune(keep=1) == 49
    left = sum(file.stat().st_size for file in files if file.exists())
    assert left < before / 5, (before, left)
    assert store.get("run-49").output.startswith("telling")


def test_pruning_lines_keeps_what_is_no_run_the_mode_and_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    path = tmp_path / "trail.jsonl"
    path.symlink_to(tmp_path / "real" / "trail.jsonl")
    sink = JsonLinesSink(path)
    sink.write(make_run("a", started=1.0))
    with path.open("ab") as file:
        file.write(b"# a remark\n")
    sink.write(make_run("b", started=2.0))
    with path.open("ab") as file:
        file.write(b'{"cut sho')  # its writer was killed
    path.chmod(0o640)
    assert sink.prune(keep=1) == 1
    assert path.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    stub, remark, seal, run, pruning = path.read_bytes().splitlines()
    assert (remark, json.loads(run)["id"]) == (b"# a remark", "b")
    assert [next(iter(json.loads(line))) for line in (stub, seal, pruning)] == ["pruned", "seal", "prune"]
    assert [file.name for file in (tmp_path / "real").iterdir()] == ["trail.jsonl"]


def test_a_file_of_lines_that_was_removed_is_made_anew(tmp_path: Path) -> None:
    sink = JsonLinesSink(tmp_path / "trail.jsonl")
    sink.write(make_run("a"))
    sink.path.unlink()
    sink.write(make_run("b"))
    assert [run.id for run in sink.list()] == ["b"]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteSink]:
    database = SqliteSink(tmp_path / "trail.db")
    yield database
    database.close()


def test_the_later_record_of_an_id_counts(database: SqliteSink) -> None:
    database.write(make_run("a"))
    later = make_run("a", calls=make_run().calls[:1], values=(2,))
    database.write(later)
    assert database.get("a") == later
    assert (database.stats().runs, database.stats().calls) == (1, 1)
    assert [tool.calls for tool in database.stats().tools] == [1]


def test_names_that_are_not_utf8_text_do_not_stop_the_trail(database: SqliteSink) -> None:
    (call, *_) = make_run().calls
    odd = make_run("a", source="-- \ud800\n\udfff", calls=(type(call)(1, "\ud800\x00", {}),))
    database.write(odd)
    assert database.get("a") == odd
    assert database.list(tool="\\ud800\x00")[0].title == "\\udfff"


def test_a_failed_write_leaves_nothing_behind_and_the_next_one_works(database: SqliteSink) -> None:
    doubled = make_run().calls[:1] * 2
    with pytest.raises(AuditError, match=r"^the audit trail .* failed: UNIQUE constraint failed: calls"):
        database.write(make_run("a", calls=doubled))
    database.write(make_run("b"))
    assert [run.id for run in database.list()] == ["b"]
