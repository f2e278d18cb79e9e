"""Metrics of runs, calls and workers, for OpenTelemetry and in the text form of Prometheus."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from moonbox._version import __version__
from moonbox.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from opentelemetry.metrics import MeterProvider

    from moonbox.audit.records import Run

    Labels = Mapping[str, str]
    Readings = Callable[[], Iterable[tuple[Labels, float]]]

COUNTERS = {
    "runs": "Runs that have ended",
    "calls": "Calls of tools that have ended",
    "limits_hit": "Runs that a limit has ended",
    "workers_killed": "Workers that were lost during a run, or had to be killed",
    "runs_moved": "Runs that went on elsewhere because the machine of their worker failed",
}
HISTOGRAMS = {
    "run_duration_seconds": ("Seconds that a run took", (0.001, 0.01, 0.1, 0.5, 1, 5, 30, 120)),
    "call_duration_seconds": ("Seconds that a call took", (0.001, 0.01, 0.1, 0.5, 1, 5, 30, 120)),
    "run_memory_bytes": ("The most memory that a run's script held", tuple(2.0**power for power in range(16, 31, 2))),
}
GAUGES = {
    "workers": "Workers that are in use or spare, and requests that wait for one",
    "repls": "Repls that are open: awake, asleep; and running a script",
    "cluster_room": "Workers that a node of the cluster has room for",
}
_LABELS = {
    "runs": ("language", "outcome"),
    "calls": ("tool", "status"),
    "limits_hit": ("limit",),
    "run_duration_seconds": ("language",),
    "call_duration_seconds": ("tool",),
    "workers": ("state",),
    "repls": ("state",),
    "cluster_room": ("node",),
}
_PREFIX = "moonbox_"


class Metrics:
    """Pass it as `Sandbox(metrics=…)`. `text` is what Prometheus reads. OpenTelemetry gets the same, if installed.

    Labels come from closed sets: languages, outcomes, and the tools that there are. No value of a script is in them.
    """

    def __init__(self, *, meter_provider: MeterProvider | None = None) -> None:
        try:
            import prometheus_client as prometheus
        except ImportError:
            raise MissingExtra("prometheus-client", "metrics", "Metrics") from None
        self._registry = prometheus.CollectorRegistry()
        self._meter = _meter(meter_provider)
        self._lock = threading.Lock()
        self._gauges: dict[str, list[Readings]] = {name: [] for name in GAUGES}
        self._prometheus: dict[str, Any] = {}
        self._otel: dict[str, Any] = {}
        for name, about in COUNTERS.items():
            self._prometheus[name] = prometheus.Counter(
                _PREFIX + name, about, self._labels(name), registry=self._registry
            )
            if self._meter is not None:
                self._otel[name] = self._meter.create_counter(_PREFIX + name, description=about)
        for name, (about, buckets) in HISTOGRAMS.items():
            self._prometheus[name] = prometheus.Histogram(
                _PREFIX + name, about, self._labels(name), registry=self._registry, buckets=buckets
            )
            if self._meter is not None:
                self._otel[name] = self._meter.create_histogram(_PREFIX + name, description=about)
        self._registry.register(self)  # it has `collect`
        if self._meter is not None:
            for name, about in GAUGES.items():
                self._meter.create_observable_gauge(_PREFIX + name, [self._observer(name)], description=about)

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
            tool = call.tool if call.error is None or call.error.code != "not_found" else "unknown"
            self.count("calls", tool=tool, status=call.status)
            self._observe("call_duration_seconds", call.duration, tool=tool)

    def count(self, name: str, **labels: str) -> None:
        """Add one to a counter."""
        counter = self._prometheus[name]
        (counter.labels(**labels) if labels else counter).inc()
        if name in self._otel:
            self._otel[name].add(1, labels)

    def watch(self, name: str, readings: Readings) -> None:
        """Read a gauge from this function, each time when somebody asks."""
        with self._lock:
            self._gauges[name].append(readings)

    def text(self) -> bytes:
        """What Prometheus reads."""
        from prometheus_client import generate_latest

        return generate_latest(self._registry)

    def collect(self) -> Iterable[Any]:
        """The gauges, as prometheus_client asks for them."""
        from prometheus_client.core import GaugeMetricFamily

        for name, about in GAUGES.items():
            family = GaugeMetricFamily(_PREFIX + name, about, labels=self._labels(name))
            for labels, value in self._read(name):
                family.add_metric(list(labels.values()), value)
            yield family

    def _read(self, name: str) -> list[tuple[Labels, float]]:
        with self._lock:
            sources = list(self._gauges[name])
        return [reading for source in sources for reading in source()]

    def _observer(self, name: str) -> Any:
        from opentelemetry.metrics import Observation

        return lambda _: [Observation(value, dict(labels)) for labels, value in self._read(name)]

    def _observe(self, name: str, value: float, **labels: str) -> None:
        histogram = self._prometheus[name]
        (histogram.labels(**labels) if labels else histogram).observe(value)
        if name in self._otel:
            self._otel[name].record(value, labels)

    @staticmethod
    def _labels(name: str) -> tuple[str, ...]:
        return _LABELS.get(name, ())


def _meter(provider: MeterProvider | None) -> Any:
    """None where the package opentelemetry-api is not installed."""
    try:
        from opentelemetry import metrics
    except ImportError:
        return None
    return metrics.get_meter("moonbox", __version__, provider)
