"""What the journal does for a Repl: its state outlives the worker, in sleep, on another host, or in another process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moonbox.errors import WorkerError
from moonbox.limits import Limits
from moonbox.media import Media
from moonbox.sandbox.blocking import BlockingDriver
from moonbox.sandbox.options import merged

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from moonbox.audit.records import Run
    from moonbox.media import MediaStore
    from moonbox.sandbox.environment import Additions
    from moonbox.sandbox.execution import Execution
    from moonbox.sandbox.held_worker import HeldWorker
    from moonbox.sandbox.journaling import ReplJournal
    from moonbox.sandbox.options import RunOptions
    from moonbox.sandbox.record import RunRecord
    from moonbox.sandbox.recorded import Decisions, RecordedRun
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.sandbox.setup import Setup
    from moonbox.sandbox.slots import Turns
    from moonbox.tools.toolbox import Toolbox
    from moonbox.worker.link import Link

    Begin = Callable[[Link], Execution]

_MOST_MOVES = 10
"""Hosts that may be lost one after another under one run: the script may be the reason."""


class DurableRepl:
    """The part of a Repl that needs its journal. Runs are recorded; running them again gives their globals again."""

    toolbox: Toolbox
    _journal: ReplJournal | None = None
    _additions: Additions
    _number: int
    _sandbox: Sandbox
    _setup: Setup
    _worker: HeldWorker
    _turns: Turns
    _media: MediaStore
    _options: RunOptions
    _begin: Callable[..., Execution]
    _finish: Callable[[Execution], Run]
    _forget: Callable[[], None]
    _drive: Callable[[Begin], Run]
    _adrive: Callable[[Begin], Coroutine[Any, Any, Run]]

    def sleep(self, idle_for: float = 0.0) -> bool:
        """Give the worker up until the next run, which restores what scripts have defined from the journal.

        Nothing happens, and the result is False, where the Repl is in use or was used in the last `idle_for` seconds.
        """
        if self._worker.link is None or self._turns.closed or self._turns.paused or not self._turns.idle:
            return False
        self._sandbox.journal  # noqa: B018 - raises where there is none
        with self._turns.taken():
            link = self._worker.link
            if link is None or link.idle_seconds() < idle_for:
                return False
            self._worker.sleep()
            if self._journal is not None:
                self._journal.release()
        return True

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

    def _take_down(
        self,
        record: RunRecord,
        inputs: list[tuple[str, Any]],
        recorded: RecordedRun | None,
        decisions: Decisions | None,
    ) -> None:
        """Give a run its journal, where the Sandbox has one."""
        setup = self._setup
        if setup.journal is None:
            return
        from moonbox.sandbox.journaling import ReplJournal, RunJournal, begin_of

        if self._journal is None:
            labels = self._options.get("labels") or record.labels  # labels of its first run name its user
            held = setup.journal.create(record.repl_id, setup.language.name, labels)
            self._journal = ReplJournal(setup.journal, held)
        elif self._worker.loss_unseen:
            self._journal.reset()
        record.journal = RunJournal(self._journal, record, recorded, decisions)
        if recorded is None:
            changed = self._journal.changed_environment(self.toolbox, self._additions, record.language, setup.features)
            record.journal.begin([*changed, begin_of(record, inputs)])

    # Workers that have what scripts have defined

    def _acquire(self) -> Link:
        """The worker, with what scripts have defined."""
        link = self._worker.acquire()
        return self._wake() if self._worker.asleep else link

    async def _aacquire(self) -> Link:
        """The same, awaited."""
        link = await self._worker.aacquire()
        if not self._worker.asleep:
            return link
        from moonbox.sandbox.threads import unbroken

        awake: Link = await unbroken(self._wake)
        return awake

    def _wake(self) -> Link:
        from moonbox.sandbox.recorded import refuse_interrupted

        assert self._journal is not None
        runs = self._journal.recorded_runs()
        refuse_interrupted(runs)
        return self._rebuild(runs)

    def _rebuild(self, runs: Sequence[RecordedRun]) -> Link:
        """A worker in which these runs were run again. Where its host is lost, another worker runs them."""
        for _ in range(_MOST_MOVES):
            link = self._worker.acquire()
            self._forget()
            if all(self._repeat(link, recorded) for recorded in runs):
                self._worker.asleep = False
                return link
            self._worker.sleep()
        raise WorkerError(f"{_MOST_MOVES} hosts were lost, one after another, while this Repl was being restored")

    def _repeat(self, link: Link, recorded: RecordedRun) -> bool:
        """Run it again, unless something from outside had stopped it; False where the worker's host is lost."""
        if recorded.end is None or not recorded.end.is_repeatable:
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
        if self._setup.metrics is not None:
            self._setup.metrics.count("runs_moved")
        if lost.moves == _MOST_MOVES:
            raise WorkerError(f"{_MOST_MOVES} hosts were lost while this script ran on them")
        lost.outgoing()  # the journal takes the answers down that the worker did not get
        record.journal.put(record.journal.take())
        self._worker.sleep()
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

    def _driver(self, link: Link, execution: Execution) -> BlockingDriver:
        return BlockingDriver(link, execution, self._setup.threads, self._setup.loop)
