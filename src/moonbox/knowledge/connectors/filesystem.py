"""The filesystem connector: the documents in a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote

from moonbox.config.reader import CLOSED, positive
from moonbox.knowledge.connectors.files import DOCUMENTS, Entry, Folder, Globs, document_item, printable
from moonbox.knowledge.errors import KnowledgeError
from moonbox.knowledge.extract.extractor import Extractor
from moonbox.knowledge.extract.formats import Unreadable, kind_of
from moonbox.knowledge.records import Failed, Skipped, Total, Unchanged

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moonbox.knowledge.records import Scanned

__all__ = ["Filesystem"]

OUTSIDE = "symbolic link to a target outside the folder, or to a missing one"
LINKS = "symbolic link (follow_symlinks is off)"
NEVER = ("node_modules/", "__pycache__/", "*~", "~$*")


@dataclass(frozen=True, kw_only=True)
class Filesystem:
    """Files below `path`: text, Markdown, HTML and PDF."""

    __pydantic_config__: ClassVar = CLOSED

    path: Path
    """The folder; a relative one is relative to the configuration file."""
    include: tuple[str, ...] = DOCUMENTS
    """Globs of the files to take, as in a .gitignore file; {a,b} is either."""
    exclude: tuple[str, ...] = ()
    """Globs of the files and folders to leave out."""
    hidden: bool = False
    """Whether files and folders whose names begin with a dot are taken."""
    follow_symlinks: bool = False
    """Whether symbolic links to files inside the folder are taken; links to the outside never are."""
    max_file_size: int = 10_000_000
    """In bytes; larger files are skipped."""
    url: str | None = None
    """The URL of a document, with {path} for its path; by default the file's own URL."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))
        positive("max_file_size", self.max_file_size)
        Globs(self.include, self.exclude).check()

    @property
    def version(self) -> str:
        return f"{self.url}"

    def scan(self, known: Mapping[str, str]) -> Iterator[Scanned]:
        globs = Globs(self.include, (*self.exclude, *NEVER))
        skipped: list[Scanned] = []
        try:
            folder = Folder(str(self.path))
        except OSError as error:
            raise KnowledgeError(f"cannot read the folder {self.path}: {error.strerror}") from None
        with folder, Extractor() as extractor:
            entries = self._chosen(folder, globs, skipped)
            yield Total(len(entries) + len(skipped))
            yield from skipped
            for entry in entries:
                yield self._scanned(folder, extractor, entry, known)

    def _chosen(self, folder: Folder, globs: Globs, skipped: list[Scanned]) -> list[Entry]:
        def descends(path: str) -> bool:
            return (self.hidden or not path.rpartition("/")[2].startswith(".")) and globs.descends(path)

        def on_error(path: str, error: OSError) -> None:
            # What is below it may still be in the store: only a scan that saw everything may remove anything.
            raise KnowledgeError(f"cannot read {printable(path)}: {error.strerror}") from error

        chosen = []
        for entry in folder.list(descends, on_error):
            name = entry.path.rpartition("/")[2]
            if (name.startswith(".") and not self.hidden) or not globs.chooses(entry.path):
                continue
            if entry.link and (why := self._why_skipped(folder, entry.path)):
                skipped.append(Skipped(printable(entry.path), why))
            else:
                chosen.append(entry)
        return chosen

    def _why_skipped(self, folder: Folder, path: str) -> str | None:
        if not self.follow_symlinks:
            return LINKS
        return OUTSIDE if folder.target(path) is None else None

    def _scanned(self, folder: Folder, extractor: Extractor, entry: Entry, known: Mapping[str, str]) -> Scanned:
        source_id = printable(entry.path)
        if entry.size > self.max_file_size:
            return Skipped(source_id, f"larger than {self.max_file_size:,} bytes")
        # A link's own time tells nothing about its target.
        fingerprint = None if entry.link else f"{entry.modified}-{entry.size}"
        if fingerprint is not None and known.get(source_id) == fingerprint:
            return Unchanged(source_id)
        try:
            path = folder.target(entry.path) if entry.link else entry.path
            data = None if path is None else folder.read(path, self.max_file_size)
            if path is None:
                return Skipped(source_id, OUTSIDE)
            if data is None:
                return Skipped(source_id, f"larger than {self.max_file_size:,} bytes")
            extracted = extractor.extract(data, kind_of(entry.path))
        except FileNotFoundError:
            return Skipped(source_id, "removed during the scan")
        except OSError as error:
            return Failed(source_id, f"cannot be read: {error.strerror or error}")
        except Unreadable as error:
            return Skipped(source_id, str(error)) if error.expected else Failed(source_id, str(error))
        address = self._address(entry.path)
        updated_at = extracted.updated_at or entry.modified / 1e9
        return document_item(extracted, source_id, address, updated_at, fingerprint)

    def _address(self, path: str) -> str:
        if self.url is not None:
            return self.url.replace("{path}", quote(path, errors="surrogateescape"))
        return (self.path.absolute() / path).as_uri()
