"""The runs of a Repl: how each begins, is driven, and ends.

With a journal, runs are recorded, and running them again gives their globals again: after a sleep, when the worker's
host is lost, or in another process.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

from moonbox.errors import Diverged, JournalError, MoonboxError, UsageError, WorkerError
from moonbox.limits import Limits
from moonbox.media import Media, MediaStore
from moonbox.runs.blocking import BlockingDriver
from moonbox.runs.calls import CallPath
from moonbox.runs.clock import RunClock
from moonbox.runs.environment import lower_inputs
from moonbox.runs.execution import Execution
from moonbox.runs.held_worker import HeldWorker
from moonbox.runs.intents import Intents
from moonbox.runs.options import merged
from moonbox.runs.record import RunRecord
from moonbox.runs.script_check import ScriptCheck
from moonbox.runs.slots import Turns
from moonbox.tools.toolbox import Toolbox
from moonbox.worker import protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moonbox.audit.records import Run
    from moonbox.durable.journaling import ReplJournal
    from moonbox.durable.recorded import Decisions, RecordedRun
    from moonbox.runs.decisions import Decision
    from moonbox.runs.options import RunOptions
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.sandbox.setup import Setup
    from moonbox.worker.link import Link

    Given = tuple[RunOptions, list[tuple[str, Any]]]
    """What a run is given: its options, and its inputs as plain values."""

_KEPT_SOURCES = 20
_REPLAY_SECONDS, _SLOWER = 60.0, 10.0
"""A run that is repeated had ended by itself: it may take so long, and so much longer than it was allowed to."""
_MOST_MOVES = 10
"""Hosts that may be lost one after another under one run: the script may be the reason."""


class ReplRuns:
    """The part of a Repl that runs scripts."""

    _calls: CallPath | None = None
    _journal: ReplJournal | None = None
    _number = 0
    _finished = ""
    """The id of the run whose record was kept last."""
    _left_out = False
    """Runs were left out when it was restored, and no Run has reported it yet."""

    def __init__(
        self,
        sandbox: Sandbox,
        setup: Setup,
        options: RunOptions,
        timeout: float | None,
        toolbox: Toolbox | None,
        before_write: Callable[[Run], Run | None] | None,
        check: bool | None,
        for_one_run: bool,
        repl_id: str,
    ) -> None:
        self.id = repl_id or ("" if for_one_run and setup.journal is None else setup.new_id(6))
        self.toolbox = toolbox = setup.toolbox if toolbox is None else Toolbox.of(toolbox)
        self._sandbox = sandbox  # which lives, and its workers with it, as long as one of its Repls
        self._setup = setup
        self._worker = HeldWorker(setup, timeout)
        self._made_with = options, timeout, toolbox, before_write, check
        self._options = merged(setup.run_options, options) if options else setup.run_options
        self._before_write = before_write
        self._additions = setup.additions
        self._always: dict[str, tuple[dict[str, str], Decision]] = {}
        self._check = ScriptCheck(setup, toolbox, check)
        self._turns = Turns(setup.pid, setup.run_ended)
        self._media = MediaStore()
        self._sources: deque[tuple[int, str]] = deque(maxlen=_KEPT_SOURCES)

    # Recorded runs

    def replay(self, journal: ReplJournal, runs: Sequence[RecordedRun]) -> None:
        """Run recorded runs again, in this new Repl, without invoking a tool; raises Diverged where one differs.

        Runs that something from outside had stopped are left out: how far they came is not known.
        """
        self._journal = journal
        with self._turns.taken():
            self._rebuild(runs)

    def resume(self, recorded: RecordedRun, decisions: Decisions | None = None) -> Run:
        """Run a recorded run again; where its record ends in the middle, it goes on from there."""
        return self._drive(lambda link: self._begin_again(link, recorded, decisions))

    async def aresume(self, recorded: RecordedRun, decisions: Decisions | None = None) -> Run:
        """The same, awaited."""
        return await self._adrive(lambda link: self._begin_again(link, recorded, decisions))

    # One run

    def _drive(self, begin: Callable[[Link], Execution]) -> Run:
        """Take the Repl's turn, and run what `begin` makes to its end: on another host where one is lost."""
        self._turns.enter()
        execution: Execution | None = None
        try:
            link = self._acquire()
            execution = begin(link)
            while not execution.over:
                self._driver(link, execution).run()
                if execution.moving:
                    link, execution = self._move(execution)
            return self._finish(execution)
        except BaseException as problem:
            self._give_up(execution, problem)
            raise
        finally:
            self._turns.leave()

    async def _adrive(self, begin: Callable[[Link], Execution]) -> Run:
        """The same, awaited."""
        from moonbox.runs.awaited import AwaitedDriver
        from moonbox.threads import unbroken

        await self._turns.aenter()
        execution: Execution | None = None
        try:
            link = await self._worker.aacquire()
            if self._worker.asleep:
                link = await unbroken(self._wake)
            execution = await unbroken(partial(begin, link)) if self._writes_first else begin(link)
            while not execution.over:
                await AwaitedDriver(link, execution, self._setup.threads).run()
                if execution.moving:
                    link, execution = await unbroken(partial(self._move, execution))
            if (journal := execution.record.journal) is None:
                return self._finish(execution)
            run, repeats = self._conclude(execution), []
            try:
                lost = execution.record.worker_lost
                await unbroken(lambda: repeats.append(journal.finish(run, lost=lost)))
            finally:
                if repeats and not repeats[0]:
                    run = self._keep(run)
            return run
        except BaseException as problem:
            self._give_up(execution, problem)
            raise
        finally:
            self._turns.leave()

    def _driver(self, link: Link, execution: Execution) -> BlockingDriver:
        return BlockingDriver(link, execution, self._setup.threads, self._setup.loop)

    def _given(self, options: RunOptions) -> Given:
        """What one run is given: the options over those of the Repl, and the inputs as plain values."""
        if not options:
            return self._options, []
        given = merged(self._options, options)
        with self._media.active():
            return given, lower_inputs(given.get("inputs"), self._setup.language)

    def _begin(
        self,
        link: Link,
        source: str,
        given: Given,
        recorded: RecordedRun | None = None,
        decisions: Decisions | None = None,
    ) -> Execution:
        """A run that is ready to be driven, or over because its script cannot be run."""
        options, inputs = given
        require_text(source)
        setup, worker = self._setup, self._worker
        number = self._number = self._number + 1
        self._sources.append((number, source))
        begin = None if recorded is None else recorded.begin
        seed = setup.random.getrandbits(56) if begin is None else begin.seed
        repeats = recorded is not None and recorded.end is not None  # only its caller gets a repetition
        record = RunRecord(
            self._call_path(options.get("limits") or setup.limits),
            source,
            begin.run if begin is not None else options.get("run_id") or setup.new_id(),
            repl_id=self.id,
            number=number,
            seed=seed,
            state_lost_before=worker.loss_unseen or self._left_out,
            intents=None
            if setup.sink is None or repeats
            else Intents.to(setup.sink, setup.redactor, self._before_write),
            on_output=None if repeats else options.get("on_output"),
            context=setup.context_with(options.get("context")),
            labels=options.get("labels"),
        )
        if repeats and record.calls.limits.timeout is not None:  # this machine may be slower, or stall
            record.clock = RunClock(_REPLAY_SECONDS + _SLOWER * record.calls.limits.timeout)
        record.on_progress = options.get("on_progress")
        if setup.journal is not None:
            self._take_down(record, inputs, recorded, decisions)
        worker.loss_unseen = self._left_out = False
        execution = Execution(
            record,
            sources=self._sources,
            on_call=None if repeats else options.get("on_call"),
            telemetry=None if repeats else setup.telemetry,
        )
        execution.options = options
        program = source.encode("utf-8", "replace")
        names = [name for name, _ in inputs]
        admitted = recorded is not None and recorded.was_admitted
        refused = self._check.admit(execution, len(program), self._additions, names, was_admitted=admitted)
        if refused is not None:
            execution.refuse(refused)
            return execution
        update = worker.update(link, self.toolbox, self._additions, record.calls.limits)
        if inputs:
            update += protocol.pack(protocol.CONFIGURE, {"inputs": inputs})
        execution.begin(update + protocol.pack_run(program, number, seed), link)
        return execution

    def _call_path(self, limits: Limits) -> CallPath:
        """The one of the latest run, unless something has changed since."""
        calls = self._calls
        if calls is None or (calls.limits is not limits and calls.limits != limits):
            calls = self._calls = CallPath(
                self._setup, self.toolbox, self._additions, limits, self._always, self._media
            )
        return calls

    def _take_down(
        self,
        record: RunRecord,
        inputs: list[tuple[str, Any]],
        recorded: RecordedRun | None,
        decisions: Decisions | None,
    ) -> None:
        """Give a run its journal."""
        from moonbox.durable.journaling import ReplJournal, RunJournal

        setup = self._setup
        if self._journal is None:
            labels = self._options.get("labels") or record.labels  # labels of its first run name its user
            journal = self._sandbox.journal
            held = journal.patiently(
                lambda: journal.create(record.repl_id, setup.language.name, labels), clock=record.clock
            )
            self._journal = ReplJournal(journal, held)
        if self._worker.loss_unseen:
            self._journal.reset()
        record.journal = RunJournal(self._journal, record, recorded, decisions)
        if recorded is None:
            changed = self._journal.changed_environment(self.toolbox, self._additions, record.language, setup.features)
            record.journal.begin(changed, inputs)

    @property
    def _writes_first(self) -> bool:
        """Whether the journal is written to before its next run begins."""
        return self._setup.journal is not None and (self._journal is None or self._worker.loss_unseen)

    def _finish(self, execution: Execution) -> Run:
        """The run is over: keep the record, and the worker if it lives."""
        run = self._conclude(execution)
        journal = execution.record.journal
        if journal is not None and journal.finish(run, lost=execution.record.worker_lost):
            return run
        return self._keep(run)

    def _conclude(self, execution: Execution) -> Run:
        """The record of a run that is over, before it is kept."""
        self._finished = execution.record.id
        lost = execution.record.worker_lost
        if lost:
            self._worker.drop()
            self._check.forget()
        self._worker.has_state = not lost
        if execution.host_gone:
            self._worker.sleep()
        run = execution.finish()
        for name in (run.kept, run.kept_output):
            if name:
                self._check.keep(name)
        return run

    def _keep(self, run: Run) -> Run:
        if self._before_write is not None:
            changed = self._before_write(run)
            if changed is None:
                return run
            run = changed
        return self._setup.write(run)

    def _give_up(self, execution: Execution | None, problem: BaseException) -> None:
        """An exception ends the run for its caller: keep the record, also where a callback of the caller raised it."""
        if execution is None:
            if isinstance(problem, JournalError) and self._journal is not None:
                self._let_go()
            return
        is_ours = isinstance(problem, MoonboxError)
        if not execution.over or execution.moving or isinstance(problem, JournalError):
            if is_ours:  # the state of the worker is unknown, or not that of the journal
                execution.ledger.leave_all()
                self._let_go()
                return
            execution.interrupted = True
            execution.lose(WorkerError("the caller stopped waiting; the worker was killed"), closed=True)
        if execution.record.id != self._finished and not is_ours:
            if execution.record.journal is not None:
                execution.record.journal.stop_waiting()
            try:
                self._finish(execution)
                self._worker.loss_unseen = execution.record.worker_lost  # the caller does not get that record
            except JournalError:
                self._let_go()

    def _let_go(self) -> None:
        """The worker is of no use any more. With a journal, the next run finds there what scripts have defined."""
        if self._journal is None:
            self._worker.lose()
            return
        self._worker.sleep()
        self._worker.asleep = True  # also where the journal has no run
        self._journal.release()

    def _forget(self) -> None:
        """What runs have left in this process."""
        self._check.forget()
        self._sources.clear()
        self._number = 0

    # Workers that have what scripts have defined

    def _acquire(self) -> Link:
        """The worker, with what scripts have defined."""
        link = self._worker.acquire()
        return self._wake() if self._worker.asleep else link

    def _wake(self) -> Link:
        assert self._journal is not None
        return self._rebuild(self._journal.wake())

    def _rebuild(self, runs: Sequence[RecordedRun]) -> Link:
        """A worker in which these runs were run again. Where its host is lost, another worker runs them.

        A run that differs is left out where a run before it was: it may have used what that one had defined.
        """
        self._worker.asleep, self._worker.loss_unseen = True, False
        lost_hosts, left_out = 0, False
        while lost_hosts < _MOST_MOVES:
            link = self._worker.acquire()
            self._forget()
            try:
                if all(self._repeat(link, latest := run) for run in runs):
                    self._worker.asleep, self._left_out = False, left_out
                    return link
                lost_hosts += 1
            except Diverged:
                if not any(run.is_left_out for run in runs[: runs.index(latest)]):
                    raise
                latest.leave_out()
                left_out = True
            finally:
                if self._worker.asleep:  # the next attempt must not find what this one has defined
                    self._worker.sleep()
        raise WorkerError(f"{_MOST_MOVES} hosts were lost, one after another, while this Repl was being restored")

    def _repeat(self, link: Link, recorded: RecordedRun) -> bool:
        """Run it again, unless something from outside had stopped it; False where the worker's host is lost."""
        if recorded.is_left_out or not recorded.was_admitted:
            self._number = recorded.begin.number
            return True
        execution = self._begin_again(link, recorded)
        if not execution.over:
            self._driver(link, execution).run()
        if not execution.host_gone:
            self._finish(execution)
        return not execution.host_gone

    def _move(self, lost: Execution) -> tuple[Link, Execution]:
        """A run whose worker went with its host, begun again in another: it goes on where it was.

        Calls that had ended get their recorded answers. Those that had not begun are made.
        """
        journal, record = self._journal, lost.record
        assert journal is not None and record.journal is not None
        self._worker.sleep()
        self._worker.asleep = True  # also where no earlier run has defined anything
        if lost.moves == _MOST_MOVES:
            raise WorkerError(f"{_MOST_MOVES} hosts were lost while this script ran on them")
        if self._setup.metrics is not None:
            self._setup.metrics.count("runs_moved")
        lost.outgoing()  # the journal takes the answers down that the worker did not get
        record.journal.put(record.journal.take())
        runs = journal.recorded_runs()
        place = [run.begin.run for run in runs].index(record.id)
        link = self._rebuild(runs[:place])
        again = self._begin_again(link, runs[place], record.journal.decisions, lost.options)
        again.moves = lost.moves + 1
        again.record.continue_output(record)
        return link, again

    def _begin_again(
        self,
        link: Link,
        recorded: RecordedRun,
        decisions: Decisions | None = None,
        options: RunOptions | None = None,
    ) -> Execution:
        begin = recorded.begin
        self._number = begin.number - 1
        for each in recorded.media:
            medium = Media(each.data, each.kind, each.name)
            medium.address = each.address
            self._media.keep(medium)
        assert self._journal is not None
        self._journal.media, _ = self._media.since(self._journal.media)
        if options is None:
            options = merged(self._options, {"limits": Limits(**begin.limits), "labels": begin.labels})
        return self._begin(link, begin.source, (options, begin.inputs), recorded, decisions)


def require_text(source: object) -> None:
    if not isinstance(source, str):
        raise UsageError(f"the script must be a string, not {type(source).__name__}")
