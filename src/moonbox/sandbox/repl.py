"""Repl: one live script environment with state, in one worker of its own."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from functools import partial
from os import getpid
from typing import TYPE_CHECKING, Any

from moonbox.errors import JournalError, MoonboxError, UsageError, WorkerError
from moonbox.media import MediaStore
from moonbox.sandbox.calls import CallPath
from moonbox.sandbox.durable_repl import DurableRepl
from moonbox.sandbox.environment import lower_inputs
from moonbox.sandbox.execution import Execution
from moonbox.sandbox.held_worker import HeldWorker
from moonbox.sandbox.intents import Intents
from moonbox.sandbox.options import merged
from moonbox.sandbox.record import RunRecord
from moonbox.sandbox.script_check import ScriptCheck, engine_findings
from moonbox.sandbox.slots import Turns
from moonbox.wording import counted
from moonbox.worker import protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future
    from typing import Unpack

    from moonbox.audit.records import Run
    from moonbox.findings import Finding
    from moonbox.limits import Limits
    from moonbox.media import Media
    from moonbox.sandbox.background import Background
    from moonbox.sandbox.blocking import BlockingDriver
    from moonbox.sandbox.decisions import Decision
    from moonbox.sandbox.options import RunOptions
    from moonbox.sandbox.recorded import Decisions, RecordedRun
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.sandbox.setup import EnvironmentMark, Setup
    from moonbox.sandbox.stepped import Pause
    from moonbox.tools.toolbox import Toolbox
    from moonbox.worker.jail import Layer
    from moonbox.worker.link import Link
    from moonbox.worker.pool import Pool

_KEPT_SOURCES = 20


class Repl(DurableRepl):
    """Runs scripts one after another in one environment: globals persist from run to run.

    Make it with `Sandbox.repl()`. The worker is taken from the pool on entering or at the first run.
    """

    _calls: CallPath | None = None
    _number = 0

    def __init__(
        self,
        sandbox: Sandbox,
        setup: Setup,
        pool: Pool,
        template: EnvironmentMark,
        on_close: Callable[[Repl], None],
        options: RunOptions,
        timeout: float | None,
        toolbox: Toolbox | None,
        before_write: Callable[[Run], Run | None] | None,
        check: bool | None,
        for_one_run: bool,
        repl_id: str = "",
    ) -> None:
        self.id = repl_id or ("" if for_one_run and setup.journal is None else setup.new_id(6))
        self.toolbox = toolbox = setup.toolbox if toolbox is None else toolbox
        self._sandbox = sandbox  # which lives, and its workers with it, as long as one of its Repls
        self._setup = setup
        self._worker = HeldWorker(setup, pool, template, timeout)
        self._options = merged(setup.run_options, options) if options else setup.run_options
        self._before_write = before_write
        self._on_close = on_close
        self._additions = setup.additions
        self._always: dict[str, tuple[dict[str, str], Decision]] = {}
        self._check = ScriptCheck(setup, toolbox, check)
        self._turns = Turns(setup.pid)
        self._media = MediaStore()
        self._sources: deque[tuple[int, str]] = deque(maxlen=_KEPT_SOURCES)

    def __repr__(self) -> str:
        state = ", closed" if self._turns.closed else ", paused" if self._turns.paused else ""
        about = f"{self._setup.language.name}, {counted(len(self.toolbox), 'tool')}, {counted(self._number, 'run')}"
        return f"<Repl {self.id or 'for one run'}: {about}{state}>"

    # Running

    def run(self, source: str, **options: Unpack[RunOptions]) -> Run:
        """Run one script to its end. What the script did wrong is in the Run; nothing of it is raised.

        The options are those of `RunOptions`: limits, timeout, inputs, context, labels, on_call, on_output,
        on_progress, run_id.
        """
        given = self._given(options)
        return self._drive(lambda link: self._begin(link, source, given))

    async def arun(self, source: str, **options: Unpack[RunOptions]) -> Run:
        """The same, awaited. Cancelling it stops the script and leaves the Repl usable."""
        given = self._given(options)
        return await self._adrive(lambda link: self._begin(link, source, given))

    def start(self, source: str, **options: Unpack[RunOptions]) -> Run | Pause:
        """Run step by step: returns a Pause at the first batch of calls, or the finished Run."""
        from moonbox.sandbox.stepped import SteppedDriver

        given = self._given(options)
        self._turns.enter()
        try:
            link = self._acquire()
            execution = self._begin(link, source, given)
        except BaseException:
            self._turns.leave()
            raise

        def move(lost: Execution) -> tuple[BlockingDriver, Execution]:
            link, again = self._move(lost)
            return self._driver(link, again), again

        driver = self._driver(link, execution)
        return SteppedDriver(driver, execution, self._turns.pause, self._end_steps, move).begin()

    async def astart(self, source: str, **options: Unpack[RunOptions]) -> Run | Pause:
        """The same, awaited."""
        import asyncio  # it takes longer to load than all of moonbox

        return await asyncio.to_thread(self.start, source, **options)

    def submit(self, source: str, **options: Unpack[RunOptions]) -> Background:
        """Run a script in the background: returns at once, with a handle to wait for it, watch it or cancel it."""
        from moonbox.sandbox.background import Background

        _require_text(source)
        return Background(self, source, options.get("run_id") or self._setup.new_id(), options)

    def in_background(self, work: Callable[[], Coroutine[Any, Any, Run]]) -> Future[Run]:
        """Await it on the Sandbox's own event loop."""
        return self._setup.loop.submit(work)

    def fork(self) -> Repl:
        """A new Repl with the same globals, made by running the recorded scripts again; needs a journal."""
        from moonbox.sandbox.recovery import fork

        if self._sandbox.journal and self._journal is None:
            return self._sandbox.repl()
        with self._turns.taken():
            assert self._journal is not None
            return fork(self._sandbox, self.id, self._journal.seq)

    def check(self, source: str) -> tuple[Finding, ...]:
        """Look at a script without running it: what cannot work, and what is likely a mistake.

        Globals that earlier runs of this Repl have set count as known. Empty for a script that is too long or too deep
        to follow, and for one that does not compile, unless the language's engine checks types too: then a worker is
        asked what the engine finds, if the Repl has no run under way.
        """
        _require_text(source)
        findings = self._check.findings(source, self._additions)
        is_refused = any(finding.severity == "error" for finding in findings)
        if is_refused or not self._setup.language.engine_checks or self.paused or not self._turns.idle:
            return findings
        calls = self._call_path(self._options.get("limits") or self._setup.limits)
        with self._turns.taken():
            return (*findings, *engine_findings(source, self._worker, calls, self._additions))

    # The environment

    def define(self, name: str, value: Any, *, doc: str = "", counted: bool = True, cleaned: bool = True) -> None:
        """Add a global: a value, or a function that scripts call by name with positional arguments.

        `space.name` puts it into a table. Calls of a function are recorded; `counted` says whether they are spent from
        `max_tool_calls`, and `cleaned` whether the Sandbox's secrets are replaced in what it returns.
        """
        self._additions = self._additions.define(name, value, doc, counted=counted, cleaned=cleaned)
        self._calls = None

    def document(self, name: str, text: str) -> None:
        """Add an entry that scripts read as docs[name]."""
        self._additions = self._additions.document(name, text)
        self._calls = None

    def globals(self) -> dict[str, str]:
        """Names and kinds of what scripts have defined."""
        with self._turns.taken():
            return self._read_globals()

    async def aglobals(self) -> dict[str, str]:
        """The same, awaited."""
        from moonbox.sandbox.threads import unbroken

        async with self._turns.ataken():
            found: dict[str, str] = await unbroken(self._read_globals)
            return found

    def _read_globals(self) -> dict[str, str]:
        while True:
            self._acquire()
            try:
                return self._worker.read_globals()
            except WorkerError:
                if not self._worker.asleep:  # its host is gone: another worker has the globals
                    raise

    def find_medium(self, handle: Any) -> Media | None:
        """The medium behind a handle, or behind the address in one, that a tool returned to this Repl's scripts."""
        return self._media.get(handle)

    @property
    def may_have_globals(self) -> bool:
        """False where the check of its scripts has shown that none of them sets a global: `globals` is empty."""
        return self._check.has_globals

    def reset(self) -> None:
        """Start afresh: what scripts defined is gone; what was added with `define` stays."""
        with self._turns.taken():
            self._worker.drop()
            self._worker.has_state = self._worker.asleep = False
            self._forget()
            if self._journal is not None:
                self._journal.reset()

    def _forget(self) -> None:
        """What runs have left in this process."""
        self._check.forget()
        self._sources.clear()
        self._number = 0

    @property
    def paused(self) -> bool:
        """Whether a run that was begun with `start` waits for the answers to its calls."""
        return self._turns.paused

    @property
    def busy(self) -> bool:
        """Whether a run is under way."""
        return not self._turns.idle

    @property
    def worker_pid(self) -> int | None:
        """The worker's process id; None before the first run and with isolation="inline"."""
        return None if (link := self._worker.link) is None else link.pid

    @property
    def worker_jail(self) -> tuple[Layer, ...]:
        """The layers of its worker's jail, as it reported them; none before the first run and inline."""
        return () if (link := self._worker.link) is None else link.layers()

    @property
    def worker_native(self) -> bool:
        """Whether its worker runs scripts on the native loop; False before the first run and inline."""
        return (link := self._worker.link) is not None and link.native

    def close(self) -> None:
        """Give the worker up. A run that is going on is stopped."""
        if not self._turns.closed:
            self._turns.closed = True
            if getpid() == self._setup.pid:
                self._worker.close(idle=self._turns.idle)
                if self._journal is not None:
                    with suppress(MoonboxError):  # its lease ends by itself
                        self._journal.release()
            self._on_close(self)

    async def aclose(self) -> None:
        self.close()

    def __enter__(self) -> Repl:
        self._turns.enter()
        try:
            self._worker.acquire()
        finally:
            self._turns.leave()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Repl:
        async with self._turns.ataken():
            await self._worker.aacquire()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

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
        from moonbox.sandbox.awaited import AwaitedDriver
        from moonbox.sandbox.threads import unbroken

        await self._turns.aenter()
        execution: Execution | None = None
        try:
            link = await self._aacquire()
            execution = begin(link)
            while not execution.over:
                await AwaitedDriver(link, execution, self._setup.threads).run()
                if execution.moving:
                    link, execution = await unbroken(partial(self._move, execution))
            return self._finish(execution)
        except BaseException as problem:
            self._give_up(execution, problem)
            raise
        finally:
            self._turns.leave()

    def _given(self, options: RunOptions) -> tuple[RunOptions, list[tuple[str, Any]]]:
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
        given: tuple[RunOptions, list[tuple[str, Any]]],
        recorded: RecordedRun | None = None,
        decisions: Decisions | None = None,
    ) -> Execution:
        """A run that is ready to be driven, or over because its script cannot be run."""
        options, inputs = given
        _require_text(source)
        setup, worker = self._setup, self._worker
        number = self._number = self._number + 1
        self._sources.append((number, source))
        begin = None if recorded is None else recorded.begin
        seed = setup.random.getrandbits(56) if begin is None else begin.seed
        repeats = recorded is not None and recorded.end is not None  # nobody but its caller hears of it
        record = RunRecord(
            self._call_path(options.get("limits") or setup.limits),
            source,
            begin.run if begin is not None else options.get("run_id") or setup.new_id(),
            repl_id=self.id,
            number=number,
            seed=seed,
            state_lost_before=worker.loss_unseen,
            intents=None
            if setup.sink is None or repeats
            else Intents.to(setup.sink, setup.redactor, self._before_write),
            on_output=None if repeats else options.get("on_output"),
            context=setup.context_with(options.get("context")),
            labels=options.get("labels"),
        )
        record.on_progress = options.get("on_progress")
        self._take_down(record, inputs, recorded, decisions)
        worker.loss_unseen = False
        execution = Execution(
            record,
            sources=self._sources,
            on_call=None if repeats else options.get("on_call"),
            telemetry=None if repeats else setup.telemetry,
        )
        execution.options = options
        program = source.encode("utf-8", "replace")
        refused = self._check.admit(execution, len(program), self._additions, [name for name, _ in inputs])
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

    def _finish(self, execution: Execution) -> Run:
        """The run is over: keep the record, and the worker if it lives."""
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
        journal = execution.record.journal
        if journal is not None and journal.finish(run, lost=lost):
            return run
        return self._write(run)

    def _write(self, run: Run) -> Run:
        if self._before_write is not None:
            changed = self._before_write(run)
            if changed is None:
                return run
            run = changed
        self._setup.write(run)
        return run

    def _give_up(self, execution: Execution | None, problem: BaseException) -> None:
        """An exception ends the run for its caller: keep the record of a run that was interrupted."""
        if execution is None:
            return
        if not execution.over or isinstance(problem, JournalError):
            if isinstance(problem, Exception):  # the state of the worker is unknown, or not that of the journal
                execution.ledger.leave_all()
                self._worker.lose()
                return
            execution.interrupted = True
            execution.lose(WorkerError("the caller stopped waiting; the worker was killed"), closed=True)
        if execution.interrupted:
            self._finish(execution)
            self._worker.loss_unseen = execution.record.worker_lost  # the caller does not get that record

    def _end_steps(self, execution: Execution, problem: BaseException | None) -> Run | None:
        """A step-by-step run is over: let the next run in."""
        try:
            if problem is None:
                return self._finish(execution)
            self._give_up(execution, problem)
            return None
        finally:
            self._turns.leave()


def _require_text(source: object) -> None:
    if not isinstance(source, str):
        raise UsageError(f"the script must be a string, not {type(source).__name__}")
