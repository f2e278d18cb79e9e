"""The audit database: durable, shared, and kept within bounds."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from typing import TYPE_CHECKING

import pytest

from moonbox.audit.sinks import open_trail
from moonbox.audit.sqlite import SqliteSink
from moonbox.audit.tables import SCHEMA
from moonbox.errors import AuditError, ClosedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from moonbox.audit.records import Run


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[SqliteSink]:
    sink = SqliteSink(tmp_path / "trail.db")
    yield sink
    sink.close()


def test_the_file_is_the_owners_alone_and_in_write_ahead_mode(sink: SqliteSink, make_run: Callable[..., Run]) -> None:
    sink.write(make_run())
    for name in ("trail.db", "trail.db-wal", "trail.db-shm"):
        assert (sink.path.parent / name).stat().st_mode & 0o777 == 0o600
    with sqlite3.connect(sink.path) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert db.execute("PRAGMA application_id").fetchone() == (SCHEMA.application_id,)
        assert db.execute("PRAGMA user_version").fetchone() == (len(SCHEMA.migrations),)
    db.close()


def test_another_reader_sees_a_run_as_soon_as_write_returns(sink: SqliteSink, make_run: Callable[..., Run]) -> None:
    for n in range(20):
        run = make_run(f"run-{n}")
        sink.write(run)
        assert open_trail(sink.path).get(run.id) == run


def test_the_later_record_of_an_id_counts(sink: SqliteSink, make_run: Callable[..., Run]) -> None:
    sink.write(make_run("a"))
    later = make_run("a", calls=make_run().calls[:1], values=(2,))
    sink.write(later)
    assert sink.get("a") == later
    assert (sink.stats().runs, sink.stats().calls) == (1, 1)
    assert [tool.calls for tool in sink.stats().tools] == [1]


def test_names_that_are_not_utf8_text_do_not_stop_the_trail(sink: SqliteSink, make_run: Callable[..., Run]) -> None:
    (call, *_) = make_run().calls
    odd = make_run("a", source="-- \ud800\n\udfff", calls=(type(call)(1, "\ud800\x00", {}),))
    sink.write(odd)
    assert sink.get("a") == odd
    assert sink.list(tool="\\ud800\x00")[0].title == "\\udfff"


def test_prune_by_count_and_by_age(sink: SqliteSink, make_run: Callable[..., Run]) -> None:
    now = time.time()
    for n in range(10):
        sink.write(make_run(f"run-{n}", started=now - n * 3600))
    assert sink.prune(older_than=7.5 * 3600) == 2
    assert sink.prune(keep=3) == 5
    assert [run.id for run in sink.list()] == ["run-0", "run-1", "run-2"]
    assert sink.stats().tools[0].calls == 6, "the calls went with their runs"
    assert sink.prune(keep=3, older_than=3600 * 24) == 0
    assert sink.prune(keep=0) == 3
    with pytest.raises(UsageError, match=r"^prune needs older_than=SECONDS, keep=COUNT or max_bytes=BYTES$"):
        sink.prune()
    with pytest.raises(UsageError, match="must not be negative"):
        sink.prune(keep=-1)


def test_what_is_pruned_is_gone_from_the_file(tmp_path: Path, make_run: Callable[..., Run]) -> None:
    path = tmp_path / "trail.db"
    sink = SqliteSink(path)
    sink.write(make_run("a", output="a very telling line"))
    sink.write(make_run("b"))
    sink.prune(keep=1)
    sink.close()
    assert b"a very telling line" not in path.read_bytes()


def test_a_closed_sink_says_so(sink: SqliteSink, make_run: Callable[..., Run]) -> None:
    sink.write(make_run("a"))
    sink.close()
    sink.close()
    with pytest.raises(ClosedError, match=r"^the audit trail .*trail\.db is closed$"):
        sink.write(make_run("b"))
    assert not (sink.path.parent / "trail.db-wal").exists(), "the last to close tidies up"


def test_a_failed_write_leaves_nothing_behind_and_the_next_one_works(
    sink: SqliteSink, make_run: Callable[..., Run]
) -> None:
    doubled = make_run().calls[:1] * 2
    with pytest.raises(AuditError, match=r"^the audit trail .* failed: UNIQUE constraint failed: calls"):
        sink.write(make_run("a", calls=doubled))
    sink.write(make_run("b"))
    assert [run.id for run in sink.list()] == ["b"]


def test_a_writer_that_waits_too_long_is_told(tmp_path: Path, make_run: Callable[..., Run]) -> None:
    sink = SqliteSink(tmp_path / "trail.db", timeout=0.05)
    other = sqlite3.connect(sink.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(
        AuditError,
        match=r"^the audit trail .* is locked: another process has been writing to it ",
    ):
        sink.write(make_run("a"))
    other.execute("ROLLBACK")
    other.close()
    sink.write(make_run("a"))
    sink.close()


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.db"
    db = sqlite3.connect(foreign)
    db.execute("CREATE TABLE notes (text)")
    db.commit()
    db.close()
    before = foreign.read_bytes()
    message = r"^the audit trail .*foreign\.db cannot be used: the file is the database of another program; choose"
    for attempt in (SqliteSink, open_trail):
        with pytest.raises(AuditError, match=message):
            attempt(foreign)
    assert foreign.read_bytes() == before
    text = tmp_path / "text.db"
    text.write_text("this is not a database, only a long enough line of text to be told apart from one. " * 20)
    with pytest.raises(AuditError, match=r"^the audit trail .*text\.db is not a SQLite database; choose another file$"):
        SqliteSink(text)


def test_a_trail_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trail.db"
    SqliteSink(path).close()
    db = sqlite3.connect(path)
    db.execute("INSERT INTO migrations VALUES (99, 'from_the_future', '')")
    db.commit()
    db.close()
    with pytest.raises(AuditError, match=r"was written by a newer version of moonbox; upgrade moonbox or choose"):
        SqliteSink(path)


def test_an_empty_trail_says_so(tmp_path: Path) -> None:
    (tmp_path / "trail.db").touch()
    with pytest.raises(UsageError, match=r"^the audit trail .*trail\.db is empty: nothing was ever written to it$"):
        open_trail(tmp_path / "trail.db")


def test_threads_share_one_sink(sink: SqliteSink, make_run: Callable[..., Run]) -> None:
    def work(name: int) -> None:
        for n in range(40):
            sink.write(make_run(f"{name}-{n}"))
            sink.get(f"{name}-{n}")

    threads = [threading.Thread(target=work, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sink.stats().runs, sink.stats().calls) == (240, 720)


def test_a_forked_process_goes_on_with_a_connection_of_its_own(sink: SqliteSink, make_run: Callable[..., Run]) -> None:
    sink.write(make_run("parent-1"))
    child = os.fork()
    if child == 0:
        sink.write(make_run("child"))
        sink.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    sink.write(make_run("parent-2"))
    assert {run.id for run in sink.list()} == {"parent-1", "child", "parent-2"}
    with sqlite3.connect(sink.path) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()
