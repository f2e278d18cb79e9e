"""Limits that end a run: the number, where the script was, and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from moonbox.languages.language import EngineError
from moonbox.limits import Limits
from tests.languages.lua.explain.bench import CASES, Bench

SPLIT = "do less in one run, or split the work over several runs"


@pytest.mark.parametrize(("limits", "source", "limit", "lines", "message", "hint"), CASES["limits"])
def test_limit(limits: dict[str, Any], source: str, limit: str, lines: list[int], message: str, hint: str) -> None:
    error = Bench(limits=Limits(**limits)).fails(source)
    assert (error.kind, error.limit, error.message, error.hint) == ("limit", limit, message, hint)
    assert (error.line or 0) in (lines or [0])


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("while true do\n  say()\nend", "the loop of line 2 never ends: add a break or a condition"),
        ("while true do\n  say()\n  if n > 0 then break end\nend", SPLIT),
        ("for i = 1, 1e18 do say() end", SPLIT),
    ],
)
def test_time(source: str, hint: str) -> None:
    bench = Bench(limits=Limits(timeout=2.5))
    bench.run("function say() if not said then said = true print(1) end end")
    with bench.interrupted():
        error = bench.fails(f"local n = 0\n{source}")
    assert (error.kind, error.limit) == ("limit", "time")
    assert error.message == "the script ran longer than timeout = 2.5 seconds"
    assert error.line in range(2, 6)
    assert error.hint == f"it was at line {error.line}; {hint}"


def test_time_in_tool_calls(bench: Bench) -> None:
    bench.sources["script"] = "local x = 1\nlocal y = tools.echo{}"
    error = bench.explain(EngineError("stop", limit="time", frames=(("script", 2, "main chunk"),)))
    assert error.hint == (
        "it was at line 2; tool calls count too: make fewer of them, or run them at the same time with parallel"
    )


@pytest.mark.parametrize(
    ("most", "message", "hint"),
    [
        (50, "more than max_tool_calls = 50 tool calls", "a run may make 50 tool calls"),
        (1, "more than max_tool_calls = 1 tool calls", "a run may make 1 tool call"),
        (0, "more than max_tool_calls = 0 tool calls", "a run may make no tool calls"),
    ],
)
def test_calls(most: int, message: str, hint: str) -> None:
    bench = Bench(limits=Limits(max_tool_calls=most))
    bench.sources["script"] = "tools.echo{}"
    error = bench.explain(EngineError("stop", limit="calls", frames=(("script", 1, "main chunk"),)))
    assert error.message == f"the script made {message}"
    assert error.hint == f"{hint} (max_tool_calls): ask for more with each call, or split the work over several runs"


@pytest.mark.parametrize(("limit", "message"), [("cancelled", "the run was cancelled"), ("", "the run was stopped")])
def test_cancelled(limit: str, message: str, bench: Bench) -> None:
    error = bench.explain(EngineError("stop", limit=limit))
    assert (error.kind, error.limit, error.message, error.hint, error.line) == ("cancelled", None, message, None, None)


def test_every_limit_has_a_message_when_the_engine_gives_none(bench: Bench) -> None:
    for limit in ("operations", "time", "memory", "calls", "output", "string", "array", "depth"):
        error = bench.explain(EngineError("stop", limit=limit))
        assert error.limit == limit
        assert error.message and error.hint
    assert (
        Bench(limits=Limits(timeout=None)).explain(EngineError("stop", limit="time")).message
        == "the script ran out of time"
    )


def test_long_paths_are_cut() -> None:
    error = Bench(limits=Limits(max_depth=60)).fails(
        "local t = {}\nlocal top = t\nfor i = 1, 99 do t.inner = {} t = t.inner end\nreturn top"
    )
    assert len(error.message) < 150
    assert error.message.endswith("is nested deeper than max_depth = 60")
