"""Named arguments from every side: from Lua, from Rhai, from `box.call` and from a model's direct call."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from moonbox import CodeMode, Sandbox, tool


class Filter(BaseModel):
    status: str
    customer: int | None = None


@tool
def wipe(where: dict[str, Any], dry_run: bool = False) -> Any:
    """Delete rows."""
    return {"where": where, "dry_run": dry_run}


@tool
def find_orders(filter: Filter, limit: int = 10) -> Any:
    """Find orders."""
    return {"status": filter.status, "limit": limit}


@tool
def total(numbers: list[int], start: int = 0) -> int:
    """Add numbers."""
    return sum(numbers, start)


@tool
def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


TOOLS = [wipe, find_orders, total, add]


def literal(value: Any, language: str) -> str:
    """A JSON value as a script writes it."""
    if isinstance(value, dict):
        pairs = [f"{key} {'=' if language == 'lua' else ':'} {literal(item, language)}" for key, item in value.items()]
        return ("{" if language == "lua" else "#{") + ", ".join(pairs) + "}"
    if isinstance(value, list):
        items = ", ".join(literal(item, language) for item in value)
        return f"{{{items}}}" if language == "lua" else f"[{items}]"
    return json.dumps(value)


def called(caller: str, name: str, arguments: dict[str, Any]) -> tuple[Any, str]:
    """The value or the error of a call from there."""
    with Sandbox(TOOLS, language=caller if caller in ("rhai", "python") else "lua", isolation="inline") as box:
        match caller:
            case "lua":
                run = box.run(f"return tools.{name}({literal(arguments, caller)})")
            case "rhai":
                run = box.run(f"{name}({literal(arguments, caller)})")
            case "python":
                run = box.run(f"{name}(**{arguments!r})")
            case "box.call":
                run = box.call(name, arguments)
            case _:
                with CodeMode(box, mode="never") as mode:
                    reply = mode.reply(name, arguments)
                assert reply.run is not None
                run = reply.run
    return run.value, run.error.message if run.error is not None else ""


CALLERS = ("lua", "rhai", "python", "box.call", "CodeMode")


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize(
    ("name", "arguments", "problems"),
    [
        ("wipe", {"status": "old", "dry_run": True}, ["where: missing, expected object", "status: unknown parameter"]),
        (
            "find_orders",
            {"status": "open", "limit": 3},
            [
                "filter: missing, expected {status: string, customer?: integer|null}",
                "status: unknown parameter; did you mean 'filter.status'?",
            ],
        ),
        ("total", {}, ["numbers: missing, expected integer[]"]),
    ],
)
def test_refused(caller: str, name: str, arguments: dict[str, Any], problems: list[str]) -> None:
    value, error = called(caller, name, arguments)
    assert value is None
    wanted = "\n".join([f"invalid arguments for {name}:", *(f"- {problem}" for problem in problems)])
    assert f"{wanted}\nvalid parameters: " in error


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("wipe", {"where": {"status": "old"}, "dry_run": True}, {"where": {"status": "old"}, "dry_run": True}),
        ("find_orders", {"filter": {"status": "open"}, "limit": 3}, {"status": "open", "limit": 3}),
        ("total", {"numbers": []}, 0),
    ],
)
def test_accepted(caller: str, name: str, arguments: dict[str, Any], expected: Any) -> None:
    assert called(caller, name, arguments) == (expected, "")


@pytest.mark.parametrize(
    ("language", "source", "expected"),
    [
        ("lua", "return tools.wipe({status = 'old'}, true)", {"where": {"status": "old"}, "dry_run": True}),
        ("lua", "return tools.wipe{{status = 'old'}}", {"where": {"status": "old"}, "dry_run": False}),
        ("lua", "return tools.wipe{{status = 'old'}, dry_run = true}", {"where": {"status": "old"}, "dry_run": True}),
        ("lua", "return tools.total({1, 2, 3})", 6),
        ("lua", "return tools.total{1, 2, 3}", 6),
        ("lua", "return tools.total({1, 2}, 10)", 13),
        ("lua", "return tools.add{1, 2}", 3),
        ("rhai", 'wipe(#{status: "old"}, true)', {"where": {"status": "old"}, "dry_run": True}),
        ("rhai", "total([1, 2, 3])", 6),
        ("rhai", "add([1, 2])", 3),
        ("python", "wipe({'status': 'old'}, True)", {"where": {"status": "old"}, "dry_run": True}),
        ("python", "wipe({'status': 'old'}, dry_run=True)", {"where": {"status": "old"}, "dry_run": True}),
        ("python", "total([1, 2, 3])", 6),
        ("python", "add(1, 2)", 3),
    ],
)
def test_positional_tables(language: Any, source: str, expected: Any) -> None:
    with Sandbox(TOOLS, language=language, isolation="inline") as box:
        assert box.run(source).unwrap() == expected


def test_json_callers_have_positions_and_no_shorthand() -> None:
    with Sandbox(TOOLS, isolation="inline") as box:
        assert box.call("add", [1, 2]).value == 3
        assert box.call("total", [[1, 2, 3]]).value == 6
        error = box.call("total", [1, 2, 3]).error
    assert error is not None
    assert "- got 3 positional arguments; total takes at most 2 (numbers, start)\n" in error.message
