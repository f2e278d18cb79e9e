"""Metrics of runs, calls and workers, for OpenTelemetry and in the text form of Prometheus."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from moonbox._version import __version__
from moonbox.audit.telemetry import UNKNOWN_TOOL
from moonbox.errors import MissingExtra

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

    from moonbox.audit.records import Run

    Readings = Callable[[], Mapping[str, Mapping[str, float]]]
    """For each gauge its values, by what its label says."""

COUNTERS = {
    "runs": "Runs that have ended",
    "calls": "Calls of tools that have ended",
    "limits_hit": "Runs that a limit has ended",
    "workers_killed": "Workers that were lost during a run, or had to be killed",
    "runs_moved": "Runs that went on elsewhere because the machine of their worker failed",
}
_SECONDS = (0.001, 0.01, 0.1, 0.5, 1, 5, 30, 120)
HISTOGRAMS: dict[str, tuple[str, tuple[float, ...]]] = {
    "run_duration_seconds": ("Seconds that a run took", _SECONDS),
    "call_duration_seconds": ("Seconds that a call took", _SECONDS),
    "run_memory_bytes": ("The most memory that a run's script held", tuple(2.0**power for power in range(16, 31, 2))),
}
GAUGES = {
    "workers": ("state", "Workers that are in use or spare, and requests that wait for one"),
    "repls": ("state", "Repls that are open: awake, asleep; and running a script"),
    "cluster_room": ("node", "Workers that a node of the cluster has room for"),
}
"""Each with the name of its label."""


class Metrics:
    """Pass it as `Sandbox(metrics=…)`. `text` is what Prometheus reads; the meter provider gets the same.

    Labels come from closed sets: languages, outcomes, and the tools that there are. No value of a script is in them.
    """

    def __init__(self, *, meter_provider: MeterProvider | None = None) -> None:
        try:
            from opentelemetry import metrics
            from opentelemetry.exporter.prometheus import PrometheusMetricReader
            from opentelemetry.sdk.metrics import MeterProvider
            from prometheus_client import CollectorRegistry
        except ImportError:
            raise MissingExtra("opentelemetry-exporter-prometheus", "metrics", "Metrics") from None
        self._registry = CollectorRegistry()
        reader = PrometheusMetricReader(True, scope_info_enabled=False, registry=self._registry)
        providers = MeterProvider([reader], shutdown_on_exit=False), meter_provider or metrics.get_meter_provider()
        self._watched: weakref.WeakSet[Readings] = weakref.WeakSet()
        self._histograms: dict[str, list[Any]] = {name: [] for name in HISTOGRAMS}
        self._lock = threading.Lock()
        self._counted: dict[str, dict[tuple[str, ...], tuple[int, dict[str, str]]]] = {name: {} for name in COUNTERS}
        for meter in (provider.get_meter("moonbox", __version__) for provider in providers):
            for name, about in COUNTERS.items():
                meter.create_observable_counter(f"moonbox_{name}", [self._total(name)], description=about)
            for name, (about, bounds) in HISTOGRAMS.items():
                histogram = meter.create_histogram(
                    f"moonbox_{name}", description=about, explicit_bucket_boundaries_advisory=bounds
                )
                self._histograms[name].append(histogram)
            for name, (label, about) in GAUGES.items():
                meter.create_observable_gauge(f"moonbox_{name}", [self._reader(name, label)], description=about)

    def record(self, run: Run) -> None:
        """A run has ended."""
        error, usage = run.error, run.usage
        self.count("runs", language=run.language, outcome="ok" if error is None else error.kind)
        self._observe("run_duration_seconds", usage.wall, language=run.language)
        if usage.peak_memory:
            self._observe("run_memory_bytes", usage.peak_memory)
        if error is not None and error.limit:
            self.count("limits_hit", limit=error.limit)
        if error is not None and run.state_lost:
            self.count("workers_killed")
        for call in run.calls:
            tool = call.tool if call.error is None or call.error.code != "not_found" else UNKNOWN_TOOL
            self.count("calls", tool=tool, status=call.status)
            self._observe("call_duration_seconds", call.duration, tool=tool)

    def count(self, name: str, **labels: str) -> None:
        """Add one to a counter. Its instruments read it when the metrics are collected."""
        counted, key = self._counted[name], tuple(labels.values())
        with self._lock:
            counted[key] = counted.get(key, (0, labels))[0] + 1, labels

    def watch(self, readings: Readings) -> None:
        """Read its gauges whenever the metrics are collected, as long as it lives."""
        self._watched.add(readings)

    def text(self) -> bytes:
        """What Prometheus reads."""
        from prometheus_client import generate_latest

        return generate_latest(self._registry)

    def _observe(self, name: str, value: float, **labels: str) -> None:
        for histogram in self._histograms[name]:
            histogram.record(value, labels)

    def _total(self, name: str) -> Any:
        from opentelemetry.metrics import Observation

        return lambda _: [Observation(total, labels) for total, labels in list(self._counted[name].values())]

    def _reader(self, name: str, label: str) -> Any:
        from opentelemetry.metrics import Observation

        def observe(_: object) -> Iterable[Observation]:
            readings = [read().get(name, {}) for read in list(self._watched)]
            return [Observation(value, {label: of}) for each in readings for of, value in each.items()]

        return observe
