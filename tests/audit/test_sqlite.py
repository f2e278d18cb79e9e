"""The audit database: durable, shared, and kept within bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from moonbox.audit.sqlite import SqliteSink
from moonbox.errors import AuditError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from moonbox.audit.records import Run


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[SqliteSink]:
    sink = SqliteSink(tmp_path / "trail.db")
    yield sink
    sink.close()


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


def test_a_failed_write_leaves_nothing_behind_and_the_next_one_works(
    sink: SqliteSink, make_run: Callable[..., Run]
) -> None:
    doubled = make_run().calls[:1] * 2
    with pytest.raises(AuditError, match=r"^the audit trail .* failed: UNIQUE constraint failed: calls"):
        sink.write(make_run("a", calls=doubled))
    sink.write(make_run("b"))
    assert [run.id for run in sink.list()] == ["b"]
