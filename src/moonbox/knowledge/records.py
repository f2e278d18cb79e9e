"""Values of the knowledge base: items that a connector's scan yields, records of what it gives back, and its errors."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Literal, Protocol, cast, runtime_checkable

import msgspec

from moonbox.errors import ConversionError, MoonboxError, UsageError
from moonbox.knowledge.text import clean, clean_line
from moonbox.suggest import unknown
from moonbox.values import plain, to_jsonable

MAX_BODY = 20_000_000
MAX_TITLE = 500
MAX_SOURCE_ID = 2_000
MAX_METADATA = 64_000
MAX_KEY = 80
UNSAFE_SCHEMES = ("javascript:", "data:", "vbscript:")
Mode = Literal["keyword", "semantic", "hybrid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One document as a connector yields it. Invalid values raise UsageError; control characters are removed."""

    source_id: str
    """What identifies the item within its source, the same in every scan: a path, a URL, a key."""
    body: str
    title: str = ""
    source_url: str | None = None
    updated_at: dt.datetime | dt.date | float | str | None = None
    """A time; kept as ISO 8601 in UTC."""
    author: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    format: Literal["markdown", "text"] = "markdown"
    """Whether `#` lines are headings."""
    fingerprint: str | None = None
    """A cheap way to detect a change, such as a modification time or an ETag. The next scan receives it."""

    def __post_init__(self) -> None:
        put = partial(object.__setattr__, self)  # the dataclass is frozen
        put("source_id", _text("source_id", self.source_id, MAX_SOURCE_ID, required=True))
        put("body", _body(self.body))
        put("title", (_text("title", self.title, None) or "")[:MAX_TITLE])
        put("source_url", _url(self.source_url))
        put("updated_at", iso_time(self.updated_at))
        put("author", _text("author", self.author, None, optional=True))
        put("metadata", _metadata(self.metadata))
        put("fingerprint", _text("fingerprint", self.fingerprint, MAX_SOURCE_ID, optional=True))
        if self.format not in ("markdown", "text"):
            raise UsageError(f'format must be "markdown" or "text", not {self.format!r}')

    @classmethod
    def from_dict(cls, data: Any) -> Item:
        """An item from a mapping, as a connector script returns it; unknown keys are refused."""
        if not isinstance(data, Mapping):
            raise UsageError(f"an item must be a table with source_id and body, not {type(data).__name__}")
        for message in unknown_keys(data).values():
            raise UsageError(message)
        for key in ("source_id", "body"):
            if data.get(key) is None:
                raise UsageError(f"{key} is missing")
        return cls(**{key: value for key, value in data.items() if value is not None})


def unknown_keys(data: Mapping[Any, Any]) -> dict[Any, str]:
    """The keys that an item cannot have, each with a message."""
    known = [item.name for item in fields(Item)]
    return {key: unknown("key", str(key)[:MAX_KEY], known) for key in data if key not in known}


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The item is still there and its fingerprint is the known one."""

    source_id: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """The item is left out on purpose; an older version in the store is removed."""

    source_id: str
    reason: str
    """Use the same words for all items of a kind: the report counts equal reasons."""
    count: int = 1
    """How many items this stands for."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The item could not be read this time; an older version in the store is kept."""

    source_id: str
    message: str


Problem = Failed
"""Such an item in the report of a synchronisation."""


@dataclass(frozen=True, slots=True)
class Total:
    """How many items the scan expects to yield; only for progress."""

    count: int


Scanned = Item | Mapping[str, Any] | Unchanged | Skipped | Failed | Total
"""What a scan may yield; a mapping is taken as `Item.from_dict`."""


@runtime_checkable
class Connector(Protocol):
    """A place that documents come from."""

    def scan(self, known: Mapping[str, str]) -> Iterator[Scanned]:
        """Every item that is there now. `known` has the fingerprints that the store holds, by source_id.

        Raising ends the scan: what was yielded before is kept and nothing is removed.
        """
        ...


def iso_time(value: Any) -> str | None:
    """A time as ISO 8601 in UTC; a number is seconds since the epoch, a time without zone is UTC."""
    if value is None or value == "":
        return None
    try:
        if isinstance(value, str):
            value = dt.datetime.fromisoformat(value.strip())
        elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            value = dt.datetime.fromtimestamp(value, dt.UTC)
        elif isinstance(value, dt.date) and not isinstance(value, dt.datetime):
            value = dt.datetime(value.year, value.month, value.day)
        if isinstance(value, dt.datetime):
            moment = value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)
            return moment.replace(microsecond=0, tzinfo=None).isoformat() + "Z"
    except (ValueError, OverflowError, OSError):
        pass
    raise UsageError(f"updated_at must be an ISO 8601 time or seconds since the epoch, not {value!r}")


