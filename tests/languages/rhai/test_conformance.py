"""Conformance: what the reference implementation did with its own cases, where these are beside the checkout."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from .machine import Machine, NoScript

_CASES = Path(__file__).parents[4] / "shared" / "rhai" / "cases.json"
# What does not pass uses eval (refused), shows the inner name of a closure, or depends on a flaw of one release.
_FEWEST, _FEWEST_CORE, _FEWEST_EXACT = 721, 640, 550
_MOST_OPERATIONS = 50_000_000
_OF_THE_PARSER = ("max_string_size", "max_array_size", "max_map_size", "max_functions", "max_variables")
_NAMES = {"max_string_size": "max_string", "max_array_size": "max_array", "max_map_size": "max_map"}


@pytest.mark.skipif(not _CASES.exists(), reason="the reference's cases are not beside this checkout")
def test_cases_of_the_reference() -> None:
    passed: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    exact = 0
    for case in json.loads(_CASES.read_text(encoding="utf-8")):
        wanted = _wanted(case)
        try:
            found, operations = _found(case)
        except NoScript as error:
            found, operations = {"error": error.text}, 0
        fits = {key: value for key, value in wanted.items() if key in found or key == "error"} == found
        (passed if fits else failed).append(case)
        exact += bool(fits and case["ops"] and operations == case["ops"])
    assert len(passed) >= _FEWEST, [case["id"] for case in failed]
    assert sum(case["core"] for case in passed) >= _FEWEST_CORE
    assert exact >= _FEWEST_EXACT


def _wanted(case: dict[str, Any]) -> dict[str, Any]:
    prints = {"prints": case.get("prints", [])}
    if not case["ok"]:
        return prints | {"error": case["message"]}
    return prints | {"type": case["type"], "display": case["display"], "debug": case["debug"]}


def _found(case: dict[str, Any]) -> tuple[dict[str, Any], int]:
    method = case.get("method", "eval")
    limits = {name: value[0] if len(value) == 1 else value for name, value in case.get("limits", {}).items()}
    parsed = {_NAMES.get(key, key): value for key, value in limits.items() if key in _OF_THE_PARSER}
    depths = limits.get("max_expr_depths", (64, 32))
    parse_limits = parsed | {"expr_depth": depths[0], "function_expr_depth": depths[1]}
    if method.startswith("compile"):
        _machine(()).check(case["script"], parse_limits, single=method == "compile_expression")
        return {}, 0
    run_limits = {"max_operations": limits.get("max_operations", _MOST_OPERATIONS)}
    run_limits |= {name: limits[key] for key, name in _NAMES.items() if key in limits}
    machine = _machine(tuple(run_limits.items()))
    machine.state = machine.runtime.new_state()
    outcome = machine.run(case["script"], parse_limits)
    found: dict[str, Any] = {"prints": outcome.prints}
    if outcome.kind != "value":
        found["error"] = outcome.text
    elif method != "run":
        found |= {"type": outcome.type, "display": outcome.display, "debug": outcome.debug}
    return found, outcome.operations


@lru_cache(maxsize=8)
def _machine(limits: tuple[tuple[str, int], ...]) -> Machine:
    return Machine(dict(limits))
