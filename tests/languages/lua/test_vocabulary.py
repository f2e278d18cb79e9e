"""What hints take for granted about the environment, against the environment itself."""

from __future__ import annotations

import json

import pytest

from moonbox.languages.lua.vocabulary import BASE, LIBRARIES, equivalents, fill_form, library_of
from tests.languages.lua.explain.bench import Bench

KNOWN = equivalents()


def members_of(name: str) -> set[str]:
    bench = Bench()
    outcome = bench.vm.run(f"local t = {{}} for k in pairs({name}) do t[#t + 1] = k end return array(t)".encode(), 1, 1)
    return set(json.loads(outcome.values)[0])


@pytest.mark.parametrize("library", LIBRARIES)
def test_libraries(library: str) -> None:
    assert members_of(library) == LIBRARIES[library]


def test_globals() -> None:
    assert members_of("_G") - {"_G", "_VERSION"} == BASE | set(LIBRARIES)


def test_what_is_said_to_be_missing_is_missing() -> None:
    there = members_of("_G")
    assert not there & {*KNOWN.functions, *KNOWN.absent, *KNOWN.constants, *KNOWN.modules}
    for library, members in KNOWN.members.items():
        assert not members.keys() & LIBRARIES[library]
    assert not KNOWN.methods.keys() & LIBRARIES["string"] - {"len", "reverse", "unpack"}  # a table has none of them


def test_what_can_be_opened_is_said_to_be_absent() -> None:
    assert set(KNOWN.absent) >= {"coroutine", "getmetatable", "setmetatable"}


@pytest.mark.parametrize(
    ("form", "arguments", "receiver", "text"),
    [
        ("#{0}", ["list"], "", "#list"),
        ("#{0}", ["a .. b"], "", "#(a .. b)"),
        ("#{0}", [], "", "#x"),
        ("#{0}", ["…"], "", "#x"),
        ("f({0})", ["a + b"], "", "f(a + b)"),
        ("{0} ^ {1}", ["a + 1", "2"], "", "(a + 1) ^ 2"),
        ("{0}:sub(1)", ['"x"'], "", '("x"):sub(1)'),
        ("table.insert({self}, {*})", ["1", "x"], "t.list", "table.insert(t.list, 1, x)"),
        ("print({*})", [], "", "print(…)"),
        ('{self}:gmatch("{set}")', ['";"'], "s", 's:gmatch("[^;]+")'),
        ('{self}:gmatch("{set}")', ['"-"'], "s", 's:gmatch("[^%-]+")'),
        ('{self}:gmatch("{set}")', ["sep"], "s", 's:gmatch("[^,]+")'),
        ("{self}:upper()", [], "'a'", "('a'):upper()"),
        ("#{self}", [], "'a'", "#'a'"),
        ("{self}:gsub({plain0}, {1})", ["'1.5%'", "b"], "s", "s:gsub('1%.5%%', b)"),
        ("{self}:gsub({plain0}, {1})", ["a", "b"], "s", 's:gsub((a:gsub("%p", "%%%0")), b)'),
    ],
)
def test_forms(form: str, arguments: list[str], receiver: str, text: str) -> None:
    assert fill_form(form, arguments, receiver) == text


def test_forms_are_lua() -> None:
    """The code of each form compiles with names and with literals in its holes."""
    bench, members = Bench(), [form for library in KNOWN.members.values() for form in library.values()]
    forms = [*KNOWN.functions.values(), *KNOWN.methods.values(), *members]
    holes: list[tuple[list[str], str]] = [(["a", "b", "c"], "t"), (["'.'", "'%'", "'c'"], "'t'")]
    for text in [fill_form(form, *filling) for form in forms for filling in holes]:
        code = next((text.rpartition(mark)[2] for mark in ("write: ", "string: ", "loop: ") if mark in text), "..")
        if code != "..":
            code = code.partition("; for a list")[0].replace("…", "x()")
            result = "" if code.startswith("for ") else "return "
            assert bench.error(f"local function unused() {result}{code} end") is None, code


def test_library_of() -> None:
    assert library_of("insert") == "table"
    assert library_of("floor") == "math"
    assert library_of("len") is None
    assert library_of("frobnicate") is None
