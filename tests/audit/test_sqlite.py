"""The audit database: durable, shared, and kept within bounds."""

from __future__ import annotations

import sqlite3
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


def test_an_empty_trail_says_so(tmp_path: Path) -> None:
    (tmp_path / "trail.db").touch()
    with pytest.raises(UsageError, match=r"^the audit trail .*trail\.db is empty: nothing was ever written to it$"):
        open_trail(tmp_path / "trail.db")
