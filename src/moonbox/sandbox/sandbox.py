"""Sandbox: configuration (tools, limits, language, isolation) and the pool of workers."""

from __future__ import annotations

import os
import weakref
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack, overload

from moonbox.closing import Closing
from moonbox.errors import ClosedError, MoonboxError, UsageError
from moonbox.runs.environment import Additions
from moonbox.runs.options import RunOptions, check_callbacks
from moonbox.sandbox.options import (
    SandboxOptions,
    check_middleware,
    check_options,
    close_parts,
    load_checker,
    made_with,
    open_parts,
    services_of,
    settings_of,
)
from moonbox.sandbox.repls import Repls
from moonbox.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from concurrent.futures import Future

    from moonbox.audit.metrics import Metrics
    from moonbox.audit.records import Run
    from moonbox.audit.sinks import Sink
    from moonbox.cluster.membership import Membership
    from moonbox.durable.index import KnownRun
    from moonbox.durable.recorded import InterruptedRun, RecordedRun
    from moonbox.durable.recovery import Recoveries
    from moonbox.durable.store import Journal
    from moonbox.durable.undoing import Undoing, Undone, UndoStep
    from moonbox.durable.views import RunView
    from moonbox.failures import Failures
    from moonbox.limits import Limits
    from moonbox.runs.decisions import Answer, Middleware
    from moonbox.runs.direct import DirectCall
    from moonbox.runs.docs import Docs
    from moonbox.sandbox.repl import Repl
    from moonbox.tools.toolbox import Toolbox
    from moonbox.worker.pool import PoolCounts


_NO_OPTIONS: RunOptions = {}


