"""The git connector: the tracked documents of a repository at a commit, read with the git program."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, ClassVar
from urllib.parse import quote

from moonbox.config.reader import CLOSED, positive
from moonbox.knowledge.connectors.filesystem import DOCUMENTS, Globs, document_item, printable
from moonbox.knowledge.extract.extractor import Extractor
from moonbox.knowledge.extract.formats import Unreadable, kind_of
from moonbox.knowledge.records import Failed, KnowledgeError, Skipped, Total, Unchanged

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moonbox.knowledge.records import Scanned

__all__ = ["Git", "Repository"]

LINK = "120000"
LFS = b"version https://git-lfs.github.com/spec/"
CHUNK = 1 << 16
QUIET = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.pager=cat", "gpg.program=/bin/false")


@dataclass(frozen=True, kw_only=True)
class Git:
    """The files of one commit, with the author and date of the last change to each."""

    __pydantic_config__: ClassVar = CLOSED

    path: Path
    """The repository's root; a relative path is relative to the configuration file."""
    ref: str = "HEAD"
    """A branch, tag or commit."""
    include: tuple[str, ...] = DOCUMENTS
    """Globs of the files to take, as in a .gitignore file; {a,b} is either."""
    exclude: tuple[str, ...] = ()
    """Globs of the files to leave out."""
    max_file_size: int = 10_000_000
    """In bytes; larger files are skipped."""
    url: str | None = None
    """The URL of a document, with {path} and {commit}."""

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
                yield Skipped(printable(blob.path), "symbolic link")
            elif blob.size is None:
                yield Failed(printable(blob.path), "its content is missing from the repository")
            elif blob.size > self.max_file_size:
                yield Skipped(printable(blob.path), f"larger than {self.max_file_size:,} bytes")
            elif known.get(printable(blob.path)) == blob.oid:
                yield Unchanged(printable(blob.path))
            else:
                changed.append(blob)
        if not changed:
            return
        changes = repository.last_changes({blob.path for blob in changed})
        with repository.blobs() as blobs, Extractor() as extractor:
            for blob in changed:
                yield self._scanned(blob, blobs, extractor, changes.get(blob.path), repository.commit)

    def _scanned(self, blob: Blob, blobs: Blobs, extractor: Extractor, change: Change | None, commit: str) -> Scanned:
        source_id = printable(blob.path)
        try:
            data = blobs.read(blob.oid)
            if data.startswith(LFS):
                return Skipped(source_id, "stored in Git LFS")
            extracted = extractor.extract(data, kind_of(blob.path))
        except OSError as error:
            return Failed(source_id, f"cannot be read: {error}")
        except Unreadable as error:
            return Skipped(source_id, str(error)) if error.expected else Failed(source_id, str(error))
        return document_item(
            extracted,
            source_id,
            self._address(blob.path, commit),
            change.when if change else extracted.updated_at,
            blob.oid,
            change.author if change else None,
        )

    def _address(self, path: str, commit: str) -> str | None:
        if self.url is None:
            return None
        return self.url.replace("{commit}", commit).replace("{path}", quote(path, errors="surrogateescape"))


@dataclass(frozen=True, slots=True)
class Blob:
    """A file of a commit."""

    path: str
    oid: str
    size: int | None
    """None when the file's content is missing from the repository."""
    mode: str


@dataclass(frozen=True, slots=True)
class Change:
    """Who changed a file last, and when."""

    when: str
    author: str


