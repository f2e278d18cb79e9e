"""Scripts in files: each says at its head what must come of it.

A file is one or more steps in one state; a line `// next run` begins another. A step starts with comments:

    // value: [1, "a"]               the value, exported, as JSON
    // debug: ['a', 1.0]             the value as Rhai's debug shows it
    // prints: "a\\n"                 what is printed, as a JSON string
    // error: runtime "text"         the kind of error and its whole text, with position and calls, as a JSON string
    // hint: text                    the hint of the error
    // calls: add fail               the tools that were called, in order
    // operations: 10                how many operations it took
    // limits: {"max_string": 100}   for the whole file

What is not named must not happen; a value that is not () must be named.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .machine import Later, Machine, NoScript, Stopped, ToolFailed

if TYPE_CHECKING:
    from collections.abc import Callable

_FOLDER = Path(__file__).parents[2] / "scripts" / "rhai"
_FILES = sorted(_FOLDER.glob("*.rhai"))
_HEAD = re.compile(r"// ([a-z]+): ?(.*)")
_KEYS = {"value", "debug", "prints", "error", "hint", "calls", "operations", "limits"}
_ENOUGH = {"max_operations": 5_000_000}


@pytest.mark.parametrize("path", _FILES, ids=lambda path: path.stem)
def test_script(path: Path) -> None:
    steps = re.split(r"^// next run\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    heads = [_head(step) for step in steps]
    machine, calls = _machine(heads[0].pop("limits", "{}"))
    machine.state = machine.runtime.new_state()
    for step, head in zip(steps, heads, strict=True):
        calls.clear()
        assert _seen(machine, step, calls, head) == _wanted(head)


def test_scripts_are_there() -> None:
    assert len(_FILES) > 100
    assert all(re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*__[A-Za-z0-9_]+", path.stem) for path in _FILES)


@cache
def _machine(limits: str) -> tuple[Machine, list[str]]:
    """One with these limits, and where it notes the tools that were called."""
    calls: list[str] = []
    return Machine(_ENOUGH | json.loads(limits), _tools(calls)), calls


def _tools(calls: list[str]) -> dict[str, Callable[[Any], Any]]:
    def fail(args: Any) -> None:
        raise ToolFailed(args["message"] if isinstance(args, dict) else "it failed", code="broken", retryable=True)

    def stop(_args: Any) -> None:
        raise Stopped

    tools: dict[str, Callable[[Any], Any]] = {
        "echo": lambda args: args,
        "later": Later,
        "add": lambda args: args["a"] + args["b"] if isinstance(args, dict) else sum(args),
        "rows": lambda args: [{"id": n, "name": f"row {n}"} for n in range(1, args[0] + 1)],
        "nothing": lambda args: None,
        "hub.create_issue": lambda args: {"title": args["title"], "number": 7},
        "hub.deep.list": lambda args: [],
        "fail": fail,
        "stop": stop,
    }

    def noted(name: str) -> Callable[[Any], Any]:
        def call(args: Any) -> Any:
            calls.append(name)
            return tools[name](args)

        return call

    return {name: noted(name) for name in tools}


def _head(step: str) -> dict[str, str]:
    head: dict[str, str] = {}
    for line in step.splitlines():
        match = _HEAD.fullmatch(line)
        if not match:
            break
        assert match[1] in _KEYS, f"unknown key {match[1]!r}"
        head[match[1]] = match[2]
    return head


def _wanted(head: dict[str, str]) -> dict[str, Any]:
    kind, _, text = head.get("error", "").partition(" ")
    wanted: dict[str, Any] = {
        "error": kind,
        "text": json.loads(text or '""'),
        "prints": json.loads(head.get("prints", '""')),
        "calls": head.get("calls", "").split(),
    }
    if "value" in head:
        wanted["value"] = json.loads(head["value"])
    elif not kind:
        wanted["debug"] = head.get("debug", "()")
    return wanted | {key: head[key] for key in ("hint", "operations") if key in head}


def _seen(machine: Machine, step: str, calls: list[str], head: dict[str, str]) -> dict[str, Any]:
    seen: dict[str, Any] = {"error": "", "text": "", "prints": ""}
    try:
        outcome = machine.run(step)
    except NoScript as error:
        seen |= {"error": "syntax", "text": error.text.removeprefix("Syntax error: ")}
        hint, operations = error.hint, 0
    else:
        seen["prints"] = "".join(text + "\n" for text in outcome.prints)
        hint, operations = outcome.hint, outcome.operations
        if outcome.kind != "value":
            seen |= {"error": outcome.kind, "text": outcome.text}
        elif "value" in head:
            seen["value"] = machine.exported(outcome)
        else:
            seen["debug"] = outcome.debug
    more = {"hint": hint, "operations": str(operations)}
    return seen | {"calls": list(calls)} | {key: more[key] for key in more if key in head}
