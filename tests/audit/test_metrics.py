"""Metrics of runs and calls, as Prometheus and OpenTelemetry read them."""

from __future__ import annotations

from typing import Any

import pytest

from moonbox import Limits, Sandbox, tool
from moonbox.audit.metrics import Metrics

pytest.importorskip("prometheus_client")


@tool
def add(a: int, b: int) -> int:
    """The sum."""
    if a < 0:
        raise ValueError("negative")
    return a + b


def exercise(box: Sandbox) -> None:
    with box.repl() as repl:
        repl.run("for i = 1, 3 do tools.add{a = i, b = i} end").unwrap()
        repl.run("tools.add{a = -1, b = 0}")
        repl.run("while true do end", limits=Limits(timeout=0.2))
        box.call("add", {"a": 1, "b": 2})


def test_prometheus_reads_what_runs_did() -> None:
    metrics = Metrics()
    with Sandbox([add], metrics=metrics) as box:
        exercise(box)
        lines = set(metrics.text().decode().splitlines())
        expected = [
            'moonbox_runs_total{language="lua",outcome="ok"} 1.0',
            'moonbox_runs_total{language="lua",outcome="tool"} 1.0',
            'moonbox_runs_total{language="lua",outcome="limit"} 1.0',
            'moonbox_runs_total{language="direct",outcome="ok"} 1.0',
            'moonbox_calls_total{status="ok",tool="add"} 4.0',
            'moonbox_calls_total{status="error",tool="add"} 1.0',
            'moonbox_limits_hit_total{limit="time"} 1.0',
            'moonbox_call_duration_seconds_count{tool="add"} 5.0',
            'moonbox_workers{state="waiting"} 0.0',
        ]
        assert [line for line in expected if line not in lines] == []
    assert not any(line.startswith("moonbox_workers{") for line in metrics.text().decode().splitlines())


def test_open_telemetry_gets_the_same() -> None:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    with Sandbox([add], metrics=Metrics(meter_provider=MeterProvider([reader]))) as box:
        exercise(box)
        data = reader.get_metrics_data()
    assert data is not None
    found = {each.name: each for each in data.resource_metrics[0].scope_metrics[0].metrics}
    assert {"moonbox_runs", "moonbox_calls", "moonbox_run_duration_seconds", "moonbox_workers"} <= found.keys()
    counted: Any = found["moonbox_calls"].data.data_points
    points = {tuple(sorted(point.attributes.items())): point.value for point in counted}
    assert points == {(("status", "ok"), ("tool", "add")): 4, (("status", "error"), ("tool", "add")): 1}
