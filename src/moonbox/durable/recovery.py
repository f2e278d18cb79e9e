"""Recovery: Repls and runs of a journal, made live again in this process."""

from __future__ import annotations

import secrets
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from msgspec import Struct, msgpack

from moonbox.audit.records import Run
from moonbox.durable.journaling import ReplJournal
from moonbox.durable.recorded import InterruptedRun, decide, decided_reply, read_runs, refuse_interrupted
from moonbox.durable.records import Begin, Patched, Reset
from moonbox.errors import UsageError
from moonbox.limits import Limits
from moonbox.runs.decisions import Answer
from moonbox.threads import unbroken
from moonbox.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.durable.history import ReplHistory
    from moonbox.durable.recorded import Decisions, RecordedRun
    from moonbox.durable.records import Environment
    from moonbox.durable.store import Held, Journal
    from moonbox.findings import Finding
    from moonbox.runs.decisions import ToolCall
    from moonbox.runs.environment import Additions
    from moonbox.runs.settings import Settings
    from moonbox.tools.toolbox import Toolbox

_encode = msgpack.Encoder().encode
_ALL = 1 << 62
_NONE: Decisions = {}


class LiveRepl(Protocol):
    """A Repl, which stands above this layer, as far as it is needed to make it live again."""

    id: str

    @property
    def toolbox(self) -> Toolbox: ...
    @property
    def additions(self) -> Additions: ...
    @property
    def history(self) -> ReplHistory: ...
    @property
    def start(self) -> Callable[..., Any]: ...
    def check(self, source: str) -> tuple[Finding, ...]: ...
    def close(self) -> None: ...


R = TypeVar("R", bound=LiveRepl)


class Recoveries(Generic[R]):
    """Makes Repls and runs of one journal live again, in one Sandbox.

    Each method takes `make`, which makes a Repl with the id that it is given.
    """

    def __init__(self, journal: Journal, settings: Settings) -> None:
        self.journal = journal
        self._settings = settings

    def restore(self, repl_id: str, make: Callable[[str], R], *, abandon: bool) -> R:
        """A Repl with its globals."""
        with closing(self._recovery(repl_id, make)) as recovery:
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
        held = self.copy(repl_id, upto)
        try:
            with closing(self._recovery(repl_id, make, held)) as recovery:
                return recovery.restore(abandon=True)
        except BaseException:
            self.journal.delete([held.repl])
            raise

    def interrupted(self) -> tuple[InterruptedRun, ...]:
        """Runs that a crash cut off, the latest first, each with its calls that have no answer."""
        found, settings = [], self._settings
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
                        pending=recorded.pending(settings.toolbox, settings.additions),
                    )
                )
        return tuple(found)

    def resume(self, run_id: str, in_flight: Any, make: Callable[[str], R]) -> Run:
        """Continue a run that a crash cut off."""
        return self._resume(lambda: self._recovery_of(run_id, make), run_id, in_flight)

    async def aresume(self, run_id: str, in_flight: Any, make: Callable[[str], R], *, leaves: bool = False) -> Run:
        """The same, awaited. With `leaves`, it raises Asleep where the run begins to wait."""
        return await self._aresume(lambda: self._recovery_of(run_id, make), run_id, in_flight, leaves=leaves)

    def go_on(self, held: Held, run_id: str, decisions: Decisions, make: Callable[[str], R]) -> Run:
        """Continue a run of a Repl that this process holds, with these answers to calls that have none."""
        return self._resume(lambda: self._recovery(held.repl, make, held), run_id, "retry", decisions)

    async def ago_on(self, held: Held, run_id: str, decisions: Decisions, make: Callable[[str], R]) -> Run:
        """The same, awaited."""
        return await self._aresume(lambda: self._recovery(held.repl, make, held), run_id, "retry", decisions)

    def _resume(self, open: Callable[[], Recovery[R]], run_id: str, in_flight: Any, given: Decisions = _NONE) -> Run:
        with closing(open()) as recovery:
            repl, recorded, decisions = recovery.find(run_id, in_flight)
            return repl.history.resume(recorded, {**decisions, **given})

    async def _aresume(
        self,
        open: Callable[[], Recovery[R]],
        run_id: str,
        in_flight: Any,
        given: Decisions = _NONE,
        *,
        leaves: bool = False,
    ) -> Run:
        opened = ExitStack()

        def begin() -> tuple[R, RecordedRun, dict[int, Any]]:
            return opened.enter_context(closing(open())).find(run_id, in_flight)

        try:
            repl, recorded, decisions = await unbroken(begin)
            repl.history.leaves = leaves
            run: Run = await repl.history.aresume(recorded, {**decisions, **given})
            return run
        finally:
            await unbroken(opened.close)

    def patch(self, run_id: str, correction: Correction, in_flight: Any, make: Callable[[str], R]) -> Run:
        """Continue a run with a corrected script."""
        with closing(self._recovery(self.journal.find_run(run_id), make)) as recovery:
            repl, recorded, decisions = recovery.patched(run_id, correction, in_flight)
            return repl.history.resume(recorded, decisions)

    async def apatch(self, run_id: str, correction: Correction, in_flight: Any, make: Callable[[str], R]) -> Run:
        """The same, awaited."""

        def find() -> tuple[R, RecordedRun, dict[int, Any]]:
            recovery = opened.enter_context(closing(self._recovery(self.journal.find_run(run_id), make)))
            return recovery.patched(run_id, correction, in_flight)

        opened = ExitStack()
        try:
            repl, recorded, decisions = await unbroken(find)
            run: Run = await repl.history.aresume(recorded, decisions)
            return run
        finally:
            await unbroken(opened.close)

    def replay(self, run_id: str, source: str, make: Callable[[str], R]) -> tuple[Run, tuple[str, ...]]:
        """Run another script in place of a recorded run: the Run, and in words how it differs from the recorded one."""
        journal = self.journal
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
        repl = self.fork(repl_id, place, make)
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

    def _recovery(self, repl_id: str, make: Callable[[str], R], held: Held | None = None) -> Recovery[R]:
        return Recovery(self.journal, self._settings.language.name, repl_id, make, held)

    def _recovery_of(self, run_id: str, make: Callable[[str], R]) -> Recovery[R]:
        """Of the Repl of a run. Where the run has ended and a process still uses the Repl, of a copy of it."""
        repl_id, ended, in_use = self.journal.whereabouts(run_id)
        if not (ended and in_use):
            return self._recovery(repl_id, make)
        language = self._settings.language.name
        return Recovery(self.journal, language, repl_id, make, self.copy(repl_id), passing=True)

    def is_question(self, target: str) -> bool:
        """Whether what a script calls is no call of its run's record."""
        return self._settings.additions.is_question(target)

    def check_language(self, repl_id: str, environment: Environment | None) -> None:
        """Raise UsageError where the Repl runs another language."""
        _check_language(repl_id, environment, self._settings.language.name)

    def copy(self, repl_id: str, upto: int = _ALL) -> Held:
        """A new Repl that begins with the first events of another."""
        held = self.journal.create(secrets.token_hex(6), self._settings.language.name, {}, parent=repl_id)
        self.journal.copy(held, repl_id, upto)
        return held


