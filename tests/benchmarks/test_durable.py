"""The benchmark of the journal: every kind is compared with none, and Repls are restored."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def test_the_report_compares_with_no_journal(tmp_path: Path) -> None:
    import durable

    found = durable.costs(str(tmp_path), rounds=2, runs=2, calls=2, postgres=None)
    assert [len(figures) for subject in found for figures in subject.figures.values()] == [2] * 6
    text = durable.report(found, durable.restores(str(tmp_path), [3]))
    rows = {line.split(" | ")[0].strip("| "): line.split(" | ") for line in text.splitlines() if line.startswith("| ")}
    assert rows[durable.NONE][2:4] == ["1.0", "1.0"]
    assert float(rows[durable.PROCESS][2]) > 0
    assert rows["3"][1].endswith(" ms |")
