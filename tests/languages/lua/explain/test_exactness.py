"""Hints must not be wrong: scripts that look like a slip and are none, or where nothing is known for sure."""

from __future__ import annotations

import pytest

from tests.languages.lua.explain.bench import Bench

SILENT = {
    "a script's own error that speaks of operators": 'error("write a != b && c += 1")',
    "a script's own error in Lua's words": """error("attempt to call a nil value (global 'len')")""",
    "a table in Lua's words": """error({message = "attempt to index a nil value (global 'io')"})""",
    "an error without position": 'error("attempt to perform arithmetic on a nil value", 0)',
    "an unknown function with no likeness": "frobnicate(5)",
    "an unknown variable with no likeness": "return quux[1]",
    "an unknown variable of one letter": "return i + 1",
    "a short unknown name near another": "local set = {} return get.x",
    "a local that is nil": "local user = nil\nreturn user.name",
    "a parameter that is nil": "local function f(user) return user.name end\nf()",
    "a method of one's own that is missing": "local account = {}\naccount:withdraw(5)",
    "get without a key": "local cache = {}\ncache.get()",
    "two values that can be meant": "local a, b = {}, {x = {}}\nreturn a.x.y + b.x.y",
    "a local function's name that is a number": "local len = 5\nlen()",
    "a local called tools": "local tools = {}\ntools.frob()",
    "a failed assertion": "assert(1 > 2)",
    "an assertion with a message": 'assert(false, "no luck")',
    "an index of a number": "local n = 5\nreturn n.x",
    "a call of a table": "local t = {}\nt()",
    "a bad argument that is no nil": 'return math.floor("x")',
    "an empty interval": "return math.random(5, 1)",
    "two names in a row": "foo bar",
    "two numbers in a row": "return 1 2",
    "an operator without its right side": "x = 5 +",
    "an assignment to a call": "f() = 5",
    "a local without a name": "local = 5",
    "a second else": "if x then else else end",
    "a double sign": "x = = 5",
    "an unknown attribute": "local x <foo> = 5",
    "a label that is there twice": "::a:: ::a::",
    "a bare word in the middle of a line": "local x = 5 y = 6 z",
}


@pytest.mark.parametrize("source", [pytest.param(source, id=name) for name, source in SILENT.items()])
def test_no_hint(source: str, bench: Bench) -> None:
    assert bench.fails(source).hint is None


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("local continue = 5\ncontinue", "the last line is an expression; write: return continue"),
        ("local i = 1\nlocal j = i -- 1\nj", "the last line is an expression; write: return j"),
        ("local try = {}\ntry.again.now = 5", "try.again is nil; make it a table first: try.again = {}"),
        (
            "if x then\n  y = 1\nelse if z then\n  y = 2\nend end\nfor i = 1, 2 do",
            "the for of line 6 is never closed: add end",
        ),
        ("local t = {x:y(), 5}\nreturn t !", "Lua writes 'not' for !"),
        ("local s = '!= &&' == 1\nif s != 2 then end", "not equal is ~= in Lua, not !=; write: if s ~= 2 then end"),
        ("local i = 1\ni = i -- 1\nlet x = i", "variables are declared with local; write: local x = i"),
        ("local t, o = {}, {}\nreturn t[o.a.b]", "o.a is nil; check it before using its fields: if o.a then … end"),
        (
            "local t, o = {}, {}\nreturn t[o.a].b.c",
            "t[o.a] is nil; check it before using its fields: if t[o.a] then … end",
        ),
        (
            "local f = function() return {} end\nreturn f(1, {2}).a.b",
            "f(1, {2}).a is nil; check it before using its fields: if f(1, {2}).a then … end",
        ),
        ("#t", "t is nil, so it has no length: check it first"),
        ("return #list -- # of them", "list is nil, so it has no length: check it first"),
    ],
)
def test_the_right_hint(source: str, hint: str, bench: Bench) -> None:
    assert bench.fails(source).hint == hint


def test_words_of_strings_and_comments_are_not_listed_as_slips(bench: Bench) -> None:
    source = 'local n = 0\nn += 1\nlocal s = "a != b"\n-- c && d\nlocal t = [[\ne ++ f\n]]\nreturn n'
    assert bench.fails(source).hint == "Lua has no +=; write: n = n + 1"


def test_words_behind_a_foreign_comment_are_not_listed_as_slips(bench: Bench) -> None:
    source = "local n = 0\nn += 1\nlocal m = 5 // wow != that\nreturn n"
    assert bench.fails(source).hint == "Lua has no +=; write: n = n + 1"


def test_a_tool_failure_that_will_not_pass_has_no_hint() -> None:
    bench = Bench(failures={"save": {"code": "full", "message": "disk full", "tool": "save", "retryable": False}})
    assert bench.fails("local x = tools.save{}\nreturn x").hint is None


def test_names_that_the_sandbox_opens_are_not_called_absent() -> None:
    bench = Bench(features=["coroutines", "metatables"])
    assert bench.run("setmetatable({}, {}) coroutine.wrap(function() end)()") is None
    assert bench.fails("coroutine.yield(1)").hint == (
        "coroutine.yield works only inside a function that coroutine.wrap or coroutine.create runs"
    )


def test_a_function_of_the_scripts_own_is_preferred_to_another_languages(bench: Bench) -> None:
    assert bench.run("function total(list) return #list end") is None
    assert bench.fails("return totl({})").hint == "did you mean total?"
    assert bench.fails("return len({})\n").hint == "Lua has no len; write: #{}"
    assert bench.run("function len(list) return #list end return len({})") is None
