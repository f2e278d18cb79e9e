"""The parser against Lua itself: the same word, the same line, the same complaint; and the trees it makes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moonbox.languages.lua.syntax.lexer import Words
from moonbox.languages.lua.syntax.listing import lua_program
from moonbox.languages.lua.syntax.parser import expressions_end, parse
from moonbox.languages.program import (
    Constant,
    Declare,
    Each,
    Evaluate,
    Field,
    FunctionCall,
    Method,
    Name,
    Operation,
    Record,
    Return,
    inside,
)
from moonbox.limits import Limits
from tests.languages.lua.explain.bench import Bench
from tests.long import times

SLIPS = Path(__file__).parents[3] / "scripts" / "lua" / "errors"
SCRIPTS = [path.read_text() for path in sorted(SLIPS.parent.rglob("*.lua"))]
STEPS = [step for source in SCRIPTS for step in re.split(r"^-- next run\n", source, flags=re.MULTILINE)]
SPELLED = """
    if then else elseif end for in do while repeat until function local return break not and or nil true x y f t
    ( ) { } [ ] . : , ; = == ~= != ! && || += ++ + - * / // % ^ # .. ... < > <= >= 'a' "b" 1 2.5 `a` ? => -> --
    const continue elif
"""
WORDS = [*SPELLED.split(), "\n"]
ENGINE = Bench(limits=Limits(max_operations=2_000))


def verdict(source: str) -> tuple[str, int, str] | None:
    """What Lua's parser says: complaint, line and the word it stopped at; None where it has nothing against it."""
    ending = ENGINE.error(source)
    if ending is None or ending.kind != "syntax":
        return None
    match = re.fullmatch(r"script(?:#\d+)?:(\d+): (.*) near (.*)", ending.message, re.DOTALL)
    return (match[2], int(match[1]), match[3]) if match else None


def agrees(source: str) -> bool:
    said = verdict(source)
    parsed = parse(Words(source))
    assert parsed is not None
    if said is None:
        return True  # accepted, an expression, or refused for its meaning
    failure = parsed.failure
    if failure is None:
        return "vararg" in said[0] or "too many" in said[0]
    token = Words(source).tokens[failure.index]
    if token.kind == "bad":
        return said[0].startswith((failure.text, "missing", "hexadecimal", "decimal", "UTF-8"))
    near = said[2] in (token.text, f"'{token.text}'") or token.kind in ("string", "foreign")
    return near and said[1] == token.last_line and said[0] == failure.text


def test_agrees_about_every_script_of_the_tests() -> None:
    assert [step for step in STEPS if not agrees(step)] == []


@settings(max_examples=times(400), deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join))
def test_agrees_about_words_at_random(source: str) -> None:
    assert agrees(source)


@settings(max_examples=times(300), deadline=None)
@given(st.sampled_from(SCRIPTS), st.integers(0, 400), st.integers(0, 8), st.sampled_from(WORDS))
def test_agrees_about_damaged_scripts(source: str, at: int, cut: int, word: str) -> None:
    at = min(at, len(source))
    assert agrees(f"{source[:at]} {word} {source[at + cut :]}")


def test_blocks_and_their_ends() -> None:
    words = Words("for i = 1, 2 do\n  local function f(p) return p end\nend\nfunction t.g() end return a")
    parsed, tokens = parse(words), words.tokens
    assert parsed is not None and parsed.failure is None
    assert [(tokens[a].text, tokens[a].line, tokens[b].line) for a, b in parsed.pairs] == [
        ("function", 2, 2),
        ("for", 1, 3),
        ("function", 4, 4),
    ]


def test_where_a_failure_stands() -> None:
    words = Words("while x do\n  f(1, {a = 2, !})\nend")
    failure, tokens = parse(words).failure, words.tokens  # type: ignore[union-attr]
    assert failure is not None
    assert tokens[failure.index].text == "!"
    assert [bracket.text for bracket in failure.brackets] == ["(", "{"]
    assert [block.text for block in failure.blocks] == ["while"]
    assert tokens[failure.statement].text == "f"


