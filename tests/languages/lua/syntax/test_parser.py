"""The parser against Lua itself: the same word, the same line, the same complaint; and the trees it makes."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moonbox.languages.lua.syntax.lexer import tokenize
from moonbox.languages.lua.syntax.parser import expression_end, expressions_end, parse
from moonbox.languages.lua.syntax.tree import (
    Call,
    CallStatement,
    FunctionStatement,
    GenericFor,
    Index,
    Local,
    Name,
    Table,
    TableField,
    Unary,
)
from moonbox.limits import Limits
from tests.languages.lua.explain.bench import Bench
from tests.long import times

if TYPE_CHECKING:
    from collections.abc import Iterator

SLIPS = Path(__file__).parents[3] / "scripts" / "lua" / "errors"
SCRIPTS = [path.read_text() for path in sorted(SLIPS.parent.rglob("*.lua"))]
WORDS = [
    *(
        "if",
        "then",
        "else",
        "elseif",
        "end",
        "for",
        "in",
        "do",
        "while",
        "repeat",
        "until",
        "function",
        "local",
        "return",
    ),
    *(
        "break",
        "not",
        "and",
        "or",
        "nil",
        "true",
        "x",
        "y",
        "f",
        "t",
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        ".",
        ":",
        ",",
        ";",
        "=",
    ),
    *(
        "==",
        "~=",
        "!=",
        "!",
        "&&",
        "||",
        "+=",
        "++",
        "+",
        "-",
        "*",
        "/",
        "//",
        "%",
        "^",
        "#",
        "..",
        "...",
        "<",
        ">",
        "<=",
    ),
    *(">=", "'a'", '"b"', "1", "2.5", "`a`", "?", "=>", "->", "--", "const", "continue", "elif", "\n"),
]
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
    parsed = parse(tokenize(source))
    assert parsed is not None
    if said is None:
        return True  # accepted, an expression, or refused for its meaning
    failure = parsed.failure
    if failure is None:
        return "vararg" in said[0] or "too many" in said[0]
    token = tokenize(source)[failure.index]
    if token.kind == "bad":
        return said[0].startswith((failure.text, "missing", "hexadecimal", "decimal", "UTF-8"))
    near = said[2] in (token.text, f"'{token.text}'") or token.kind in ("string", "foreign")
    return near and said[1] == token.last_line and said[0] == failure.text


@pytest.mark.parametrize("source", SCRIPTS)
def test_agrees_about_every_script_of_the_tests(source: str) -> None:
    for step in re.split(r"^-- next run\n", source, flags=re.MULTILINE):
        assert agrees(step)


@settings(max_examples=times(400), deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join))
def test_agrees_about_words_at_random(source: str) -> None:
    assert agrees(source)


@settings(max_examples=times(300), deadline=None)
@given(st.sampled_from(SCRIPTS), st.integers(0, 400), st.integers(0, 8), st.sampled_from(WORDS))
def test_agrees_about_damaged_scripts(source: str, at: int, cut: int, word: str) -> None:
    at = min(at, len(source))
    assert agrees(f"{source[:at]} {word} {source[at + cut :]}")


def test_what_was_read() -> None:
    tokens = tokenize(
        "local a, b = 1\nfor i = 1, 2 do\n  local function f(p) return p end\nend\nfunction t.g() end return a"
    )
    parsed = parse(tokens)
    assert parsed is not None and parsed.failure is None
    names = {
        kind: [tokens[index].text for index in getattr(parsed, kind)] for kind in ("locals", "parameters", "functions")
    }
    assert names == {"locals": ["a", "b", "i", "f"], "parameters": ["p"], "functions": ["f", "g"]}
    assert [tokens[index].line for index in parsed.returns] == [5]
    assert [(tokens[a].text, tokens[a].line, tokens[b].line) for a, b in parsed.pairs] == [
        ("function", 3, 3),
        ("for", 2, 4),
        ("function", 5, 5),
    ]


def test_where_a_failure_stands() -> None:
    tokens = tokenize("while x do\n  f(1, {a = 2, !})\nend")
    failure = parse(tokens).failure  # type: ignore[union-attr]
    assert failure is not None
    assert tokens[failure.index].text == "!"
    assert [tokens[index].text for index in failure.brackets] == ["(", "{"]
    assert [block.keyword for block in failure.blocks] == ["while"]
    assert tokens[failure.statement].text == "f"


def test_nesting_too_deep_is_no_crash() -> None:
    assert parse(tokenize("(" * 5_000)) is None
    assert parse(tokenize("f(function() " * 5_000)) is None
    assert parse(tokenize("x = " + "{" * 5_000)) is None


def test_ends_of_expressions() -> None:
    tokens = tokenize("a + f(x).y[1] b")
    assert tokens[expression_end(tokens, 0) or 0].text == "b"
    assert expression_end(tokenize("+"), 0) is None
    assert expressions_end(tokenize("1, 2 x"), 0) == 3


def test_the_tree_of_every_script_that_is_lua() -> None:
    trees = 0
    for source in SCRIPTS:
        for step in re.split(r"^-- next run\n", source, flags=re.MULTILINE):
            tokens = tokenize(step)
            parsed = parse(tokens)
            assert parsed is not None
            assert (parsed.tree is None) == (parsed.failure is not None)
            if parsed.tree is None:
                continue
            trees += 1
            seen = [node for node in nodes(parsed.tree) if isinstance(node, Name)]
            assert all(tokens[name.first].kind == "name" for name in seen)
            declared = {*parsed.locals, *parsed.parameters}
            keys = {node.key.first for node in nodes(parsed.tree) if isinstance(node, Index | TableField) and node.key}
            methods = {node.method for node in nodes(parsed.tree) if isinstance(node, Call | FunctionStatement)}
            named = {name.first for name in seen} | declared | keys | methods
            left = [index for index, token in enumerate(tokens) if token.kind == "name" and index not in named]
            assert all(tokens[index - 1].text in ("goto", "::", "<") for index in left), step
    assert trees > 500


def nodes(node: object) -> Iterator[Any]:
    """All nodes of a tree, from the outside in."""
    parts: Any = node if isinstance(node, tuple) else ()
    if is_dataclass(node):
        yield node
        parts = [getattr(node, field.name) for field in fields(node)]
    for part in parts:
        yield from nodes(part)


def test_what_a_tree_holds() -> None:
    source = 'local r = tools.gh.list{state = "open", [1] = -x}\nfor _, i in ipairs(r) do print(i.a["b"], r:len()) end'
    tokens = tokenize(source)
    parsed = parse(tokens)
    assert parsed is not None and parsed.tree is not None
    local, loop = parsed.tree.statements
    assert isinstance(local, Local) and isinstance(loop, GenericFor)
    call = local.values[0]
    assert isinstance(call, Call) and isinstance(call.function, Index) and call.method is None
    assert tokens[call.function.key.first].text == "list" and call.function.dotted
    (table,) = call.arguments
    assert isinstance(table, Table)
    assert [tokens[field.key.first].text for field in table.fields if field.key] == ["state", "1"]
    assert isinstance(table.fields[1].value, Unary)
    assert [tokens[index].text for index in loop.names] == ["_", "i"]
    (statement,) = loop.body.statements
    assert isinstance(statement, CallStatement) and isinstance(statement.call, Call)
    first, second = statement.call.arguments
    assert isinstance(first, Index) and not first.dotted and tokens[first.first].text == "i"
    assert isinstance(second, Call) and second.method is not None and tokens[second.method].text == "len"
    assert (tokens[second.first].line, tokens[second.first].column) == (2, 42)
