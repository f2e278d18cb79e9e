"""Operations: what a tool call costs, in each language, and that nothing escapes the count.

Python has no row: Monty counts no operations, and `timeout` stands for them (docs/python.md).
"""

from __future__ import annotations

import pytest

from moonbox import Limits, Repl, Sandbox, tool
from tests.runs import error_of

LOOP = {
    "lua": "for i = 1, 500 do {} end",
    "rhai": "for i in 0..500 {{ {} }}",
}
CALL = {"lua": "tools.echo{value = {1, 2, {a = i}}}", "rhai": "echo(#{value: [1, 2, #{a: i}]});"}
LIMITS = Limits(max_operations=1_000_000, max_tool_calls=None)


@tool
def echo(value: object) -> object:
    """Give it back."""
    return value


def operations(repl: Repl, source: str) -> int:
    run = repl.run(source)
    assert run.error is None
    assert run.usage.operations is not None
    return run.usage.operations


@pytest.mark.parametrize("language", ["lua", "rhai"])
def test_a_call_costs_about_the_same_in_every_language(language: str) -> None:
    with Sandbox([echo], language=language, limits=LIMITS) as box, box.repl() as repl:
        alone = operations(repl, LOOP[language].format(""))
        calls = operations(repl, LOOP[language].format(CALL[language]))
    assert 1 <= (calls - alone) / 500 < 60


@pytest.mark.parametrize(
    "source",
    [
        "while true do pcall(tools.echo, {value = 1}) end",
        "while true do local x = os.time() end",
        "while true do pcall(tools.echo, {value = print}) end",
        "while true do pcall(docs.describe, 'x') end",
        "while true do parallel.map({1}, function() return tools.echo{value = 1} end) end",
    ],
)
def test_calls_without_end_meet_the_limit(source: str) -> None:
    with Sandbox([echo], limits=Limits(max_operations=20_000, max_tool_calls=None)) as box, box.repl() as repl:
        run = repl.run(f"pcall(function() {source} end) return 'escaped'")
        assert (error_of(run).limit, run.usage.operations) == ("operations", 20_000)
        assert repl.run("return tools.echo{value = 5}").value == 5


def test_a_limit_met_in_a_call_cannot_be_caught() -> None:
    with Sandbox([echo], limits=Limits(max_operations=1_000_000, max_depth=8)) as box, box.repl() as repl:
        run = repl.run("local t = {} for i = 1, 20 do t = {t} end pcall(tools.echo, {value = t}) return 'escaped'")
        assert error_of(run).limit == "depth"
        assert repl.run("return tools.echo{value = 5}").value == 5
