"""Conformance: the reference's cases against this implementation, as a table of results for each area.

Run it as a script: python tests/languages/rhai/conformance.py [-v] [area ...]
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

if not __package__:
    sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.languages.rhai.machine import Machine, NoScript

CASES = Path(__file__).parents[4] / "shared" / "rhai" / "cases.json"
WHY_SKIPPED = "the reference's cases are not here (../shared/rhai/cases.json)"
_MOST_OPERATIONS = 50_000_000
_OF_THE_PARSER = ("max_string_size", "max_array_size", "max_map_size", "max_functions", "max_variables")


@dataclass
class Result:
    """One case: whether it passed, and what was wanted and found if it did not."""

    case: dict[str, Any]
    passed: bool
    wanted: str = ""
    found: str = ""
    operations: int | None = None

    @property
    def area(self) -> str:
        return str(self.case["id"]).partition(":")[0]


def load_cases() -> list[dict[str, Any]] | None:
    """The cases, or None where the file is absent."""
    return json.loads(CASES.read_text(encoding="utf-8")) if CASES.exists() else None


def check(case: dict[str, Any]) -> Result:
    """Run one case."""
    wanted = _wanted(case)
    try:
        found, operations = _found(case)
    except NoScript as error:
        found, operations = {"error": error.text}, 0
    wanted = {key: value for key, value in wanted.items() if key in found or key == "error"}
    return Result(case, wanted == found, repr(wanted), repr(found), operations)


def _wanted(case: dict[str, Any]) -> dict[str, Any]:
    wanted: dict[str, Any] = {"prints": case.get("prints", [])}
    if case["ok"]:
        wanted |= {"type": case["type"], "display": case["display"], "debug": case["debug"]}
    else:
        wanted["error"] = case["message"]
    return wanted


def _found(case: dict[str, Any]) -> tuple[dict[str, Any], int]:
    method = case.get("method", "eval")
    limits = {name: value[0] if len(value) == 1 else value for name, value in case.get("limits", {}).items()}
    names = {"max_string_size": "max_string", "max_array_size": "max_array", "max_map_size": "max_map"}
    parsed = {names.get(key, key): value for key, value in limits.items() if key in _OF_THE_PARSER}
    depths = limits.get("max_expr_depths", (64, 32))
    parse_limits = parsed | {"expr_depth": depths[0], "function_expr_depth": depths[1]}
    if method.startswith("compile"):
        _machine(()).check(case["script"], parse_limits, single=method == "compile_expression")
        return {}, 0
    run_limits = {"max_operations": limits.get("max_operations", _MOST_OPERATIONS)}
    run_limits |= {name: limits[key] for key, name in names.items() if key in limits}
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


def main(arguments: list[str]) -> int:
    cases = load_cases()
    if cases is None:
        print(f"skipped: {WHY_SKIPPED}")
        return 0
    verbose = "-v" in arguments
    areas = [argument for argument in arguments if argument != "-v"]
    results = [check(case) for case in cases if not areas or any(area in case["id"] for area in areas)]
    table: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        table[result.area].append(result)
        if verbose and not result.passed:
            print(f"--- {result.case['id']}\n{result.case['script'].strip()}")
            print(f"  wanted {result.wanted}\n  found  {result.found}")
    print(f"{'area':32} {'all':>11} {'core':>11}")
    for area, rows in table.items():
        print(f"{area:32} {_share(rows)} {_share([row for row in rows if row.case['core']])}")
    core = [result for result in results if result.case["core"]]
    print(f"{'together':32} {_share(results)} {_share(core)}")
    for name, rows in (("all", results), ("core", core)):
        print(f"{name}: {100 * sum(row.passed for row in rows) / max(len(rows), 1):.1f} %")
    ran = [row for row in results if row.passed and row.operations is not None and row.case["ops"]]
    exact = sum(row.operations == row.case["ops"] for row in ran)
    near = sum(abs((row.operations or 0) - row.case["ops"]) <= max(3, row.case["ops"] * 0.1) for row in ran)
    print(f"operations: {exact} of {len(ran)} exact, {near} within a tenth")
    return 0


def _share(rows: list[Result]) -> str:
    return f"{sum(row.passed for row in rows):5d}/{len(rows):5d}" if rows else f"{'':11}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
