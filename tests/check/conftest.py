"""A toolbox whose tools say what they return, and one that does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from moonbox import Tool, Toolbox, tool
from moonbox.check.checker import Checker
from moonbox.check.tools import ScriptTools
from moonbox.languages.registry import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.findings import Finding

    Find = Callable[..., tuple[Finding, ...]]


class Item(TypedDict):
    amount: float
    category: str
    status: Literal["open", "closed"]


class Page(TypedDict):
    items: list[Item]
    total: int


class Row(BaseModel, extra="forbid"):
    id: int


class Closed(BaseModel, extra="forbid"):
    name: str
    items: list[Row]


class Animal(BaseModel):
    name: str


class Dog(Animal):
    breed: str


def shop() -> Toolbox:
    @tool
    def get_expenses(employee_id: int, limit: int = 10) -> list[Item]:
        """Expenses of one employee."""
        return []

    @tool
    def search(query: str) -> Page:
        """Search."""
        return {"items": [], "total": 0}

    @tool(policy="direct")
    def wipe() -> str:
        """For the model itself."""
        return "done"

    @tool
    def closed_result() -> Closed:
        """A result that has no other fields."""
        return Closed(name="", items=[])

    @tool
    def pet() -> Animal:
        """A result that may be of a subclass."""
        return Dog(name="Rex", breed="spitz")

    @tool
    def hand_over(to: str | None) -> str:
        """Take null as an argument."""
        return to or ""

    @tool
    def totals() -> dict[str, float]:
        """A map."""
        return {}

    unknown = Tool.from_schema(name="anything", description="", parameters={"type": "object"}, call=lambda _: None)
    open_result = Tool.from_schema(
        name="open_result",
        description="",
        parameters={},
        call=lambda _: {},
        returns={"type": "object", "properties": {"id": {"type": "integer"}}, "additionalProperties": True},
    )
    nothing = Tool.from_schema(name="nothing", call=lambda _: None, returns={"type": "null"})
    box = Toolbox([get_expenses, search, wipe, hand_over, totals, unknown, open_result, closed_result, pet, nothing])
    box.learned.learn("anything", {"id": 1, "rows": [{"name": "x"}]})
    return box


@pytest.fixture(scope="session")
def find() -> Find:
    """The findings of a script: `find(source, language, names)`."""
    box = shop()
    views = {name: ScriptTools(box, spoken) for name, spoken in LANGUAGES.items()}

    def findings(source: str, language: str = "lua", names: Any = frozenset()) -> tuple[Finding, ...]:
        return Checker(LANGUAGES[language]).check(source, views[language], frozenset(names))

    return findings
