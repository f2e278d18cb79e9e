"""The expenses story: two thousand items, one number."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokens.stories.story import Story

if TYPE_CHECKING:
    from moonbox import Tool

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def _example() -> Any:
    spec = importlib.util.spec_from_file_location("expenses_example", EXAMPLES / "demo.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up by name
    spec.loader.exec_module(module)
    return module


def _answer(results: list[Any]) -> float:
    items = (item for result in results for item in result)
    cents: int = sum(item["cents"] for item in items if item["category"] == "travel" and item["date"] < "2026-04-01")
    return cents / 100


def _tool() -> Tool:
    found: Tool = _example().get_expenses
    return found


STORY = Story(
    name="expenses",
    title="expenses: 20 employees, 2,000 items, one sum",
    tools=(_tool(),),
    question="What did the team (employees 1 to 20) spend on travel in the first quarter of 2026?",
    calls=tuple(("get_expenses", {"employee_id": number}) for number in range(1, 21)),
    answer=_answer,
    reply="The team spent {:,.2f} on travel in the first quarter.".format,
    script=EXAMPLES / "expenses.lua",
)
