"""No script that works is refused: every script of the tests, the docs, the examples and the benchmarks.

Those of Python run with the check on in tests/languages/python/test_scripts.py; a column here would repeat them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from moonbox import Toolbox
from moonbox.check.checker import Checker
from moonbox.check.tools import ScriptTools
from moonbox.languages.registry import LANGUAGES
from moonbox.runs.environment import GLOBAL_TOOLS
from tests.script_cases import case_tools, read_case

if TYPE_CHECKING:
    from moonbox.findings import Finding

ROOT = Path(__file__).parents[2]
LUA, RHAI = LANGUAGES["lua"], LANGUAGES["rhai"]

WAITS = {"sleep", "sleep_until"}
"""What every run adds."""


def errors(findings: tuple[Finding, ...]) -> list[str]:
    return [str(finding) for finding in findings if finding.severity == "error"]


def test_lua_cases() -> None:
    view = ScriptTools(case_tools(), LUA)
    paths = [*(ROOT / "tests/scripts/lua").rglob("*.lua"), *(ROOT / "tests/attacks").glob("*.lua")]
    assert len(paths) > 500
    for path in paths:
        case, checker = read_case(path), Checker(LUA)
        opened = frozenset(name for feature in case.features for name in LUA.features[feature]) | WAITS
        for step in case.steps:
            found = errors(checker.check(step.source, view, opened))
            assert not found or "error" in step.expected, path
            checker.remember(step.source)


def test_rhai_cases() -> None:
    view = ScriptTools(case_tools(), RHAI)
    paths = list((ROOT / "tests/scripts/rhai").glob("*.rhai"))
    assert len(paths) > 200
    for path in paths:
        checker = Checker(RHAI)
        for step in path.read_text(encoding="utf-8").split("// next run\n"):
            # Their tools take anything: the machine that runs them has no schemas.
            found = errors(tuple(item for item in checker.check(step, view) if item.code is None))
            assert not found or "// error:" in step, path
            checker.remember(step)


def test_the_economy_s_stories() -> None:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from tokens.stories import STORIES  # found only from here on

    for story in STORIES:
        view = ScriptTools(Toolbox(story.tools), LUA)
        source = story.script.read_text(encoding="utf-8")
        assert errors(Checker(LUA).check(source, view, frozenset(GLOBAL_TOOLS))) == []


def test_slips_that_are_right() -> None:
    """A script that gives the right answer unchecked is not refused."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import slips  # found only from here on

    meant = [slip for spoken in ("lua", "rhai") for slip in slips.read_slips(spoken) if "as_meant" in slip.name]
    suspects = [slip for slip in meant if slips.Bench().outcome(slip)[0] != "right"]
    assert [slip.name for slip in suspects if slips.Bench(check=False).outcome(slip)[0] == "right"] == []