class Recovery(Generic[R]):
    """Holds one Repl of the journal, or a copy of it, while it is made live and used.

    It is closed and let go of in the end, unless `restore` gives it to the caller.
    """

    def __init__(
        self,
        journal: Journal,
        language: str,
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
        self._store = journal
        self._journal = ReplJournal(journal, held or journal.take(repl_id))
        try:
            self._runs = self._journal.recorded_runs()
            _check_language(repl_id, self._journal.environment, language)
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

    def find(self, run_id: str, in_flight: Any) -> tuple[R, RecordedRun, dict[int, Any]]:
        """The Repl as the run found it, the run, and what its calls without an answer get."""
        place = self._place(run_id)
        recorded = self._runs[place]
        if recorded.end is not None and not recorded.end.is_repeatable:
            raise UsageError(f"run {run_id!r} cannot be run again: it was stopped ({recorded.end.outcome})")
        self._repl = repl = self._make(self._journal.held.repl)
        pending = () if recorded.end is not None else recorded.pending(repl.toolbox, repl.additions)
        decisions = decide(pending, in_flight)
        repl.history.restore(self._journal, self._runs[:place])
        if recorded.end is None:
            self._journal.begin_again(run_id)
        return repl, recorded, decisions

    def patched(self, run_id: str, correction: Correction, in_flight: Any) -> tuple[R, RecordedRun, dict[int, Any]]:
        """The same as `find`, with the corrected script in place of the recorded one."""
        place = self._place(run_id)
        recorded = self._runs[place]
        if place + 1 < len(self._runs):
            raise UsageError(f"run {run_id!r} cannot be patched: later runs of its Repl have used what it did")
        if recorded.end is not None and recorded.end.outcome == "ok":
            raise UsageError(f"run {run_id!r} has ended well; there is nothing to correct")
        self._repl = repl = self._make(self._journal.held.repl)
        patch = correction.of(recorded, repl.additions)
        recorded.patch(patch)
        recorded.unwritten = patch
        decisions = decide(recorded.pending(repl.toolbox, repl.additions), in_flight)
        repl.history.restore(self._journal, self._runs[:place])
        wrong = [finding for finding in repl.check(patch.source) if finding.severity == "error"]
        if wrong:
            raise UsageError(f"the corrected script cannot run: line {wrong[0].line}: {wrong[0].message}")
        return repl, recorded, decisions

    def _place(self, run_id: str) -> int:
        for place, run in enumerate(self._runs):
            if run.begin.run == run_id:
                return place
        raise UsageError(f"run {run_id!r} cannot be run again: its Repl was reset, or its worker lost, after it")


class Correction(Struct, frozen=True, kw_only=True):
    """A corrected script, and what becomes of calls that cannot be repeated, by their numbers in the Run."""

    source: str
    answer: dict[int, Any] = {}
    """Answers in place of the recorded ones."""
    skip: tuple[int, ...] = ()
    """Calls that the corrected script does not make."""

    def of(self, recorded: RecordedRun, additions: Additions) -> Patched:
        """The correction of this run; raises UsageError where it has no such calls."""
        numbers = recorded.numbers(additions)
        wrong = sorted(index for index in {*self.answer, *self.skip} if not 0 < index <= len(numbers))
        if wrong:
            raise UsageError(f"run {recorded.begin.run!r} has {counted(len(numbers), 'call')}, and no call {wrong[0]}")
        pending = {call.call: call for call in recorded.every_call()}
        replies = [decided_reply(pending[numbers[index - 1]], value) for index, value in self.answer.items()]
        skipped = [numbers[index - 1] for index in self.skip]
        return Patched(run=recorded.begin.run, source=self.source, skipped=skipped, replies=replies)


def _check_language(repl_id: str, environment: Environment | None, language: str) -> None:
    if environment is not None and environment.language != language:
        raise UsageError(
            f"the Repl {repl_id!r} runs {environment.language}; "
            f"restore it with Sandbox(language={environment.language!r})"
        )


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
