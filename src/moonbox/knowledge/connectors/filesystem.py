"""The filesystem connector, and files as connectors need them: which are chosen, and how a folder is read safely."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, product
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from pathspec import GitIgnoreSpec

from moonbox.closing import Closing
from moonbox.config.reader import positive, settings_model
from moonbox.errors import ConfigError, UsageError
from moonbox.knowledge.extract.extractor import Extractor
from moonbox.knowledge.extract.formats import Kind, Unreadable, kind_of
from moonbox.knowledge.records import Failed, Item, KnowledgeError, Scanned, Skipped, Total, Unchanged, time_or_none
from moonbox.suggest import unknown

OUTSIDE = "symbolic link to a target outside the folder, or to a missing one"
LINKS = "symbolic link (follow_symlinks is off)"
NEVER = ("node_modules/", "__pycache__/", "*~", "~$*")
HIDDEN = (".*",)
MAX_DEPTH = 100
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC  # opening a named pipe must not wait
MAX_ENTRIES = 1_000_000
MAX_FILES = 100_000
MOST_REASONS = 30
DOCUMENTS = (
    "*.md", "*.markdown", "*.mdown", "*.mkd", "*.mdx", "*.txt", "*.text", "*.rst", "*.adoc", "*.asciidoc", "*.org",
    "*.tex", "*.html", "*.htm", "*.xhtml", "*.pdf", "*.docx", "*.pptx", "*.xlsx", "*.epub", "*.csv", "*.tsv",
)  # fmt: skip
"""What is taken from a folder by default: documents, and no file that might hold a secret."""


@settings_model
class Filesystem:
    """Files below `path`: text, Markdown, HTML, PDF, office files and tables."""

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
        check_address(self.url, "{path}")
        Globs(self.include, self.exclude)

    @property
    def version(self) -> str:
        return f"{self.url}"

    def scan(self, known: Mapping[str, str]) -> Iterator[Scanned]:
        """Raises KnowledgeError after the last item when a bound was reached, so that nothing is removed."""
        globs = Globs(self.include, (*self.exclude, *NEVER, *(() if self.hidden else HIDDEN)))
        skipped: list[Scanned] = []
        try:
            folder = Folder(str(self.path))
        except OSError as error:
            raise KnowledgeError(f"cannot read the folder {self.path}: {error.strerror}") from None
        with folder, Extractor() as extractor:
            entries, left_out = self._chosen(folder, globs, skipped)
            yield Total(len(entries) + len(skipped))
            yield from skipped
            yield from globs.missed()
            for entry in entries:
                yield self._scanned(folder, extractor, entry, known)
        if left_out:
            raise KnowledgeError(left_out)

    def _chosen(self, folder: Folder, globs: Globs, skipped: list[Scanned]) -> tuple[list[FileEntry], str | None]:
        """The chosen files, and what was left out where a bound was reached."""
        chosen: list[FileEntry] = []
        for count, entry in enumerate(folder.list(globs.descends)):
            if count == MAX_ENTRIES or len(chosen) + len(skipped) == MAX_FILES:
                bound = f"{MAX_ENTRIES:,} files" if count == MAX_ENTRIES else f"{MAX_FILES:,} documents"
                advice = "the rest was left out: choose fewer with include and exclude"
                return chosen, f"the folder has more than {bound}; {advice}"
            if not globs.chooses(entry.path):
                continue
            if entry.link and (not self.follow_symlinks or folder.target(entry.path) is None):
                skipped.append(Skipped(printable(entry.path), OUTSIDE if self.follow_symlinks else LINKS))
            else:
                chosen.append(entry)
        return chosen, None

    def _scanned(self, folder: Folder, extractor: Extractor, entry: FileEntry, known: Mapping[str, str]) -> Scanned:
        source_id = printable(entry.path)
        if entry.size > self.max_file_size:
            return Skipped(source_id, f"larger than {self.max_file_size:,} bytes")
        # A link's own time does not change with its target.
        fingerprint = None if entry.link else f"{entry.modified}-{entry.size}"
        if fingerprint is not None and known.get(source_id) == fingerprint:
            return Unchanged(source_id)
        try:
            path = folder.target(entry.path) if entry.link else entry.path
            if path is None:
                return Skipped(source_id, OUTSIDE)
            data = folder.read(path, self.max_file_size)
        except FileNotFoundError:
            return Skipped(source_id, "removed during the scan")
        except OSError as error:
            return Failed(source_id, f"cannot be read: {error.strerror or error}")
        if data is None:
            return Skipped(source_id, f"larger than {self.max_file_size:,} bytes")
        own = (self.path.absolute() / entry.path).as_uri()
        address = own if self.url is None else page_address(self.url, entry.path)
        modified = entry.modified / 1e9
        return read_item(extractor, data, kind_of(entry.path), source_id, address, fingerprint, modified=modified)


class Globs:
    """Paths that match one of `include` and none of `exclude`, which are patterns as in a .gitignore file.

    `*` and `?` stay within a name, `**` spans folders, and `{a,b}` is either. A pattern without a slash matches a name
    anywhere, one that ends with a slash a folder with all that is in it. Case counts. An invalid pattern raises
    ConfigError.
    """

    def __init__(self, include: tuple[str, ...], exclude: tuple[str, ...] = ()) -> None:
        self._include, self._exclude = _compiled(include), _compiled(exclude)
        self._hides = set(HIDDEN) <= {*exclude}
        self._missed: dict[str, Skipped] = {}

    def chooses(self, path: str) -> bool:
        if not self._include.match_file(_on_one_line(path)):
            ending = re.search(r"\.\w{1,10}$", path, re.ASCII)
            return self._miss(path, f"not in include: {f'*{ending[0].lower()}' if ending else 'no ending'}")
        if self._exclude.match_file(_on_one_line(path)):
            return self._miss(path, "in exclude")
        return True

    def descends(self, folder: str) -> bool:
        """Whether anything in a folder can be chosen."""
        excluded = self._exclude.match_file(_on_one_line(folder) + "/")
        return not excluded or self._miss(folder, "a folder in exclude")

    def missed(self) -> Iterable[Skipped]:
        """The files and folders that were not chosen so far: one for each reason, with their number."""
        return self._missed.values()

    def _miss(self, path: str, reason: str) -> bool:
        if self._hides and path.rpartition("/")[2].startswith("."):
            reason = "the name begins with a dot"
        if reason not in self._missed and len(self._missed) >= MOST_REASONS:
            reason = "not in include"
        known = self._missed.get(reason)
        self._missed[reason] = Skipped(printable(path), reason, 1 + (known.count if known is not None else 0))
        return False


def _on_one_line(path: str) -> str:
    # No pattern matches a line break, so that a folder's name could otherwise avoid an exclusion.
    return path.replace("\n", " ")


def _compiled(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    lines = []
    for pattern in patterns:
        if not pattern.strip() or pattern.startswith("/"):
            raise ConfigError(f"a glob must be a path inside the source, not {pattern!r}")
        alternatives = _expanded(pattern)
        try:
            compiled = GitIgnoreSpec.from_lines(alternatives, backend="simple")
        except (re.error, ValueError) as error:
            raise ConfigError(f"invalid glob {pattern!r}: {error}") from None
        if any(not item.include for item in compiled.patterns):  # a comment, a negation, or a bracket without an end
            raise ConfigError(f"invalid glob {pattern!r}")
        lines += alternatives
    # "simple" is Python's own engine: RE2, which is used where it is installed, takes only names that are UTF-8.
    return GitIgnoreSpec.from_lines(lines, backend="simple")


_BRACES = re.compile(r"\{([^{}]*)\}")


def _expanded(pattern: str) -> list[str]:
    """The pattern once for each combination of its alternatives in braces."""
    fixed, choices = _BRACES.split(pattern)[::2], [part.split(",") for part in _BRACES.split(pattern)[1::2]]
    if len(choices) > 4:
        raise ConfigError(f"invalid glob {pattern!r}: more than four alternatives in braces")
    return ["".join(a + b for a, b in zip(fixed, (*chosen, ""), strict=True)) for chosen in product(*choices)]


class FileEntry(NamedTuple):
    """A file as the listing found it."""

    path: str
    """Relative to the folder, with slashes."""
    size: int
    modified: int
    """In nanoseconds."""
    link: bool = False


class Folder(Closing):
    """A folder whose files are opened one path component after the other, never through a symbolic link.

    What a check sees is what is read: a file or folder that is exchanged for a link after the listing is not followed.
    """

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)
        self._fd = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def list(self, descends: Callable[[str], bool]) -> Iterator[FileEntry]:
        """Every regular file and every link, in order."""
        yield from self._list("", os.dup(self._fd), descends, 0)

    def read(self, path: str, most: int) -> bytes | None:
        """A file's bytes; None when there are more than `most`. Raises OSError for anything but a regular file."""
        with os.fdopen(self._open(path), "rb") as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode):
                raise OSError(errno.EINVAL, "not a regular file any more")
            if info.st_size > most:
                return None
            data = file.read(most + 1)  # the file may have grown
            return data if len(data) <= most else None

    def target(self, path: str) -> str | None:
        """The target of a symbolic link as a path inside the folder; None when it is outside or missing."""
        try:
            real = Path(self._root, path).resolve(strict=True)
        except (OSError, RuntimeError):  # a loop of links is a RuntimeError before Python 3.13
            return None
        return real.relative_to(self._root).as_posix() if real.is_relative_to(self._root) else None

    def close(self) -> None:
        os.close(self._fd)

    def _list(self, prefix: str, fd: int, descends: Callable[[str], bool], depth: int) -> Iterator[FileEntry]:
        try:
            with os.scandir(fd) as listing:
                entries = sorted(islice(listing, MAX_ENTRIES + 1), key=lambda entry: entry.name)
            for entry in entries:
                path = prefix + entry.name
                try:
                    if entry.is_dir(follow_symlinks=False):
                        if depth < MAX_DEPTH and descends(path):
                            inner = os.open(entry.name, _FOLDER, dir_fd=fd)
                            yield from self._list(path + "/", inner, descends, depth + 1)
                    elif entry.is_symlink() or entry.is_file(follow_symlinks=False):
                        about = entry.stat(follow_symlinks=False)
                        yield FileEntry(path, about.st_size, about.st_mtime_ns, entry.is_symlink())
                except OSError as error:
                    # What is below it may still be in the store: only a scan that saw everything may remove anything.
                    raise KnowledgeError(f"cannot read {printable(path)}: {error.strerror}") from error
        finally:
            os.close(fd)

    def _open(self, path: str) -> int:
        fd = os.dup(self._fd)
        *folders, name = path.split("/")
        for part, flags in (*((folder, _FOLDER) for folder in folders), (name, _FILE)):
            try:
                inner = os.open(part, flags, dir_fd=fd)
            finally:
                os.close(fd)
            fd = inner
        return fd


