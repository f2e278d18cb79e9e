"""A clock that tests move: minutes pass at once for a run, and the processor's own time does not count."""

from __future__ import annotations

import time

import pytest

import moonbox.sandbox.awaited
import moonbox.sandbox.blocking
import moonbox.sandbox.call_entry
import moonbox.sandbox.calls
import moonbox.sandbox.clock
import moonbox.sandbox.direct
import moonbox.sandbox.execution
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
    sandbox, worker = moonbox.sandbox, moonbox.worker
    for module in (
        *(sandbox.awaited, sandbox.blocking, sandbox.call_entry, sandbox.calls, sandbox.clock, sandbox.direct),
        sandbox.execution,
        worker.link,
    ):
        monkeypatch.setattr(module, "monotonic", clock)
    monkeypatch.setattr(worker.link, "_Wire", None)  # it has a clock of its own
    return clock
