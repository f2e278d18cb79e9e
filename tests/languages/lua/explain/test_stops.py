"""Limits that end a run: the number, where the script was, and what to do."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from moonbox.languages.language import EngineError
from moonbox.limits import Limits
from tests.languages.lua.explain.bench import Bench

SPLIT = "do less in one run, or split the work over several runs"


@pytest.mark.parametrize(
    ("limits", "source", "limit", "line", "message", "hint"),
    [
        (
            {"max_operations": 10_000},
            "local n = 0\nfor i = 1, 1e9 do\n  n = n + i\nend",
            "operations",
            (2, 3),
            "the script used more than max_operations = 10000 operations",
            "do less in one run: filter in the tool calls, work on fewer items, or split the work over several runs",
        ),
        (
            {"max_output": 100},
            "for i = 1, 100 do\n  print(i)\nend",
            "output",
            (2,),
            "the script printed more than max_output = 100 bytes",
            "print less: return the result as a value and print only a summary",
        ),
        (
            {"max_string": 100},
            'local x = 1\nlocal s = ("x"):rep(200)',
            "string",
            (2,),
            "string.rep would make a string of 200 bytes; max_string is 100",
            "make shorter strings: work on parts, or keep the parts in a list",
        ),
        (
            {"max_array": 10},
            "local t = {}\nfor i = 1, 11 do t[i] = i end\nreturn t",
            "array",
            (3,),
            "value has 11 elements; max_array is 10",
            "return less: filter or summarise the data in the script, and return the result",
        ),
        (
            {"max_array": 10},
            "local t = {}\nfor i = 1, 11 do t[i] = i end\nlocal x = tools.echo{t = t}",
            "array",
            (3,),
            "argument.t has 11 elements; max_array is 10",
            "send less in one call: pass the data in parts",
        ),
        (
            {"max_depth": 3},
            "local x = 1\nreturn {a = {b = {c = {}}}}",
            "depth",
            (2,),
            "value.a.b.c is nested deeper than max_depth = 3",
            "return a flatter value: only the fields that are needed",
        ),
        (
            {"max_memory": 4 << 20},
            "local t = {}\nfor i = 1, 1e9 do t[i] = {} end",
            "memory",
            (None,),
            "the script needed more memory than max_memory = 4194304 bytes",
            (
                "process the data in parts and keep only what is needed; "
                "build long strings with table.concat, not with .. in a loop"
            ),
        ),
        (
            {"max_memory": 4 << 20},
            "local function down(n)\n  return 1 + down(n + 1)\nend\nreturn 1 + down(1)",
            "memory",
            (None,),
            "the script needed more memory than max_memory = 4194304 bytes",
            (
                "process the data in parts and keep only what is needed; "
                "build long strings with table.concat, not with .. in a loop; "
                "make sure that down, which calls itself, ends"
            ),
        ),
    ],
)
def test_limit(
    limits: dict[str, Any], source: str, limit: str, line: tuple[int | None, ...], message: str, hint: str
) -> None:
    error = Bench(limits=Limits(**limits)).fails(source)
    assert (error.kind, error.limit, error.message, error.hint) == ("limit", limit, message, hint)
    assert error.line in line


@pytest.mark.parametrize(
    ("source", "lines", "hint"),
    [
        (
            "local n = 0\nwhile true do\n  n = n + 1\nend",
            (2, 3, 4),
            "the loop of line 2 never ends: add a break or a condition",
        ),
        ("local n = 0\nwhile true do\n  n = n + 1\n  if n < 0 then break end\nend", (2, 3, 4, 5), SPLIT),
        ("for i = 1, 1e18 do end", (1,), SPLIT),
    ],
)
def test_time(source: str, lines: tuple[int, ...], hint: str) -> None:
    bench = Bench(limits=Limits(timeout=2.5))
    timer = threading.Timer(0.5, lambda: bench.vm.interrupt(1, 1))
    timer.start()
    error = bench.fails(source)
    timer.join()
    assert (error.kind, error.limit) == ("limit", "time")
    assert error.message == "the script ran longer than timeout = 2.5 seconds"
    assert error.line in lines
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