def time_or_none(value: Any) -> str | None:
    """The same; None for anything else, because a document may give anything as its date."""
    try:
        return iso_time(value)
    except UsageError:
        return None


def _text(name: str, value: Any, most: int | None, *, required: bool = False, optional: bool = False) -> str | None:
    if value is None and optional:
        return None
    if not isinstance(value, str):
        raise UsageError(f"{name} must be a string, not {type(value).__name__}")
    text = clean_line(value)
    if required and not text:
        raise UsageError(f"{name} must not be empty")
    if most is not None and len(text) > most:
        raise UsageError(f"{name} must be at most {most:,} characters long, not {len(text):,}")
    return text


def _body(value: Any) -> str:
    if isinstance(value, bytes):
        raise UsageError("body must be text; it is not UTF-8")
    if not isinstance(value, str):
        raise UsageError(f"body must be a string, not {type(value).__name__}")
    if len(value) > MAX_BODY:
        raise UsageError(f"body must be at most {MAX_BODY:,} characters long, not {len(value):,}")
    return clean(value)


def _url(value: Any) -> str | None:
    address = _text("source_url", value, MAX_SOURCE_ID, optional=True)
    if address and address.lower().lstrip().startswith(UNSAFE_SCHEMES):
        raise UsageError(f"source_url must be a URL that can be opened, not {address[:40]!r}")
    return address or None


def _metadata(value: Any) -> dict[str, Any]:
    if not value and isinstance(value, Mapping | list):
        return {}  # an empty table of a script may arrive as a list
    if not isinstance(value, Mapping):
        raise UsageError(f"metadata must be a table, not {type(value).__name__}")
    try:
        lowered = plain(dict(value), path="metadata")
    except ConversionError as error:
        raise UsageError(str(error)) from None
    stored = json.dumps(to_jsonable({str(key): item for key, item in lowered.items()}), ensure_ascii=False)
    encoded = stored.encode("utf-8", "replace")  # a lone surrogate cannot be stored
    if len(encoded) > MAX_METADATA:
        raise UsageError(f"metadata must be at most {MAX_METADATA:,} bytes as JSON, not {len(encoded):,}")
    return cast("dict[str, Any]", json.loads(encoded))


class _Record:
    """A record that can be converted to JSON data."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        return cast("dict[str, Any]", msgspec.json.decode(msgspec.json.encode(self)))


@dataclass(frozen=True, slots=True)
class Hit(_Record):
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
class Document(_Record):
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
    body: str
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class SourceInfo(_Record):
    """The state of one source."""

    name: str
    configured: bool
    healthy: bool
    """Its last synchronisation succeeded, and every item could be read."""
    documents: int
    last_sync: str | None
    """When its last synchronisation ended, ISO 8601 in UTC."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stats(_Record):
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
    """Seconds since the synchronisation started."""
    rate: float = 0.0
    """Items a second in this phase."""


@dataclass(frozen=True, slots=True)
class SyncReport(_Record):
    """What one synchronisation of one source did."""

    source: str
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    skipped: int = 0
    """Items left out on purpose (binary, too large, a link to the outside); `notes` says why."""
    embedded: int = 0
    """Chunks for which a vector was created."""
    problems: tuple[Problem, ...] = ()
    """The items that could not be read: the first hundred of them."""
    problem_count: int = 0
    notes: tuple[str, ...] = ()
    error: str | None = None
    """Why the scan ended early; nothing was removed then."""
    seconds: float = 0.0
    documents: int = 0
    """Documents of the source that the store holds now."""

    @property
    def ok(self) -> bool:
        return self.error is None

    def to_dict(self) -> dict[str, Any]:
        return {"ok": self.ok, **super(SyncReport, self).to_dict()}


class KnowledgeError(MoonboxError):
    """The knowledge base cannot be used; the message says why."""


class DocumentNotFound(KnowledgeError, LookupError):
    """No document has that id."""


class SyncBusy(KnowledgeError):
    """Another process or thread is synchronising the same source."""


class EmbeddingError(KnowledgeError):
    """The embedder failed or gave an invalid answer."""
