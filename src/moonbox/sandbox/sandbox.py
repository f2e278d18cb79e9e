"""Sandbox: configuration (tools, limits, language, isolation) and the pool of workers."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Any, Literal

from moonbox.errors import ClosedError, UsageError
from moonbox.languages.registry import DEFAULT_LANGUAGE
from moonbox.languages.registry import language as language_named
from moonbox.limits import Limits
from moonbox.sandbox.environment import Additions, describe_environment
from moonbox.sandbox.repl import Repl
from moonbox.sandbox.slots import Slots
from moonbox.sandbox.threads import LoopThread, Threads
from moonbox.tools.toolbox import Toolbox
from moonbox.worker.pool import Pool
from moonbox.worker.processes import ProcessSource

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
    from types import TracebackType

    from moonbox.audit.records import Run
    from moonbox.audit.redaction import Redactor
    from moonbox.audit.sinks import Sink
    from moonbox.sandbox.decisions import Middleware, ToolCall
    from moonbox.sandbox.recorder import CallEntry
    from moonbox.worker.pool import WorkerSource

__all__ = ["Sandbox"]


class Sandbox:
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
    redact         names of fields whose values never reach the trail
    context        what tools find as `Context.extra`
    globals        values and functions that every script finds under their names
    allow_nan      let NaN and infinity leave a script
    on_call        called with each call's record entry when it starts and when it ends (for progress displays)
    """

    def __init__(
        self,
        tools: Any = (),
        *,
        limits: Limits | None = None,
        language: str = DEFAULT_LANGUAGE,
        isolation: Literal["process", "inline"] = "process",
        lua_features: Collection[str] = (),
        min_workers: int = 1,
        max_workers: int = 256,
        approve: Callable[[ToolCall], Any | Awaitable[Any]] | None = None,
        middleware: Sequence[Middleware] = (),
        audit: Sink | str | os.PathLike[str] | None = None,
        redact: Redactor | Iterable[str] | None = None,
        context: Mapping[str, Any] | None = None,
        globals: Mapping[str, Any] | None = None,
        allow_nan: bool = False,
        telemetry: Any = None,
        on_call: Callable[[CallEntry], None] | None = None,
    ) -> None:
        _check_options(limits, language, isolation, lua_features, min_workers, max_workers)
        self.toolbox = Toolbox.of(tools)
        self.limits = limits or Limits()
        self.language = language
        spoken = language_named(language)
        self._runtime = spoken.runtime() if spoken.runtime is not None else None
        self.isolation = isolation
        self.lua_features = frozenset(lua_features)
        self.context = dict(context or {})
        self.allow_nan = allow_nan
        self._approve = approve
        self._middleware = tuple(middleware)
        self._telemetry = _telemetry(telemetry)
        self._on_call = on_call
        self._additions = Additions()
        for name, value in (globals or {}).items():
            self.define(name, value)
        self._sink, self._redactor = _sink(audit), _redactor(redact)
        self._slots = Slots()
        self._threads = Threads()
        self._loop = LoopThread()
        self._repls: weakref.WeakSet[Repl] = weakref.WeakSet()
        self._closed = False
        self._template_environment = (id(self.toolbox), self.toolbox.revision, self._additions.revision)
        self._pool = Pool(self._source(), spares=min_workers, most=max_workers)
        # Also when nobody calls `close`: at exit while threads still run, which they do no more when __del__ is called.
        self._pid = os.getpid()
        self._shut_down = weakref.finalize(
            self, _shut_down, self._pid, self._pool, self._threads, self._loop, self._sink
        )

    def repl(
        self,
        *,
        limits: Limits | None = None,
        timeout: float | None = 30.0,
        toolbox: Toolbox | None = None,
        before_write: Callable[[Run], Run] | None = None,
    ) -> Repl:
        """A new Repl. `timeout` is how long to wait for a worker while `max_workers` are in use.

        With `toolbox`, its scripts are offered those tools instead of the Sandbox's. `before_write` has the last word
        on each Run, before it is kept or returned (to take secrets out).
        """
        if self._closed:
            raise ClosedError("the Sandbox is closed")
        repl = Repl(self, limits=limits, timeout=timeout, toolbox=toolbox, before_write=before_write)
        self._repls.add(repl)
        return repl

    def run(self, source: str, *, limits: Limits | None = None) -> Run:
        """Run one script in a fresh Repl."""
        with self.repl() as repl:
            return repl.run(source, limits=limits)

    async def arun(self, source: str, *, limits: Limits | None = None) -> Run:
        """The same, awaited."""
        async with self.repl() as repl:
            return await repl.arun(source, limits=limits)

    def call(self, tool: str, arguments: Any = None, *, toolbox: Toolbox | None = None) -> Run:
        """Call one tool without a script: the same validation, middleware, approval, limits and record."""
        from moonbox.sandbox.direct import DirectCall

        return DirectCall(self, tool, arguments, toolbox).run()

    async def acall(self, tool: str, arguments: Any = None, *, toolbox: Toolbox | None = None) -> Run:
        """The same, awaited."""
        from moonbox.sandbox.direct import DirectCall

        return await DirectCall(self, tool, arguments, toolbox).arun()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def define(self, name: str, value: Any, *, doc: str = "", counted: bool = True) -> None:
        """Add a global to every Repl made from now on: a value, or a function called with positional arguments."""
        self._additions.define(name, value, doc, counted=counted)

    def document(self, name: str, text: str) -> None:
        """Add an entry that scripts read as docs[name]."""
        self._additions.docs[name] = text

    def warm(self) -> None:
        """Start workers now, in the background, instead of at the first use."""
        self._pool.warm()

    def close(self) -> None:
        """End every worker and thread. Runs under way are stopped."""
        if self._closed:
            return
        self._closed = True
        if not self._is_ours():
            return
        for repl in list(self._repls):
            repl.close()
        self._shut_down()

    async def aclose(self) -> None:
        self.close()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Sandbox:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # For Repl

    def _is_ours(self) -> bool:
        """Whether this is the process that made the Sandbox, not a fork of it, which shares its sockets."""
        return os.getpid() == self._pid

    def _forget(self, repl: Repl) -> None:
        self._repls.discard(repl)

    def _write(self, run: Run) -> None:
        """Keep the run's record before anybody sees its result."""
        if self._sink is not None:
            self._sink.write(self._redactor.redact(run) if self._redactor is not None else run)

    def _limits_for_worker(self, limits: Limits) -> dict[str, Any]:
        return {**limits.to_dict(), "allow_nan": self.allow_nan}

    def _source(self) -> WorkerSource:
        additions = self._additions
        config = {
            "limits": self._limits_for_worker(self.limits),
            "environment": describe_environment(
                self.toolbox, additions.functions, additions.values, self.lua_features, self._runtime
            ),
        }
        if self.isolation == "process":
            return ProcessSource(config)
        from moonbox.worker.inline import InlineSource

        return InlineSource(config)