def test_nesting_too_deep_is_no_crash() -> None:
    assert parse(Words("(" * 5_000)) is None
    assert parse(Words("f(function() " * 5_000)) is None
    assert parse(Words("x = " + "{" * 5_000)) is None


def test_ends_of_expressions() -> None:
    words = Words("a + f(x).y[1] b")
    assert words.texts[expressions_end(words, 0, only_one=True) or 0] == "b"
    assert expressions_end(Words("+"), 0) is None
    assert expressions_end(Words("1, 2 x"), 0) == 3


def test_every_name_of_a_tree_is_one_in_the_script() -> None:
    trees = 0
    for step in STEPS:
        words = Words(step)
        parsed = parse(words)
        assert parsed is not None
        assert (parsed.outline is None) == (parsed.failure is not None)
        if parsed.outline is None:
            continue
        trees += 1
        found = [node for node in inside(parsed.outline.body) if isinstance(node, Name)]
        assert all(words.texts[node.at] == node.name for node in found), step
    assert trees > 500


def test_what_a_tree_holds() -> None:
    source = 'local r = tools.gh.list{state = "open", [1] = -x}\nfor _, i in ipairs(r) do print(i.a["b"], r:len()) end'
    program = lua_program(source)
    assert program is not None
    local, loop = program.outline.body.statements
    assert isinstance(local, Declare) and isinstance(loop, Each)
    (call,) = local.values
    assert isinstance(call, FunctionCall) and call.exact and program.text(call.function) == "tools.gh.list"
    (table,) = call.arguments
    assert isinstance(table, Record) and not table.exact
    assert [name for name, _ in table.entries] == ["state", ""]
    assert loop.names == ("_", "i")
    (statement,) = loop.body.statements
    assert isinstance(statement, Evaluate) and isinstance(statement.value, FunctionCall)
    first, second = statement.value.arguments
    assert isinstance(first, Field) and first.name == "b" and program.text(first) == 'i.a["b"]'
    assert isinstance(second, Method) and second.name == "len" and program.place(second.at) == (2, 42)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("0x10", 16),
        ("0xffffffffffffffff", -1),
        ("9223372036854775808", 2.0**63),
        ("0x.8p1", 1.0),
        ("0x1p99999", float("inf")),
        ("-7", -7),
        (r"'\65\x42\u{43}\z  \n'", "ABC\n"),
        ("[==[\na]]]==]", "a]]"),
        ("nil", None),
        ("true", True),
    ],
)
def test_literals(source: str, value: object) -> None:
    program = lua_program(f"return {source}")
    assert program is not None
    (statement,) = program.outline.body.statements
    assert isinstance(statement, Return) and isinstance(statement.values[0], Constant)
    assert statement.values[0].value == value


@pytest.mark.parametrize(
    ("source", "grouped"),
    [
        ("a or b and c == d", "(a or (b and (c == d)))"),
        ("a .. b .. c", "(a .. (b .. c))"),
        ("a - b - c * d", "((a - b) - (c * d))"),
        ("(a + b) * c", "((a + b) * c)"),
    ],
)
def test_precedence(source: str, grouped: str) -> None:
    def written(value: object) -> str:
        if isinstance(value, Operation):
            return f"({written(value.left)} {value.operator} {written(value.right)})"
        assert isinstance(value, Name)
        return value.name

    program = lua_program(source)
    assert program is not None
    (statement,) = program.outline.body.statements
    assert isinstance(statement, Return)
    assert written(statement.values[0]) == grouped


@pytest.mark.parametrize(
    ("arguments", "exact"), [("1, f()", False), ("f(), 1", True), ("(f())", True), ("...", False), ("{f()}", True)]
)
def test_a_last_call_gives_any_number_of_arguments(arguments: str, exact: bool) -> None:
    program = lua_program(f"g({arguments})")
    assert program is not None
    (statement,) = program.outline.body.statements
    assert isinstance(statement, Evaluate) and isinstance(statement.value, FunctionCall)
    assert statement.value.exact == exact
