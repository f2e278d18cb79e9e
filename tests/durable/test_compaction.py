"""What a journal need not keep: runs whose effects are gone, and Repls that nobody has used for long."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from moonbox import Sandbox, tool
from moonbox.durable import history
from moonbox.durable.store import open_journal
from moonbox.errors import UsageError
from tests.postgres import postgres  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from pathlib import Path

    from moonbox import Repl


@tool
def one() -> int:
    """One."""
    return 1


def numbers_left(repl: Repl) -> list[int]:
    return [run.begin.number for run in repl.history.journal.recorded_runs()]  # type: ignore[union-attr]  # it has one


CASES: dict[str, tuple[str, list[str], list[int]]] = {
    "a script that leaves nothing": ("lua", ["return tools.one()", "x = 1"], [2]),
    "globals that are gone": ("lua", ["rows = {1, 2}", "n = #rows", "rows, n = nil, nil", "x = 1"], [4]),
    "one that is overwritten": ("lua", ["x = {tools.one()}", "x = 5", "return x", "y = 2"], [2, 3, 4]),
    "one that is read first": ("lua", ["x = tools.one()", "x = x + 5", "x = x + 5"], [1, 2, 3]),
    "a function that changes another global": (
        "lua",
        ["count = 0", "function add() count = count + 1 end", "add()", "add = nil"],
        [1, 2, 3, 4],
    ),
    "values that are shared": ("lua", ["a = {}", "b = a", "a.x = 1", "a = nil"], [1, 2, 3, 4]),
    "globals by other names": ("lua", ["return 1", "_ENV = nil", "return 2"], [1, 2, 3]),
    "what every script finds": ("lua", ["return 1", "print = nil", "x = 1"], [1, 2, 3]),
    "a loop over one": ("lua", ["return 1", "for pairs = 1, 2 do end", "x = 1"], [1, 2, 3]),
    "rhai": ("rhai", ["one()", "let x = one();", "x + 1"], [2, 3]),
    "python": ("python", ["one()", "x = [one()]", "x = 5", "del x", "y = 2"], [5]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_globals_are_the_same_afterwards(name: str, tmp_path: Path) -> None:
    language, scripts, left = CASES[name]
    with Sandbox([one], journal=tmp_path / "state.db", language=language) as box:
        repl = box.repl()
        for script in scripts:
            repl.run(script)
        names = repl.globals()
        assert repl.compact() == len(scripts) - len(left)
        assert numbers_left(repl) == left
        assert repl.globals() == names
        assert repl.run("1" if language != "lua" else "return 1").number == len(scripts) + 1
        repl.close()
        with box.restore(repl.id) as again:
            assert again.globals() == names
        assert len(box.journal.runs()) == len(scripts) + 1  # they are still listed


def test_a_value_is_the_same_afterwards(tmp_path: Path) -> None:
    with Sandbox([one], journal=tmp_path / "state.db") as box, box.repl() as repl:
        first = repl.run("return tools.one()")
        repl.run("total = 40").unwrap()
        repl.run("total = total + tools.one()").unwrap()
        repl.reset()
        repl.run("total = 1").unwrap()
        assert repl.compact() == 3  # those before the reset
        assert repl.run("total = total + 1 return total").value == 2
        with pytest.raises(UsageError, match=f"the record of run '{first.id}' is no longer in the journal: its Repl"):
            box.replay(first.id, until=1)
        assert repl.compact() == 0


def test_old_runs_go_when_the_repl_wakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "_WORTH_COMPACTING", 3)
    with Sandbox([one], journal=tmp_path / "state.db") as box, box.repl() as repl:
        repl.run("kept = 10").unwrap()
        for _ in range(3):
            repl.run("return tools.one()").unwrap()
        assert repl.sleep()
        assert repl.run("return kept").value == 10
        assert numbers_left(repl) == [1, 2, 3, 4, 5]  # they are younger than 30 days
        real = time.time
        monkeypatch.setattr(history, "time", lambda: real() + 31 * 86_400)
        assert repl.sleep()
        assert repl.run("return kept").value == 10
        assert numbers_left(repl) == [1, 5, 6]  # those that name what is kept


@pytest.mark.parametrize("place", ["sqlite", "postgresql"])
def test_one_off_runs_are_deleted_after_30_days(place: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    where = str(tmp_path / "state.db") if place == "sqlite" else request.getfixturevalue("postgres")
    with Sandbox([one], journal=where) as box:
        ids = [box.run("return tools.one()").repl for _ in range(21)]
        kept = box.run("return tools.one()").repl
        assert {*ids, kept} <= {repl.id for repl in box.journal.repls()}
    journal = open_journal(where)
    assert journal.max_days == 30
    long_ago = time.time() - 31 * 86_400
    with journal.backend.writing() as db:
        for repl in ids:
            db.change("UPDATE repls SET created = ? WHERE id = ?", (long_ago, repl))
            db.change("UPDATE journal_runs SET began = ?, ended = ? WHERE repl = ?", (long_ago, long_ago, repl))
    journal.prune()
    assert not {repl.id for repl in journal.repls()}.intersection(ids)
    assert kept in {repl.id for repl in journal.repls()}
    journal.close()
