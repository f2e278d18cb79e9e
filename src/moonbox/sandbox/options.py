"""The options of a Sandbox: what is wrong with them, and what they open."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from moonbox.errors import MissingExtra, UsageError
from moonbox.failures import FAILURES
from moonbox.languages.registry import language as language_named
from moonbox.runs.options import check_callbacks, check_limits, check_mapping, check_seconds
from moonbox.secrets import MIN_SECRET, SecretRedactor
from moonbox.suggest import unknown
from moonbox.worker.pool import Pool
from moonbox.worker.sources import ProcessSource

if TYPE_CHECKING:
    from moonbox.audit.redaction import Redactor
    from moonbox.audit.sinks import Sink
    from moonbox.audit.telemetry import Telemetry
    from moonbox.cluster.membership import Membership
    from moonbox.durable.store import Journal
    from moonbox.runs.decisions import Middleware
    from moonbox.runs.services import Services
    from moonbox.runs.settings import Settings
    from moonbox.threads import LoopThread, Threads
    from moonbox.worker.sources import WorkerSource


def check_options(
    *,
    limits: Any,
    language: Any,
    isolation: Any,
    features: Any,
    failures: Any,
    min_workers: Any,
    max_workers: Any,
    require: Any = (),
    seconds: Mapping[str, Any] = MappingProxyType({}),
    sleep_after: Any = None,
    has_journal: bool = True,
    recover: Any = False,
    cluster: Any = None,
    metrics: Any = None,
    context: Any = None,
    globals: Any = None,
) -> None:
    """Raise UsageError where an option of a Sandbox is wrong."""
    check_limits(limits)
    _check_language(language, features)
    if isolation not in ("process", "inline") and not hasattr(isolation, "spawn"):
        raise UsageError(f'isolation must be "process" or "inline", not {isolation!r}')
    if failures not in FAILURES:
        raise UsageError(f"failures must be 'return' or 'raise', not {failures!r}")
    for name, value, least in (("min_workers", min_workers, 0), ("max_workers", max_workers, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise UsageError(f"{name} must be a whole number of at least {least}, not {value!r}")
    if min_workers > max_workers:
        raise UsageError(f"min_workers ({min_workers}) must not be more than max_workers ({max_workers})")
    check_required(require, isolation)
    for name, given in seconds.items():
        check_seconds(name, given)
    if sleep_after is not None:
        check_seconds("sleep_after", sleep_after)
        if not has_journal:
            raise UsageError('sleep_after needs a journal, from which a Repl is restored: add journal="state.db"')
    if not isinstance(recover, bool):
        check_callbacks(recover=recover)
    if recover and not has_journal:
        raise UsageError('recover needs a journal, whose runs it continues: add journal="state.db"')
    if cluster is not None and isolation != "process":
        raise UsageError(f"on a cluster, isolation must be 'process', not {isolation!r}")
    if metrics is not None and not hasattr(metrics, "watch"):
        raise UsageError(f"metrics must be a Metrics value, not {metrics!r}")
    check_mapping("context", {} if context is None else context)
    check_mapping("globals", {} if globals is None else globals)


def _check_language(language: Any, features: Any) -> None:
    spoken = language_named(language)
    known = spoken.features
    if spoken.extra:
        from importlib.util import find_spec

        if find_spec(spoken.packages[0]) is None:
            raise MissingExtra(spoken.packages[0].replace("_", "-"), spoken.extra, f"Sandbox(language={language!r})")
    if features and not known:
        raise UsageError(f"the language '{language}' has no features to open")
    if isinstance(features, str) or not isinstance(features, Collection) or not set(features) <= set(known):
        raise UsageError(f"lua_features must be a set of {sorted(known)}, not {features!r}")


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


def open_parts(
    settings: Settings,
    services: Services,
    isolation: Any,
    *,
    audit: Any,
    journal: Any,
    durability: Any,
    journal_wait: float,
    cluster: str | None,
    node_timeout: float,
    min_workers: int,
    max_workers: int,
    require: tuple[str, ...],
) -> tuple[Journal | None, ProcessSource | None]:
    """Open the trail, the journal and the pool of a Sandbox: what a later one's failure closes again.

    The journal, and the zygote where workers are processes of this machine.
    """
    kept: Journal | None = None
    with ExitStack() as opened:
        services.records.sink = sink = open_sink(audit)
        if sink is not None and sink is not audit:
            opened.callback(sink.close)
        if journal is not None:
            from moonbox.durable.store import open_journal  # loads SQLite

            kept = open_journal(journal, durability=durability, wait=journal_wait)
            if kept is not journal:
                opened.callback(kept.close)
        if cluster is not None:
            from moonbox.cluster.membership import Membership

            services.cluster = Membership(cluster, node_timeout)
        source, zygote = open_source(isolation, settings, services.cluster)
        services.pool = pool = Pool(source, spares=min_workers, most=max_workers, require=require)
        if require:
            opened.callback(pool.close)
            pool.prime()  # raises where the jail lacks a layer
        opened.pop_all()
    return kept, zygote


def open_source(
    isolation: Any, settings: Settings, cluster: Membership | None
) -> tuple[WorkerSource, ProcessSource | None]:
    """Where workers come from; the second is the same where it is a zygote of this machine."""
    config = settings.config_for_workers()
    if cluster is not None:
        from moonbox.cluster.source import ClusterSource

        return ClusterSource(cluster, config), None
    if isolation == "process":
        processes = ProcessSource(config)
        return processes, processes
    if isolation == "inline":
        from moonbox.worker.inline import InlineSource

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
