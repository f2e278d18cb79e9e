"""Slips of language models, tested by data: every file of tests/scripts/lua/errors in every isolation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lupa import lua54

from moonbox.languages.lua.syntax.lexer import Words
from moonbox.languages.lua.vocabulary import equivalents
from tests.languages.lua.explain.bench import CASES, Bench
from tests.long import LONG
from tests.script_cases import Boxes, read_case, read_cases

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parents[3] / "scripts" / "lua" / "errors"
FILES = sorted(FOLDER.glob("*.lua"))
LOAD = lua54.LuaRuntime().eval("function(source) return load(source) ~= nil end")


@pytest.fixture(scope="module")
def boxes() -> Iterator[Boxes]:
    boxes = Boxes()
    yield boxes
    boxes.close()


def cases() -> list[Any]:
    """Every slip in a worker; every fourth inline too, and all in a long run."""
    found = [case for n, case in enumerate(read_cases(FOLDER)) if LONG or case[1] == "process" or n % 8 == 1]
    return [pytest.param(*case, id=f"{case[0].stem}-{case[1]}") for case in found]


@pytest.mark.parametrize(("path", "isolation"), cases())
def test_slip(path: Path, isolation: str, boxes: Boxes) -> None:
    case = read_case(path)
    with boxes.repl(case, isolation) as repl:
        run = case.play(repl)[-1]
    error = run.error
    assert error is not None
    expected = case.steps[-1].expected
    assert (error.hint is not None) == ("hint" in expected), "a file without a hint is one that must get none"
    assert (error.line is not None) == ("line" in expected)
    if error.line is not None and len(case.steps) == 1:
        assert error.traceback.startswith(f"{error.line} | ")
        assert error.traceback.split("\n")[1].rstrip().endswith("^")


def hint_of(path: Path) -> str:
    return read_case(path).steps[-1].expected["hint"][0]


def test_the_code_of_a_hint_is_lua() -> None:
    """What a hint shows as code compiles, alone or as a part of a script, and uses no other language's constants."""
    for code in [code for path in FILES if "-- hint:" in path.read_text() for code in code_in(hint_of(path))]:
        frames = ("{}", "{} end", "if x then {} end", "return {}", "local t = {{ {} }}", "{}{{}}")
        written = code.replace(" … ", " x() ").replace("…", "x")
        assert any(_compiles(frame.format(written)) for frame in frames), code
        names = {token.text for token in Words(written).tokens if token.kind == "name"}
        assert not names & equivalents().constants.keys(), code


def code_in(hint: str) -> list[str]:
    """The code that a hint shows: behind a colon, up to a semicolon between two hints."""
    hint = hint.partition(" (also ")[0]
    found = [part for mark in MARKS for part in hint.split(mark)[1:]]
    if re.search(r": (?:for|local|if) ", hint):
        found.append(re.split(r": (?=(?:for|local|if) )", hint)[-1])
    return [re.split(r"; (?:a field|read a field|for a list|for a string)|, a list with", part)[0] for part in found]


MARKS = (
    "write: ",
    "use: ",
    "for example: ",
    "first: ",
    "parentheses: ",
    "with a dot: ",
    "with: ",
)


@pytest.mark.parametrize(("source", "value"), CASES["followed"])
def test_a_script_with_its_hints_followed_does_what_was_meant(source: str, value: object) -> None:
    """Each line that a hint says to write takes the place of the line that failed, until the script runs."""
    lines = source.split("\n")
    for _ in range(3):
        bench = Bench()
        error = bench.run("\n".join(lines))
        if error is None:
            break
        assert error.line is not None and error.hint is not None, error
        lines[error.line - 1] = error.hint.rpartition(" write: ")[2]
    assert bench.value("\n".join(lines)) == value, lines


def _compiles(source: str) -> bool:
    return bool(LOAD(f"local function unused(...)\n{source}\nend"))
