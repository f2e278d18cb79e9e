"""Recovery: Repls and runs of a journal, made live again in this process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from moonbox.durable.index import JournalFilter
from moonbox.durable.journaling import ReplJournal
from moonbox.durable.recorded import InterruptedRun, RecordedRun, decide, decided_reply, read_runs, refuse_interrupted
from moonbox.errors import UsageError
from moonbox.runs.events import Begin, End, Environment, Patched, Record, Reset
from moonbox.runs.runner import not_a_script
from moonbox.threads import unbroken
from moonbox.wording import counted

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from moonbox.audit.records import Run
    from moonbox.durable.history import ReplHistory
    from moonbox.durable.leases import Held
    from moonbox.durable.recorded import Decisions
    from moonbox.durable.store import Journal
    from moonbox.findings import Finding
    from moonbox.runs.environment import Additions
    from moonbox.runs.settings import Settings
    from moonbox.tools.toolbox import Toolbox


class LiveRepl(Protocol):
    """A Repl, which stands above this layer, as far as it is needed to make it live again."""

    id: str

    @property
    def toolbox(self) -> Toolbox: ...
    @property
    def additions(self) -> Additions: ...
    @property
    def history(self) -> ReplHistory: ...
    def check(self, source: str) -> tuple[Finding, ...]: ...
    def close(self) -> None: ...


R = TypeVar("R", bound=LiveRepl)
Found = tuple[R, RecordedRun, "Decisions"]
"""A Repl as a run found it, the run, and what its calls without an answer get."""


class Recoveries(Generic[R]):
    """Makes Repls and runs of one journal live again, in one Sandbox.

    Each method takes `make`, which makes a Repl with the id that it is given. `let_go` has a living Repl of the Sandbox
    with that id give its journal up until its next run, if it is idle.
    """

    def __init__(self, journal: Journal, settings: Settings, let_go: Callable[[str], object]) -> None:
        self.journal = journal
        self.settings = settings
        self._let_go = let_go

    def restore(self, repl_id: str, make: Callable[[str], R], *, abandon: bool) -> R:
        """A Repl with its globals."""
        with closing(Recovery(self, repl_id, make)) as recovery:
            return recovery.restore(abandon=abandon)

    async def arestore(self, repl_id: str, make: Callable[[str], R], *, abandon: bool) -> R:
        """The same, awaited. A cancellation counts when the Repl is restored, and closes it."""
        restored: list[R] = []
        try:
            await unbroken(lambda: restored.append(self.restore(repl_id, make, abandon=abandon)))
        except BaseException:
            for repl in restored:
                repl.close()
            raise
        return restored[0]

    def fork(self, repl_id: str, upto: int, make: Callable[[str], R]) -> R:
        """A new Repl whose journal begins with the first events of another."""
        held = self.journal.copy(repl_id, upto)
        try:
            with closing(Recovery(self, repl_id, make, held)) as recovery:
                return recovery.restore(abandon=True)
        except BaseException:
            self.journal.delete([held.repl])
            raise

    def interrupted(self) -> tuple[InterruptedRun, ...]:
        """Runs that a crash cut off, the latest first, each with its calls that have no answer."""
        found, settings = [], self.settings
        for known in self.journal.runs(JournalFilter(state="interrupted")):
            runs = read_runs(self.journal.read(known.repl))
            recorded = next((run for run in runs if run.begin.run == known.id), None)
            if recorded is not None and recorded.end is None:
                found.append(
                    InterruptedRun(
                        run_id=known.id,
                        repl_id=known.repl,
                        source=known.source,
                        began=known.began,
                        pending=recorded.pending(settings.toolbox, settings.additions),
                    )
                )
        return tuple(found)

    @contextmanager
    def resuming(self, run_id: str, in_flight: Any, make: Callable[[str], R]) -> Iterator[Found[R]]:
        """A run that a crash cut off; where it has ended, its record again."""
        with closing(self._look_at(run_id, make)) as recovery:
            yield recovery.find(run_id, in_flight)

    @contextmanager
    def going_on(self, held: Held, run_id: str, given: Decisions, make: Callable[[str], R]) -> Iterator[Found[R]]:
        """A run of a Repl that this process holds, with these answers to calls that have none."""
        with closing(Recovery(self, held.repl, make, held)) as recovery:
            yield recovery.find(run_id, "retry", given)

    @contextmanager
    def patching(
        self,
        run_id: str,
        source: str,
        in_flight: Any,
        make: Callable[[str], R],
        answer: Mapping[int, Any] | None,
        skip: Collection[int],
    ) -> Iterator[Found[R]]:
        """A run with a corrected script; `answer` and `skip` have the numbers of calls in the Run."""
        if not isinstance(source, str):
            raise not_a_script(source)
        with closing(self._recovery_of(run_id, make)) as recovery:
            yield recovery.patched(run_id, source, in_flight, answer or {}, skip)

    @staticmethod
    def run(found: AbstractContextManager[Found[R]]) -> Run:
        """Go on with a run that one of these has found."""
        with found as (repl, recorded, decisions):
            return repl.history.resume(recorded, decisions)

    @staticmethod
    async def arun(found: AbstractContextManager[Found[R]], *, leaves: bool = False) -> Run:
        """The same, awaited. With `leaves`, it raises Asleep where the run begins to wait."""
        opened = ExitStack()
        try:
            repl, recorded, decisions = await unbroken(opened.enter_context, found)
            repl.history.leaves = leaves
            run: Run = await repl.history.aresume(recorded, decisions)
        except BaseException as problem:
            await unbroken(opened.__exit__, type(problem), problem, problem.__traceback__)
            raise
        await unbroken(opened.close)
        return run

    def _recovery_of(self, run_id: str, make: Callable[[str], R]) -> Recovery[R]:
        """Of the Repl of a run, which an idle Repl of this Sandbox gives up until its own next run."""
        repl_id = self.journal.known(run_id).repl
        self._let_go(repl_id)
        return Recovery(self, repl_id, make)

    def _look_at(self, run_id: str, make: Callable[[str], R]) -> Recovery[R]:
        """The same. Where the run has ended and its Repl is in use, of a copy of it."""
        known = self.journal.known(run_id)
        if known.has_ended and known.in_use:
            return Recovery(self, known.repl, make, self.journal.copy(known.repl), passing=True)
        return self._recovery_of(run_id, make)

    def check_language(self, repl_id: str, environment: Environment | None) -> None:
        """Raise UsageError where the Repl runs another language."""
        if environment is not None and environment.language != self.settings.language.name:
            raise UsageError(
                f"the Repl {repl_id!r} runs {environment.language}; "
                f"restore it with Sandbox(language={environment.language!r})"
            )


class Recovery(Generic[R]):
    """Holds one Repl of the journal, or a copy of it, while it is made live and used.

    It is closed and let go of in the end, unless `restore` gives it to the caller.
    """

    def __init__(
        self,
        recoveries: Recoveries[R],
        repl_id: str,
        make: Callable[[str], R],
        held: Held | None = None,
        *,
        passing: bool = False,
    ) -> None:
        self._make = make
        self._passing = passing  # the copy is deleted in the end
        self._repl: R | None = None
        self._keeps = False  # the Repl stays open
        self._store = journal = recoveries.journal
        self._journal = ReplJournal(journal, held or journal.take(repl_id))
        try:
            self._runs = self._journal.recorded_runs()
            recoveries.check_language(repl_id, self._journal.environment)
        except BaseException:
            self._journal.release()
            raise

    def close(self) -> None:
        if not self._keeps:
            if self._repl is not None:
                self._repl.close()
            self._journal.release()
        if self._passing:
            self._store.delete([self._journal.held.repl])

    def restore(self, *, abandon: bool) -> R:
        if not abandon:
            refuse_interrupted(self._runs)
        elif self._runs and self._runs[-1].end is None:
            self._runs[-1].end = self._journal.abandon(self._runs[-1].begin.run)
        self._repl = repl = self._make(self._journal.held.repl)
        repl.history.restore(self._journal, self._runs)
        self._keeps = True
        return repl

    def find(self, run_id: str, in_flight: Any, given: Decisions | None = None) -> Found[R]:
        """The Repl as the run found it, the run, and what its calls without an answer get, besides what is given."""
        place = self._place(run_id)
        recorded = self._runs[place]
        if recorded.end is not None and not recorded.end.is_repeatable:
            raise UsageError(f"run {run_id!r} cannot be run again: it was stopped ({recorded.end.outcome})")
        self._repl = repl = self._make(self._journal.held.repl)
        pending = () if recorded.end is not None else recorded.pending(repl.toolbox, repl.additions)
        decisions = {**decide(pending, in_flight), **(given or {})}
        repl.history.restore(self._journal, self._runs[:place])
        if recorded.end is None:
            self._journal.begin_again(run_id)
        return repl, recorded, decisions

    def patched(
        self, run_id: str, source: str, in_flight: Any, answer: Mapping[int, Any], skip: Collection[int]
    ) -> Found[R]:
        """The same as `find`, with the corrected script in place of the recorded one."""
        place = self._place(run_id)
        recorded = self._runs[place]
        if place + 1 < len(self._runs):
            raise UsageError(f"run {run_id!r} cannot be patched: later runs of its Repl have used what it did")
        if recorded.end is not None and recorded.end.outcome == "ok":
            raise UsageError(f"run {run_id!r} has ended well; there is nothing to correct")
        if self._store.look_up(undoing_of(run_id)) is not None:
            raise UsageError(f"run {run_id!r} cannot be patched: run {undoing_of(run_id)!r} takes its calls back")
        self._repl = repl = self._make(self._journal.held.repl)
        patch = _correction(recorded, repl.additions, source, answer, skip)
        recorded = recorded.corrected(patch)
        recorded.unwritten = patch
        decisions = decide(recorded.pending(repl.toolbox, repl.additions), in_flight)
        repl.history.restore(self._journal, self._runs[:place])
        wrong = [finding for finding in repl.check(source) if finding.severity == "error"]
        if wrong:
            raise UsageError(f"the corrected script cannot run: line {wrong[0].line}: {wrong[0].message}")
        return repl, recorded, decisions

    def _place(self, run_id: str) -> int:
        for place, run in enumerate(self._runs):
            if run.begin.run == run_id:
                return place
        raise UsageError(f"run {run_id!r} cannot be run again: its Repl was reset, or its worker lost, after it")


def _correction(
    recorded: RecordedRun, additions: Additions, source: str, answer: Mapping[int, Any], skip: Collection[int]
) -> Patched:
    """The correction of this run; raises UsageError where it has no such calls."""
    numbers = recorded.numbers(additions)
    wrong = sorted(index for index in {*answer, *skip} if not 0 < index <= len(numbers))
    if wrong:
        raise UsageError(f"run {recorded.begin.run!r} has {counted(len(numbers), 'call')}, and no call {wrong[0]}")
    calls = {call.call: call for call in recorded.every_call()}
    replies = [decided_reply(calls[numbers[index - 1]], value) for index, value in answer.items()]
    skipped = [numbers[index - 1] for index in skip]
    return Patched(run=recorded.begin.run, source=source, skipped=skipped, replies=replies)


def undoing_of(run_id: str) -> str:
    """The id of the run that takes the calls of this one back."""
    return f"{run_id}-undo"


def find_recorded(journal: Journal, run_id: str) -> tuple[str, list[list[Record]], RecordedRun]:
    """The Repl of a run, the events before it, and the run, whose records begin with what it was the first to find."""
    repl_id = journal.known(run_id).repl
    events = journal.read(repl_id)
    begins = (
        place
        for place, event in enumerate(events)
        if any(isinstance(record, Begin) and record.run == run_id for record in event)
    )
    if (place := next(begins, None)) is None:
        raise UsageError(f"the record of run {run_id!r} is no longer in the journal: its Repl was compacted")
    rest = (record for event in events[place:] for record in event)
    (recorded,) = read_runs([[*takewhile(lambda record: _is_of(record, run_id), rest)]])
    recorded.records[:0] = [record for record in events[place] if isinstance(record, Environment)]
    return repl_id, events[:place], recorded


def _is_of(record: Record, run_id: str) -> bool:
    return not isinstance(record, Reset) and not (isinstance(record, Begin | End) and record.run != run_id)