def _shut_down(owner: int, pool: Pool, threads: Threads, loop: LoopThread, sink: Sink | None) -> None:
    if os.getpid() != owner:  # a fork of the process that made it: the workers are not ours to end
        return
    pool.close()
    threads.close()
    loop.close()
    if sink is not None:
        sink.close()


def _check_options(
    limits: Any, language: Any, isolation: Any, features: Any, min_workers: Any, max_workers: Any
) -> None:
    if limits is not None and not isinstance(limits, Limits):
        raise UsageError(f"limits must be a Limits value, for example Limits(timeout=10); not {limits!r}")
    known = language_named(language).features
    if features and not known:
        raise UsageError(f"the language '{language}' has no features to open")
    if isolation not in ("process", "inline"):
        raise UsageError(f'isolation must be "process" or "inline", not {isolation!r}')
    if isinstance(features, str) or not set(features) <= set(known):
        raise UsageError(f"lua_features must be a set of {sorted(known)}, not {features!r}")
    for name, value, least in (("min_workers", min_workers, 0), ("max_workers", max_workers, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise UsageError(f"{name} must be a whole number of at least {least}, not {value!r}")
    if min_workers > max_workers:
        raise UsageError(f"min_workers ({min_workers}) must not be more than max_workers ({max_workers})")


def _sink(audit: Any) -> Sink | None:
    if audit is None or hasattr(audit, "write"):
        return audit  # type: ignore[no-any-return]  # told apart by duck type: a Sink is a protocol
    from moonbox.audit.sinks import open_sink

    return open_sink(audit)


def _redactor(redact: Any) -> Redactor | None:
    if redact is None:
        return None
    from moonbox.audit.redaction import Redactor

    return redact if isinstance(redact, Redactor) else Redactor(redact)


def _telemetry(telemetry: Any) -> Any:
    if telemetry is True:
        from moonbox.audit.telemetry import Telemetry
        from moonbox.errors import MissingExtra

        made = Telemetry.create()
        if made is None:
            raise MissingExtra("opentelemetry-api", "otel", "Sandbox(telemetry=True)")
        return made
    return telemetry or None
