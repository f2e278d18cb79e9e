"""A host that is killed at any write to its journal: a new process resumes the run, and no call is made twice."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from tests.long import LONG
from tests.postgres import postgres  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from pathlib import Path


def crashes(place: str, language: str, mode: str, side: str, folder: Path) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tests.durable.crashing", place, language, mode, side, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(told: list[dict[str, Any]]) -> None:
    undisturbed = told[0]
    assert undisturbed["value"] == {"total": 45, "spent": True}, undisturbed
    assert sum(each["killed"] for each in told) >= 6
    for each in told:
        assert each.get("value") == undisturbed["value"], each
        assert each["calls"] == 5, each
        made = Counter(line.partition(" ")[2] if line.startswith("get") else line for line in each["world"])
        paid = [line for line in each["world"] if line.startswith("pay")]
        assert len(paid) == 2, each  # not idempotent: each of the two payments exactly once
        assert max(made.values()) <= 2, each  # read-only: once more where its answer was not on file


@pytest.mark.parametrize("side", ["before", "after"] if LONG else ["after"])
def test_an_answered_question_is_not_asked_again(side: str, tmp_path: Path) -> None:
    told = crashes("journal.db", "lua", "approved", side, tmp_path)
    check(told)
    for each in told:
        asked = Counter(line for line in each["world"] if line.startswith("ask"))
        assert len(asked) == 2, each  # one question for each payment, under the same id after a crash
        assert sum(asked.values()) <= 3, each  # once more where the answer was not on file


EVERY = list(product(("lua", "rhai", "python"), ("sync", "async"), ("before", "after")))
SOME = [("python", "sync", "before")]


@pytest.mark.parametrize(("language", "mode", "side"), EVERY if LONG else SOME)
def test_a_run_is_resumed_from_every_write(language: str, mode: str, side: str, tmp_path: Path) -> None:
    check(crashes("journal.db", language, mode, side, tmp_path))


@pytest.mark.parametrize(("language", "mode", "side"), EVERY if LONG else [("rhai", "async", "after")])
def test_the_same_in_postgresql(postgres: str, language: str, mode: str, side: str, tmp_path: Path) -> None:  # noqa: F811
    check(crashes(postgres, language, mode, side, tmp_path))
