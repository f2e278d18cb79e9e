"""The soak, for a few seconds: the tools' own log and the trail agree, whatever went wrong."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

SOAK = Path(__file__).resolve().parents[2] / "benchmarks" / "soak.py"
CALLS, REPLS = 6_000, 12


@pytest.fixture(scope="module")
def soak() -> Any:
    spec = importlib.util.spec_from_file_location("benchmarks_soak", SOAK)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up by name
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(sys.platform == "win32", reason="kills workers with SIGKILL")
def test_every_call_is_in_the_trail_once(soak: Any) -> None:
    figures = soak.Soak(CALLS, REPLS, seed=3, run_timeout=0.3).run()
    assert figures.problems == []
    assert figures.invoked >= CALLS
    assert figures.recorded >= figures.invoked
    assert figures.kills > 0
    assert figures.cancellations > 0
    assert {"ok", "error", "timeout", "in_flight"} <= set(figures.statuses)
    assert {"ok", "crashed", "time"} <= set(figures.runs)


@pytest.mark.parametrize(
    ("log", "calls", "problem"),
    [
        (["a"], [], "a was invoked and is not recorded"),
        (["a", "a"], [("a", "ok", "A", "")], "a was invoked 2 times"),
        (["a"], [("a", "ok", "A", ""), ("a", "in_flight", None, "")], "a is recorded 2 times"),
        ([], [("a", "ok", "A", "")], "a: status ok, result 'A', code '', invoked 0 times"),
        (["a"], [("a", "ok", "B", "")], "a: status ok, result 'B', code '', invoked 1 times"),
        (["a"], [("a", "error", None, "told_to")], "a: status error, result None, code 'told_to', invoked 1 times"),
        (["a"], [("a", "in_flight", "A", "")], "a: status in_flight, result 'A', code '', invoked 1 times"),
    ],
)
def test_the_accounts_show_every_difference(soak: Any, log: list[str], calls: list[Any], problem: str) -> None:
    host, trail = soak.Host(), soak.Trail()
    host.log.extend(log)
    trail.calls.extend(calls)
    assert soak.problems(host, trail) == [problem]


def test_calls_that_never_began_are_no_difference(soak: Any) -> None:
    host, trail = soak.Host(), soak.Trail()
    trail.calls.extend([("a", "cancelled", None, ""), ("b", "in_flight", None, "")])
    assert soak.problems(host, trail) == []
