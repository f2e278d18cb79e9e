"""The runner of a Repl: takes each of its runs from the script to the record.

    run     blocking
    arun    awaited
    start   step by step

All three take the Repl's turn and a worker, begin the run, drive it, and finish it. `begin` and `finish` are the same
for each of them, and for runs of the journal that are run again.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from moonbox.errors import JournalError, MoonboxError, ScriptError, ToolError, UsageError, WorkerError
from moonbox.media import MediaStore
from moonbox.runs.blocking import BlockingDriver
from moonbox.runs.calls import CallPath
from moonbox.runs.decisions import Allowances, script_question
from moonbox.runs.environment import Additions, lower_inputs
from moonbox.runs.execution import Execution
from moonbox.runs.held_worker import HeldWorker
from moonbox.runs.options import RunOptions, merged
from moonbox.runs.record import RunClock, RunRecord, ScriptApproval
from moonbox.runs.script_check import ScriptCheck
from moonbox.values import encode
from moonbox.worker import protocol

if TYPE_CHECKING:
    from moonbox.audit.records import Run
    from moonbox.limits import Limits
    from moonbox.runs.call_entry import CallEntry, CallResult
    from moonbox.runs.recording import History, Recorded, RunRecorder, Sleep
    from moonbox.runs.services import Services
    from moonbox.runs.settings import Settings
    from moonbox.runs.slots import Turns
    from moonbox.runs.stepped import Pause
    from moonbox.tools.toolbox import Toolbox
    from moonbox.worker.link import Link

    Inputs = list[tuple[str, Any]]
    Given = tuple[RunOptions, Inputs]
    """What a run is given: its options, and its inputs as plain values."""
    Again = Callable[[Link], Execution]
    """Begins a recorded run again."""

_KEPT_SOURCES = 20
_REPLAY_SECONDS, _SLOWER = 60.0, 10.0
"""A run that is repeated had ended by itself: it may take so long, and so much longer than it was allowed to."""


class Runner:
    """Runs the scripts of one Repl, one after another, in the worker that it holds."""

    __slots__ = (
        "__weakref__", "_before_write", "_finished", "_sources", "additions", "allowances", "calls", "check", "history",
        "left_out", "media", "number", "options", "repl_id", "services", "settings", "toolbox", "turns", "worker",
    )  # fmt: skip

    def __init__(
        self,
        settings: Settings,
        services: Services,
        repl_id: str,
        toolbox: Toolbox,
        options: RunOptions,
        turns: Turns,
        *,
        timeout: float | None,
        before_write: Callable[[Run], Run | None] | None,
        check: bool | None,
        is_recorded: bool,
    ) -> None:
        self.settings = settings
        self.services = services
        self.repl_id = repl_id
        self.toolbox = toolbox
        self.options = merged(settings.run_options, options) if options else settings.run_options
        self.additions: Additions = settings.additions
        """What scripts find beside the tools."""
        self.turns = turns
        self.worker = HeldWorker(settings, services.pool, timeout, is_recorded=is_recorded)
        self.check = ScriptCheck(settings, services.tools, toolbox, check)
        self.media = MediaStore()
        self._before_write = before_write
        self.allowances = Allowances()
        self.history: History | None = None
        """The Repl's recorded runs, where there is a journal."""
        self.calls: CallPath | None = None
        """The path of the calls of the latest run; None after a change."""
        self.number = 0
        """How many scripts were run."""
        self.left_out = False
        """Runs were left out when the Repl was restored, and no Run has reported it yet."""
        self._finished = ""  # the id of the run whose record was kept last
        self._sources: list[tuple[int, str]] = []  # the latest

    # From the script to the record

    def run(self, source: str, options: RunOptions, again: Again | None = None) -> Run:
        """Run one script to its end: on another host where one is lost. `again` begins a recorded run instead."""
        given = self._given(options) if options else (self.options, [])
        self.turns.enter()
        execution: Execution | None = None
        try:
            link = self.acquire()
            execution = self.begin(link, source, given) if again is None else again(link)
            while not execution.over:
                execution.may_sleep = True
                BlockingDriver(link, execution, self.services, self._conclude).run()
                if execution.moving:
                    link, execution = self.recorded().move(execution)
                elif execution.sleeping:
                    sleep = self.recorded().sleep(execution)
                    execution = None
                    link, execution = self._until_risen(sleep)
            return self.finish(execution)
        except BaseException as problem:
            self.give_up(execution, problem)
            raise
        finally:
            self.turns.leave()

    async def arun(self, source: str, options: RunOptions, again: Again | None = None) -> Run:
        """The same, awaited."""
        from moonbox.runs.awaited import AwaitedDriver
        from moonbox.threads import unbroken

        given = self._given(options) if options else (self.options, [])
        await self.turns.aenter()
        execution: Execution | None = None
        try:
            link = await self.worker.aacquire()
            if self.worker.asleep:
                link = await unbroken(self.recorded().wake)
            begin = again or partial(self.begin, source=source, given=given)
            asks = bool(self.settings.approve_script)
            writes_first = self.history is not None and (asks or self.history.writes_first)
            execution = await unbroken(partial(begin, link)) if writes_first else begin(link)
            del begin, given
            while not execution.over:
                execution.may_sleep = True
                await AwaitedDriver(link, execution, self.services.threads).run()
                if execution.moving:
                    link, execution = await unbroken(partial(self.recorded().move, execution))
                elif execution.sleeping:
                    sleep = await unbroken(partial(self.recorded().sleep, execution))
                    execution = None  # nothing but the record is kept while it sleeps
                    del link
                    link, execution = await self._auntil_risen(sleep)
            if execution.record.journal is None:
                return self.finish(execution)
            return await self._afinish(execution, execution.record.journal)
        except BaseException as problem:
            self.give_up(execution, problem)
            raise
        finally:
            self.turns.leave()

    def _until_risen(self, sleep: Sleep) -> tuple[Link, Execution]:
        """The run, begun again when its wait is over. No worker is held until then."""
        try:
            while True:
                sleep.wait()
                if (again := self.recorded().rise(sleep)) is not None:
                    return again
        except BaseException as problem:
            self._give_up_asleep(sleep, problem)
            raise

    async def _auntil_risen(self, sleep: Sleep) -> tuple[Link, Execution]:
        """The same, awaited: no thread is held either."""
        from moonbox.threads import unbroken

        try:
            while True:
                await sleep.passed()
                again: tuple[Link, Execution] | None = await unbroken(partial(self.recorded().rise, sleep))
                if again is not None:
                    return again
        except BaseException as problem:
            self._give_up_asleep(sleep, problem)
            raise

    def _give_up_asleep(self, sleep: Sleep, problem: BaseException) -> None:
        sleep.leave()
        if not isinstance(problem, MoonboxError) and not self.recorded().regain(sleep.record.id):
            self.let_go()
            return
        execution = Execution(sleep.record, sources=self._sources)
        execution.host_gone = True  # what scripts had defined is in the journal
        self.give_up(execution, problem)

    def start(self, source: str, options: RunOptions, repl: object) -> Run | Pause:
        """Run until the script has made calls, or to its end. A Pause leaves them to the caller, and holds the Repl."""
        from moonbox.runs.stepped import SteppedDriver

        given = self._given(options)
        self.turns.enter()
        try:
            execution = self.begin(link := self.acquire(), source, given)
        except BaseException:
            self.turns.leave()
            raise
        return SteppedDriver(self, link, execution, repl).begin()

    def driver(self, link: Link, execution: Execution) -> BlockingDriver:
        return BlockingDriver(link, execution, self.services, self._conclude)

    def acquire(self) -> Link:
        """The worker, with what scripts have defined."""
        link = self.worker.link
        if link is None or not link.alive():
            link = self.worker.acquire()
        return self.recorded().wake() if self.worker.asleep else link

    def begin(
        self,
        link: Link,
        source: str,
        given: Given,
        recorded: Recorded | None = None,
        decisions: Mapping[int, CallResult | None] | None = None,
    ) -> Execution:
        """A run that is ready to be driven, or over because its script cannot be run."""
        options, inputs = given
        if not isinstance(source, str):
            raise not_a_script(source)
        worker, repeats = self.worker, recorded is not None and recorded.repeats
        self.number += 1
        self._sources = [*self._sources[1 - _KEPT_SOURCES :], (self.number, source)]
        record = self._record(source, options, recorded, repeats=repeats)
        if self.history is not None:
            self.history.take_down(record, inputs, recorded, decisions)
        on_call, telemetry = (None, None) if repeats else (options.get("on_call"), self.services.telemetry)
        execution = Execution(record, sources=self._sources, on_call=on_call, telemetry=telemetry)
        execution.options = options
        worker.loss_unseen = self.left_out = False
        if recorded is None or recorded.script is None:
            asks = bool(self.settings.approve_script) and (recorded is None or recorded.is_untouched)
            self._admit(execution, link, inputs, recorded, asks=asks)
        else:
            self._decided(execution, link, inputs, recorded.script, None, recorded)
        return execution

    def _record(self, source: str, options: RunOptions, recorded: Recorded | None, *, repeats: bool) -> RunRecord:
        """The record of a run that begins, or begins again."""
        settings, services = self.settings, self.services
        limits, calls = options.get("limits") or settings.limits, self.calls
        if calls is None or (calls.limits is not limits and calls.limits != limits):
            calls = self.call_path(limits)
        record = RunRecord(
            calls,
            source,
            recorded.begin.run
            if recorded is not None
            else options.get("run_id") or f"{services.random.getrandbits(128):032x}",
            settings.context,
            options,
            repl_id=self.repl_id,
            number=self.number,
            seed=services.random.getrandbits(56) if recorded is None else recorded.begin.seed,
            state_lost_before=self.worker.loss_unseen or self.left_out,
        )
        record.approve = settings.approve
        if settings.approve_script:
            record.approve_script = settings.script_approver
        if repeats and limits.timeout is not None:  # this machine may be slower, or stall
            record.clock = RunClock(_REPLAY_SECONDS + _SLOWER * limits.timeout)
        if not repeats:
            record.on_output = options.get("on_output")
            if services.records.sink is not None:
                record.intents = services.records.intents(self._before_write)
        return record

    def _admit(
        self, execution: Execution, link: Link, inputs: Inputs, recorded: Recorded | None, *, asks: bool = False
    ) -> None:
        """Give the worker the script, unless the check refuses it, or a person, who may be asked first."""
        record = execution.record
        program = record.source.encode("utf-8", "replace")
        was_admitted = recorded is not None and recorded.was_admitted
        refused = self.check.admit(execution, len(program), self.additions, inputs, was_admitted=was_admitted)
        if refused is not None:
            execution.refuse(refused)
        elif asks:
            execution.ask(
                script_question(record, self.toolbox, record.language, record.notes),
                partial(self._answered, execution, link, inputs),
            )
            if record.journal is not None:
                record.journal.put(record.journal.take())
        else:
            self._send(execution, link, inputs, program)

    def _answered(
        self, execution: Execution, link: Link, inputs: Inputs, entry: CallEntry, error: ToolError | None
    ) -> None:
        """A person has said whether the script may run."""
        record, edited = execution.record, (entry.edited or {}).get("script", "")
        original = record.source if edited else ""
        said = ScriptApproval(
            entry.approval or "denied", entry.approval_by, entry.approval_reason, original=original, source=edited
        )
        if record.journal is not None:
            record.journal.decided(said, entry.allowance)
        if not execution.over:
            self._decided(execution, link, inputs, said, error, None)

    def _decided(
        self,
        execution: Execution,
        link: Link,
        inputs: Inputs,
        said: ScriptApproval,
        error: ToolError | None,
        recorded: Recorded | None,
    ) -> None:
        record = execution.record
        record.approval = said
        if said.approval == "denied":
            message, code = (error.message, error.code) if error else (said.reason, "approval_denied")
            execution.refuse(ScriptError("denied", message, code=code))
        elif said.source:
            record.source = said.source
            self._sources[-1] = (record.number, said.source)
            self._admit(execution, link, inputs, recorded)
        else:
            self._send(execution, link, inputs, record.source.encode("utf-8", "replace"))

    def _send(self, execution: Execution, link: Link, inputs: Inputs, program: bytes) -> None:
        record, toolbox, additions = execution.record, self.toolbox, self.additions
        limits, update = record.calls.limits, b""
        if link.configured != (toolbox, toolbox.revision, additions.revision, limits):
            update = self.worker.update(link, toolbox, additions, limits)
        if inputs:
            update += protocol.frame(protocol.INPUTS, encode(inputs) if link.native else marshal.dumps(inputs))
        size = protocol.RUN_HEAD.size + len(program)  # as `pack_run` does
        head = protocol.RUN_FRAME.pack(protocol.RUN, size, record.number, record.seed)
        execution.begin(update + head + program, link)

    def finish(self, execution: Execution) -> Run:
        """The run is over: keep the record, and the worker if it lives."""
        self._finished = execution.record.id
        run, journal = self._conclude(execution), execution.record.journal
        if journal is not None and journal.finish(run, lost=execution.record.worker_lost):
            return run  # a repetition, which only its caller gets
        return self._keep(run)

    def _conclude(self, execution: Execution) -> Run:
        """The record of a run that is over, made once, before it is kept."""
        if execution.run is not None:
            return execution.run
        worker, lost = self.worker, execution.record.worker_lost
        if lost:
            worker.drop()
            self.check.forget()
        worker.has_state = not lost
        if execution.host_gone:
            worker.sleep()
        run = execution.run = execution.finish()
        for name in (run.kept, run.kept_output):
            if name:
                self.check.keep(name)
        return run

    async def _afinish(self, execution: Execution, journal: RunRecorder) -> Run:
        """The same of a run with a journal, which is written to in a thread."""
        from moonbox.threads import unbroken

        self._finished = execution.record.id
        run, lost = self._conclude(execution), execution.record.worker_lost
        repeats: list[bool] = []
        try:
            await unbroken(lambda: repeats.append(journal.finish(run, lost=lost)))
        finally:
            if repeats and not repeats[0]:
                run = self._keep(run)
        return run

    def _keep(self, run: Run) -> Run:
        """Write the record to the trail."""
        if self._before_write is not None:
            changed = self._before_write(run)
            if changed is None:
                return run
            run = changed
        records = self.services.records
        return run if records.sink is None and records.metrics is None else records.write(run)

    def give_up(self, execution: Execution | None, problem: BaseException) -> None:
        """An exception ends the run for its caller: keep the record, also where a callback of the caller raised it."""
        if execution is None:
            if isinstance(problem, JournalError) and self.history is not None:
                self.history.let_go()
            return
        is_ours = isinstance(problem, MoonboxError)
        if not execution.over or execution.moving or isinstance(problem, JournalError):
            if is_ours:  # the state of the worker is unknown, or not that of the journal
                execution.ledger.leave_all()
                self.let_go()
                return
            execution.interrupted = True
            execution.lose(WorkerError("the caller stopped waiting; the worker was killed"), closed=True)
        if execution.record.id != self._finished and not is_ours:
            if execution.record.journal is not None:
                execution.record.journal.stop_waiting()
            try:
                self.finish(execution)
                self.worker.loss_unseen = execution.record.worker_lost  # the caller does not get that record
            except JournalError:
                self.let_go()

    def let_go(self) -> None:
        """The worker is of no use any more. What scripts have defined is lost, unless the journal has it."""
        if self.history is None or not self.history.let_go():
            self.worker.lose()

    # What runs have

    def _given(self, options: RunOptions) -> Given:
        """The options over those of the Repl, and the inputs as plain values."""
        given = merged(self.options, options)
        with self.media.active():
            return given, lower_inputs(given.get("inputs"), self.settings.language)

    def call_path(self, limits: Limits) -> CallPath:
        """The path of calls with these limits; the latest one, unless something has changed since."""
        calls = self.calls
        if calls is None or (calls.limits is not limits and calls.limits != limits):
            calls = self.calls = CallPath(
                self.settings, self.services, self.toolbox, self.additions, limits, self.allowances, self.media
            )
        return calls

    def change(self, additions: Additions) -> None:
        """Scripts find this beside the tools from now on."""
        self.additions, self.calls = additions, None

    def forget(self) -> None:
        """What runs have left in this process is gone."""
        self.check.forget()
        self._sources.clear()
        self.number = 0

    def recorded(self) -> History:
        """Its history, where it has one."""
        assert self.history is not None  # only a Repl with a journal sleeps, and moves to another worker
        return self.history


def not_a_script(source: object) -> UsageError:
    return UsageError(f"the script must be a string, not {type(source).__name__}")
