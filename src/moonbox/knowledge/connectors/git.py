"""The git connector: the tracked documents of a repository at a commit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote

from moonbox.config.reader import CLOSED, positive
from moonbox.knowledge.connectors.files import shown
from moonbox.knowledge.connectors.filesystem import document_item
from moonbox.knowledge.connectors.gitlib import Blob, Blobs, Change, Repository
from moonbox.knowledge.connectors.globs import DOCUMENTS, Globs
from moonbox.knowledge.extract.extractor import Extractor
from moonbox.knowledge.extract.kinds import Unreadable, kind_of
from moonbox.knowledge.items import Failed, Skipped, Total, Unchanged

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moonbox.knowledge.items import Scanned

__all__ = ["Git"]

LINK = "120000"
LFS = b"version https://git-lfs.github.com/spec/"


@dataclass(frozen=True, kw_only=True)
class Git:
    """The files of one commit, with the author and date of the last change to each."""

    __pydantic_config__: ClassVar = CLOSED

    path: Path
    """The repository's root; a relative path is relative to the configuration file."""
    ref: str = "HEAD"
    """A branch, tag or commit."""
    include: tuple[str, ...] = DOCUMENTS
    """Globs of the files to take."""
    exclude: tuple[str, ...] = ()
    """Globs of the files to leave out."""
    max_file_size: int = 10_000_000
    """In bytes; larger files are skipped."""
    url: str | None = None
    """What a document's address is made from, with {path} and {commit}."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))
        positive("max_file_size", self.max_file_size)
        Globs(self.include, self.exclude).check()

    @property
    def version(self) -> str:
        # Not the commit: a document that did not change keeps its older address, which stays valid.
        return f"{self.url}"

    def scan(self, known: Mapping[str, str]) -> Iterator[Scanned]:
        repository, globs = Repository(self.path, self.ref), Globs(self.include, self.exclude)
        chosen = [blob for blob in repository.files() if globs.chooses(blob.path)]
        yield Total(len(chosen))
        changed = []
        for blob in chosen:
            if blob.mode == LINK:
                yield Skipped(shown(blob.path), "symbolic links")
            elif blob.size is None:
                yield Failed(shown(blob.path), "the repository lacks its content")
            elif blob.size > self.max_file_size:
                yield Skipped(shown(blob.path), f"larger than {self.max_file_size:,} bytes")
            elif known.get(shown(blob.path)) == blob.oid:
                yield Unchanged(shown(blob.path))
            else:
                changed.append(blob)
        if not changed:
            return
        changes = repository.last_changes({blob.path for blob in changed})
        with repository.blobs() as blobs, Extractor() as extractor:
            for blob in changed:
                yield self._scanned(blob, blobs, extractor, changes.get(blob.path), repository.commit)

    def _scanned(self, blob: Blob, blobs: Blobs, extractor: Extractor, change: Change | None, commit: str) -> Scanned:
        source_id = shown(blob.path)
        try:
            data = blobs.read(blob.oid)
            if data.startswith(LFS):
                return Skipped(source_id, "kept in Git LFS")
            found = extractor.extract(data, kind_of(blob.path))
        except OSError as error:
            return Failed(source_id, f"cannot be read: {error}")
        except Unreadable as error:
            return Skipped(source_id, str(error)) if error.expected else Failed(source_id, str(error))
        return document_item(
            found,
            source_id,
            self._address(blob.path, commit),
            change.when if change else found.updated_at,
            blob.oid,
            change.author if change else None,
        )

    def _address(self, path: str, commit: str) -> str | None:
        if self.url is None:
            return None
        return self.url.replace("{commit}", commit).replace("{path}", quote(path, errors="surrogateescape"))