def printable(path: str) -> str:
    """A path as text: bytes that are not UTF-8 become escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def check_address(url: str | None, *known: str) -> None:
    """Raises ConfigError where the pattern has a name in braces that stands for nothing."""
    for name in re.findall(r"\{\w*\}", url or ""):
        if name not in known:
            raise ConfigError(f"url: {unknown('placeholder', name, known)}")


def page_address(url: str | None, path: str, commit: str = "") -> str | None:
    """The URL of a document by the pattern in a source's options."""
    if url is None:
        return None
    return url.replace("{commit}", commit).replace("{path}", quote(path, errors="surrogateescape"))


def read_item(
    extractor: Extractor,
    data: bytes,
    kind: Kind,
    source_id: str,
    address: str | None,
    fingerprint: str | None,
    *,
    charset: str | None = None,
    author: str | None = None,
    changed: str | None = None,
    modified: float | None = None,
) -> Item | Skipped | Failed:
    """The item of a file or page. What is known of its author and last change counts more than what it says itself.

    Without a title of its own it has its file's name; `modified` is for one that has no date either.
    """
    try:
        extracted = extractor.extract(data, kind, charset)
    except Unreadable as error:
        return Skipped(source_id, str(error)) if error.expected else Failed(source_id, str(error))
    name = source_id.rstrip("/").rpartition("/")[2]
    try:
        return Item(
            source_id=source_id,
            body=extracted.text,
            title=extracted.title or name,
            source_url=address,
            updated_at=time_or_none(changed or extracted.updated_at or modified),
            author=author or extracted.author,
            metadata=extracted.metadata or {},
            format="markdown" if extracted.markdown else "text",
            fingerprint=fingerprint,
        )
    except UsageError as error:
        return Failed(source_id, str(error))
