"""Inputs of a run, what is printed while it runs, and how the objects show themselves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moonbox import Sandbox, run, tool
from moonbox.errors import UsageError
from tests.runs import DRIVES

INPUTS = {"rows": [{"n": 1, "note": None}, {"n": 2, "note": "b"}], "factor": 3}
SUM = {
    "lua": "local s = 0 for _, r in ipairs(rows) do s = s + r.n * factor end factor = 0 return s, rows[1].note",
    "rhai": "let s = 0; for r in rows { s += r.n * factor; } factor = 0; s",
    "python": "s = 0\nfor r in rows:\n    s += r['n'] * factor\nfactor = 0\ns",
}
GONE = {"lua": "return rows, factor", "rhai": 'is_def_var("rows") || is_def_var("factor")', "python": "rows or factor"}


@tool
def ping() -> str:
    """Answer."""
    return "pong"


@pytest.mark.parametrize("isolation", ["process", "inline"])
@pytest.mark.parametrize("language", ["lua", "rhai", "python"])
def test_inputs_are_globals_of_that_run(language: str, isolation: Any) -> None:
    with Sandbox(language=language, isolation=isolation) as box, box.repl() as repl:
        assert repl.run(SUM[language], inputs=INPUTS).value == 9
        assert repl.run(GONE[language]).value in (None, False)
        assert asyncio.run(repl.arun(SUM[language], inputs=INPUTS)).value == 9
        assert box.run(SUM[language], inputs=INPUTS).value == 9
        assert repl.globals().keys() <= {"s", "r"}  # the variable of a loop is a global in Python
    assert run(SUM[language], language=language, inputs=INPUTS).value == 9


@pytest.mark.parametrize("drive", DRIVES)
def test_an_input_hides_a_global_for_one_run(drive: Any) -> None:
    with Sandbox([ping]) as box, box.repl() as repl:
        repl.run("factor = 'mine'")
        assert drive(repl, "return tools.ping{} .. factor", inputs=INPUTS).value == "pong3"
        assert repl.run("return factor").value == "mine"


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"a b": 1}, "'a b' is not a name that a script can write; use letters, digits and _"),
        ({"end": 1}, "'end' is not a name that a script can write; use letters, digits and _"),
        ({"table": 1}, "'table' would hide what scripts find as 'table': choose another name"),
        ({"f": {"x": object}}, "the global 'f' cannot be defined: f.x is a type, which cannot be given to a script"),
        ([1], "inputs must be a mapping from names to values, not list"),
    ],
)
def test_wrong_inputs(inputs: Any, message: str) -> None:
    with Sandbox(isolation="inline") as box, pytest.raises(UsageError) as raised:
        box.run("return 1", inputs=inputs)
    assert str(raised.value)[:60] == message[:60]


def test_output_while_the_script_runs() -> None:
    seen: list[tuple[str, int]] = []
    texts: list[str] = []
    calls = 0

    @tool
    def step() -> None:
        """Go on."""
        nonlocal calls
        seen.append(("".join(texts), calls))
        calls += 1

    source = "print('one') tools.step{} print('zwei', 'ü') tools.step{}"
    with Sandbox([step]) as box, box.repl() as repl:
        assert repl.run(source, on_output=texts.append).output == "one\nzwei\tü\n"
        assert seen == [("one\n", 0), ("one\nzwei\tü\n", 1)]
        asyncio.run(repl.arun("print('three')", on_output=texts.append))
        assert "".join(texts) == "one\nzwei\tü\nthree\n"
    everything: list[str] = []
    with Sandbox(on_output=everything.append) as box:
        box.run("print('four')")
    assert everything == ["four\n"]


def test_a_letter_that_two_frames_share_is_whole() -> None:
    texts: list[str] = []
    with Sandbox() as box:
        box.run("for _ = 1, 3000 do print('äöü') end", on_output=texts.append)
    assert "".join(texts) == "äöü\n" * 3000


def test_how_they_show_themselves() -> None:
    with Sandbox([ping]) as box:
        assert repr(box) == "<Sandbox: lua, 1 tool, 0 workers in use>"
        repl = box.repl()
        assert repr(repl) == f"<Repl {repl.id}: lua, 1 tool, 0 runs>"
        done = repl.run("return tools.ping{}, {a = 1}")
        assert repr(done).startswith(f'<Run {done.id[:8]} ok: "pong", {{"a":1}}, 1 call, ')
        assert repr(repl.run("x = 1")).split(" ", 2)[2].startswith("ok: no value, 0")
        failed = repl.run("error('no')")
        assert repr(failed).startswith(f"<Run {failed.id[:8]} runtime: no, ")
        assert repr(repl) == f"<Repl {repl.id}: lua, 1 tool, 3 runs>"
        repl.close()
        assert repr(repl).endswith(", closed>")
    assert repr(box) == "<Sandbox: lua, 1 tool, closed>"
