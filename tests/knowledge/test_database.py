"""The knowledge base's file: earlier versions, damage, read-only use, closing and forks."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from moonbox.database import Database
from moonbox.errors import ClosedError, UsageError
from moonbox.knowledge import KnowledgeBase, KnowledgeError
from moonbox.knowledge.store import SCHEMA
from tests.forks import in_a_fork

from .conftest import Listed, item

if TYPE_CHECKING:
    from pathlib import Path

Filled = Callable[..., KnowledgeBase]


def test_a_store_of_an_earlier_version_is_brought_up_to_date(store: Path) -> None:
    Database(store, replace(SCHEMA, migrations=SCHEMA.migrations[:1])).close()
    with pytest.raises(KnowledgeError, match=r"an older version of moonbox; run `moonbox sync` to update it$"):
        KnowledgeBase(store, read_only=True)
    with KnowledgeBase(store) as base:
        assert base.stats().embedded == 0


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
