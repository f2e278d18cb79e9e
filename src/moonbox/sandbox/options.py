"""The options of a Sandbox: what is wrong with them, and what they open."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar

from moonbox.errors import MissingExtra, UsageError
from moonbox.failures import FAILURES, Failures
from moonbox.languages.registry import DEFAULT_LANGUAGE
from moonbox.languages.registry import language as language_named
from moonbox.limits import Limits
from moonbox.runs.environment import Additions
from moonbox.runs.options import check_callbacks, check_limits, check_mapping, check_seconds
from moonbox.runs.services import RecordKeeping, Services, ToolKnowledge
from moonbox.runs.settings import Settings
from moonbox.secrets import MIN_SECRET, SecretRedactor
from moonbox.suggest import unknown
from moonbox.tools.toolbox import Toolbox
from moonbox.worker.pool import Pool
from moonbox.worker.sources import ProcessSource, WorkerSource

if TYPE_CHECKING:
    from moonbox.audit.metrics import Metrics
    from moonbox.audit.redaction import Redactor
    from moonbox.audit.sinks import Sink
    from moonbox.audit.telemetry import Telemetry
    from moonbox.cluster.membership import Membership
    from moonbox.durable.index import KnownRun
    from moonbox.durable.store import Journal
    from moonbox.runs.call_entry import CallEntry
    from moonbox.runs.decisions import Middleware, ToolCall
    from moonbox.threads import LoopThread, Threads


@dataclass(frozen=True, eq=False, repr=False)
class SandboxOptions:
    """What `Sandbox(…)` takes; see there."""

    tools: Any = ()
    _: KW_ONLY
    limits: Limits | None = None
    language: str = DEFAULT_LANGUAGE
    isolation: Literal["process", "inline"] | WorkerSource = "process"
    lua_features: Collection[str] = ()
    min_workers: int = 1
    max_workers: int = 256
    approve: Callable[[ToolCall], Any | Awaitable[Any]] | None = None
    approve_script: Callable[[ToolCall], Any | Awaitable[Any]] | bool = False
    middleware: Sequence[Middleware] = ()
    audit: Sink | str | os.PathLike[str] | None = None
    redact: Redactor | Iterable[str] | None = None
    secrets: Mapping[str, str] | None = None
    require: Collection[str] = ()
    journal: Journal | str | os.PathLike[str] | None = None
    durability: Literal["process", "machine"] = "process"
    cluster: str | None = None
    node_timeout: float = 5.0
    sleep_after: float | None = None
    recover: bool | Callable[[KnownRun], Mapping[str, Any] | None] = False
    journal_wait: float = 30.0
    approval_seconds: float = 86_400.0
    check: bool = True
    context: Mapping[str, Any] | None = None
    globals: Mapping[str, Any] | None = None
    failures: Failures = "return"
    allow_nan: bool = False
    telemetry: Any = None
    metrics: Metrics | None = None
    on_call: Callable[[CallEntry], None] | None = None
    on_output: Callable[[str], None] | None = None


P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")


def made_with(options: Callable[P, T]) -> Callable[[Callable[[S, T], None]], Callable[Concatenate[S, P], None]]:
    """For an `__init__` that takes what `options` takes, and gets it as one value."""

    def change(init: Callable[[S, T], None]) -> Callable[Concatenate[S, P], None]:
        def __init__(self: S, /, *args: P.args, **named: P.kwargs) -> None:
            init(self, options(*args, **named))

        __init__.__wrapped__ = options.__init__  # type: ignore[attr-defined]  # for inspect.signature
        return __init__

    return change


def check_options(options: SandboxOptions) -> None:
    """Raise UsageError where an option of a Sandbox is wrong."""
    check_limits(options.limits)
    _check_language(options.language, options.lua_features)
    isolation, has_journal, approve_script = options.isolation, options.journal is not None, options.approve_script
    if isolation not in ("process", "inline") and not hasattr(isolation, "spawn"):
        raise UsageError(f'isolation must be "process" or "inline", not {isolation!r}')
    if options.failures not in FAILURES:
        raise UsageError(f"failures must be 'return' or 'raise', not {options.failures!r}")
    for name, least in (("min_workers", 0), ("max_workers", 1)):
        value = getattr(options, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise UsageError(f"{name} must be a whole number of at least {least}, not {value!r}")
    if options.min_workers > options.max_workers:
        raise UsageError(
            f"min_workers ({options.min_workers}) must not be more than max_workers ({options.max_workers})"
        )
    _check_required(options.require, isolation)
    for name in (
        "approval_seconds",
        "journal_wait",
        "node_timeout",
        *["sleep_after"] * (options.sleep_after is not None),
    ):
        check_seconds(name, getattr(options, name))
    if options.sleep_after is not None and not has_journal:
        raise UsageError('sleep_after needs a journal, from which a Repl is restored: add journal="state.db"')
    if options.recover and not has_journal:
        raise UsageError('recover needs a journal, whose runs it continues: add journal="state.db"')
    if options.cluster is not None and isolation != "process":
        raise UsageError(f"on a cluster, isolation must be 'process', not {isolation!r}")
    if options.metrics is not None and not hasattr(options.metrics, "watch"):
        raise UsageError(f"metrics must be a Metrics value, not {options.metrics!r}")
    for name in ("context", "globals"):
        check_mapping(name, {} if getattr(options, name) is None else getattr(options, name))
    check_callbacks(
        approve=options.approve,
        approve_script=None if isinstance(approve_script, bool) else approve_script,
        recover=None if isinstance(options.recover, bool) else options.recover,
        on_call=options.on_call,
        on_output=options.on_output,
    )


def settings_of(options: SandboxOptions) -> Settings:
    """What runs depend on."""
    limits = options.limits or Limits()
    return Settings(
        toolbox=Toolbox.of(options.tools),
        limits=limits,
        language=language_named(options.language),
        features=frozenset(options.lua_features),
        context=dict(options.context or {}),
        allow_nan=options.allow_nan,
        failures=options.failures,
        approve=options.approve,
        approve_script=options.approve_script,
        approval_seconds=options.approval_seconds,
        middleware=check_middleware(options.middleware),
        run_options={"limits": limits, "on_call": options.on_call, "on_output": options.on_output},
        check=bool(options.check),
        additions=Additions.standard(waits=options.journal is not None),
    )


def services_of(options: SandboxOptions, settings: Settings) -> Services:
    """What runs share; `open_parts` adds the rest."""
    return Services(
        tools=ToolKnowledge(settings.language, settings.toolbox.learned),
        records=RecordKeeping(
            secrets=_open_secrets(options.secrets),
            redactor=_open_redactor(options.redact, options.secrets),
            metrics=options.metrics,
        ),
        telemetry=_open_telemetry(options.telemetry),
    )


def _check_language(language: Any, features: Any) -> None:
    spoken = language_named(language)
    known = spoken.features
    if spoken.extra:
        from importlib.util import find_spec

        if find_spec(spoken.packages[0]) is None:
            raise MissingExtra(spoken.packages[0].replace("_", "-"), spoken.extra, f"Sandbox(language={language!r})")
    if features and not known:
        raise UsageError(f"the language '{language}' has no features to open")
    if isinstance(features, str) or not isinstance(features, Collection):
        raise UsageError(f"lua_features must be a set of {', '.join(sorted(known))}; not {features!r}")
    if wrong := sorted(str(name) for name in features if name not in known):
        raise UsageError(f"lua_features: {unknown('feature', wrong[0], sorted(known))}")


def check_middleware(middleware: Any) -> tuple[Middleware, ...]:
    """The layers around every call; UsageError where one is wrong."""
    layers: list[Any] = list(middleware) if isinstance(middleware, Iterable) else [None]
    if not all(hasattr(layer, "before") and hasattr(layer, "after") for layer in layers):
        raise UsageError(f"middleware must be a list of Middleware values, not {middleware!r}")
    for layer in layers:
        check_callbacks(**{f"{name} of a Middleware": getattr(layer, name) for name in ("before", "after")})
    return tuple(layers)


def _check_required(require: Any, isolation: Any) -> None:
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


def _open_sink(audit: Any) -> Sink | None:
    """The sink that `Sandbox(audit=…)` names."""
    if audit is None or hasattr(audit, "write"):
        return audit  # type: ignore[no-any-return]  # recognised by its method: a Sink is a protocol
    if not isinstance(audit, str | os.PathLike):
        wanted = "a path that ends in .db or .jsonl, or a Sink with a method `write`"
        raise UsageError(f"audit must be {wanted}, not {audit!r}")
    from moonbox.audit import sinks

    return sinks.open_sink(audit)


def _open_redactor(redact: Any, secrets: Mapping[str, str] | None = None) -> Redactor | None:
    """The redactor that `Sandbox(redact=…, secrets=…)` describes."""
    if redact is None and not secrets:
        return None
    from moonbox.audit.redaction import Redactor

    if redact is not None and not isinstance(redact, Redactor | Iterable):
        raise UsageError(f"redact must be a list of names or a Redactor, not {redact!r}")
    plain = redact if isinstance(redact, Redactor) else Redactor(redact or ())
    texts = [text for text in (secrets or {}).values() if len(text) >= MIN_SECRET]
    return plain.with_secrets(texts) if texts else plain


def _open_secrets(secrets: Mapping[str, str] | None) -> SecretRedactor | None:
    """What replaces the values that `Sandbox(secrets=…)` names; None where there are none."""
    if secrets is None:
        return None
    if not isinstance(secrets, Mapping) or not all(isinstance(each, str) for pair in secrets.items() for each in pair):
        raise UsageError("secrets must be a mapping from names to strings")  # without what was given
    return SecretRedactor(secrets) or None


def _open_telemetry(telemetry: Any) -> Telemetry | None:
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


def open_parts(
    options: SandboxOptions, settings: Settings, services: Services
) -> tuple[Journal | None, ProcessSource | None]:
    """Open the trail, the journal and the pool of a Sandbox: what a later one's failure closes again.

    The journal, and the zygote where workers are processes of this machine.
    """
    kept: Journal | None = None
    with ExitStack() as opened:
        services.records.sink = sink = _open_sink(options.audit)
        if sink is not None and sink is not options.audit:
            opened.callback(sink.close)
        if options.journal is not None:
            from moonbox.durable.store import open_journal  # loads SQLite

            kept = open_journal(options.journal, durability=options.durability, wait=options.journal_wait)
            if kept is not options.journal:
                opened.callback(kept.close)
        if options.cluster is not None:
            from moonbox.cluster.membership import Membership

            services.cluster = Membership(options.cluster, options.node_timeout)
        toolbox, additions = settings.toolbox, settings.additions
        template = toolbox, toolbox.revision, additions.revision, settings.limits
        config = settings.config_for_workers(toolbox, additions)
        source, zygote = _open_source(options.isolation, config, services.cluster)
        require = tuple(options.require)
        services.pool = pool = Pool(source, spares=options.min_workers, most=options.max_workers, require=require)
        pool.template = template
        if require:
            opened.callback(pool.close)
            pool.prime()  # raises where the jail lacks a layer
        opened.pop_all()
    return kept, zygote


def _open_source(
    isolation: Any, config: dict[str, Any], cluster: Membership | None
) -> tuple[WorkerSource, ProcessSource | None]:
    """Where workers come from; the second is the same where it is a zygote of this machine."""
    if cluster is not None:
        from moonbox.cluster.source import ClusterSource

        return ClusterSource(cluster, config), None
    if isolation == "process":
        processes = ProcessSource(config)
        return processes, processes
    if isolation == "inline":
        from moonbox.worker.sources import InlineSource

        return InlineSource(config), None
    source: WorkerSource = isolation
    source.configure(config)
    return source, None


@cache
def load_checker(language: str) -> None:
    """Load what looks at scripts, which is done with the first look: once for each language."""
    from moonbox.runs.script_check import begin_reading

    begin_reading(language_named(language))


def close_parts(owner: int, *parts: Pool | Threads | LoopThread | Sink | Journal | None) -> None:
    """Close what a Sandbox has opened; nothing happens in a fork of its process, which shares the workers."""
    if os.getpid() != owner:
        return
    for part in parts:
        if part is not None:
            part.close()
