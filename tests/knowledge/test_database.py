"""The knowledge base's file: creation, threads, forks, read-only use, and files that cannot be used."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from moonbox.database import Database
from moonbox.errors import ClosedError, UsageError
from moonbox.knowledge import KnowledgeBase, KnowledgeError
from moonbox.knowledge import store as store_module
from moonbox.knowledge.store import SCHEMA
from tests.forks import in_a_fork

from .conftest import Listed, item

if TYPE_CHECKING:
    from pathlib import Path

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


def test_a_store_of_an_earlier_version_is_brought_up_to_date(store: Path) -> None:
    Database(store, replace(SCHEMA, migrations=SCHEMA.migrations[:1])).close()
    with pytest.raises(KnowledgeError, match=r"an older version of moonbox; run `moonbox sync` to update it$"):
        KnowledgeBase(store, read_only=True)
    with KnowledgeBase(store) as base:
        assert base.stats().embedded == 0


def test_other_files_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    db = sqlite3.connect(other)
    db.execute("CREATE TABLE things (id)")
    db.close()
    with pytest.raises(KnowledgeError, match=r"other.db cannot be used: the file is the database of another program"):
        KnowledgeBase(other)


def test_a_damaged_file(filled: Filled, store: Path) -> None:
    filled(*(item(f"doc{number}", "some words " * 200) for number in range(50))).close()
    with store.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(store.stat().st_size - 4096))
    with (
        pytest.raises(KnowledgeError, match=r"is damaged; delete it and run `moonbox sync` again$"),
        KnowledgeBase(store) as base,
    ):
        base.search("words")


def test_reading_alone(filled: Filled, store: Path) -> None:
    with pytest.raises(KnowledgeError, match=r"^there is no knowledge base at .*; run `moonbox sync` to make one$"):
        KnowledgeBase(store, read_only=True)
    filled(item("a", "some text")).close()
    with KnowledgeBase(store, sources={"notes": Listed()}, read_only=True) as base:
        assert [hit.source_id for hit in base.search("text")] == ["a"]
        with pytest.raises(UsageError, match=r"was opened read-only$"):
            base.sync("notes")
        with pytest.raises(UsageError, match=r"was opened read-only$"):
            base.forget("notes")


def test_readers_are_not_blocked_by_a_writer_and_see_the_old_state(filled: Filled, store: Path) -> None:
    base = filled(item("a", "some text"))
    writer = sqlite3.connect(store, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    writer.execute("DELETE FROM documents")
    assert [hit.source_id for hit in base.search("text")] == ["a"]
    writer.execute("ROLLBACK")
    writer.close()


def test_a_writer_that_waits_too_long(filled: Filled, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "BUSY_SECONDS", 0.05)
    base = filled(item("a", "some text"))
    writer = sqlite3.connect(store, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    with pytest.raises(KnowledgeError, match=r"is locked: another process has been writing .*; try again$"):
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
    for use in (
        lambda: base.search("text"),
        lambda: base.get("a"),
        lambda: base.sync("notes"),
        base.stats,
        base.sources,
    ):
        with pytest.raises(ClosedError, match=r"^the knowledge base .* is closed$"):
            use()


def test_a_forked_process_syncs_and_searches(filled: Filled) -> None:
    listed = Listed(item("a", "some text"))
    base = filled(*listed.scanned)
    base.search("text")
    assert in_a_fork(lambda: f"{base.sync('notes').unchanged} {len(base.search('text'))}") == "1 1"
    assert len(base.search("text")) == 1
