"""Setup: what the Repls and direct calls of one Sandbox share."""

from __future__ import annotations

import os
from _random import Random  # without the hashes and distributions of `random`, which take longer to load
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from moonbox.check.checker import Latest
from moonbox.errors import MissingExtra, UsageError
from moonbox.failures import FAILURES
from moonbox.languages.registry import language as language_named
from moonbox.runs.environment import Additions, describe_environment
from moonbox.runs.options import check_callbacks, check_limits
from moonbox.runs.slots import RunningCalls
from moonbox.schema.learned import is_vague
from moonbox.secrets import MIN_SECRET, SecretRedactor
from moonbox.suggest import unknown
from moonbox.threads import LoopThread, Threads
from moonbox.values import pack

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from moonbox.audit.metrics import Metrics
    from moonbox.audit.records import Run
    from moonbox.audit.redaction import Redactor
    from moonbox.audit.sinks import Sink
    from moonbox.audit.telemetry import Telemetry
    from moonbox.check.tools import ScriptTools
    from moonbox.cluster.membership import Membership
    from moonbox.durable.store import Journal
    from moonbox.errors import ToolError
    from moonbox.failures import Failures
    from moonbox.languages.registry import Language
    from moonbox.limits import Limits
    from moonbox.runs.decisions import Middleware, ToolCall
    from moonbox.runs.direct import DirectCall
    from moonbox.runs.options import RunOptions
    from moonbox.runs.slots import Slots, Turns
    from moonbox.sandbox.repls import Repls
    from moonbox.tools.search import ToolSearch
    from moonbox.tools.tool import Tool
    from moonbox.tools.toolbox import Toolbox
    from moonbox.values import Packed
    from moonbox.worker.pool import Pool

    EnvironmentMark = tuple[Toolbox, int, int, Limits]
    """Identifies an environment: the toolbox, its revision, the revision of what was added, and the limits."""


class Mark:
    """Identifies a Sandbox where nothing may refer to it."""


class Derived:
    """What all Repls of a Sandbox share of one toolbox. It lives as long as the toolbox and the Sandbox both do."""

    search: ToolSearch | None = None
    """The index of the toolbox: making one takes long."""
    view: ScriptTools | None = None
    """The toolbox as scripts see it."""


