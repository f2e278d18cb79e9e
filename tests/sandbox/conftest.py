"""A clock that tests move: minutes pass at once for a run, and the processor's own time does not count."""

from __future__ import annotations

import time

import pytest

import moonbox.runs.awaited
import moonbox.runs.blocking
import moonbox.runs.call_entry
import moonbox.runs.calls
import moonbox.runs.direct
import moonbox.runs.execution
import moonbox.runs.record
import moonbox.worker.link


class Clock:
    """In the place of `time.monotonic`."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self._ahead

    def advance(self, seconds: float) -> None:
        self._ahead += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of every run."""
    clock = Clock()
    runs, worker = moonbox.runs, moonbox.worker
    for module in (
        *(runs.awaited, runs.blocking, runs.call_entry, runs.calls, runs.direct, runs.record),
        runs.execution,
        worker.link,
    ):
        monkeypatch.setattr(module, "monotonic", clock)
    monkeypatch.setattr(worker.link, "_Wire", None)  # it has a clock of its own
    return clock
