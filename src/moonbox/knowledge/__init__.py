"""The knowledge base: the user's own documents, searchable by scripts, models and people."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from moonbox.knowledge.records import (
    Chunk,
    Connector,
    Document,
    DocumentNotFound,
    EmbeddingError,
    Failed,
    Hit,
    Hits,
    Item,
    KnowledgeError,
    Problem,
    Progress,
    Skipped,
    SourceInfo,
    Stats,
    SyncBusy,
    SyncReport,
    Total,
    Unchanged,
)

if TYPE_CHECKING:
    from moonbox.knowledge.base import KnowledgeBase
    from moonbox.knowledge.config import KnowledgeConfig
    from moonbox.knowledge.embedding import Embedder

_LATER = {"Embedder": "embedding", "KnowledgeBase": "base", "KnowledgeConfig": "config"}
"""The modules of names that are loaded on first use: the process that reads files needs none of them."""

__all__ = [
    "Chunk", "Connector", "Document", "DocumentNotFound", "Embedder", "EmbeddingError", "Failed", "Hit", "Hits",
    "Item", "KnowledgeBase", "KnowledgeConfig", "KnowledgeError", "Problem", "Progress", "Skipped", "SourceInfo",
    "Stats", "SyncBusy", "SyncReport", "Total", "Unchanged",
]  # fmt: skip

if not TYPE_CHECKING:  # checkers read the imports above; with this they would accept any name

    def __getattr__(name: str) -> Any:
        if name in _LATER:
            return getattr(importlib.import_module(f"moonbox.knowledge.{_LATER[name]}"), name)
        raise AttributeError(f"module 'moonbox.knowledge' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
