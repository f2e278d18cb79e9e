"""Rhai scripts as the checker sees them: what the host reads of a script that it does not trust."""

from __future__ import annotations

import pytest

from moonbox.languages.program import Assign, Constant, Declare, Define, Each, FunctionCall, Method, Record, Return
from moonbox.languages.rhai.program import SyntaxProblem, parser_state, rhai_outline, rhai_program

HOSTILE = {
    "brackets": "[" * 60_000,
    "blocks": "{" * 60_000,
    "statements": "x;" * 30_000,
    "operators": "1" + "+1" * 30_000,
    "spaces": " " * 60_000,
    "raw strings": "#" * 60_000,
    "comments": "/*" * 30_000,
    "interpolation": "`${" * 20_000,
    "not text": 'let x = "\ud800";',
    "a module": 'import "x" as y; y::f()',
}


@pytest.mark.parametrize("kind", sorted(HOSTILE))
def test_a_script_that_cannot_be_followed_has_no_program(kind: str) -> None:
    program = rhai_program(HOSTILE[kind])
    assert program is None or program.outline.body.statements == ()


def test_the_state_survives_hostile_scripts() -> None:
    for source in HOSTILE.values():
        rhai_program(source)
    assert rhai_program("1") is not None


def test_the_state_has_no_globals() -> None:
    state, _ = parser_state()
    assert list(state.globals()) == []


def test_a_syntax_error_says_where() -> None:
    assert rhai_outline("let x = 1;\nlet y = ;") == SyntaxProblem("Unexpected ';'", 2, 9)


def test_what_an_outline_holds() -> None:
    source = """let r = shop::find(#{"a b": 1, n: [1.5, -2, ()]});
const LIMIT = 9223372036854775807;
fn twice(x) { x * 2 }
for (item, i) in r.items { total[i] = item.price; }
r.push(`é ${LIMIT}`);
"""
    program = rhai_program(source)
    assert program is not None
    outline = program.outline
    first, limit, twice, loop, _ = outline.body.statements
    assert isinstance(first, Declare) and isinstance(first.values[0], FunctionCall)
    assert program.text(first.values[0]) == 'shop::find(#{"a b": 1, n: [1.5, -2, ()]})'
    (record,) = first.values[0].arguments
    assert isinstance(record, Record) and [name for name, _ in record.entries] == ["a b", "n"]
    assert isinstance(limit, Declare) and isinstance(limit.values[0], Constant)
    assert limit.values[0].value == 2**63 - 1
    assert isinstance(twice, Define) and isinstance(twice.function.body.statements[0], Return)
    assert isinstance(loop, Each) and loop.names == ("item", "i")
    assert isinstance(loop.body.statements[0], Assign)
    assert program.place(loop.at) == (4, 1)
    assert (outline.assigned, outline.filled) == ({"twice": 1}, {"r": 1, "total": 1})
    assert outline.defines == {"r", "LIMIT", "twice"}


def test_text_behind_characters_of_several_bytes() -> None:
    program = rhai_program('"é".len(); "ü".pad(b[1], "x")')
    assert program is not None
    last = program.outline.body.statements[-1]
    value = getattr(last, "value", None)
    assert isinstance(value, Method)
    assert program.text(value) == '"ü".pad(b[1], "x")'
