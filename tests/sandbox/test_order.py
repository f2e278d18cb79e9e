"""The order of keys: the same in every process, whatever the seed of Lua's hash."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Sandbox, Tool
from tests.long import LONG
from tests.script_cases import Boxes, read_case

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "scripts" / "lua"
NOT_ALIKE = {"limits", "os", "parallel"}
"""What depends on time, on the memory of the process, or on which of several threads is first."""


def reports(isolation: str) -> Iterator[str]:
    """What comes of every script, with the keys of records in the order in which they came."""
    boxes = Boxes()
    for path in sorted(CORPUS.glob("*.lua")):
        case = read_case(path)
        if path.name.split("__")[0] in NOT_ALIKE or isolation not in case.isolations:
            continue
        with boxes.repl(case, isolation) as repl:
            for step in case.steps:
                run = repl.run(step.source)
                calls = [(call.tool, call.arguments, call.result) for call in run.calls]
                yield f"{path.stem}: {run.values!r} {run.output!r} {calls!r} {run.error!r} {repl.globals()!r}"
    boxes.close()


def fresh_process(isolation: str) -> list[str]:
    program = f"from tests.sandbox.test_order import reports\nfor text in reports({isolation!r}): print(text)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("isolation", ["process", "inline"] if LONG else ["process"])
def test_fresh_processes_agree_byte_for_byte(isolation: str) -> None:
    first = fresh_process(isolation)
    assert len(first) > 300
    for _ in range(2 if LONG else 1):
        assert fresh_process(isolation) == first


RECORD = "{ zeta = 1, beta = { y = 1, x = 2, w = {} }, alpha = 3, [7] = 4, [-7] = 5 }"


@pytest.mark.parametrize("isolation", ["process", "inline"])
@pytest.mark.parametrize("limits", [Limits(), Limits(max_operations=100_000)], ids=["free", "counted"])
def test_values_and_arguments_have_their_keys_in_order(isolation: Any, limits: Limits) -> None:
    seen: list[dict[str, Any]] = []
    keep = Tool.from_schema(name="keep", description="", parameters={"type": "object"}, call=seen.append)
    with Sandbox([keep], isolation=isolation, limits=limits) as box, box.repl() as repl:
        run = repl.run(f"tools.keep{{ c = 1, b = json.null, a = {RECORD} }} return {RECORD}")
    record = {-7: 5, 7: 4, "alpha": 3, "beta": {"w": {}, "x": 2, "y": 1}, "zeta": 1}
    assert repr(run.unwrap()) == repr(record)
    assert list(seen[0]) == ["a", "b", "c"]
    assert json.dumps(seen[0]["a"]) == json.dumps(record)


def test_operations_do_not_depend_on_the_isolation() -> None:
    source = "for k in pairs{c=1,b=2,a=3,[9]=1} do end for k in next,{1,2,x=1,b=2} do end return json.encode{b=1,a=2}"
    counts = set()
    for isolation in ("process", "inline"):
        with Sandbox(isolation=isolation, limits=Limits(max_operations=10_000_000)) as box, box.repl() as repl:
            counts.add(repl.run(f"for i = 1, 1000 do (function() {source} end)() end").usage.operations)
    assert len(counts) == 1
