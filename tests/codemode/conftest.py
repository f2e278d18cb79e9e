"""A Sandbox with tools of every kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from moonbox import CodeMode, Sandbox, Tool, tool

if TYPE_CHECKING:
    from collections.abc import Iterator


@tool
def add(a: int, b: int = 0) -> int:
    """Add two numbers. The rest of this is not shown."""
    return a + b


@tool(hints={"destructive": True})
def rm(path: str) -> str:
    """Remove a file."""
    return f"removed {path}"


@tool(policy="approve")
def pay(amount: float) -> str:
    """Pay someone."""
    return f"paid {amount}"


def of_github(name: str, **more: object) -> Tool:
    return Tool.from_schema(name=name, namespace="github", call=lambda args: name, parameters={}, **more)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def box() -> Iterator[Sandbox]:
    tools = [add, rm, pay, of_github("list_repos"), of_github("delete_repo", hints={"destructive": True})]
    with Sandbox(tools, approve=lambda call: True) as box:
        yield box


@pytest.fixture
def mode(box: Sandbox) -> Iterator[CodeMode]:
    with CodeMode(box) as mode:
        yield mode