class Repository:
    """One commit of a repository on this machine, read without touching its working tree.

    The user's own configuration applies (it says which folders of other owners are safe). The configuration of a
    hostile repository starts no program: hooks, pagers, filters, signatures and external diffs are off, and no
    protocol is allowed, so that a missing object is not fetched either.
    """

    def __init__(self, path: Path, ref: str) -> None:
        self._path = path.resolve()
        self._program = shutil.which("git")
        if self._program is None:
            raise KnowledgeError("a git source needs the program git; it is not installed")
        if not self._path.is_dir():
            raise KnowledgeError(f"the folder {path} does not exist")
        if self._run("rev-parse", "--git-dir") is None:
            raise KnowledgeError(f"{path} is not a git repository, or git does not trust its owner (safe.directory)")
        # A ref that begins with a dash would be an option; `--end-of-options` keeps it a ref.
        commit = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", ref + "^{commit}")
        if not commit:
            raise KnowledgeError(f"unknown commit {ref!r} in the repository {path}")
        self.commit = commit.decode().strip()

    def files(self) -> list[Blob]:
        """The files of the commit, links and submodules left out."""
        listing = self._run("ls-tree", "-r", "-z", "-l", "--full-tree", self.commit)
        if listing is None:
            raise KnowledgeError(f"git cannot list the files of {self._path}")
        blobs = []
        for line in listing.split(b"\0")[:-1]:
            about, _, path = line.partition(b"\t")
            mode, kind, oid, size = about.decode().split()
            if kind == "blob":
                blobs.append(Blob(os.fsdecode(path), oid, int(size) if size.isdecimal() else None, mode))
        return blobs

    def last_changes(self, paths: set[str]) -> dict[str, Change]:
        """The newest commit that changed each path, from one walk through the history that ends as soon as it can."""
        wanted, changes = set(paths), {}
        # The mark is random, so that no file name can be taken for it.
        mark = secrets.token_hex(16)
        options = (
            "--name-only",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--no-show-signature",
            "--no-mailmap",
        )
        log = ("log", "-z", *options, "--encoding=UTF-8", f"--format={mark}%x00%aI%x00%an", self.commit)
        with self._start(*log) as process:
            change, position = Change("", ""), 0
            for field in _fields(_stream(process.stdout)):
                text = os.fsdecode(field)
                position = 0 if text == mark else position + 1
                if position == 1:
                    change = Change(text, "")
                elif position == 2:
                    change = Change(change.when, text)
                elif position > 2:
                    path = text.removeprefix("\n") if position == 3 else text
                    if path in wanted:
                        changes[path] = change
                        wanted.discard(path)
                if not wanted:
                    break
            process.kill()
        return changes

    def blobs(self) -> Blobs:
        return Blobs(self._start("cat-file", "--batch", stdin=True))

    def _command(self, *arguments: str) -> list[str]:
        settings = [part for setting in QUIET for part in ("-c", setting)]
        return [
            self._program or "git",
            "--no-pager",
            "--no-replace-objects",
            "-C",
            str(self._path),
            *settings,
            *arguments,
        ]

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_CONFIG_HOME") if name in os.environ}
        return kept | {
            "GIT_CEILING_DIRECTORIES": str(self._path.parent),
            "GIT_ALLOW_PROTOCOL": "none",  # overrides every `protocol.*.allow` of a configuration
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ATTR_NOSYSTEM": "1",
            "LC_ALL": "C",
        }

    def _run(self, *arguments: str) -> bytes | None:
        done = subprocess.run(
            self._command(*arguments),
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        return done.stdout if done.returncode == 0 else None

    def _start(self, *arguments: str, stdin: bool = False) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command(*arguments),
            env=self._environment(),
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )


class Blobs:
    """File contents by object id, from one process."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def read(self, oid: str) -> bytes:
        """A file's bytes; raises OSError when the repository lacks them."""
        request, answer = _stream(self._process.stdin), _stream(self._process.stdout)
        request.write(oid.encode() + b"\n")
        request.flush()
        head = answer.readline().split()
        if len(head) != 3:
            raise OSError("git does not have the object")
        size = int(head[2])
        data = answer.read(size + 1)
        if len(data) != size + 1:
            raise OSError("git ended before the file did")
        return data[:-1]

    def __enter__(self) -> Blobs:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def _stream(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise OSError("git was started without a pipe")
    return pipe


def _fields(stream: IO[bytes]) -> Iterator[bytes]:
    """The parts between zero bytes."""
    rest = b""
    while data := stream.read(CHUNK):
        *whole, rest = (rest + data).split(b"\0")
        yield from whole
    if rest:
        yield rest