class Sandbox(Closing):
    """Runs untrusted scripts that call your tools. Use it as a context manager, or call `close`.

    tools          functions, Tools, Toolboxes, or a list or mapping (namespace → tools) of them
    limits         what one run may spend
    language       the name of a language of the registry
    isolation      "process" (a locked-in process for each Repl), or "inline" (this process: trusted scripts only)
    lua_features   any of "coroutines", "metatables"
    min_workers    how many spare workers wait ready-made
    max_workers    how many workers there may be at once
    approve        asked before a call of a tool whose policy is "approve"; sync or async
    approve_script asked before a script runs: it gets a ToolCall of the kind "script"; True: `approve` is asked
    middleware     Middleware(before=…, after=…) around every tool call
    audit          a Sink, or where to keep the trail: a path ending in .db or .jsonl
    redact         names of fields whose values the trail hides
    secrets        names and values that tools may use but no result, error or record may contain
    require        layers of the jail without which it does not start, such as ("seccomp", "landlock")
    journal        where runs are taken down so that they outlive their process: a path, or postgresql://…
    cluster        the Ray cluster whose nodes run the workers: "auto", "ray://host:port" or "host:port"
    node_timeout   seconds after which a node of the cluster that does not answer is left, and its Repls move
    sleep_after    seconds after which an idle Repl gives its worker up until its next run; needs a journal
    durability     what a journal in a file survives: the death of the "process", or that of the "machine"
    recover        continue runs of the journal that no process continues: True, or a function that gives the options
                   of `repl` for a KnownRun, or None to leave it
    journal_wait   seconds that a run waits for a journal whose database is away or full, with its clock stopped
    approval_seconds  how long a question to a person stays open in the journal
    check          look at each script first, and do not run one that cannot work
    context        what tools find as `Context.extra`
    globals        values and functions that every script finds under their names
    failures       of results that are nothing but a failure: "return" gives the data, "raise" makes an error of it
    allow_nan      let NaN and infinity leave a script
    telemetry      True, or a Telemetry: OpenTelemetry spans of runs and calls
    metrics        counts runs and calls: Metrics()
    on_call        called with each call's record entry when it starts and when it ends (for progress displays)
    on_output      called with what a script prints, while it runs
    """

    @made_with(SandboxOptions)
    def __init__(self, options: SandboxOptions) -> None:
        check_options(options)
        self._settings = settings = settings_of(options)
        self._services = services = services_of(options, settings)
        for name, value in (options.globals or {}).items():
            self.define(name, value)
        self.isolation = options.isolation
        self.require: tuple[str, ...] = tuple(options.require)
        """Layers of the jail without which it does not start."""
        self.max_workers: int = options.max_workers
        self.toolbox: Toolbox = settings.toolbox
        self.limits: Limits = settings.limits
        self.language: str = settings.language.name
        self.lua_features: frozenset[str] = settings.features
        self.context: Mapping[str, Any] = settings.context
        self.allow_nan: bool = options.allow_nan
        self.failures: Failures = options.failures
        self.metrics: Metrics | None = options.metrics
        """What counts its runs and calls, if anything does."""
        self.closed: bool = False
        """Whether it was closed."""
        self._repl_class: type[Repl] | None = None
        journal, self._zygote = open_parts(options, settings, services)
        self._repls = Repls(services.pool, services.cluster, can_sleep=journal is not None)
        if options.metrics is not None:
            options.metrics.watch(self._repls)
        if services.cluster is not None:
            services.cluster.figures = self._repls
        if options.sleep_after is not None:
            self._repls.put_to_sleep(options.sleep_after)
        self._recover: bool | Callable[[KnownRun], Mapping[str, Any] | None] = False
        self._recoveries: Recoveries[Repl] | None = None
        if journal is not None:
            from moonbox.durable.recovery import Recoveries

            self._recoveries = Recoveries(journal, settings, self._repls.let_go)
        # Also without a call of `close`: at exit, while threads still run, which is before __del__ would be called.
        # Not given what holds callbacks: they may hold the Sandbox, which would then live for ever.
        self._close_records = weakref.finalize(self, close_parts, services.pid, services.records.sink, journal)
        self._shut_down = weakref.finalize(
            self, close_parts, services.pid, services.pool, services.threads, services.loop
        )
        if options.recover:  # at once, from a thread: everything above must be there
            self.start_recovering(options.recover)

    def __repr__(self) -> str:
        about = f"{self.language}, {counted(len(self.toolbox), 'tool')}"
        state = "closed" if self.closed else counted(self.workers.in_use, "worker") + " in use"
        return f"<Sandbox: {about}, {state}>"

    @property
    def docs(self) -> Docs:
        """The documentation that its scripts read as `docs`."""
        from moonbox.runs.docs import Docs

        search = self._services.tools.search(self.toolbox)
        return Docs(self.toolbox, self._settings.additions.docs, self.language, search=search)

    @property
    def cluster(self) -> Membership | None:
        """The cluster whose nodes run its workers; None where they are on this machine."""
        return self._services.cluster

    @property
    def workers(self) -> PoolCounts:
        """How many workers there are, and which of them are spare (diagnostics)."""
        return self._services.pool.counts()

    def repl(
        self,
        *,
        limits: Limits | None = None,
        timeout: float | None = 30.0,
        toolbox: Toolbox | None = None,
        before_write: Callable[[Run], Run | None] | None = None,
        check: bool | None = None,
        context: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        repl_id: str = "",
    ) -> Repl:
        """A new Repl. `timeout` is how long to wait for a worker while `max_workers` are in use.

        `limits`, `context` and `labels` are those of its runs, as in `RunOptions`. With `toolbox`, its scripts have
        those tools instead of the Sandbox's. `before_write` has the last word on each Run, before it is kept or
        returned (to take secrets out); a Run for which it gives None is not kept. `check` overrides the Sandbox's own.
        `repl_id` is its id, which is random otherwise; no other Repl may have it.
        """
        check_callbacks(before_write=before_write)
        options: RunOptions = {"limits": limits, "context": context, "labels": labels}
        return self.make_repl(options, timeout, toolbox, before_write, check, repl_id=repl_id)

    def make_repl(
        self,
        options: RunOptions = _NO_OPTIONS,
        timeout: float | None = 30.0,
        toolbox: Toolbox | None = None,
        before_write: Callable[[Run], Run | None] | None = None,
        check: bool | None = None,
        for_one_run: bool = False,
        repl_id: str = "",
    ) -> Repl:
        """One for one run has no id: the Run says that it belongs to no Repl, and that nothing of its state is left."""
        self._check_open()
        make = self._repl_class or self._load_repl_class()
        repl = make(self, options, timeout, toolbox, before_write, check, for_one_run, repl_id)
        self._repls.add(repl)
        return repl

    def _load_repl_class(self) -> type[Repl]:
        """What a first run needs is loaded here, while its worker's zygote starts."""
        if self._zygote is not None and os.getpid() == self._services.pid:
            self._zygote.begin()
        if self._settings.check:
            load_checker(self.language)
        from moonbox.sandbox.repl import Repl

        self._repl_class = Repl
        return Repl

    def run(self, source: str, **options: Unpack[RunOptions]) -> Run:
        """Run one script in a fresh Repl; the options are those of `Repl.run`."""
        with closing(self.make_repl(for_one_run=True)) as repl:
            return repl.run(source, **options)

    async def arun(self, source: str, **options: Unpack[RunOptions]) -> Run:
        """The same, awaited."""
        with closing(self.make_repl(for_one_run=True)) as repl:
            return await repl.arun(source, **options)

    def call(
        self,
        tool: str,
        arguments: Any = None,
        *,
        toolbox: Toolbox | None = None,
        answer: Answer | None = None,
        **options: Unpack[RunOptions],
    ) -> Run:
        """Call one tool without a script: the same validation, middleware, approval, limits and record.

        `on_call` is called for it: that of the options, or the Sandbox's. Of the other options of `Repl.run`, `inputs`
        and `on_output` have no effect: there is no script. With an `answer` the tool is not run: the arguments are
        validated, and the answer is recorded as its result.
        """
        direct = self._direct_call(tool, arguments, toolbox, options)
        return direct.run() if answer is None else direct.answered(answer)

    async def acall(
        self, tool: str, arguments: Any = None, *, toolbox: Toolbox | None = None, **options: Unpack[RunOptions]
    ) -> Run:
        """The same, awaited."""
        return await self._direct_call(tool, arguments, toolbox, options).arun()

    def _direct_call(self, tool: str, arguments: Any, toolbox: Toolbox | None, options: RunOptions) -> DirectCall:
        from moonbox.runs.direct import DirectCall

        self._check_open()
        call = DirectCall(self._settings, self._services, tool, arguments, toolbox, options)
        if self.closed:  # by another thread, which may not have seen this call
            call.close()
        return call

    def sibling(self, audit: Sink | None = None, tools: Any = (), journal: Journal | None = None) -> Sandbox:
        """A Sandbox for Lua without the tools of this one. Its workers are its own, isolated as those of this one.

        Its calls have the approver, middleware and slots of this one.
        It is for tool scripts: a script that waits for one must not hold the worker that it needs.
        """
        settings = self._settings
        twin = Sandbox(
            tools,
            journal=journal,
            limits=self.limits,
            approve=settings.approve,
            approval_seconds=settings.approval_seconds,
            middleware=settings.middleware,
            failures=self.failures,
            context=self.context,
            audit=audit,
            # A source of workers is configured for one Sandbox: its twin has processes.
            isolation=self.isolation if isinstance(self.isolation, str) else "process",
            require=self.require,
            max_workers=self.max_workers,
        )
        records, own = self._services.records, twin._services.records
        own.secrets, own.redactor = records.secrets, records.redactor
        twin._services.slots, twin._services.running_calls = self._services.slots, self._services.running_calls
        return twin

    # Durable runs

    @property
    def has_journal(self) -> bool:
        """Whether its runs are taken down."""
        return self._recoveries is not None

    @property
    def journal(self) -> Journal:
        """Where its runs are taken down; raises UsageError where it has none."""
        return self._recorded.journal

    @property
    def _recorded(self) -> Recoveries[Repl]:
        """What makes its Repls and runs live again; raises UsageError where it has no journal."""
        if self._recoveries is None:
            raise UsageError('this Sandbox has no journal; make it with Sandbox(journal="state.db")')
        return self._recoveries

    def restore(self, repl_id: str, *, abandon: bool = False, **options: Any) -> Repl:
        """A Repl of the journal with its globals, made by running its scripts again. No tool is invoked.

        The options are those of `repl`: what its later runs have, which is not in the journal. Raises Diverged where a
        script does not do what was recorded. A run that a crash cut off is resumed with `resume` first, or given up
        with `abandon`.
        """
        return self._recorded.restore(repl_id, self._maker(options), abandon=abandon)

    async def arestore(self, repl_id: str, *, abandon: bool = False, **options: Any) -> Repl:
        """The same, awaited. A cancellation counts when the Repl is restored, and closes it."""
        return await self._recorded.arestore(repl_id, self._maker(options), abandon=abandon)

    def interrupted(self) -> tuple[InterruptedRun, ...]:
        """Runs that a crash cut off, the latest first, each with its calls that have no answer."""
        return self._recorded.interrupted()

    def resume(self, run_id: str, in_flight: Any = None, **options: Any) -> Run:
        """Continue a run that a crash cut off: its script runs again, with the recorded answers as far as they go.

        A call without an answer is made again where its tool is `read_only` or `idempotent`. `in_flight` decides about
        the others: "retry", "fail", or a function that gives "retry", "fail" or an Answer for each PendingCall. Without
        it, InDoubt is raised and nothing happens. A run that had ended gives its record again; no tool is invoked.
        The options are those of `repl`, such as the `context` of the calls that follow, which is not in the journal.
        """
        return self._recorded.run(self._recorded.resuming(run_id, in_flight, self._maker(options)))

    async def aresume(
        self, run_id: str, in_flight: Any = None, *, make: Callable[[str], Repl] | None = None, **options: Any
    ) -> Run:
        """The same, awaited. `make` makes the Repl of that id, instead of `repl` with the options."""
        found = self._recorded.resuming(run_id, in_flight, make or self._maker(options))
        return await self._recorded.arun(found)

    def patch(
        self,
        run_id: str,
        source: str,
        in_flight: Any = None,
        *,
        answer: Mapping[int, Any] | None = None,
        skip: Collection[int] = (),
        **options: Any,
    ) -> Run:
        """Continue a run that failed or was cut off with a corrected script, which runs against the recorded answers.

        It must make the same calls until the record ends; else Diverged says at which call it differs, and nothing is
        changed. Then it goes on, and calls tools. `answer` has answers in place of the recorded ones, by the number of
        the call in the Run, and `skip` numbers of calls that the corrected script does not make. `in_flight` and the
        options are those of `resume`.
        """
        found = self._recorded.patching(run_id, source, in_flight, self._maker(options), answer, skip)
        return self._recorded.run(found)

    async def apatch(
        self,
        run_id: str,
        source: str,
        in_flight: Any = None,
        *,
        answer: Mapping[int, Any] | None = None,
        skip: Collection[int] = (),
        **options: Any,
    ) -> Run:
        """The same, awaited."""
        found = self._recorded.patching(run_id, source, in_flight, self._maker(options), answer, skip)
        return await self._recorded.arun(found)

    def undo_plan(self, run_id: str) -> tuple[UndoStep, ...]:
        """The calls of a run that have changed something, the latest first, and how `undo` takes each back."""
        return self._undoing(run_id).plan

    def undo(self, run_id: str, in_flight: Any = None) -> Undone:
        """Take the calls of a run back, the latest first, by the `undo` of their tools.

        Each is a call of a run of its own, with the id of the run and "-undo". It stops at the first one that fails;
        `undo` again goes on there, also after a crash. `in_flight` is that of `resume`.
        """
        undoing = self._undoing(run_id)
        method, arguments, options = undoing.way(in_flight, self.limits)
        with closing(self._undoer(undoing)) as box:
            return undoing.ended(getattr(box, method)(*arguments, **options))

    async def aundo(self, run_id: str, in_flight: Any = None) -> Undone:
        """The same, awaited."""
        from moonbox.threads import unbroken

        undoing = self._undoing(run_id)
        method, arguments, options = undoing.way(in_flight, self.limits)
        with closing(self._undoer(undoing)) as box:
            run = await getattr(box, f"a{method}")(*arguments, **options)
            undone: Undone = await unbroken(partial(undoing.ended, run))
            return undone

    def _undoing(self, run_id: str) -> Undoing:
        from moonbox.durable.undoing import Undoing

        return Undoing(self.journal, run_id, self.toolbox)

    def _undoer(self, undoing: Undoing) -> Sandbox:
        twin = self.sibling(self._services.records.sink, list(undoing.tools.values()), self.journal)
        twin._close_records.detach()  # trail and journal are those of this Sandbox
        return twin

    def start_recovering(self, recover: bool | Callable[[KnownRun], Mapping[str, Any] | None] = True) -> None:
        """Continue runs of the journal that no process continues, from now on; `recover` is that of the Sandbox."""
        from moonbox.durable.recovering import Recoverer

        journal = self.journal
        if not self._recover:
            self._recover = recover
            Recoverer(journal, weakref.ref(self))

    def in_doubt(self, recorded: RecordedRun) -> bool:
        """Whether the run has calls that may have been made, and that its tools do not allow to repeat."""
        pending = recorded.pending(self.toolbox, self._settings.additions)
        return any(not call.repeatable for call in pending)

    def options_for(self, run: KnownRun) -> dict[str, Any] | None:
        """The options of the Repl in which that run goes on by itself; None where it is left."""
        given = self._recover(run) if callable(self._recover) else {}
        return None if given is None else dict(given)

    def continue_run(self, run_id: str, options: dict[str, Any]) -> Future[Run]:
        """Continue it on the Sandbox's own event loop, until it ends or begins to wait."""
        found = self._recorded.resuming(run_id, None, self._maker(options))
        return self._services.loop.submit(lambda: self._recorded.arun(found, leaves=True))

    @overload
    def replay(self, run_id: str) -> Run: ...
    @overload
    def replay(self, run_id: str, source: str) -> tuple[Run, tuple[str, ...]]: ...
    @overload
    def replay(self, run_id: str, *, until: int) -> RunView: ...
    def replay(
        self, run_id: str, source: str | None = None, *, until: int | None = None
    ) -> Run | tuple[Run, tuple[str, ...]] | RunView:
        """Run a recorded run again from its record. No tool is invoked.

        Without more, the result is its Run; Diverged is raised where it does not do what was recorded. With `until`,
        the result is a view of the run at its call of that number. With `source`, that script runs in place of the
        recorded one: the result is its Run, and in words how it differs. It finds the globals that the recorded run
        found, and its calls get the recorded answers of calls with the same tool and arguments; others fail with
        `not_recorded`.
        """
        from moonbox.durable.views import Walks

        recoveries = self._recorded
        look = self._maker({"before_write": lambda run: None})
        walks = Walks(recoveries, look, self._maker({}))
        if until is not None:
            return walks.view(run_id, until)
        if source is not None:
            return walks.with_script(run_id, source)
        if not recoveries.journal.known(run_id).has_ended:  # beyond the end of its record, it would call tools
            raise UsageError(f"run {run_id!r} has not ended; resume({run_id!r}) continues a run that was cut off")
        return recoveries.run(recoveries.resuming(run_id, None, look))

    async def areplay(self, run_id: str, source: str | None = None, *, until: int | None = None) -> Any:
        """The same, awaited."""
        from moonbox.threads import unbroken

        return await unbroken(lambda: self.replay(run_id, source, until=until))  # type: ignore[call-overload]  # as given

    def _maker(self, options: dict[str, Any]) -> Callable[[str], Repl]:
        return lambda repl_id: self.repl(repl_id=repl_id, **options)

    # Changes

    def define(self, name: str, value: Any, *, doc: str = "", counted: bool = True) -> None:
        """Add a global to every Repl made from now on: a value, or a function called with positional arguments.

        `doc` is its entry in `docs`; without it, a function has its docstring there.
        """
        settings = self._settings
        settings.additions = settings.additions.define(settings.language, name, value, doc, counted=counted)

    def document(self, name: str, text: str) -> None:
        """Add an entry that scripts read as docs[name]."""
        self._settings.additions = self._settings.additions.document(name, text)

    def define_as(self, other: Sandbox) -> None:
        """Add the globals and the documentation of another Sandbox to every Repl made from now on."""
        standard, theirs = Additions.standard(), other._settings.additions
        for name, function in theirs.functions.items():
            if name not in standard.functions:
                self.define(name, function.call, doc=theirs.docs.get(name, ""), counted=function.counted)
        for name, value in theirs.values.items():
            self.define(name, value, doc=theirs.docs.get(name, ""))
        for name in theirs.docs.keys() - standard.docs.keys():
            self.document(name, theirs.docs[name])

    def add_middleware(self, layer: Middleware) -> None:
        """Put a layer around every tool call from now on, inside those that there are."""
        self._settings.middleware = (*self._settings.middleware, *check_middleware([layer]))

    def warm(self) -> None:
        """Start workers now, in the background, instead of at the first use."""
        self._services.pool.warm()

    def _check_open(self) -> None:
        if self.closed:
            raise ClosedError("the Sandbox is closed")

    def close(self) -> None:
        """End every worker and thread. Runs and calls under way are stopped."""
        if self.closed:
            return
        self.closed = True
        if os.getpid() != self._services.pid:
            return
        if self._recover:  # what goes on by itself does so in another process, too
            self.journal.suspended.update(self.journal.recovering)
        for repl in self._repls.living():
            repl.close()
        for call in self._services.direct_calls.copy():
            with suppress(MoonboxError):  # its record cannot be written
                call.close()
        self._shut_down()
        self._repls.close_records(self._close_records)
