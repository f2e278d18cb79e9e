"""The table of docs/cluster.md names a test for each of its lines."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_line_of_the_table_names_tests_that_there_are() -> None:
    page = (ROOT / "docs/cluster.md").read_text(encoding="utf-8")
    table = page.partition("What happens when")[2].partition("\n\n|")[2].partition("\n\n")[0]
    rows = table.splitlines()[2:]
    tests = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "tests").glob("*/test_*.py"))
    assert len(rows) >= 10
    for row in rows:
        names = re.findall(r"`(test_\w+)`", row)
        assert names, row
        assert [name for name in names if f"def {name}(" not in tests] == []
