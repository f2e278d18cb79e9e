"""The store's file: creation, threads, forks, read-only use, and what is wrong with some files."""

from __future__ import annotations

import os
import sqlite3
import stat
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from moonbox.errors import ClosedError, UsageError
from moonbox.knowledge import KnowledgeBase, KnowledgeError, database
from moonbox.knowledge.migrations import MIGRATIONS

from .conftest import Listed, item

Filled = Callable[..., KnowledgeBase]


def test_the_file_is_for_its_owner_alone(store: Path) -> None:
    with KnowledgeBase(store, sources={"notes": Listed(item("a", "text"))}) as base:
        base.sync("notes")
        files = sorted(path.name for path in store.parent.iterdir())
        assert files == ["knowledge.db", "knowledge.db-shm", "knowledge.db-sync-1", "knowledge.db-wal"]
        for path in store.parent.iterdir():
            if path.stat().st_size:
                assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(path.name for path in store.parent.iterdir()) == ["knowledge.db", "knowledge.db-sync-1"]


def test_migrations_are_recorded_by_name(store: Path) -> None:
    KnowledgeBase(store).close()
    KnowledgeBase(store).close()
    db = sqlite3.connect(store)
    names = [name for (name,) in db.execute("SELECT name FROM migrations ORDER BY position")]
    assert names == [step.__name__ for step in MIGRATIONS]
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()


def test_an_older_store_is_brought_up_to_date(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "MIGRATIONS", MIGRATIONS[:1])
    KnowledgeBase(store).close()
    monkeypatch.undo()
    with pytest.raises(KnowledgeError, match=r"was written by an older moonbox; `moonbox sync` brings it up to date$"):
        KnowledgeBase(store, read_only=True)
    with KnowledgeBase(store) as base:
        assert base.stats().embedded == 0


def test_a_newer_store_is_refused(store: Path) -> None:
    KnowledgeBase(store).close()
    db = sqlite3.connect(store)
    db.execute("INSERT INTO migrations VALUES (99, 'from_the_future', '')")
    db.commit()
    db.close()
    with pytest.raises(
        KnowledgeError, match=r"was written by a newer moonbox; upgrade moonbox or choose another file$"
    ):
        KnowledgeBase(store)


def test_other_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database, but long enough to look at " * 50)
    with pytest.raises(KnowledgeError, match=r"notes.txt is not a SQLite database; choose another file$"):
        KnowledgeBase(text)
    assert text.read_text().startswith("not a database")
    other = tmp_path / "other.db"
    db = sqlite3.connect(other)
    db.execute("CREATE TABLE things (id)")
    db.close()
    for read_only in (False, True):
        with pytest.raises(KnowledgeError, match=r"other.db is not a knowledge base but another database"):
            KnowledgeBase(other, read_only=read_only)
    with pytest.raises(KnowledgeError, match=r"cannot be made: Is a directory$"):
        KnowledgeBase(tmp_path)


def test_a_damaged_file_is_told(filled: Filled, store: Path) -> None:
    filled(*(item(f"doc{number}", "some words " * 200) for number in range(50))).close()
    with store.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(store.stat().st_size - 4096))
    with (
        pytest.raises(KnowledgeError, match=r"is damaged; delete it and synchronise again$"),
        KnowledgeBase(store) as base,
    ):
        base.search("words")


def test_reading_alone(filled: Filled, store: Path) -> None:
    with pytest.raises(KnowledgeError, match=r"^there is no knowledge base at .*; `moonbox sync` makes one$"):
        KnowledgeBase(store, read_only=True)
    filled(item("a", "some text")).close()
    with KnowledgeBase(store, sources={"notes": Listed()}, read_only=True) as base:
        assert [hit.source_id for hit in base.search("text")] == ["a"]
        with pytest.raises(UsageError, match=r"was opened read-only$"):
            base.sync("notes")
        with pytest.raises(UsageError, match=r"was opened read-only$"):
            base.forget("notes")


def test_reading_where_nothing_can_be_written() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kb.db"
        with KnowledgeBase(path, sources={"notes": Listed(item("a", "some text"))}) as base:
            base.sync("notes")
        path.chmod(0o444)
        Path(folder).chmod(0o555)

        def read() -> str:
            if os.getuid() == 0:
                os.setuid(65534)  # root could write there
            with KnowledgeBase(path, read_only=True) as base:
                return str([hit.source_id for hit in base.search("text")])

        try:
            assert in_a_fork(read) == "['a']"
        finally:
            Path(folder).chmod(0o755)


def in_a_fork(work: Callable[[], str]) -> str:
    """What some work returns when it is done in another process."""
    mine, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            told = work()
        except BaseException as error:  # noqa: BLE001 - told to the test
            told = repr(error)
        os.write(theirs, told.encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(mine) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return told


def test_readers_are_not_blocked_by_a_writer_and_see_the_old_state(filled: Filled, store: Path) -> None:
    base = filled(item("a", "some text"))
    writer = sqlite3.connect(store, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    writer.execute("DELETE FROM documents")
    assert [hit.source_id for hit in base.search("text")] == ["a"]
    writer.execute("ROLLBACK")
    writer.close()


def test_a_writer_that_waits_too_long_is_told(filled: Filled, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    base = filled(item("a", "some text"))
    writer = sqlite3.connect(store, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    with pytest.raises(
        KnowledgeError, match=r"is busy: another process has been writing for more than 10 s; try again$"
    ):
        base.sync("notes")
    writer.execute("ROLLBACK")
    writer.close()
    assert base.sync("notes").unchanged == 1


def test_many_threads_at_once(filled: Filled) -> None:
    listed = Listed(*(item(f"doc{number}", f"shared text number{number}") for number in range(40)))
    base = filled(*listed.scanned)
    failures: list[BaseException] = []

    def read() -> None:
        try:
            for number in range(40):
                assert base.search(f"number{number}")[0].source_id == f"doc{number}"
                base.sources()
        except BaseException as error:  # noqa: BLE001 - told to the test
            failures.append(error)

    def write() -> None:
        try:
            for _ in range(3):
                base.sync("notes", wait=30)
        except BaseException as error:  # noqa: BLE001 - told to the test
            failures.append(error)

    threads = [threading.Thread(target=target) for target in (read, write) * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_closing(filled: Filled) -> None:
    base = filled(item("a", "text"))
    base.close()
    base.close()
    for use in (lambda: base.search("text"), lambda: base.get(1), lambda: base.sync("notes"), base.stats, base.sources):
        with pytest.raises(ClosedError, match=r"^the knowledge base .* is closed$"):
            use()


def test_closing_while_others_read(filled: Filled) -> None:
    base = filled(item("a", "text"))
    with base._database.reading() as db:
        base.close()
        assert db.execute("SELECT count(*) FROM documents").fetchone() == (1,)
    with pytest.raises(sqlite3.ProgrammingError):
        db.execute("SELECT 1")


def test_a_forked_process_opens_connections_of_its_own(filled: Filled) -> None:
    base = filled(item("a", "some text"))
    base.search("text")

    def work() -> str:
        listed = base._sources["notes"]
        assert isinstance(listed, Listed)
        listed.scanned.append(item("b", "more text"))
        return f"{base.sync('notes').added} {len(base.search('text'))} {len(base._database._abandoned)}"

    with base._database._guard, base._database._write_lock:  # what the parent's threads hold is not held there
        assert in_a_fork(work) == "1 2 2"
    assert len(base.search("text")) == 2
