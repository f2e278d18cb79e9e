"""Errors of the knowledge base.

KnowledgeError            the store cannot be used: the message says why
├── DocumentNotFound      no document has that id: search again
├── SyncBusy              another process is synchronising that source: wait
└── EmbeddingError        vectors could not be made: check the configuration of the embeddings
"""

from __future__ import annotations

from moonbox.errors import MoonboxError

__all__ = ["DocumentNotFound", "EmbeddingError", "KnowledgeError", "SyncBusy"]


class KnowledgeError(MoonboxError):
    """The knowledge base cannot be used; the message says why."""


class DocumentNotFound(KnowledgeError, LookupError):
    """No document has that id."""


class SyncBusy(KnowledgeError):
    """Another process or thread is synchronising the same source."""


class EmbeddingError(KnowledgeError):
    """The embedder failed or gave an invalid answer."""
