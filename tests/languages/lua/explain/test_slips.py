"""Slips of language models, tested by data: every file of tests/scripts/lua/errors in every isolation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from script_cases import Boxes, read_case, read_cases

from languages.lua.explain.bench import Bench

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parents[3] / "scripts" / "lua" / "errors"
FILES = sorted(FOLDER.glob("*.lua"))


@pytest.fixture(scope="module")
def boxes() -> Iterator[Boxes]:
    boxes = Boxes()
    yield boxes
    boxes.close()


@pytest.mark.parametrize(
    ("path", "isolation"), [pytest.param(*case, id=f"{case[0].stem}-{case[1]}") for case in read_cases(FOLDER)]
)
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


def test_there_are_many() -> None:
    assert len(FILES) >= 300
    assert sum("-- hint:" in path.read_text() for path in FILES) >= 250


@pytest.mark.parametrize("path", [path for path in FILES if " write: " in path.read_text()], ids=lambda path: path.stem)
def test_what_is_told_to_write_is_lua(path: Path) -> None:
    """The code behind "write:" compiles, on its own or as the part of a script that it is."""
    hint = read_case(path).steps[-1].expected["hint"][0]
    code = hint.rpartition(" write: ")[2].partition(" (also ")[0]
    code = code.replace(" … ", " x() ").replace("…", "x")
    frames = ("{}", "{} end", "if x then {} end", "return {}", "local t = {{ {} }}", "{}{{}}")
    assert any(_compiles(frame.format(code)) for frame in frames), code


def _compiles(source: str) -> bool:
    ending = Bench().ending(f"local function unused()\n{source}\nend")
    return ending is None or ending.kind != "syntax"
