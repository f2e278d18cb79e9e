"""The slips: well-formed, many, and none with a wrong answer that a check can prevent."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import slips  # found only from here on
from slip_worlds import TASKS

from tests.long import LONG


def test_there_are_several_hundred() -> None:
    found = [slip for language in ("lua", "rhai") for slip in slips.read_slips(language)]
    assert len(found) >= 400
    assert {slip.task for slip in found} == set(TASKS)
    names = Counter((slip.language, slip.task, slip.name) for slip in found)
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("language", ["lua", "rhai"])
def test_no_wrong_answer_without_a_word(language: str) -> None:
    bench = slips.Bench()
    wrong = [
        f"{slip.task}/{slip.name}"
        for slip in slips.read_slips(language)[:: 1 if LONG else 5]
        if bench.outcome(slip)[0] == "wrong" and slip.allowed != "wrong"
    ]
    assert wrong == []
