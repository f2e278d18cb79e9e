"""Embedders: what turns texts into vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Embedder"]


@runtime_checkable
class Embedder(Protocol):
    """A model that gives texts a place, near to texts that mean the same."""

    @property
    def name(self) -> str:
        """What tells this model's vectors from another's; a new name makes every vector anew."""
        ...

    def embed(self, texts: Sequence[str], kind: Literal["document", "query"]) -> list[list[float]]:
        """One vector for each text, all of the same length; raises EmbeddingError."""
        ...
