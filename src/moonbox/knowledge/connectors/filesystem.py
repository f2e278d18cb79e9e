"""The filesystem connector: the documents in a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote

from moonbox.config.reader import CLOSED, positive
from moonbox.errors import UsageError
from moonbox.knowledge.connectors.files import Entry, Folder, shown
from moonbox.knowledge.connectors.globs import DOCUMENTS, Globs
from moonbox.knowledge.errors import KnowledgeError
from moonbox.knowledge.extract.extractor import Extractor
from moonbox.knowledge.extract.kinds import Extracted, Unreadable, kind_of
from moonbox.knowledge.items import Failed, Item, Skipped, Total, Unchanged, iso_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moonbox.knowledge.items import Scanned

__all__ = ["Filesystem", "document_item"]

OUTSIDE = "symbolic links that lead outside the folder or nowhere"
LINKS = "symbolic links (follow_symlinks is off)"
NEVER = ("node_modules/", "__pycache__/", "*~", "~$*")


@dataclass(frozen=True, kw_only=True)
class Filesystem:
    """Files below `path`: text, Markdown, HTML and PDF."""

    __pydantic_config__: ClassVar = CLOSED

    path: Path
    """The folder; a relative one is relative to the configuration file."""
    include: tuple[str, ...] = DOCUMENTS
    """Globs of the files to take."""
    exclude: tuple[str, ...] = ()
    """Globs of the files and folders to leave out."""
    hidden: bool = False
    """Whether names that begin with a dot count."""
    follow_symlinks: bool = False
    """Whether links to files inside the folder count; links that lead outside never do."""
    max_file_size: int = 10_000_000
    """In bytes; larger files are skipped."""
    url: str | None = None
    """What a document's address is made from, with {path}; without it the address is the file's own."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))
        positive("max_file_size", self.max_file_size)
        Globs(self.include, self.exclude).check()

    @property
    def version(self) -> str:
        return f"{self.url}"

    def scan(self, known: Mapping[str, str]) -> Iterator[Scanned]:
        globs = Globs(self.include, (*self.exclude, *NEVER))
        troubles: list[Scanned] = []
        try:
            folder = Folder(str(self.path))
        except OSError as error:
            raise KnowledgeError(f"the folder {self.path} cannot be read: {error.strerror}") from None
        with folder, Extractor() as extractor:
            entries = self._chosen(folder, globs, troubles)
            yield Total(len(entries) + len(troubles))
            yield from troubles
            for entry in entries:
                yield self._scanned(folder, extractor, entry, known)

    def _chosen(self, folder: Folder, globs: Globs, troubles: list[Scanned]) -> list[Entry]:
        def descends(path: str) -> bool:
            return (self.hidden or not path.rpartition("/")[2].startswith(".")) and globs.descends(path)

        def on_error(path: str, error: OSError) -> None:
            # What is below it may still be in the store: only a scan that saw everything may remove anything.
            raise KnowledgeError(f"{shown(path)} cannot be read: {error.strerror}") from error

        chosen = []
        for entry in folder.list(descends, on_error):
            name = entry.path.rpartition("/")[2]
            if (name.startswith(".") and not self.hidden) or not globs.chooses(entry.path):
                continue
            if entry.link and (why := self._why_not(folder, entry.path)):
                troubles.append(Skipped(shown(entry.path), why))
            else:
                chosen.append(entry)
        return chosen

    def _why_not(self, folder: Folder, path: str) -> str | None:
        if not self.follow_symlinks:
            return LINKS
        return OUTSIDE if folder.target(path) is None else None

    def _scanned(self, folder: Folder, extractor: Extractor, entry: Entry, known: Mapping[str, str]) -> Scanned:
        source_id = shown(entry.path)
        if entry.size > self.max_file_size:
            return Skipped(source_id, f"larger than {self.max_file_size:,} bytes")
        # A link's own time says nothing about the file that it names.
        fingerprint = None if entry.link else f"{entry.modified}-{entry.size}"
        if fingerprint is not None and known.get(source_id) == fingerprint:
            return Unchanged(source_id)
        try:
            where = folder.target(entry.path) if entry.link else entry.path
            data = None if where is None else folder.read(where, self.max_file_size)
            if where is None:
                return Skipped(source_id, OUTSIDE)
            if data is None:
                return Skipped(source_id, f"larger than {self.max_file_size:,} bytes")
            found = extractor.extract(data, kind_of(entry.path))
        except FileNotFoundError:
            return Skipped(source_id, "gone before they could be read")
        except OSError as error:
            return Failed(source_id, f"cannot be read: {error.strerror or error}")
        except Unreadable as error:
            return Skipped(source_id, str(error)) if error.expected else Failed(source_id, str(error))
        address = self._address(entry.path)
        return document_item(found, source_id, address, found.updated_at or entry.modified / 1e9, fingerprint)

    def _address(self, path: str) -> str:
        if self.url is not None:
            return self.url.replace("{path}", quote(path, errors="surrogateescape"))
        return (self.path.absolute() / path).as_uri()


def document_item(
    found: Extracted,
    source_id: str,
    address: str | None,
    updated_at: float | str | None,
    fingerprint: str | None,
    author: str | None = None,
) -> Item | Failed:
    """An item from what was extracted, named after its file when it has no title of its own."""
    name = source_id.rstrip("/").rpartition("/")[2]
    try:
        updated_at = iso_time(updated_at)
    except UsageError:
        updated_at = None  # a page may call anything its date
    try:
        return Item(
            source_id=source_id,
            body=found.text,
            title=found.title or name,
            source_url=address,
            updated_at=updated_at,
            author=author or found.author,
            metadata=found.metadata or {},
            format="markdown" if found.markdown else "text",
            fingerprint=fingerprint,
        )
    except UsageError as error:
        return Failed(source_id, str(error))
