"""What a run waits for without computing: a time, with `sleep`, or a person."""

from __future__ import annotations

from datetime import UTC, datetime
from math import isfinite
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from moonbox.errors import ArgumentError, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from moonbox.runs.call_entry import CallEntry
    from moonbox.runs.record import RunRecord

HELD = 60.0
"""Seconds for which a run with a journal holds its worker while it waits: with `sleep` in all, for a person each time.
A longer wait gives the worker back."""
_LEAST = 1.0  # seconds: a shorter wait holds the worker in any case
_LONGEST = 366 * 86_400.0
_MOST = 10_000
_TOO_OFTEN = f"this run has called sleep {_MOST:,} times; go on in the next run"
_HOW = "write: sleep(seconds), from 0 to 31,622,400 (a year)"
_HOW_UNTIL = 'write: sleep_until(time), in seconds like os.time(), or as text: "2027-01-31T08:00:00Z"'


class Wait:
    """One call of `sleep` that has no answer yet."""

    __slots__ = ("began", "due", "gives_up", "pauses")

    def __init__(self, seconds: float, *, pauses: bool, gives_up: bool) -> None:
        self.began = monotonic()
        self.due = self.began + seconds
        """On the monotonic clock."""
        self.pauses = pauses
        """The run's clock stands still for it."""
        self.gives_up = gives_up
        """It is long enough to give the worker back."""


class Waits:
    """The waits of one run."""

    def __init__(self, record: RunRecord) -> None:
        self.open: dict[int, Wait] = {}
        """By the worker's numbers of the calls."""
        self._record = record
        self._held = 0.0  # seconds of waits that held the worker
        self._count = 0

    def begin(self, call: int, name: str, arguments: Sequence[Any]) -> bool:
        """Enter a call of `sleep` or `sleep_until`. Whether its time is over; ToolError where it cannot wait."""
        journal, clock = self._record.journal, self._record.clock
        self._count += 1
        if self._count > _MOST:
            raise ToolError(_TOO_OFTEN, code="limit_sleep")
        now = time()
        until = wake_time(name, arguments, now)
        if journal is not None:
            until = journal.slept(call, until)
        seconds = until - now
        if seconds <= 0:
            return True
        if journal is None:
            left = clock.left()
            if left is not None and seconds >= left:
                raise ToolError(
                    f"the script would wait {seconds:,.1f} seconds and has {left:,.1f} left: without a journal, "
                    "waiting counts towards the timeout of the run; wait less, or look again in a later run",
                    code="limit_sleep",
                )
            self.open[call] = Wait(seconds, pauses=False, gives_up=False)
            return False
        holds = self._held + seconds <= HELD
        if holds:
            self._held += seconds
            clock.pause()
        self.open[call] = Wait(seconds, pauses=holds, gives_up=not holds and seconds >= _LEAST)
        return False

    def repeat(self, name: str, arguments: Sequence[Any]) -> None:
        """A recorded wait is over: it counts as before."""
        self._count += 1
        seconds = arguments[0] if name == "sleep" else 0.0
        if self._held + seconds <= HELD:
            self._held += seconds

    def due(self, now: float) -> list[int]:
        """The calls whose time is over; they wait no more."""
        over = [call for call, wait in self.open.items() if now >= wait.due]
        for call in over:
            self.end(call)
        return over

    def end(self, call: int) -> None:
        """The script no longer waits in this call."""
        wait = self.open.pop(call, None)
        if wait is not None and wait.pauses:
            self._record.clock.go_on()

    def nearest(self) -> float | None:
        """When the first is over, on the monotonic clock."""
        return min((wait.due for wait in self.open.values()), default=None)

    def leaves_at(self, entries: Iterable[CallEntry]) -> float | None:
        """When the run, which waits for these calls too, may give its worker back; None while it must hold it."""
        moments = [wait.began if wait.gives_up else wait.due for wait in self.open.values()]
        for entry in entries:
            if entry.asked is None:
                return None
            moments.append(entry.asked + HELD)
        return max(moments, default=None)


def wake_time(name: str, arguments: Sequence[Any], now: float) -> float:
    """When the call of that function is to be answered, in seconds of the epoch; ArgumentError for wrong arguments."""
    how = _HOW if name == "sleep" else _HOW_UNTIL
    given = arguments[0] if len(arguments) == 1 else None
    if name == "sleep_until" and isinstance(given, str):
        try:
            moment = datetime.fromisoformat(given)
        except ValueError:
            raise ArgumentError(how, code="invalid") from None
        given = (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    if isinstance(given, bool) or not isinstance(given, int | float) or not isfinite(given):
        raise ArgumentError(how, code="invalid")
    seconds = float(given) if name == "sleep" else given - now
    if seconds > _LONGEST or (seconds < 0 and name == "sleep"):
        raise ArgumentError(how, code="invalid")
    return now + max(0.0, seconds)
