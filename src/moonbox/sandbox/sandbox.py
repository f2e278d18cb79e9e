"""Sandbox: configuration (tools, limits, language, isolation) and the pool of workers."""

from __future__ import annotations

import os
import weakref
from contextlib import ExitStack, closing, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from moonbox.check.checker import Checker
from moonbox.closing import Closing
from moonbox.durable.recovery import DurableRuns
from moonbox.errors import ClosedError, MoonboxError, UsageError
from moonbox.languages.registry import DEFAULT_LANGUAGE
from moonbox.languages.registry import language as language_named
from moonbox.limits import Limits
from moonbox.runs.options import RunOptions, check_callbacks, check_mapping, check_seconds
from moonbox.sandbox.repls import Repls
from moonbox.sandbox.setup import (
    Setup,
    check_middleware,
    check_options,
    check_required,
    open_redactor,
    open_secrets,
    open_sink,
    open_telemetry,
)
from moonbox.tools.toolbox import Toolbox
from moonbox.wording import counted
from moonbox.worker.pool import Pool
from moonbox.worker.sources import ProcessSource

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
    from typing import Unpack

    from moonbox.audit.metrics import Metrics
    from moonbox.audit.records import Run
    from moonbox.audit.redaction import Redactor
    from moonbox.audit.sinks import Sink
    from moonbox.cluster.membership import Membership
    from moonbox.durable.store import Journal
    from moonbox.failures import Failures
    from moonbox.runs.call_entry import CallEntry
    from moonbox.runs.decisions import Answer, Middleware, ToolCall
    from moonbox.runs.direct import DirectCall
    from moonbox.runs.docs import Docs
    from moonbox.sandbox.repl import Repl
    from moonbox.threads import LoopThread, Threads
    from moonbox.worker.pool import PoolCounts
    from moonbox.worker.sources import WorkerSource


_NO_OPTIONS: RunOptions = {}


