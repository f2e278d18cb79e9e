"""Attacks by scripts: each file tries one thing, must see what its head says, and must not spoil the next run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.long import LONG
from tests.script_cases import Boxes, read_case, read_cases

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent
AFTERWARDS = """
print(kept, json.encode({ 1, { a = json.null } }))
local sum = 0
for _, v in ipairs(parallel{ function() return 1 end, function() return 2 end }) do sum = sum + v end
local printed = docs["print"] ~= nil
return sum, ("x"):upper(), string.format("%s %d", "a", 1), tostring(json.null), printed, pcall(error, "e", 0)
"""


@pytest.fixture(scope="module")
def boxes() -> Iterator[Boxes]:
    boxes = Boxes()
    yield boxes
    boxes.close()


def cases() -> list[Any]:
    """Every attack on a worker; of the bombs every sixth inline too, and all in a long run."""
    found = read_cases(FOLDER)
    bombs = [case for case in found if case[1] == "inline" and case[0].stem.startswith("bomb")]
    left_out = set() if LONG else set(bombs) - set(bombs[::6])
    return [pytest.param(*case, id=f"{case[0].stem}-{case[1]}") for case in found if case not in left_out]


@pytest.mark.parametrize(("path", "isolation"), cases())
def test_attack(path: Path, isolation: str, boxes: Boxes) -> None:
    case = read_case(path)
    assert case.attack, "the head must say what the attack tries"
    with boxes.repl(case, isolation) as repl:
        assert repl.run("kept = 'kept'", limits=replace(case.limits, timeout=60)).ok  # its worker may still be starting
        lost = any(run.state_lost for run in case.play(repl))
        after = repl.run(AFTERWARDS, limits=replace(case.limits, max_output=1000, timeout=20))
        assert after.error is None
        assert after.output == ("nil" if lost else "kept") + '\t[1,{"a":null}]\n'
        assert after.values == (3, "X", "a 1", "null", True, False, "e")


def test_there_are_many() -> None:
    assert len(list(FOLDER.glob("*__*.lua"))) == len(list(FOLDER.glob("*.lua"))) >= 100
