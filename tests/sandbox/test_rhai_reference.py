"""Rhai through the public API against what the reference implementation did, where its cases are at hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moonbox import Limits, Run, Sandbox

CASES = Path(__file__).parents[2].parent / "shared" / "rhai" / "cases.json"
LEAST_CORE, LEAST_ALL = 0.98, 0.97
GENEROUS = Limits(timeout=20, max_array=100_000, max_memory=256 * 1024 * 1024)
LIMITS = {"max_operations": "max_operations", "max_string_size": "max_string", "max_array_size": "max_array"}


def _as_expected(case: dict[str, Any], run: Run) -> bool:
    if not case["ok"]:
        return run.error is not None and _first_line(case["message"]) == _first_line(run.error.message)
    if run.error is not None:
        return False
    if [*case.get("prints", [])] and run.output.splitlines() != "\n".join(case["prints"]).splitlines():
        return False
    if case.get("method", "eval") != "eval":
        return True
    value = run.value
    match case["type"]:
        case "i64":
            return type(value) is int and str(value) == case["display"]
        case "f64":
            return type(value) is float and value == float(case["display"])
        case "bool":
            return value is (case["display"] == "true")
        case "string" | "char":
            return value == case["display"]
        case "()":
            return value is None
        case "array":
            return isinstance(value, list)
        case "map":
            return isinstance(value, dict)
    return True


def _first_line(text: str) -> str:
    return text.splitlines()[0].removeprefix("Syntax error: ")


@pytest.mark.skipif(not CASES.exists(), reason="the reference cases are not beside this checkout")
@pytest.mark.timeout(300)
def test_the_reference_cases_pass_through_the_public_api() -> None:
    cases = json.loads(CASES.read_text(encoding="utf-8"))
    passed: dict[str, bool] = {}
    with Sandbox(language="rhai", limits=GENEROUS, min_workers=4, check=False) as box:
        for case in cases:
            limits = case.get("limits") or {}
            if case.get("method", "eval").startswith("compile") and (case["ok"] or limits):
                continue  # a run does more than compile, and sizes are looked at when it runs
            known = {LIMITS[key]: value[0] for key, value in limits.items() if key in LIMITS}
            if set(limits) - set(LIMITS) or known.get("max_string", 64) < 64:
                continue  # limits that moonbox does not have, or not so small
            passed[case["id"]] = _as_expected(case, box.run(case["script"], limits=replace(GENEROUS, **known)))
    core = [case["id"] for case in cases if case.get("core") and case["id"] in passed]
    failed = sorted(name for name, fine in passed.items() if not fine)
    assert sum(passed[name] for name in core) / len(core) >= LEAST_CORE, failed
    assert sum(passed.values()) / len(passed) >= LEAST_ALL, failed
    assert len(passed) > 650


def test_operations_are_those_of_the_run_also_when_it_is_stopped() -> None:
    with Sandbox(language="rhai") as box, box.repl() as repl:
        first = repl.run("let x = 1; x + 1")
        stopped = repl.run("loop { x += 1; }", limits=Limits(timeout=0.5))
        assert stopped.error is not None
        assert stopped.error.limit == "time"
        assert stopped.usage.operations is not None
        assert stopped.usage.operations > 1000
        assert repl.run("let x = 1; x + 1").usage.operations == first.usage.operations
