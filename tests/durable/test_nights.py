"""The example that waits over night, killed at any write: each payment is made once, and taken back once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.long import LONG
from tests.postgres import postgres  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from pathlib import Path

STEP = 1 if LONG else 14


@pytest.mark.timeout(1800 if LONG else 300)
@pytest.mark.parametrize(
    ("place", "side"),
    [("sqlite", "before"), ("postgresql", "after"), *([("sqlite", "after"), ("postgresql", "before")] if LONG else [])],
)
def test_it_comes_to_its_end_from_every_write(
    place: str, side: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    journal = "journal.db" if place == "sqlite" else request.getfixturevalue("postgres")
    command = [sys.executable, "-m", "tests.durable.nights", journal, side, str(STEP), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1700 if LONG else 280, check=False)
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert sum(each["killed"] for each in told) >= 20 // STEP
    for each in told:
        assert (each.get("state"), each.get("undone"), each.get("value")) == ("ok", "yes", 600), each
        made = Counter(line.split()[0] + " " + line.split()[2] for line in each["world"] if "pay" in line)
        assert made == {"pay ada": 1, "pay bob": 1, "undo_pay ada": 1, "undo_pay bob": 1}, each
        assert sum(line.startswith("rate") for line in each["world"]) <= 6, each
