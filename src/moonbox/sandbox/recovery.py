"""Recovery: Repls and runs of a journal, made live again in this process."""

from __future__ import annotations

import asyncio
import secrets
from time import time
from typing import TYPE_CHECKING, Any

from moonbox.errors import UsageError
from moonbox.journal.records import End
from moonbox.sandbox.journaling import ReplJournal
from moonbox.sandbox.recorded import InterruptedRun, decide, latest_environment, read_runs

if TYPE_CHECKING:
    from types import TracebackType

    from moonbox.audit.records import Run
    from moonbox.journal.store import Held, Journal
    from moonbox.sandbox.recorded import RecordedRun
    from moonbox.sandbox.repl import Repl
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.tools.toolbox import Toolbox


def interrupted_runs(journal: Journal, toolbox: Toolbox) -> tuple[InterruptedRun, ...]:
    """Runs without an end, whose process is gone."""
    found = []
    for known in journal.runs(interrupted=True):
        recorded = next((run for run in read_runs(journal.read(known.repl)) if run.begin.run == known.id), None)
        if recorded is not None and recorded.end is None:
            found.append(
                InterruptedRun(
                    run_id=known.id,
                    repl_id=known.repl,
                    source=known.source,
                    began=known.began,
                    pending=recorded.pending(toolbox),
                )
            )
    return tuple(found)


def fork(box: Sandbox, journal: Journal, repl_id: str, upto: int) -> Repl:
    """A new Repl whose journal begins with the first events of another."""
    new_id = secrets.token_hex(6)
    held = journal.create(new_id, box.language, {}, parent=repl_id)
    journal.copy(held, repl_id, upto)
    with Recovery(box, new_id, held) as recovery:
        return recovery.restore(abandon=False)


class Recovery:
    """Holds one Repl of the journal while it is made live. It is let go of again where that fails."""

    def __init__(self, box: Sandbox, repl_id: str, held: Held | None = None) -> None:
        self._box = box
        self._journal = journal = box.journal
        self._held = held or journal.take(repl_id)
        self._repl: Repl | None = None
        try:
            events = journal.read(repl_id)
        except BaseException:
            journal.release(self._held)
            raise
        self._runs = read_runs(events)
        self._events = ReplJournal(journal, self._held, len(events), environment := latest_environment(events))
        if environment is not None and environment.language != box.language:
            journal.release(self._held)
            raise UsageError(
                f"the Repl {repl_id!r} runs {environment.language}; "
                f"restore it with Sandbox(language={environment.language!r})"
            )

    def __enter__(self) -> Recovery:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            if self._repl is not None:
                self._repl.close()
            self._journal.release(self._held)

    def restore(self, *, abandon: bool) -> Repl:
        if self._runs and self._runs[-1].end is None:
            run = self._runs[-1].begin.run
            if not abandon:
                raise UsageError(
                    f"run {run} of this Repl was interrupted; continue it with resume({run!r}), "
                    "or give it up with restore(…, abandon=True)"
                )
            end = End(run=run, outcome="interrupted", at=time())
            self._events.write(run, [end])
            self._runs[-1].end = end
        return self._replayed(self._runs)

    def resume(self, run_id: str, in_flight: Any) -> Run:
        earlier, recorded, decisions = self._find(run_id, in_flight)
        repl = self._replayed(earlier)
        run = repl.resume(recorded, decisions)
        repl.close()
        return run

    async def aresume(self, run_id: str, in_flight: Any) -> Run:
        earlier, recorded, decisions = self._find(run_id, in_flight)
        repl = await asyncio.to_thread(self._replayed, earlier)
        run = await repl.aresume(recorded, decisions)
        repl.close()
        return run

    def _find(self, run_id: str, in_flight: Any) -> tuple[list[RecordedRun], RecordedRun, dict[int, Any]]:
        """The runs before it, the run, and what its calls without an answer get."""
        place = next((place for place, run in enumerate(self._runs) if run.begin.run == run_id), None)
        if place is None:
            raise UsageError(f"run {run_id!r} cannot be run again: its Repl was reset, or its worker lost, after it")
        recorded = self._runs[place]
        if recorded.end is not None and not recorded.end.is_repeatable:
            raise UsageError(
                f"run {run_id!r} has ended and cannot be run again: it was stopped ({recorded.end.outcome})"
            )
        decisions = decide(recorded.pending(self._box.toolbox), in_flight) if recorded.end is None else {}
        return self._runs[:place], recorded, decisions

    def _replayed(self, runs: list[RecordedRun]) -> Repl:
        self._repl = self._box.make_repl(repl_id=self._held.repl)
        self._repl.replay(self._events, runs)
        return self._repl
