"""Titles, points in time and percentiles."""

from __future__ import annotations

import datetime as dt

import pytest

from moonbox.audit.query import moment, percentile, title
from moonbox.errors import UsageError


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
