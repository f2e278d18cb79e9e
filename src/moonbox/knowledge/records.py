"""Records of the knowledge base: what searches, look-ups and synchronisations give back."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Chunk", "Document", "Hit", "Hits", "Mode", "Problem", "Progress", "SourceInfo", "Stats", "SyncReport"]

Mode = Literal["keyword", "semantic", "hybrid"]


@dataclass(frozen=True, slots=True)
class Hit:
    """One document that a search found, with the passage that fits best."""

    id: str
    """What `get` takes: "source:source_id", the same for as long as the document is there."""
    score: float
    """Larger is better; comparable within one answer only."""
    source: str
    source_id: str
    title: str
    snippet: str
    source_url: str | None
    updated_at: str | None

    def to_dict(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}


class Hits(list[Hit]):
    """The rows of one search: a list with the mode that was used and notes for the caller."""

    def __init__(self, rows: Iterable[Hit] = (), *, mode: Mode = "keyword", notes: tuple[str, ...] = ()) -> None:
        super().__init__(rows)
        self.mode, self.notes = mode, notes


@dataclass(frozen=True, slots=True)
class Chunk:
    """One passage of a document. The texts of all its chunks, joined, are the document's body."""

    position: int
    heading: str
    """The headings above it, outermost first, joined by " > "."""
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """One document with its chunks."""

    id: str
    """"source:source_id", the same for as long as the document is there."""
    source: str
    source_id: str
    title: str
    source_url: str | None
    updated_at: str | None
    author: str | None
    metadata: Mapping[str, Any]
    chunks: tuple[Chunk, ...]

    @property
    def body(self) -> str:
        return "".join(chunk.text for chunk in self.chunks)

    def to_dict(self) -> dict[str, Any]:
        data = {item.name: getattr(self, item.name) for item in fields(self)}
        data["metadata"] = dict(self.metadata)
        data["chunks"] = [{"position": c.position, "heading": c.heading, "text": c.text} for c in self.chunks]
        return data


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """The state of one source."""

    name: str
    configured: bool
    healthy: bool
    """Its last synchronisation succeeded."""
    documents: int
    last_sync: str | None
    """When its last synchronisation ended, ISO 8601 in UTC."""
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {**{item.name: getattr(self, item.name) for item in fields(self)}, "notes": list(self.notes)}


@dataclass(frozen=True, slots=True)
class Stats:
    """The store in numbers."""

    path: str
    bytes: int
    sources: int
    documents: int
    chunks: int
    embedded: int
    """Chunks that semantic search can find."""
    embedder: str | None
    """The model that made the vectors."""

    def to_dict(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}


@dataclass(frozen=True, slots=True)
class Problem:
    """An item that could not be read; an older version in the store is kept."""

    source_id: str
    message: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a synchronisation has come."""

    source: str
    phase: Literal["scan", "remove", "embed", "done"]
    done: int = 0
    """Items of this phase that are finished; in the phase "done", those of the scan."""
    total: int | None = None
    """How many items this phase has, where that is known."""
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    skipped: int = 0
    problems: int = 0
    embedded: int = 0
    seconds: float = 0.0
    """Since the synchronisation began."""
    rate: float = 0.0
    """Items a second in this phase."""


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What one synchronisation of one source did."""

    source: str
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    skipped: int = 0
    """Items left out on purpose (binary, too large, a link to the outside); `notes` says why."""
    embedded: int = 0
    """Chunks that got a vector."""
    problems: tuple[Problem, ...] = ()
    """The items that could not be read: the first hundred of them."""
    problem_count: int = 0
    notes: tuple[str, ...] = ()
    error: str | None = None
    """Why the scan ended early; nothing was removed then."""
    seconds: float = 0.0
    documents: int = field(default=0)
    """Documents of the source that the store holds now."""

    @property
    def ok(self) -> bool:
        return self.error is None

    def to_dict(self) -> dict[str, Any]:
        data: dict[str, Any] = {"ok": self.ok, **{item.name: getattr(self, item.name) for item in fields(self)}}
        data["problems"] = [{"source_id": p.source_id, "message": p.message} for p in self.problems]
        data["notes"] = list(self.notes)
        return data
