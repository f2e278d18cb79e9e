"""The Lua environment, tested by data: every file of tests/scripts/lua in every isolation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.script_cases import Boxes, read_case, read_cases

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent.parent / "scripts" / "lua"


@pytest.fixture(scope="module")
def boxes() -> Iterator[Boxes]:
    boxes = Boxes()
    yield boxes
    boxes.close()


@pytest.mark.parametrize(
    ("path", "isolation"), [pytest.param(*case, id=f"{case[0].stem}-{case[1]}") for case in read_cases(FOLDER)]
)
def test_script(path: Path, isolation: str, boxes: Boxes) -> None:
    case = read_case(path)
    with boxes.repl(case, isolation) as repl:
        case.play(repl)


def test_there_are_many() -> None:
    assert len(list(FOLDER.glob("*__*.lua"))) == len(list(FOLDER.glob("*.lua"))) >= 150
