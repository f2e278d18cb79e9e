"""Tools and loopback models that the adapters' tests share."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from moonbox import CodeMode, Sandbox, tool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.adapters.frameworks import Inside

pytest.register_assert_rewrite("tests.adapters.conformance", "tests.adapters.framework_tests")


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def get_expenses(employee_id: int) -> list[dict[str, float | str]]:
    """Expense items of one employee."""
    return [{"item": "train", "amount": 10.0 * employee_id}, {"item": "hotel", "amount": 100.0}]


@tool(hints={"destructive": True})
def delete_file(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


@tool(policy="direct")
def broken() -> None:
    """Fail always."""
    raise RuntimeError("out of luck")


_both = threading.Barrier(2)


@tool(policy="direct")
def meet(name: str) -> str:
    """Return when another call of this tool is under way too."""
    _both.wait(timeout=50)
    return f"{name} met"


@pytest.fixture(scope="session")
def box() -> Iterator[Sandbox]:
    with Sandbox([add, get_expenses, delete_file, broken, meet]) as box:
        yield box


@pytest.fixture
def mode(box: Sandbox) -> Iterator[CodeMode]:
    with CodeMode(box) as mode:
        yield mode


@pytest.fixture(scope="module")
def inside(request: pytest.FixtureRequest) -> Iterator[Inside]:
    """The environment of the framework that the file of tests is called after."""
    from tests.adapters.frameworks import Inside

    environment = Inside(request.module.__name__.rpartition(".test_")[2])
    yield environment
    environment.close()
