"""No script that works is refused: every script of the tests, the docs, the examples and the benchmarks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moonbox import Toolbox
from moonbox.check.checker import Checker
from moonbox.check.tools import ToolView
from moonbox.languages.registry import LANGUAGES
from tests.script_cases import case_tools, read_case

if TYPE_CHECKING:
    from moonbox.findings import Finding

ROOT = Path(__file__).parents[2]
CASES = [*sorted((ROOT / "tests/scripts/lua").rglob("*.lua")), *sorted((ROOT / "tests/attacks").glob("*.lua"))]


def errors(findings: tuple[Finding, ...]) -> list[str]:
    return [str(finding) for finding in findings if finding.severity == "error"]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_lua_cases(path: Path) -> None:
    case = read_case(path)
    lua = LANGUAGES["lua"]
    opened = frozenset(name for feature in case.features for name in lua.features[feature])
    checker, view = Checker(lua), ToolView(case_tools(), lua)
    for step in case.steps:
        found = errors(checker.check(step.source, view, opened))
        assert not found or "error" in step.expected
        checker.remember(step.source)


@pytest.mark.parametrize("path", sorted((ROOT / "tests/scripts/rhai").glob("*.rhai")), ids=lambda path: path.stem)
def test_rhai_cases(path: Path) -> None:
    rhai = LANGUAGES["rhai"]
    checker, view = Checker(rhai), ToolView(case_tools(), rhai)
    for step in path.read_text(encoding="utf-8").split("// next run\n"):
        # Their tools take anything: the machine that runs them has no schemas.
        found = errors(tuple(item for item in checker.check(step, view) if item.code is None))
        assert not found or "// error:" in step
        checker.remember(step)


def test_the_economy_s_stories() -> None:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from tokens.stories import STORIES  # found only from here on

    lua = LANGUAGES["lua"]
    for story in STORIES:
        view = ToolView(Toolbox(story.tools), lua)
        assert errors(Checker(lua).check(story.script.read_text(encoding="utf-8"), view)) == []


def test_slips_that_are_right() -> None:
    """A script that gives the right answer unchecked is not refused."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import slips  # found only from here on

    unchecked, checked = slips.Bench(check=False), slips.Bench()
    refused = []
    for language in ("lua", "rhai"):
        for slip in slips.read_slips(language):
            if "as_meant" in slip.name and unchecked.outcome(slip)[0] == "right" != checked.outcome(slip)[0]:
                refused.append(slip.name)
    assert refused == []
