"""docs/durable.md and docs/cluster.md name the test of each line about what fails; these tests exist."""

from __future__ import annotations

import ast
import re

import pytest

from moonbox.durable.index import KnownRun
from tests.faults.journals import POSTGRES_FAULTS, SQLITE_FAULTS

from .pages import DOCS, ROOT

FAULT = re.compile(r"`…\[(sqlite|postgresql)-([a-z -]+)-…\]`")
NAME = re.compile(r"`(test_\w+)`")


def functions() -> set[str]:
    found: set[str] = set()
    for path in (*(ROOT / "tests").glob("*/test_*.py"), *(ROOT / "tests").glob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    return found


def lines(page: str, heading: str) -> list[str]:
    section = (DOCS / page).read_text(encoding="utf-8").partition(heading)[2].partition("\n## ")[0]
    return [line for line in section.splitlines() if line.startswith("| ")][1:] or pytest.fail(f"{page}: no table")


@pytest.mark.parametrize(
    ("page", "heading"),
    [("durable.md", "## What happens when the database fails"), ("cluster.md", "## When a machine fails")],
)
def test_each_line_of_what_fails_names_its_test(page: str, heading: str) -> None:
    known = functions()
    faults = {"sqlite": SQLITE_FAULTS, "postgresql": POSTGRES_FAULTS}
    for line in lines(page, heading):
        named = NAME.findall(line)
        cells = FAULT.findall(line)
        assert named or cells, line
        assert set(named) <= known, line
        assert all(fault in faults[database] for database, fault in cells), line


def test_the_fields_of_a_listed_run_are_documented() -> None:
    rows = lines("durable.md", "`--json` prints one line for each run:")
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert {*names} - {"pending"} == set(KnownRun.__struct_fields__)
