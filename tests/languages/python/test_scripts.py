"""Python scripts, tested by data: every file of tests/scripts/python and of tests/attacks/python."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.script_cases import Boxes, read_case, read_cases

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS = Path(__file__).parents[2]
SCRIPTS = [pytest.param(*case, id=f"{case[0].stem}-{case[1]}") for case in read_cases(TESTS / "scripts/python", ".py")]
ATTACKS = [pytest.param(path, id=path.stem) for path in sorted((TESTS / "attacks/python").glob("*__*.py"))]
AFTERWARDS = """
import statistics
def twice(x):
    return add(x, x)
print(len([1, {"a": None}]))
[add(1, 2), "x".upper(), f"{1:>3}", statistics.mean([1, 3]), sorted({"b": 1, "a": 2})]
"""


@pytest.fixture(scope="module")
def boxes() -> Iterator[Boxes]:
    boxes = Boxes()
    yield boxes
    boxes.close()


@pytest.mark.parametrize(("path", "isolation"), SCRIPTS)
def test_script(path: Path, isolation: str, boxes: Boxes) -> None:
    case = read_case(path)
    with boxes.repl(case, isolation) as repl:
        case.play(repl)


@pytest.mark.parametrize("path", ATTACKS)
def test_attack(path: Path, boxes: Boxes) -> None:
    case = read_case(path)
    assert case.attack, "the head must say what the attack tries"
    with boxes.repl(case, "process") as repl:
        assert repl.run("kept = 'kept'").ok
        lost = any(run.state_lost for run in case.play(repl))
        after = repl.run(AFTERWARDS, limits=replace(case.limits, max_output=1000))
        assert (after.error, after.output) == (None, "2\n")
        assert after.value == [3, "X", "  1", 2, ["a", "b"]]
        assert repl.run("kept", limits=case.limits).ok is not lost


def test_there_are_many() -> None:
    assert len(SCRIPTS) >= 100 and len(ATTACKS) >= 40
