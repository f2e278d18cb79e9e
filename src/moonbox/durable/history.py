"""The recorded runs of one Repl: how its runs are taken down, and how they are run again without invoking a tool.

Running them again gives their globals again: after a sleep, when the worker's host is lost, or in another process.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic, time
from typing import TYPE_CHECKING, Any
from weakref import proxy

from moonbox.durable.compaction import dead_runs, predefined_names
from moonbox.durable.journaling import ReplJournal, RunJournal
from moonbox.durable.leases import InUse
from moonbox.durable.questions import comes_through_journal
from moonbox.durable.watch import Asleep, Sleeping
from moonbox.errors import Diverged, MoonboxError, PoolTimeout, WorkerError
from moonbox.limits import Limits
from moonbox.media import Media
from moonbox.runs.held_worker import Ended
from moonbox.runs.options import RunOptions, merged

if TYPE_CHECKING:
    from moonbox.audit.records import Run
    from moonbox.durable.recorded import Decisions, RecordedRun
    from moonbox.durable.store import Journal
    from moonbox.runs.decisions import Decision, ToolCall
    from moonbox.runs.execution import Execution
    from moonbox.runs.record import RunRecord
    from moonbox.runs.runner import Runner
    from moonbox.worker.link import Link

_AGAIN = 1.0  # seconds until a run that cannot go on now is looked at again
_NEVER = 1e12
_WORTH_COMPACTING = 50
"""Runs that are older than the journal keeps: from so many on, they are looked at when the Repl wakes up."""
_MOST_MOVES = 10
"""Hosts that may be lost one after another under one run: the script may be the reason."""


class ReplHistory:
    """Records the runs of one Repl in a journal, and runs recorded ones again."""

    __slots__ = ("_journal", "_runner", "_worker", "journal", "leaves", "sleeping")

    def __init__(self, runner: Runner, journal: Journal) -> None:
        self._runner: Runner = proxy(runner)  # no cycle keeps a Repl that was dropped
        self._journal = journal
        self._worker = runner.worker
        self.journal: ReplJournal | None = None
        """None before the first run."""
        self.leaves = False
        """Nothing waits here for a run that gives its worker back."""
        self.sleeping: Sleeping | None = None
        """The run that waits and has given its worker back."""

    # Recording

    def take_down(
        self, record: RunRecord, inputs: list[tuple[str, Any]], recorded: Any, decisions: Decisions | None
    ) -> None:
        """Have the run recorded, or compared with its record."""
        runner, settings = self._runner, self._runner.settings
        if self.journal is None:
            labels = dict(runner.options.get("labels") or record.labels)  # labels of its first run name its user
            journal = self._journal
            held = journal.patiently(
                lambda: journal.create(record.repl_id, settings.language.name, labels), clock=record.clock
            )
            self.journal = ReplJournal(journal, held)
        if self._worker.loss_unseen:
            self.journal.reset()
        record.approve = record.approve_script = self.ask
        leaves = comes_through_journal(settings.approve)
        record.journal = run_journal = RunJournal(self.journal, record, recorded, decisions, may_leave_people=leaves)
        if recorded is None:
            environment = runner.toolbox, runner.additions, record.language, settings.features
            run_journal.begin(self.journal.changed_environment(*environment), inputs)

    async def ask(self, call: ToolCall) -> Decision:
        """A person's decision about a call, which may be in the journal already."""
        from moonbox.durable.approvals import ask_people  # loads asyncio

        settings, secrets = self._runner.settings, self._runner.services.records.secrets
        approve = settings.approve if call.kind == "call" else settings.script_approver
        return await ask_people(self._journal, call, approve, settings.approval_seconds, secrets)

    def reset(self) -> None:
        """What scripts had defined is gone."""
        if self.journal is not None:
            self.journal.reset()

    @property
    def writes_first(self) -> bool:
        """Whether the journal is written to before the next run begins."""
        return self.journal is None or self._worker.loss_unseen

    def hurry(self) -> None:
        """The Repl is being closed: nothing waits for the database any more, and no run for its time."""
        if self.journal is not None:
            self.journal.hurries = True
        if self.sleeping is not None:
            self.sleeping.leave()

    def let_go(self) -> bool:
        """The worker is of no use any more: the next run finds in the journal what scripts have defined.

        False before the first run, when there is nothing in the journal.
        """
        if self.journal is None:
            return False
        self._worker.sleep()
        self._worker.asleep = True  # also where the journal has no run
        self.journal.release()
        return True

    def release(self) -> None:
        """Another process may use the Repl."""
        if self.journal is not None:
            self.journal.release()

    def drop(self) -> None:
        """The same, without waiting for anything."""
        if self.journal is not None and not self.journal.released:
            self._journal.release_late(self.journal.held)

    # Running again

    def restore(self, journal: ReplJournal, runs: Sequence[RecordedRun]) -> None:
        """Run recorded runs again, in a new Repl; raises Diverged where one differs.

        Runs that something from outside had stopped are left out: how far they came is not known.
        """
        self.journal = journal
        with self._runner.turns.taken():
            self._rebuild(runs)

    def resume(self, recorded: RecordedRun, decisions: Decisions | None = None) -> Run:
        """Run a recorded run again; where its record ends in the middle, it goes on from there."""
        return self._runner.run("", {}, lambda link: self._begin_again(link, recorded, decisions))

    async def aresume(self, recorded: RecordedRun, decisions: Decisions | None = None) -> Run:
        """The same, awaited."""
        return await self._runner.arun("", {}, lambda link: self._begin_again(link, recorded, decisions))

    @contextmanager
    def again(self, recorded: RecordedRun, decisions: Decisions) -> Iterator[tuple[Runner, Link, Execution]]:
        """Begin a recorded run again, for a caller that drives it."""
        runner = self._runner
        with runner.turns.taken():
            link = runner.acquire()
            yield runner, link, self._begin_again(link, recorded, decisions)

    def wake(self) -> Link:
        """A worker in which the recorded runs were run again."""
        assert self.journal is not None
        runs, days = self.journal.wake(), self._journal.max_days
        link = self._rebuild(runs)
        old = time() - days * 86_400
        if days and sum(run.end is not None and run.end.at < old for run in runs) >= _WORTH_COMPACTING:
            self.compact(old)
            link = self._worker.acquire()
        return link

    def compact(self, before: float = math.inf) -> int:
        """Drop from the journal the runs that ended before then, if the globals are the same without them: how many.

        Nothing is dropped where that cannot be proved.
        """
        journal, runner = self.journal, self._runner
        if journal is None:
            return 0
        self.let_go()
        runs = journal.wake()
        names: list[set[str]] = []
        self._rebuild(runs, names)
        if runner.left_out:
            return 0
        dead = dead_runs(runs, names, predefined_names(runner.settings.language, runner.additions))
        dead &= {run.begin.run for run in runs if run.end is not None and run.end.at < before}
        kept: list[set[str]] = [set()]
        self._worker.sleep()
        try:
            self._rebuild([run for run in runs if run.begin.run not in dead], kept)
        except Diverged:
            self.let_go()
            return 0
        if kept[-1] != (names or kept)[-1]:
            self.let_go()
            return 0
        runner.number = runs[-1].begin.number if runs else runner.number
        store = self._journal
        dropped = store.patiently(lambda: store.drop(journal.held, dead, resets=math.isinf(before)), journal)
        journal.recorded_runs()
        return dropped

    def sleep(self, execution: Execution) -> Sleeping:
        """Give the worker back for a run that waits for a time or for people. Another process may wake it."""
        journal, record, due = self.journal, execution.record, execution.wakes_at
        assert journal is not None and record.journal is not None
        until = _NEVER if due is None else time() + due - monotonic()
        record.intents, record.clock.worker = None, None  # a call that waits for a person has not ended
        execution.host_gone = True  # what scripts had defined is in the journal
        execution.ledger.leave_all()
        execution.leave_span("waiting" if execution.people else "sleeping")
        self._worker.sleep()
        self._worker.asleep = True  # also where no earlier run has defined anything
        record.journal.put(record.journal.take())
        watch = self._journal.watch
        watch.expect(record.id)
        sleep = Sleeping(watch, record, execution.options)
        try:
            sleep.until = journal.fall_asleep(record.id, until, execution.people)
            if self.leaves:
                raise Asleep(f"run {record.id} sleeps")
        except BaseException:
            sleep.leave()
            raise
        self.sleeping = sleep
        return sleep

    def regain(self, run: str) -> bool:
        """Hold the Repl again, to write the end of its run that sleeps. False where another process goes on with it."""
        assert self.journal is not None
        try:
            runs = self.journal.recorded_runs()
        except MoonboxError:
            return False
        return bool(runs) and runs[-1].begin.run == run and runs[-1].end is None

    def rise(self, sleep: Sleeping) -> tuple[Link, Execution] | None:
        """A run that has slept, begun again; None where another process is running it, or no worker is free."""
        journal, record = self.journal, sleep.record
        assert journal is not None and record.journal is not None
        with sleep.rising():
            try:
                runs = journal.recorded_runs()
                place = [run.begin.run for run in runs].index(record.id)
                link = self._rebuild(runs[:place])
            except (InUse, PoolTimeout):
                journal.release()
                sleep.until = time() + _AGAIN
                return None
            if runs[place].end is None:
                journal.begin_again(record.id)
            self.sleeping = None
            self._journal.watch.risen(record.id)
            again = self._begin_again(link, runs[place], record.journal.decisions, sleep.options)
        again.record.continue_output(record)
        return link, again

    def move(self, lost: Execution) -> tuple[Link, Execution]:
        """A run whose worker went with its host, begun again in another: it goes on where it was.

        Calls that had ended get their recorded answers. Those that had not begun are made.
        """
        journal, record = self.journal, lost.record
        assert journal is not None and record.journal is not None
        self._worker.sleep()
        self._worker.asleep = True  # also where no earlier run has defined anything
        if lost.moves == _MOST_MOVES:
            raise WorkerError(f"{_MOST_MOVES} hosts were lost while this script ran on them")
        if (metrics := self._runner.services.records.metrics) is not None:
            metrics.count("runs_moved")
        lost.leave_span("moved")
        lost.outgoing()  # the journal takes the answers down that the worker did not get
        record.journal.put(record.journal.take())
        runs = journal.recorded_runs()
        place = [run.begin.run for run in runs].index(record.id)
        link = self._rebuild(runs[:place])
        again = self._begin_again(link, runs[place], record.journal.decisions, lost.options)
        again.moves = lost.moves + 1
        again.record.continue_output(record)
        return link, again

    def _rebuild(self, runs: Sequence[RecordedRun], names: list[set[str]] | None = None) -> Link:
        """A worker in which these runs were run again. Where its host is lost, another worker runs them.

        A run that differs is left out where a run before it was: it may have used what that one had defined. `names`
        gets the globals that there are after each run.
        """
        worker, runner = self._worker, self._runner
        worker.asleep, worker.loss_unseen = True, False
        lost_hosts, left_out = 0, False
        while lost_hosts < _MOST_MOVES:
            link = worker.acquire()
            runner.forget()
            place = 0
            try:
                while place < len(runs) and self._repeat(link, runs[place]):
                    place += 1
                    if names is not None:
                        names.append({*worker.read_globals()})
                if place == len(runs):
                    worker.asleep, runner.left_out = False, left_out
                    return link
                lost_hosts += 1
            except Ended:  # while it was asked for its globals
                lost_hosts += 1
            except Diverged:
                if not any(run.is_left_out for run in runs[:place]):
                    raise
                runs[place].leave_out()
                left_out = True
            finally:
                if worker.asleep:  # the next attempt must not find what this one has defined
                    worker.sleep()
        raise WorkerError(f"{_MOST_MOVES} hosts were lost, one after another, while this Repl was being restored")

    def _repeat(self, link: Link, recorded: RecordedRun) -> bool:
        """Run it again, unless something from outside had stopped it; False where the worker's host is lost."""
        runner = self._runner
        if recorded.is_left_out or not recorded.was_admitted:
            runner.number = recorded.begin.number
            return True
        execution = self._begin_again(link, recorded)
        if not execution.over:
            runner.driver(link, execution).run()
        if not execution.host_gone:
            runner.finish(execution)
        return not execution.host_gone

    def _begin_again(
        self,
        link: Link,
        recorded: RecordedRun,
        decisions: Decisions | None = None,
        options: RunOptions | None = None,
    ) -> Execution:
        runner, begin = self._runner, recorded.begin
        runner.number = begin.number - 1
        for each in recorded.media:
            medium = Media(each.data, each.kind, each.name)
            medium.address = each.address
            runner.media.keep(medium)
        assert self.journal is not None
        self.journal.media, _ = runner.media.since(self.journal.media)
        for allowance in recorded.allowances:
            runner.allowances.keep(allowance)
        if options is None:
            options = merged(runner.options, {"limits": Limits(**begin.limits), "labels": begin.labels})
        return runner.begin(link, begin.source, (options, begin.inputs), recorded, decisions)
