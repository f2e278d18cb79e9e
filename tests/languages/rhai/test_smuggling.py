"""Attempts to get Lua into the compiler's output: whatever a script holds, its chunk is made of words that are ours."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.long import times

from .fuzz import inputs, own_scripts
from .machine import CASES, Machine, NoScript

_SCRIPTS = sorted((Path(__file__).parents[2] / "scripts" / "rhai").glob("*.rhai"))
_STRING = re.compile(r'"(?:[ !#-\[\]-~]|\\[0-9]{3})*"')
_NUMBER = re.compile(r"(?<![\w.])(?:0x[0-9a-f]+|[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)(?!\w)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_LEFT_OVER = re.compile(r"[\s=<>~+\-*/%&|.,:(){}\[\]#]*")
_LUA = (
    *("and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "local", "nil", "not"),
    *("or", "return", "then", "true", "while"),
)
_FIELDS = ["functions", "save", "max_array", "char"]
_MADE = re.compile(r"[RSKPFUECDVcd]|this|t\d+_\d+|v\d+|[XSLWOAn]\d+")


def _foreign_words(lua: str, helpers: set[str]) -> set[str]:
    """Words of a chunk that are neither Lua's nor made by the compiler; what is no word at all fails here."""
    bare = _NUMBER.sub(" ", _STRING.sub(" ", lua))
    words = set(_WORD.findall(bare))
    rest = _WORD.sub(" ", bare)
    assert _LEFT_OVER.fullmatch(rest), sorted(set(rest) - set("=<>~+-*/%&|.,:(){}[]# \n"))
    return {word for word in words if not _MADE.fullmatch(word)} - helpers - {*_LUA, *_FIELDS}


@pytest.fixture(scope="module")
def helpers(machine: Machine) -> set[str]:
    """The fields of the runtime, which is all that a chunk can reach."""
    return {str(name) for name in machine.runtime}


def _checked(machine: Machine, helpers: set[str], source: str) -> bool:
    try:
        lua = machine.compile(source)
    except NoScript:
        return False
    assert _foreign_words(lua, helpers) == set()
    return True


def test_chunks_of_our_own_scripts(machine: Machine, helpers: set[str]) -> None:
    assert sum(_checked(machine, helpers, path.read_text(encoding="utf-8")) for path in _SCRIPTS) > 150


def test_chunks_of_twisted_scripts(machine: Machine, helpers: set[str]) -> None:
    source = inputs(own_scripts(), 5)
    assert sum(_checked(machine, helpers, next(source)) for _ in range(times(4_000))) > times(1_000)


_PAYLOADS = [*CASES["payloads"], "a" * 5_000]
_PLACES = CASES["places"]


@pytest.mark.parametrize("payload", _PAYLOADS)
def test_text_stays_a_constant(machine: Machine, helpers: set[str], payload: str) -> None:
    quoted = json.dumps(payload).replace("\\u001b", "\\x1b").replace("\\u0000", "\\x00").replace("\\u007f", "\\x7f")
    texts = [quoted, f'####"{payload}"####', "`" + payload.replace("\\", "\\\\").replace("`", "") + "`"]
    compiled = sum(_checked(machine, helpers, place.format(text)) for text in texts for place in _PLACES)
    assert compiled > len(_PLACES)


@pytest.mark.parametrize("payload", _PAYLOADS)
def test_text_is_no_name(machine: Machine, helpers: set[str], payload: str) -> None:
    for place in ("|{0}| 1", "x.{0}", "{0}::f()", "x.{0}()", "{0}!()"):
        _checked(machine, helpers, place.format(payload))
    declarations = ("let {0} = 1;", "fn {0}() {{}}", "for {0} in x {{}}")
    compiled = sum(_checked(machine, helpers, place.format(payload)) for place in declarations)
    assert bool(compiled) is payload.isidentifier()


@pytest.mark.parametrize(
    "number",
    [
        *("1e999", "-1e999", "1e999 - 1e999", "-(1e999 - 1e999)", "0x8000000000000000", "-9223372036854775808"),
        *("1e-320", "0.1", "1234567890123456789012345", "1.7976931348623157e308", "-0.0", "0b1", "0o7", "1_0.5_5e1_0"),
    ],
)
def test_numbers_stay_numbers(machine: Machine, helpers: set[str], number: str) -> None:
    for place in _PLACES:
        _checked(machine, helpers, place.format(number))
    assert machine.run(f"let x = {number}; type_of(x)").display in ("i64", "f64")
    assert machine.run(f"let a = [{number}]; type_of(a[0])").display == machine.run(f"type_of({number})").display


@pytest.mark.parametrize("number", ["1e999 - 1e999", "1e999 * 0.0", "-(1e999 - 1e999)", "0.0 / 0.0"])
def test_not_a_number_is_a_value(machine: Machine, number: str) -> None:
    assert machine.run(number).display == "NaN"
    assert machine.run(f"let x = {number}; [x == x, x.is_nan(), `${{x}}`]").display == '[false, true, "NaN"]'


def test_positions_past_what_they_hold(machine: Machine, helpers: set[str]) -> None:
    assert _checked(machine, helpers, "\n" * 100_000 + " " * 100_000 + "let x = #{y: [1]}; x.y[0] += x.len();")
    outcome = machine.run("\n" * 100_000 + " " * 100_000 + "nope")
    assert outcome.text == "Variable not found: nope (line 100001, position 65535)"


def test_a_chunk_has_nothing_in_reach(machine: Machine) -> None:
    """The prelude's `load` is the machine's too: an empty environment, and text only."""
    load = machine.host.load
    assert load("return _ENV.os, print, load")() == (None, None, None)
    refused = machine.lua.eval("function(load) return load(string.dump(function() end)) end")(load)
    assert refused[0] is None
    assert "attempt to load a binary chunk" in refused[1]
