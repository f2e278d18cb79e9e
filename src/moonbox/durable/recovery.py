"""Recovery: Repls and runs of a journal, made live again in this process."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, cast

from msgspec import msgpack

from moonbox.audit.records import Run
from moonbox.durable.recorded import InterruptedRun, decide, read_runs, refuse_interrupted
from moonbox.durable.records import Begin, Reset
from moonbox.errors import UsageError
from moonbox.limits import Limits
from moonbox.runs.decisions import Answer
from moonbox.threads import unbroken

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.durable.recorded import RecordedRun
    from moonbox.durable.store import Held, Journal
    from moonbox.runs.decisions import ToolCall
    from moonbox.sandbox.repl import Repl
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.sandbox.setup import Setup

    Make = Callable[[str], Repl]

_encode = msgpack.Encoder().encode
_ALL = 1 << 62


class DurableRuns:
    """What a Sandbox with a journal can do beside running scripts."""

    _setup: Setup

    @property
    def _sandbox(self) -> Sandbox:
        return cast("Sandbox", self)  # only a Sandbox is one

    @property
    def has_journal(self) -> bool:
        """Whether its runs are taken down."""
        return self._setup.journal is not None

    @property
    def journal(self) -> Journal:
        """Where its runs are taken down; raises UsageError where it has none."""
        if self._setup.journal is None:
            raise UsageError('this Sandbox has no journal; make it with Sandbox(journal="state.db")')
        return self._setup.journal

    def restore(self, repl_id: str, *, abandon: bool = False, **options: Any) -> Repl:
        """A Repl of the journal with its globals, made by running its scripts again. No tool is invoked.

        The options are those of `repl`: what its later runs have, which is not in the journal. Raises Diverged where a
        script does not do what was recorded. A run that a crash cut off is resumed with `resume` first, or given up
        with `abandon`.
        """
        with closing(Recovery(self._sandbox, repl_id, self._maker(options))) as recovery:
            return recovery.restore(abandon=abandon)

    async def arestore(self, repl_id: str, *, abandon: bool = False, **options: Any) -> Repl:
        """The same, awaited. A cancellation counts when the Repl is restored, and closes it."""
        restored: list[Repl] = []
        try:
            await unbroken(lambda: restored.append(self.restore(repl_id, abandon=abandon, **options)))
        except BaseException:
            for repl in restored:
                repl.close()
            raise
        return restored[0]

    def interrupted(self) -> tuple[InterruptedRun, ...]:
        """Runs that a crash cut off, the latest first, each with its calls that have no answer."""
        found = []
        for known in self.journal.runs(interrupted=True):
            runs = read_runs(self.journal.read(known.repl))
            recorded = next((run for run in runs if run.begin.run == known.id), None)
            if recorded is not None and recorded.end is None:
                found.append(
                    InterruptedRun(
                        run_id=known.id,
                        repl_id=known.repl,
                        source=known.source,
                        began=known.began,
                        pending=recorded.pending(self._setup.toolbox, self._setup.additions),
                    )
                )
        return tuple(found)

    def resume(self, run_id: str, in_flight: Any = None, **options: Any) -> Run:
        """Continue a run that a crash cut off: its script runs again, with the recorded answers as far as they go.

        A call without an answer is made again where its tool is `read_only` or `idempotent`. `in_flight` decides about
        the others: "retry", "fail", or a function that gives "retry", "fail" or an Answer for each PendingCall. Without
        it, InDoubt is raised and nothing happens. A run that had ended gives its record again; no tool is invoked.
        The options are those of `repl`, such as the `context` of the calls that follow, which is not in the journal.
        """
        with closing(self._recovery(run_id, self._maker(options))) as recovery:
            repl, recorded, decisions = recovery.find(run_id, in_flight)
            return repl.resume(recorded, decisions)

    async def aresume(self, run_id: str, in_flight: Any = None, *, make: Make | None = None, **options: Any) -> Run:
        """The same, awaited. `make` makes the Repl of that id, instead of `repl` with the options."""
        opened = ExitStack()

        def begin() -> tuple[Repl, RecordedRun, dict[int, Any]]:
            recovery = opened.enter_context(closing(self._recovery(run_id, make or self._maker(options))))
            return recovery.find(run_id, in_flight)

        try:
            repl, recorded, decisions = await unbroken(begin)
            return cast("Run", await repl.aresume(recorded, decisions))
        finally:
            await unbroken(opened.close)

    def _maker(self, options: dict[str, Any]) -> Make:
        return lambda repl_id: self._sandbox.repl(repl_id=repl_id, **options)

    def _recovery(self, run_id: str, make: Make) -> Recovery:
        """Of the Repl of a run. Where the run has ended and a process still uses the Repl, of a copy of it."""
        repl_id, ended, in_use = self.journal.whereabouts(run_id)
        if not (ended and in_use):
            return Recovery(self._sandbox, repl_id, make)
        return Recovery(self._sandbox, repl_id, make, _copy(self._sandbox, repl_id), passing=True)

    def replay(self, run_id: str, source: str) -> tuple[Run, tuple[str, ...]]:
        """Run another script in place of a recorded run: the Run, and in words how it differs from the recorded one.

        It finds the globals that the recorded run found. No tool is invoked: calls get the recorded answers of calls
        with the same tool and arguments, and fail with the code `not_recorded` where there is none.
        """
        box, journal = self._sandbox, self.journal
        repl_id = journal.find_run(run_id)
        events = journal.read(repl_id)
        place = next(
            place
            for place, event in enumerate(events)
            if any(isinstance(record, Begin) and record.run == run_id for record in event)
        )
        reset = (at for at in range(place, len(events)) if any(isinstance(record, Reset) for record in events[at]))
        runs = read_runs(events[place : next(reset, None)])
        recorded = next(run for run in runs if run.begin.run == run_id)
        repl = fork(box, repl_id, place, lambda id: box.make_repl(repl_id=id, before_write=lambda run: None))
        try:
            answers = _RecordedAnswers(recorded)
            begin = recorded.begin
            step = repl.start(source, limits=Limits(**begin.limits), inputs=dict(begin.inputs))
            while not isinstance(step, Run):
                step = step.resume([answers(call) for call in step.calls])
        finally:
            repl.close()
            journal.delete([repl.id])
        return step, tuple(answers.differences(step))


def fork(box: Sandbox, repl_id: str, upto: int, make: Make) -> Repl:
    """A new Repl whose journal begins with the first events of another."""
    held = _copy(box, repl_id, upto)
    try:
        with closing(Recovery(box, repl_id, make, held)) as recovery:
            return recovery.restore(abandon=True)
    except BaseException:
        box.journal.delete([held.repl])
        raise


def _copy(box: Sandbox, repl_id: str, upto: int = _ALL) -> Held:
    import secrets  # slow to load

    held = box.journal.create(secrets.token_hex(6), box.language, {}, parent=repl_id)
    box.journal.copy(held, repl_id, upto)
    return held


class Recovery:
    """Holds one Repl of the journal, or a copy of it, while it is made live and used.

    It is closed and let go of in the end, unless `restore` gives it to the caller.
    """

    def __init__(
        self, box: Sandbox, repl_id: str, make: Make, held: Held | None = None, *, passing: bool = False
    ) -> None:
        self._box = box
        self._make = make
        self._passing = passing  # the copy is deleted in the end
        self._repl: Repl | None = None
        self._keeps = False  # the Repl stays open
        from moonbox.durable.journaling import ReplJournal

        self._journal = ReplJournal(box.journal, held or box.journal.take(repl_id))
        try:
            self._runs = self._journal.recorded_runs()
            environment = self._journal.environment
            if environment is not None and environment.language != box.language:
                raise UsageError(
                    f"the Repl {repl_id!r} runs {environment.language}; "
                    f"restore it with Sandbox(language={environment.language!r})"
                )
        except BaseException:
            self._journal.release()
            raise

    def close(self) -> None:
        if not self._keeps:
            if self._repl is not None:
                self._repl.close()
            self._journal.release()
        if self._passing:
            self._box.journal.delete([self._journal.held.repl])

    def restore(self, *, abandon: bool) -> Repl:
        if not abandon:
            refuse_interrupted(self._runs)
        elif self._runs and self._runs[-1].end is None:
            self._runs[-1].end = self._journal.abandon(self._runs[-1].begin.run)
        self._repl = repl = self._make(self._journal.held.repl)
        repl.replay(self._journal, self._runs)
        self._keeps = True
        return repl

    def find(self, run_id: str, in_flight: Any) -> tuple[Repl, RecordedRun, dict[int, Any]]:
        """The Repl as the run found it, the run, and what its calls without an answer get."""
        place = next((place for place, run in enumerate(self._runs) if run.begin.run == run_id), None)
        if place is None:
            raise UsageError(f"run {run_id!r} cannot be run again: its Repl was reset, or its worker lost, after it")
        recorded = self._runs[place]
        if recorded.end is not None and not recorded.end.is_repeatable:
            raise UsageError(f"run {run_id!r} cannot be run again: it was stopped ({recorded.end.outcome})")
        self._repl = repl = self._make(self._journal.held.repl)
        pending = () if recorded.end is not None else recorded.pending(repl.toolbox, repl.additions)
        decisions = decide(pending, in_flight)
        repl.replay(self._journal, self._runs[:place])
        return repl, recorded, decisions


class _RecordedAnswers:
    """The answers of a recorded run, for calls with the same tool and arguments."""

    def __init__(self, recorded: RecordedRun) -> None:
        self._end = recorded.end
        self._left: dict[tuple[str, bytes], list[Answer]] = {}
        for group in recorded.answers:
            for reply in group.replies:
                if reply.status:
                    self._left.setdefault((reply.tool, _encode(reply.arguments)), []).append(_answer(reply))
        self._new: list[str] = []

    def __call__(self, call: ToolCall) -> Answer:
        known = self._left.get((call.tool, _encode(call.arguments)))
        if known:
            return known.pop(0)
        self._new.append(call.tool)
        return Answer.error(f"the record has no answer to this call of {call.tool}", code="not_recorded")

    def differences(self, run: Run) -> list[str]:
        """In words."""
        lines = [f"it called {tool}, which is not in the record" for tool in self._new]
        for (tool, _), rest in self._left.items():
            lines += [f"it did not call {tool} as recorded"] * len(rest)
        before, now = "" if self._end is None else self._end.outcome, "ok" if run.error is None else run.error.kind
        if before and before != now:
            lines.append(f"recorded: {before}; now: {now}")
        return lines


def _answer(reply: Any) -> Answer:
    if reply.error is None:
        return Answer.value(msgpack.decode(reply.data))
    failed = reply.error
    return Answer.error(failed.message, code=failed.code, retryable=failed.retryable, data=failed.data)
