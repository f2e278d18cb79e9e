"""The part of a synchronisation that gives vectors to chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.knowledge.errors import EmbeddingError
from moonbox.knowledge.indexing import embedded_text
from moonbox.knowledge.text import joined
from moonbox.knowledge.vectors import forget_other_models, model_id, pending, register_model, write_vectors

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.knowledge.database import Database
    from moonbox.knowledge.embedding import Embedder

__all__ = ["embed_pending"]

BATCH = 256


def embed_pending(database: Database, source: int, embedder: Embedder, tell: Callable[[int, int], None]) -> None:
    """Embed the source's chunks that have no vector of this model yet; `tell` gets how many of how many are done.

    No transaction is open while the model works, and each batch is kept: an interrupted phase goes on where it stopped.
    """
    with database.writing() as db:
        forget_other_models(db, source, model_id(db, embedder.name))
        chunks = pending(db, source)
    for start in range(0, len(chunks), BATCH):
        ids = chunks[start : start + BATCH]
        with database.reading() as db:
            texts = [
                embedded_text(*db.execute("SELECT title, heading, text FROM passages WHERE id = ?", (id,)).fetchone())
                for id in ids
            ]
        vectors = embedder.embed([joined(text) for text in texts], "document")
        if len(vectors) != len(ids):
            raise EmbeddingError(f"{embedder.name} gave {len(vectors)} vectors for {len(ids)} texts")
        with database.writing() as db:
            model = register_model(db, embedder.name, len(vectors[0]))
            write_vectors(db, model, list(zip(ids, texts, vectors, strict=True)))
        tell(start + len(ids), len(chunks))
