"""A short, seeded round of the fuzzing of cost, in counted work; and that the fuzzing finds what it is for."""

from __future__ import annotations

import pytest

from tests.costs.fuzz import attempt
from tests.costs.inputs import text
from tests.costs.targets import Target, targets

TARGETS = targets()


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_work_and_memory_grow_no_faster_than_the_input(target: Target) -> None:
    assert attempt(target, len(target.name), 500) is None


def _quadratic_calls(item: str) -> None:
    for _ in range(len(item) ** 2 // 2_000):
        len(item)


def _quadratic_memory(item: str) -> list[str]:
    return [item[place:] for place in range(0, len(item), 16)]


@pytest.mark.parametrize("work", [_quadratic_calls, _quadratic_memory])
def test_what_grows_too_fast_is_found(work: object) -> None:
    target = Target("quadratic", work, text)  # type: ignore[arg-type]
    assert attempt(target, 1, 2_000) is not None
