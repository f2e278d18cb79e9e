"""The knowledge base's file: earlier versions, damage, read-only use, closing and forks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from moonbox.database import Database
from moonbox.errors import UsageError
from moonbox.knowledge import KnowledgeBase, KnowledgeError
from moonbox.knowledge.store import SCHEMA

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
