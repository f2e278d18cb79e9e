"""The knowledge base: the user's own documents, searchable by scripts, models and people."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moonbox.knowledge.base import KnowledgeBase
    from moonbox.knowledge.config import KnowledgeConfig
    from moonbox.knowledge.embedding import Embedder
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

# Loaded on first use: the process that reads PDFs imports this package and needs nothing of it.
_ELSEWHERE = {"Embedder": "embedding", "KnowledgeBase": "base", "KnowledgeConfig": "config"}
"""The modules of the names that are not records."""

__all__ = [
    "Chunk",
    "Connector",
    "Document",
    "DocumentNotFound",
    "Embedder",
    "EmbeddingError",
    "Failed",
    "Hit",
    "Hits",
    "Item",
    "KnowledgeBase",
    "KnowledgeConfig",
    "KnowledgeError",
    "Problem",
    "Progress",
    "Skipped",
    "SourceInfo",
    "Stats",
    "SyncBusy",
    "SyncReport",
    "Total",
    "Unchanged",
]


if not TYPE_CHECKING:  # checkers read the imports above; with this they would accept any name

    def __getattr__(name: str) -> Any:
        if name in __all__:
            return getattr(importlib.import_module(f"moonbox.knowledge.{_ELSEWHERE.get(name, 'records')}"), name)
        raise AttributeError(f"module 'moonbox.knowledge' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
