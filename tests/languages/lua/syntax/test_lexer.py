"""Words of Lua, and of what is none."""

from __future__ import annotations

import pytest

from moonbox.languages.lua.syntax.lexer import Words, bad_escape


def words(source: str) -> list[tuple[str, str]]:
    return [(token.kind, token.text) for token in Words(source).tokens[:-1]]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x~=y", [("name", "x"), ("op", "~="), ("name", "y")]),
        ("x!=y", [("name", "x"), ("foreign", "!"), ("op", "="), ("name", "y")]),
        ("a..b...", [("name", "a"), ("op", ".."), ("name", "b"), ("op", "...")]),
        ("end ended", [("keyword", "end"), ("name", "ended")]),
        ("0x1F 1e5 .5 3.", [("number", "0x1F"), ("number", "1e5"), ("number", ".5"), ("number", "3.")]),
        ("1..2", [("bad", "1..2")]),
        ("1_000", [("bad", "1_"), ("number", "000")]),
        (r"'it\'s' x", [("string", r"'it\'s'"), ("name", "x")]),
        ('"a\\\nb" c', [("string", '"a\\\nb"'), ("name", "c")]),
        ('"a\\z \n b" c', [("string", '"a\\z \n b"'), ("name", "c")]),
        ('"a\nb', [("bad", '"a'), ("name", "b")]),
        (r'"\d"', [("bad", r'"\d"')]),
        ("[[a]b]] c", [("string", "[[a]b]]"), ("name", "c")]),
        ("[==[a]]]==] c", [("string", "[==[a]]]==]"), ("name", "c")]),
        ("[=x", [("bad", "[="), ("name", "x")]),
        ("-- no\na --[[ no\nno ]] b --[=[ no", [("name", "a"), ("name", "b"), ("bad", "--[=[ no")]),
        ("a[[x]]", [("name", "a"), ("string", "[[x]]")]),
    ],
)
def test_words(source: str, expected: list[tuple[str, str]]) -> None:
    assert words(source) == expected


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r", "\n\r"])
def test_lines_are_counted_as_lua_does(newline: str) -> None:
    source = newline.join(["a", "", "  b", "[[x", "y]] c", "d"])
    assert [
        (token.text.strip(), token.line, token.column) for token in Words(source).tokens if token.kind == "name"
    ] == [
        ("a", 1, 1),
        ("b", 3, 3),
        ("c", 5, 5),
        ("d", 6, 1),
    ]


def test_the_last_word_tells_where_the_script_ends() -> None:
    assert Words("x\n").tokens[-1][:5] == ("eof", "<eof>", 2, 1, 2)


@pytest.mark.parametrize(
    ("text", "escape"),
    [(r'"\n\t\\\"\x41\065\u{e9}\z"', ""), (r'"a\d"', r"\d"), (r'"\\d"', ""), (r'"\xZZ"', r"\x"), (r'"\u00e9"', r"\u")],
)
def test_bad_escape(text: str, escape: str) -> None:
    assert bad_escape(text) == escape