@dataclass(slots=True, kw_only=True)
class Setup:
    """Configuration, and the threads and slots that tools run in."""

    toolbox: Toolbox
    limits: Limits
    language: Language
    features: frozenset[str]
    context: dict[str, Any]
    allow_nan: bool
    failures: Failures = "return"
    """What becomes of results that are nothing but a failure, where the tool does not say."""
    approve: Callable[[ToolCall], Any | Awaitable[Any]] | None
    middleware: Sequence[Middleware]
    telemetry: Telemetry | None
    metrics: Metrics | None = None
    run_options: RunOptions
    """What a run has that is given nothing else: limits and callbacks."""
    sink: Sink | None = None
    redactor: Redactor | None
    secrets: SecretRedactor | None = None
    """Replaces values that neither scripts nor the trail may contain."""
    journal: Journal | None = None
    """Where runs are taken down, so that they outlive their process."""
    approval_seconds: float = 0.0
    """How long a question to a person stays open in the journal."""
    check: bool = True
    """Look at scripts before they run."""
    cluster: Membership | None = None
    """The cluster whose nodes have its workers; None where this machine has them."""
    pool: Pool = field(init=False)
    template: EnvironmentMark = field(init=False)
    """What every worker has when it comes from the pool."""
    repls: Repls = field(init=False)
    additions: Additions = field(default_factory=Additions.standard)
    """What Repls that are made from now on find beside their tools."""
    slots: dict[str, Slots] = field(default_factory=dict)
    """Of each tool that has a `max_concurrency`, by its path."""
    running_calls: RunningCalls = field(default_factory=RunningCalls)
    direct_calls: WeakSet[DirectCall] = field(default_factory=WeakSet)
    """Those that are under way."""
    stopped_runs: set[Turns] = field(default_factory=set)
    """Of closed Repls whose last run has not ended."""
    close_records: Callable[[], object] | None = None
    """Closes the trail and the journal of a closed Sandbox."""
    threads: Threads = field(default_factory=Threads)
    loop: LoopThread = field(default_factory=LoopThread)
    latest_check: Latest = field(default_factory=Latest)
    """Shared by the Repls: one-off runs of the same script are looked at once."""
    added_names: tuple[Additions | None, frozenset[str]] = (None, frozenset())
    """The latest additions that scripts were looked at with, and the globals that they bring."""
    pid: int = field(default_factory=os.getpid)
    """The process that made the Sandbox: a fork of it shares its sockets and must not use them."""
    random: Random = field(default_factory=Random)
    """For the names of Repls and runs, which are no secrets, and the seeds of scripts."""
    mark: Mark = field(default_factory=Mark)
    """Finds what it has derived from a toolbox."""

    def new_id(self, size: int = 16) -> str:
        """A name for a Repl or a run: so many random bytes in hexadecimal digits."""
        return self.random.getrandbits(8 * size).to_bytes(size).hex()

    def context_with(self, context: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """What the tools of a run find that is given this context."""
        return {**self.context, **context} if context else self.context

    def search(self, toolbox: Toolbox) -> ToolSearch:
        """The search over a toolbox, which follows its changes."""
        from moonbox.tools.search import ToolSearch

        derived = self._derived(toolbox)
        if derived.search is None:
            derived.search = ToolSearch(toolbox)
        return derived.search

    def tool_view(self, toolbox: Toolbox) -> ScriptTools:
        """The toolbox as its scripts see it now."""
        derived = self._derived(toolbox)
        view = derived.view
        if view is None or view.revision != toolbox.revision:
            from moonbox.check.tools import ScriptTools

            view = derived.view = ScriptTools(toolbox, self.language, self.toolbox.learned)
        return view

    def _derived(self, toolbox: Toolbox) -> Derived:
        derived: Derived | None = toolbox.derived.get(self.mark)
        if derived is None:
            derived = toolbox.derived[self.mark] = Derived()
        return derived

    def learn(self, tool: Tool, packed: Packed, *, scripted: bool) -> None:
        """Remember how large a result is and, if the tool does not fully declare what it returns, its shape."""
        learned = self.toolbox.learned
        learned.measure(tool.path, len(packed.data), scripted=scripted)
        if tool.returns is None or is_vague(tool.returns):
            hides = None if self.redactor is None else self.redactor.hides
            learned.learn(tool.path, self.clean_result(packed).value, hides=hides)

    def run_ended(self, turns: Turns) -> None:
        """The last run of a closed Repl has ended. That of the last Repl closes what it was recorded in."""
        self.stopped_runs.discard(turns)
        if self.close_records is not None and not self.stopped_runs:
            self.close_records()

    def write(self, run: Run) -> Run:
        """Count the run, and write its record to the trail, before its result is returned."""
        if self.metrics is not None:
            self.metrics.record(run)
        if self.sink is not None:
            from moonbox.runs.intents import writing

            with writing(run):
                self.sink.write(run if self.redactor is None else self.redactor.redact(run))
        return run

    def clean_result(self, packed: Packed) -> Packed:
        """What a tool returned, without secrets: a script could spell them in ways that are not recognised."""
        if self.secrets is None:
            return packed
        clean = self.secrets(packed.value)
        return packed if clean is packed.value else pack(clean)

    def clean_error(self, error: ToolError) -> ToolError:
        """The same for how a tool failed."""
        secrets = self.secrets
        if secrets is not None:
            for name in ("code", "message", "data", "detail"):
                setattr(error, name, secrets(getattr(error, name)))
            error.args = (error.message,)
        return error

    def limits_for_worker(self, limits: Limits) -> dict[str, Any]:
        return {**limits.to_dict(), "allow_nan": self.allow_nan}

    def config_for_workers(self) -> dict[str, Any]:
        """What every worker starts with."""
        return {
            "engine": self.language.engine_for_workers(),
            "limits": self.limits_for_worker(self.limits),
            "environment": describe_environment(
                self.toolbox, self.additions, self.features, self.language, with_runtime=True
            ),
        }


def check_options(
    *, limits: Any, language: Any, isolation: Any, features: Any, failures: Any, min_workers: Any, max_workers: Any
) -> None:
    """Raise UsageError where an option of a Sandbox is wrong."""
    check_limits(limits)
    spoken = language_named(language)
    known = spoken.features
    if spoken.extra:
        from importlib.util import find_spec

        if find_spec(spoken.packages[0]) is None:
            raise MissingExtra(spoken.packages[0].replace("_", "-"), spoken.extra, f"Sandbox(language={language!r})")
    if isolation not in ("process", "inline") and not hasattr(isolation, "spawn"):
        raise UsageError(f'isolation must be "process" or "inline", not {isolation!r}')
    if features and not known:
        raise UsageError(f"the language '{language}' has no features to open")
    if isinstance(features, str) or not isinstance(features, Collection) or not set(features) <= set(known):
        raise UsageError(f"lua_features must be a set of {sorted(known)}, not {features!r}")
    if failures not in FAILURES:
        raise UsageError(f"failures must be 'return' or 'raise', not {failures!r}")
    for name, value, least in (("min_workers", min_workers, 0), ("max_workers", max_workers, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise UsageError(f"{name} must be a whole number of at least {least}, not {value!r}")
    if min_workers > max_workers:
        raise UsageError(f"min_workers ({min_workers}) must not be more than max_workers ({max_workers})")


def check_middleware(middleware: Any) -> tuple[Middleware, ...]:
    """The layers around every call; UsageError where one is wrong."""
    layers: list[Any] = list(middleware) if isinstance(middleware, Iterable) else [None]
    if not all(hasattr(layer, "before") and hasattr(layer, "after") for layer in layers):
        raise UsageError(f"middleware must be a list of Middleware values, not {middleware!r}")
    for layer in layers:
        check_callbacks(**{f"{name} of a Middleware": getattr(layer, name) for name in ("before", "after")})
    return tuple(layers)


def check_required(require: Any, isolation: Any) -> None:
    """Raise UsageError where layers of the jail are required that there are not."""
    if not require:
        return
    from moonbox.worker.jail import LAYERS

    if isinstance(require, str) or not isinstance(require, Collection):
        raise UsageError(f"require must be a list of layers, such as ['seccomp'], not {require!r}")
    for name in require:
        if name not in LAYERS:
            raise UsageError(unknown("layer", str(name), LAYERS))
    if isolation == "inline":
        raise UsageError('isolation="inline" has no jail: no layer can be required of it')


def open_sink(audit: Any) -> Sink | None:
    """The sink that `Sandbox(audit=…)` names."""
    if audit is None or hasattr(audit, "write"):
        return audit  # type: ignore[no-any-return]  # recognised by its method: a Sink is a protocol
    if not isinstance(audit, str | os.PathLike):
        wanted = "a path that ends in .db or .jsonl, or a Sink with a method `write`"
        raise UsageError(f"audit must be {wanted}, not {audit!r}")
    from moonbox.audit import sinks

    return sinks.open_sink(audit)


def open_redactor(redact: Any, secrets: Mapping[str, str] | None = None) -> Redactor | None:
    """The redactor that `Sandbox(redact=…, secrets=…)` describes."""
    if redact is None and not secrets:
        return None
    from moonbox.audit.redaction import Redactor

    if redact is not None and not isinstance(redact, Redactor | Iterable):
        raise UsageError(f"redact must be a list of names or a Redactor, not {redact!r}")
    plain = redact if isinstance(redact, Redactor) else Redactor(redact or ())
    texts = [text for text in (secrets or {}).values() if len(text) >= MIN_SECRET]
    return plain.with_secrets(texts) if texts else plain


def open_secrets(secrets: Mapping[str, str] | None) -> SecretRedactor | None:
    """What replaces the values that `Sandbox(secrets=…)` names; None where there are none."""
    if secrets is None:
        return None
    if not isinstance(secrets, Mapping) or not all(isinstance(each, str) for pair in secrets.items() for each in pair):
        raise UsageError("secrets must be a mapping from names to strings")  # without what was given
    return SecretRedactor(secrets) or None


def open_telemetry(telemetry: Any) -> Telemetry | None:
    """The telemetry that `Sandbox(telemetry=…)` asks for."""
    if telemetry is not True:
        if telemetry and not hasattr(telemetry, "start_run"):
            raise UsageError(f"telemetry must be True or a Telemetry value, not {telemetry!r}")
        return telemetry or None
    from moonbox.audit.telemetry import Telemetry

    created = Telemetry.create()
    if created is None:
        raise MissingExtra("opentelemetry-api", "otel", "Sandbox(telemetry=True)")
    return created
