"""A short, seeded round of the fuzzing of cost, in counted work; and that the fuzzing finds what it is for.

Every third target has its turn; all of them have in a long run.
"""

from __future__ import annotations

from typing import Any

import pytest

from moonbox.schema.problems import MOST_PROBLEMS, find_problems
from moonbox.schema.tree import SchemaNode
from tests.costs.fuzz import attempt
from tests.costs.inputs import text
from tests.costs.targets import Target, targets
from tests.long import LONG

TARGETS = targets()[:: 1 if LONG else 3]


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_work_and_memory_grow_no_faster_than_the_input(target: Target) -> None:
    assert attempt(target, len(target.name), 500) is None


def _quadratic_calls(item: str) -> None:
    for _ in range(len(item) ** 2 // 500):
        len(item)


def _quadratic_memory(item: str) -> list[str]:
    return [item[place:] for place in range(0, len(item), 16)]


@pytest.mark.parametrize("work", [_quadratic_calls, _quadratic_memory])
def test_what_grows_too_fast_is_found(work: object) -> None:
    target = Target("quadratic", work, text)  # type: ignore[arg-type]
    assert attempt(target, 1, 500) is not None


class _Counted(dict[str, int]):
    """Knows how many of its items were looked at."""

    looked_at = 0

    def items(self) -> Any:
        for item in super().items():
            self.looked_at += 1
            yield item


def test_arguments_with_many_unknown_names_are_not_explained_to_the_end() -> None:
    arguments = _Counted({f"unknown{number}": 1 for number in range(5_000)})
    document = SchemaNode({"type": "object", "properties": {"a": {}}, "additionalProperties": False})
    problems = find_problems(document, arguments, lambda rule, part: True)
    assert len(problems) == MOST_PROBLEMS + 1
    assert arguments.looked_at <= MOST_PROBLEMS + 2
