"""Runs that were written are there, whenever and however their writers end."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import pytest

from moonbox import Run
from moonbox.audit.chain import json_object
from moonbox.audit.jsonlines import JsonLinesSink
from moonbox.audit.sinks import open_trail
from tests.audit.writer import run_of
from tests.long import times

WRITER = Path(__file__).with_name("writer.py")


@pytest.mark.parametrize("name", ["trail.db", "trail.jsonl"])
def test_no_written_run_is_lost_when_its_writer_is_killed_at_any_moment(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    chance = random.Random(7)
    written: list[str] = []
    rounds = times(16)
    for round_ in range(rounds):
        writers = [_start(path, f"{round_:02}{letter}") for letter in "ab"]
        for writer in writers:
            written += _kill_at_random(writer, chance)
    trail = open_trail(path)
    kept = [run.id for run in trail.list(limit=1_000_000)]
    lines = path.read_bytes().splitlines(keepends=True) if isinstance(trail, JsonLinesSink) else []
    found = {data["id"]: Run.from_dict(data) for line in lines if "id" in (data := json_object(line))}
    for id in written:
        assert (found.get(id) or trail.get(id)) == run_of(id, size=int(id.split("-")[1]) % 7 * 700)
    assert len(written) > rounds * 8, "the writers must have come to write something"
    assert len(kept) == len(set(kept))
    assert len(kept) - len(written) <= 2 * rounds, "at most the one run of each writer that was under way"
    if name == "trail.db":
        _check(path)


def _start(path: Path, name: str, count: int = 1_000_000) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(WRITER), str(path), name, str(count)], stdout=subprocess.PIPE)


def _kill_at_random(writer: subprocess.Popen[bytes], chance: random.Random) -> list[str]:
    """Kill it while it opens the trail, or somewhere in or after its first writes; what it had said by then."""
    said = _stdout(writer)
    lines = [said.readline() for _ in range(chance.choice([1, 2, 10, 30]))]
    time.sleep(chance.uniform(0, 0.004))  # not to wait for anything: to hit another moment each time
    writer.kill()
    lines += said.readlines()
    said.close()
    writer.wait()
    return [line.decode().strip() for line in lines if line.endswith(b"\n") and line != b"opening\n"]


def _stdout(writer: subprocess.Popen[bytes]) -> IO[bytes]:
    assert writer.stdout is not None
    return writer.stdout


def _check(path: Path) -> None:
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        orphans = "SELECT count(*) FROM calls WHERE run NOT IN (SELECT seq FROM runs)"
        assert db.execute(orphans).fetchone() == (0,)
        uneven = "SELECT count(*) FROM runs WHERE calls <> (SELECT count(*) FROM calls WHERE run = seq)"
        assert db.execute(uneven).fetchone() == (0,)
    db.close()
