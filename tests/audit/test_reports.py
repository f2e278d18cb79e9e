"""Timelines and other text for terminals."""

from __future__ import annotations

import re

import pytest

from moonbox.audit.records import Call, CallError, Run, Try, Usage
from moonbox.audit.reports import timeline_text
from moonbox.wording import seconds, size, visible


def timeline(run: Run, width: int = 100, max_rows: int = 100) -> list[str]:
    return [line.plain for line in timeline_text(run, width, max_rows=max_rows)]


def test_calls_are_bars_at_their_time_and_batches_overlap() -> None:
    calls = (
        Call(1, "first", {}, started=100.0, duration=0.2),
        Call(2, "both", {}, started=100.2, queued=0.1, duration=0.3, batch=1),
        Call(3, "both", {}, started=100.2, queued=0.0, duration=0.6, batch=1),
        Call(4, "quick", {}, "error", error=CallError("not_found", "x"), started=100.8),
        Call(5, "slow", {}, "in_flight", started=100.9),
    )
    run = Run("a", "", calls=calls, started=100.0, usage=Usage(wall=1.0))
    assert [line.rstrip() for line in timeline(run, 49)] == [
        "        0              1.0 s",
        "1 first ████                   200 ms ✓",
        "2 both      ░░██████           300 ms ✓",
        "3 both      ████████████       600 ms ✓",
        "4 quick                 █        0 µs ✗ not_found",
        "5 slow                    ██     0 µs … in doubt",
    ]
    assert max(map(len, timeline(run, 49))) <= 49
    assert timeline_text(run, 49)[4].spans[-1].style == "red"


def test_the_tries_of_a_call_and_the_waits_between_them_are_seen() -> None:
    tries = (Try(100.0, 0.2, "unavailable"), Try(100.4, 0.2, "unavailable"), Try(100.8, 0.2))
    failed = CallError("rate_limited", "later")
    calls = (
        Call(1, "flaky", {}, started=100.0, duration=1.0, tries=tries),
        Call(2, "fails", {}, "error", error=failed, started=100.0, duration=0.6, tries=tries[:2]),
        Call(3, "works", {}, started=100.0, duration=0.2, tries=tries[2:]),
    )
    run = Run("a", "", calls=calls, started=100.0, usage=Usage(wall=1.0))
    assert [line.rstrip() for line in timeline(run, 64)[1:]] == [
        "1 flaky ██████░░░██████░░░█████    1.0 s ✓ 3 tries",
        "2 fails ██████░░░█████            600 ms ✗ rate_limited, 2 tries",
        "3 works █████                     200 ms ✓",
    ]


def test_every_bar_fills_its_line_whatever_the_clock_says() -> None:
    odd = (
        Call(1, "before the run", {}, started=50.0, duration=1.0),
        Call(2, "after it", {}, started=900.0, duration=0.0),
        Call(3, "longer than it", {}, started=100.0, duration=1e6),
        Call(4, "backwards", {}, started=100.0, queued=-5.0, duration=-3.0),
    )
    for run in (Run("a", "", calls=odd, started=100.0, usage=Usage(wall=1.0)), Run("a", "", calls=(Call(1, "t", {}),))):
        scale, *lines = timeline_text(run, 60)
        for line in lines:
            bar = line.spans[1]
            assert bar.end == len(scale.plain)
            assert re.fullmatch(" *░*█+ *", line.plain[bar.start : bar.end])


def test_no_calls_no_lines_and_many_calls_a_count() -> None:
    assert timeline(Run("a", "")) == []
    calls = tuple(Call(n, "t", {}, started=float(n), duration=1.0) for n in range(1, 201))
    lines = timeline(Run("a", "", calls=calls), max_rows=10)
    assert len(lines) == 12
    assert lines[-1].strip() == "… 190 more calls"


def test_names_cannot_draw_on_the_terminal() -> None:
    run = Run("a", "", calls=(Call(1, "x\x1b[2J\r\n\u202e" + "y" * 100, {}),))
    text = "\n".join(timeline(run, 100))
    assert len(text.split("\n")) == 2
    assert "x\\x1b[2J\\x0d\\x0a\\u202e" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 😀", "plain é 😀"),
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b[31m\x07\x9b", "\\x1b[31m\\x07\\x9b"),
        ("\u202eabc\u2028\ud800\U000e0041", "\\u202eabc\\u2028\\ud800\\U000e0041"),
    ],
)
def test_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (0, "0 µs"),
        (0.0000421, "42 µs"),
        (0.0012, "1.2 ms"),
        (0.9994, "999 ms"),
        (2.04, "2.0 s"),
        (3600, "60.0 min"),
        (86_400, "24.0 h"),
        (864_000, "10.0 days"),
    ],
)
def test_seconds(duration: float, text: str) -> None:
    assert seconds(duration) == text


@pytest.mark.parametrize(("count", "text"), [(999, "999 B"), (1536, "1.54 kB"), (2e6, "2 MB"), (5e9, "5 GB")])
def test_size(count: float, text: str) -> None:
    assert size(count) == text