class Sandbox(DurableRuns, Closing):
    """Runs untrusted scripts that call your tools. Use it as a context manager, or call `close`.

    tools          functions, Tools, Toolboxes, or a list or mapping (namespace → tools) of them
    limits         what one run may spend
    language       the name of a language of the registry
    isolation      "process" (a locked-in process for each Repl), or "inline" (this process: trusted scripts only)
    lua_features   any of "coroutines", "metatables"
    min_workers    how many spare workers wait ready-made
    max_workers    how many workers there may be at once
    approve        asked before a call of a tool whose policy is "approve"; sync or async
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

    def __init__(
        self,
        tools: Any = (),
        *,
        limits: Limits | None = None,
        language: str = DEFAULT_LANGUAGE,
        isolation: Literal["process", "inline"] | WorkerSource = "process",
        lua_features: Collection[str] = (),
        min_workers: int = 1,
        max_workers: int = 256,
        approve: Callable[[ToolCall], Any | Awaitable[Any]] | None = None,
        middleware: Sequence[Middleware] = (),
        audit: Sink | str | os.PathLike[str] | None = None,
        redact: Redactor | Iterable[str] | None = None,
        secrets: Mapping[str, str] | None = None,
        require: Collection[str] = (),
        journal: Journal | str | os.PathLike[str] | None = None,
        durability: Literal["process", "machine"] = "process",
        cluster: str | None = None,
        node_timeout: float = 5.0,
        sleep_after: float | None = None,
        journal_wait: float = 30.0,
        approval_seconds: float = 86_400.0,
        check: bool = True,
        context: Mapping[str, Any] | None = None,
        globals: Mapping[str, Any] | None = None,
        failures: Failures = "return",
        allow_nan: bool = False,
        telemetry: Any = None,
        metrics: Metrics | None = None,
        on_call: Callable[[CallEntry], None] | None = None,
        on_output: Callable[[str], None] | None = None,
    ) -> None:
        check_options(
            limits=limits,
            language=language,
            isolation=isolation,
            features=lua_features,
            failures=failures,
            min_workers=min_workers,
            max_workers=max_workers,
        )
        check_required(require, isolation)
        check_seconds("approval_seconds", approval_seconds)
        check_seconds("journal_wait", journal_wait)
        check_seconds("node_timeout", node_timeout)
        if sleep_after is not None:
            check_seconds("sleep_after", sleep_after)
            if journal is None:
                raise UsageError('sleep_after needs a journal, from which a Repl is restored: add journal="state.db"')
        if cluster is not None and isolation != "process":
            raise UsageError(f"on a cluster, isolation must be 'process', not {isolation!r}")
        check_callbacks(approve=approve, on_call=on_call, on_output=on_output)
        if metrics is not None and not hasattr(metrics, "watch"):
            raise UsageError(f"metrics must be a Metrics value, not {metrics!r}")
        check_mapping("context", {} if context is None else context)
        limits = limits or Limits()
        self._setup = setup = Setup(
            toolbox=Toolbox.of(tools),
            limits=limits,
            language=language_named(language),
            features=frozenset(lua_features),
            context=dict(context or {}),
            allow_nan=allow_nan,
            failures=failures,
            approve=approve,
            middleware=check_middleware(middleware),
            telemetry=open_telemetry(telemetry),
            metrics=metrics,
            run_options={"limits": limits, "on_call": on_call, "on_output": on_output},
            secrets=open_secrets(secrets),
            redactor=open_redactor(redact, secrets),
            approval_seconds=approval_seconds,
            check=bool(check),
        )
        check_mapping("globals", {} if globals is None else globals)
        for name, value in (globals or {}).items():
            self.define(name, value)
        self.isolation = isolation
        self.require: tuple[str, ...] = tuple(require)
        """Layers of the jail without which it does not start."""
        self.max_workers: int = max_workers
        self.toolbox: Toolbox = setup.toolbox
        self.limits: Limits = limits
        self.language: str = setup.language.name
        self.lua_features: frozenset[str] = setup.features
        self.context: dict[str, Any] = setup.context
        self.allow_nan: bool = allow_nan
        self.failures: Failures = failures
        self.metrics: Metrics | None = metrics
        """What counts its runs and calls, if anything does."""
        self.closed: bool = False
        """Whether it was closed."""
        setup.template = (setup.toolbox, setup.toolbox.revision, setup.additions.revision, setup.limits)
        with ExitStack() as opened:  # closed again where a later part fails; what the caller has opened is not
            setup.sink = open_sink(audit)
            if setup.sink is not None and setup.sink is not audit:
                opened.callback(setup.sink.close)
            if journal is not None:
                from moonbox.durable.store import open_journal  # loads SQLite

                setup.journal = open_journal(journal, durability=durability, wait=journal_wait)
                if setup.journal is not journal:
                    opened.callback(setup.journal.close)
            if cluster is not None:
                from moonbox.cluster.membership import Membership

                setup.cluster = Membership(cluster, node_timeout)
            source = _source(isolation, setup)
            self._zygote = source if isinstance(source, ProcessSource) else None
            self._pool = setup.pool = Pool(source, spares=min_workers, most=max_workers, require=self.require)
            if require:
                opened.callback(self._pool.close)
                self._pool.prime()  # raises where the jail lacks a layer
            opened.pop_all()
        setup.repls = Repls(setup.pool, setup.cluster)
        if metrics is not None:
            metrics.watch(setup.repls)
        if setup.cluster is not None:
            setup.cluster.figures = setup.repls
        if sleep_after is not None:
            setup.repls.put_to_sleep(sleep_after)
        self._repl_class: type[Repl] | None = None
        # Also without a call of `close`: at exit, while threads still run, which is before __del__ would be called.
        # Not given the Setup: its callbacks may hold the Sandbox, which would then live for ever.
        self._close_records = weakref.finalize(self, _close, setup.pid, setup.sink, setup.journal)
        self._shut_down = weakref.finalize(self, _close, setup.pid, self._pool, setup.threads, setup.loop)

    def __repr__(self) -> str:
        setup = self._setup
        about = f"{setup.language.name}, {counted(len(setup.toolbox), 'tool')}"
        state = "closed" if self.closed else counted(self.workers.in_use, "worker") + " in use"
        return f"<Sandbox: {about}, {state}>"

    @property
    def docs(self) -> Docs:
        """The documentation that its scripts read as `docs`."""
        from moonbox.runs.docs import Docs

        setup = self._setup
        return Docs(setup.toolbox, setup.additions.docs, self.language, search=setup.search(setup.toolbox))

    @property
    def cluster(self) -> Membership | None:
        """The cluster whose nodes run its workers; None where they are on this machine."""
        return self._setup.cluster

    @property
    def workers(self) -> PoolCounts:
        """How many workers there are, and which of them are spare (diagnostics)."""
        return self._pool.counts()

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
        repl = make(self, self._setup, options, timeout, toolbox, before_write, check, for_one_run, repl_id)
        self._setup.repls.known.add(repl)
        return repl

    def _load_repl_class(self) -> type[Repl]:
        """What a first run needs is loaded here, while its worker's zygote starts."""
        setup = self._setup
        if self._zygote is not None and os.getpid() == setup.pid:
            self._zygote.begin()
        from moonbox.sandbox.repl import Repl

        if setup.check:
            _load_checker(setup.language.name)
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
        call = DirectCall(self._setup, tool, arguments, toolbox, options)
        if self.closed:  # by another thread, which may not have seen this call
            call.close()
        return call

    def sibling(self, audit: Sink | None = None) -> Sandbox:
        """A Sandbox without tools, with workers of its own, which are isolated as those of this one.

        Its calls have the approver, middleware and slots of this one.
        It is for tool scripts: a script that waits for one must not hold the worker that it needs.
        """
        twin = Sandbox(
            limits=self.limits,
            audit=audit,
            # A source of workers is configured for one Sandbox: its twin has processes.
            isolation=self.isolation if isinstance(self.isolation, str) else "process",
            require=self.require,
            max_workers=self.max_workers,
        )
        for part in ("approve", "middleware", "failures", "secrets", "redactor", "context", "slots", "running_calls"):
            setattr(twin._setup, part, getattr(self._setup, part))
        twin.failures, twin.context = self.failures, self.context
        return twin

    def define(self, name: str, value: Any, *, doc: str = "", counted: bool = True) -> None:
        """Add a global to every Repl made from now on: a value, or a function called with positional arguments.

        `doc` is its entry in `docs`; without it, a function has its docstring there.
        """
        setup = self._setup
        setup.additions = setup.additions.define(setup.language, name, value, doc, counted=counted)

    def document(self, name: str, text: str) -> None:
        """Add an entry that scripts read as docs[name]."""
        self._setup.additions = self._setup.additions.document(name, text)

    def add_middleware(self, layer: Middleware) -> None:
        """Put a layer around every tool call from now on, inside those that there are."""
        self._setup.middleware = (*self._setup.middleware, *check_middleware([layer]))

    def warm(self) -> None:
        """Start workers now, in the background, instead of at the first use."""
        self._pool.warm()

    def _check_open(self) -> None:
        if self.closed:
            raise ClosedError("the Sandbox is closed")

    def close(self) -> None:
        """End every worker and thread. Runs and calls under way are stopped."""
        if self.closed:
            return
        self.closed = True
        if os.getpid() != self._setup.pid:
            return
        for repl in self._setup.repls.living():
            repl.close()
        for call in self._setup.direct_calls.copy():
            with suppress(MoonboxError):  # its record cannot be written
                call.close()
        self._shut_down()
        self._setup.close_records = self._close_records  # also called by the last run, where one has not ended
        if not self._setup.stopped_runs:
            self._close_records()


