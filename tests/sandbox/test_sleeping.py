"""Repls that sleep: their journals are free for others, and taken again before anything is written."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Sandbox, tool
from moonbox.durable.backends import SqliteBackend
from moonbox.durable.store import Journal
from moonbox.errors import JournalError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from moonbox.durable.backends import Transaction
    from moonbox.durable.leases import Held


def test_a_repl_whose_journal_was_away_when_it_fell_asleep_wakes(tmp_path: Path) -> None:
    class Away(Journal):
        is_away = False

        def release(self, held: Held) -> None:
            if self.is_away:
                raise JournalError("the journal is away")
            super().release(held)

    journal = Away(SqliteBackend(tmp_path / "state.db"))
    with Sandbox(journal=journal) as box, box.repl() as repl:
        repl.run("x = 1").unwrap()
        journal.is_away = True
        with pytest.raises(JournalError, match="the journal is away"):
            repl.sleep()
        journal.is_away = False
        assert repl.run("return x").value == 1
        assert repl.sleep() and journal.repls()[0].held_by == ""


def test_a_repl_that_slept_without_a_state_is_held_again_while_it_runs(tmp_path: Path) -> None:
    held: list[str] = []

    @tool
    def look() -> None:
        """Who holds the Repl?"""
        held.extend(known.held_by for known in box.journal.repls())

    with Sandbox([look], journal=tmp_path / "state.db") as box, box.repl() as repl:
        repl.run("x = 1").unwrap()
        repl.reset()
        assert repl.globals() == {}
        assert repl.sleep()
        repl.run("tools.look()").unwrap()
    assert len(held) == 1 and held[0].startswith("process ")


def test_a_sleeping_repl_that_another_uses_is_not_reset(tmp_path: Path) -> None:
    with Sandbox(journal=tmp_path / "state.db") as box, Sandbox(journal=tmp_path / "state.db") as other:
        repl = box.repl()
        repl.run("x = 1").unwrap()
        assert repl.sleep()
        with other.restore(repl.id):
            for use in (repl.reset, lambda: repl.run("x = 2")):
                with pytest.raises(UsageError, match="is in use by process"):
                    use()
        assert repl.run("return x").value == 1


class Interrupting(SqliteBackend):
    """Ctrl-C comes when the next change has been written."""

    armed = False

    def change(self, statement: str, values: Sequence[Any] = ()) -> int:
        changed = super().change(statement, values)
        self._interrupt()
        return changed

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        with super().writing() as db:
            yield db
        self._interrupt()

    def _interrupt(self) -> None:
        if self.armed:
            self.armed = False
            raise KeyboardInterrupt


def test_a_repl_that_was_interrupted_while_its_journal_was_taken_is_usable(tmp_path: Path) -> None:
    backend = Interrupting(tmp_path / "state.db")
    with Sandbox(journal=Journal(backend)) as box, box.repl() as repl:
        backend.armed = True
        with pytest.raises(KeyboardInterrupt):
            repl.run("x = 1")  # the Repl is entered
        repl.run("x = 1").unwrap()
        assert repl.sleep()
        backend.armed = True
        with pytest.raises(KeyboardInterrupt):
            repl.run("return x")  # it is taken again
        assert repl.run("return x").value == 1


@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_an_interrupted_write_is_done_once(tmp_path: Path, at: int, written: bool) -> None:
    class Written(Journal):
        """Ctrl-C comes during a write, which it does not undo, or before it."""

        left = 0

        def append(self, *args: Any) -> None:
            self.left -= 1
            if self.left != 0 or written:
                super().append(*args)
            if self.left == 0:
                raise KeyboardInterrupt

    @tool
    def one() -> int:
        """One."""
        return 1

    journal = Written(SqliteBackend(tmp_path / "state.db"))
    with Sandbox([one], journal=journal) as box, box.repl() as repl:
        repl.run("x = 1").unwrap()
        journal.left = at
        with pytest.raises(KeyboardInterrupt):
            repl.run("x = tools.one() + tools.one()")
        repl.run("y = x").unwrap()
        assert [known.state for known in journal.runs()][::2] == ["ok", "ok"]
        repl_id = repl.id
    with Sandbox([one], journal=tmp_path / "state.db") as box, box.restore(repl_id) as repl:
        assert repl.run("return x").ok
        assert box.interrupted() == ()