def run(source: str, tools: Any = (), **options: Any) -> Run:
    """Run one script; the options are those of `Repl.run` and of Sandbox.

    Without tools, and with no option of Sandbox but `language`, it runs in a Sandbox that the process keeps for that
    until it exits. Otherwise it has a Sandbox of its own, which ends with the run.
    """
    given: Any = {name: options.pop(name) for name in RunOptions.__annotations__ if name in options}
    if tools == () and options.keys() <= {"language"}:
        return _shared_sandbox(os.getpid(), options.get("language", DEFAULT_LANGUAGE)).run(source, **given)
    with Sandbox(tools, **{"min_workers": 0, **options}) as box:
        return box.run(source, **given)


@cache
def _shared_sandbox(pid: int, language: str) -> Sandbox:  # a fork of the process needs one of its own
    return Sandbox(language=language)


@cache
def _load_checker(language: str) -> None:
    """Load what looks at scripts, which is done with the first look: once for each language."""
    from moonbox.check.tools import ScriptTools

    spoken = language_named(language)
    Checker(spoken).check(" ", ScriptTools(Toolbox(), spoken))


def _source(isolation: Any, setup: Setup) -> WorkerSource:
    config = setup.config_for_workers()
    if setup.cluster is not None:
        from moonbox.cluster.source import ClusterSource

        return ClusterSource(setup.cluster, config)
    if isolation == "process":
        return ProcessSource(config)
    if isolation == "inline":
        from moonbox.worker.inline import InlineSource

        return InlineSource(config)
    source: WorkerSource = isolation
    source.configure(config)
    return source


def _close(owner: int, *parts: Pool | Threads | LoopThread | Sink | Journal | None) -> None:
    if os.getpid() != owner:  # a fork of the process that made it: the workers are not ours to end
        return
    for part in parts:
        if part is not None:
            part.close()
