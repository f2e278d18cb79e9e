"""The git connector: the tracked documents of a repository at a commit, read with the git program."""

from __future__ import annotations

import os
import re
import resource
import secrets
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from moonbox.closing import Closing
from moonbox.config.reader import positive, settings_model
from moonbox.knowledge.connectors import filesystem
from moonbox.knowledge.extract.extractor import Extractor
from moonbox.knowledge.extract.formats import kind_of
from moonbox.knowledge.records import Failed, KnowledgeError, Scanned, Skipped, Total, Unchanged

LINK = "120000"
LFS = b"version https://git-lfs.github.com/spec/"
CHUNK = 1 << 16
QUERY_SECONDS = 30.0
LISTING_SECONDS = 120.0
HISTORY_SECONDS = 300.0
MEMORY = 2 << 30
"""What git may allocate: a small object can unpack to any size."""
MAX_NAMES = 200_000_000
MAX_BYTES = 5_000_000_000
MAX_FIELD = 1_000_000
_FORMAT = re.compile(rb"^\s*(objectformat|refstorage)\s*=\s*(\w+)", re.IGNORECASE | re.MULTILINE)


@settings_model
class Git:
    """The files of one commit, with the author and date of the last change to each."""

    path: Path
    """The repository's root; a relative path is relative to the configuration file."""
    ref: str = "HEAD"
    """A branch, tag or commit."""
    include: tuple[str, ...] = filesystem.DOCUMENTS
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
        filesystem.check_address(self.url, "{path}", "{commit}")
        filesystem.Globs(self.include, self.exclude)

    @property
    def version(self) -> str:
        # Without the commit: an unchanged document keeps its address, which stays valid.
        return f"{self.url}"

    def scan(self, known: Mapping[str, str]) -> Iterator[Scanned]:
        """Raises KnowledgeError after the last item when a bound was reached, so that nothing is removed."""
        with Repository.opened(self.path, self.ref) as repository:
            globs = filesystem.Globs(self.include, self.exclude)
            chosen, left_out = repository.files(globs, self.max_file_size)
            yield Total(len(chosen))
            yield from globs.missed()
            changed = []
            for blob in chosen:
                if blob.mode == LINK:
                    yield Skipped(filesystem.printable(blob.path), "symbolic link")
                elif blob.size is None:
                    yield Failed(filesystem.printable(blob.path), "its content is missing from the repository")
                elif blob.size > self.max_file_size:
                    yield Skipped(filesystem.printable(blob.path), f"larger than {self.max_file_size:,} bytes")
                elif known.get(filesystem.printable(blob.path)) == blob.oid:
                    yield Unchanged(filesystem.printable(blob.path))
                else:
                    changed.append(blob)
            if changed:
                changes, unread = repository.last_changes({blob.path for blob in changed})
                left_out = left_out or unread
                with repository.blobs() as blobs, Extractor() as extractor:
                    for blob in changed:
                        change = changes.get(blob.path, Change())
                        yield self._scanned(blob, blobs, extractor, change, repository.commit)
        if left_out:
            raise KnowledgeError(left_out)

    def _scanned(self, blob: Blob, blobs: Process, extractor: Extractor, change: Change, commit: str) -> Scanned:
        source_id = filesystem.printable(blob.path)
        try:
            data = blobs.read(blob.oid)
        except OSError as error:
            return Failed(source_id, f"cannot be read: {error}")
        if data.startswith(LFS):
            return Skipped(source_id, "stored in Git LFS")
        address = filesystem.page_address(self.url, blob.path, commit)
        return filesystem.read_item(
            extractor, data, kind_of(blob.path), source_id, address, blob.oid, author=change.author, changed=change.when
        )


class Blob(NamedTuple):
    path: str
    oid: str
    size: int | None
    """None when the file's content is missing from the repository."""
    mode: str


class Change(NamedTuple):
    """Who changed a file last, and when."""

    when: str = ""
    author: str = ""


class Repository:
    """One commit of a repository on this machine.

    Git never sees the repository's own configuration, hooks, attributes or working tree: it runs on a folder of ours,
    which has a configuration of two lines and links to the repository's refs and objects. So a hostile repository
    starts no program and names no other file to open. The user's configuration does not apply either.
    """

    def __init__(self, path: Path, ref: str, program: str, folder: Path, objects: Path) -> None:
        self._path, self._program, self._folder, self._objects = path, program, folder, objects
        # A ref that begins with a dash would be an option; `--end-of-options` keeps it a ref.
        with self._start("rev-parse", "--verify", "--quiet", "--end-of-options", ref + "^{commit}") as process:
            try:
                commit = b"".join(process.chunks(QUERY_SECONDS))
            except TimeoutError:
                raise KnowledgeError(f"git did not respond within {QUERY_SECONDS:g} s in {path}") from None
        if not commit:
            raise KnowledgeError(f"unknown commit {ref!r} in the repository {path}")
        self.commit = commit.decode().strip()

    @classmethod
    @contextmanager
    def opened(cls, path: Path, ref: str) -> Iterator[Repository]:
        program = shutil.which("git")
        if program is None:
            raise KnowledgeError("a git source needs the program git; it is not installed")
        if not path.is_dir():
            raise KnowledgeError(f"the folder {path} does not exist")
        with TemporaryDirectory(prefix="moonbox-git-") as name:
            try:
                objects = _substitute(path.resolve(), Path(name))
            except (OSError, ValueError):
                raise KnowledgeError(f"{path} is not a git repository") from None
            yield cls(path, ref, program, Path(name), objects)

    def files(self, globs: filesystem.Globs, max_file_size: int) -> tuple[list[Blob], str | None]:
        """The chosen files without submodules, and what was left out where a bound was reached.

        Equal trees are stored once: a small repository can list any number of files.
        """
        bounds = {
            "files": filesystem.MAX_ENTRIES,
            "bytes of names": MAX_NAMES,
            "documents": filesystem.MAX_FILES,
            "bytes of documents": MAX_BYTES,
        }
        blobs: list[Blob] = []
        spent = dict.fromkeys(bounds, 0)
        advice = "the rest was left out: choose fewer with include and ref"
        with self._start("ls-tree", "-r", "-z", "-l", "--full-tree", self.commit) as process:
            try:
                for line in process.fields(LISTING_SECONDS):
                    about, _, name = line.partition(b"\t")
                    mode, kind, oid, length = about.decode().split()
                    path, size = os.fsdecode(name), int(length) if length.isdecimal() else None
                    chosen = kind == "blob" and globs.chooses(path)
                    read = size if chosen and size and size <= max_file_size else 0
                    for what, count in zip(bounds, (1, len(name), int(chosen), read), strict=True):
                        spent[what] += count
                        if spent[what] > bounds[what]:
                            return blobs, f"the repository has more than {bounds[what]:,} {what}; {advice}"
                    if chosen:
                        blobs.append(Blob(path, oid, size, mode))
            except TimeoutError:
                return blobs, f"the repository was not listed within {LISTING_SECONDS:g} s; {advice}"
            if not process.succeeded():
                raise KnowledgeError(f"git cannot list the files of {self._path}")
        return blobs, None

    def last_changes(self, paths: set[str]) -> tuple[dict[str, Change], str | None]:
        """The newest commit that changed each path, and what is missing where the history takes too long to read.

        One walk through the history, which ends as soon as it can.
        """
        wanted, changes = set(paths), {}
        # The mark is random, so that no file name can be taken for it.
        mark = secrets.token_hex(16)
        options = ("--name-only", "--no-renames", "--no-show-signature", "--no-mailmap", "--encoding=UTF-8")
        with self._start("log", "-z", *options, f"--format={mark}%aI %an", self.commit) as process:
            change, before_first = Change(), "\n"
            try:
                for field in process.fields(HISTORY_SECONDS):
                    text = os.fsdecode(field)
                    if text.startswith(mark):
                        change, before_first = Change(*text.removeprefix(mark).split(" ", 1)), "\n"
                        continue
                    path, before_first = text.removeprefix(before_first), ""
                    if path in wanted:
                        changes[path] = change
                        wanted.discard(path)
                    if not wanted:
                        break
            except TimeoutError:
                why = f"the history was not read to its end in {HISTORY_SECONDS:g} s: some authors are missing"
                return changes, why
        return changes, None

    def blobs(self) -> Process:
        """A process whose `read` gives the content of files."""
        return self._start("cat-file", "--batch")

    def _start(self, *arguments: str) -> Process:
        command = [self._program, "--no-pager", "--no-replace-objects", "--git-dir", str(self._folder), *arguments]
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self._folder),
            "GIT_OBJECT_DIRECTORY": str(self._objects),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
        }
        return Process(command, environment)


def _substitute(path: Path, folder: Path) -> Path:
    """Make `folder` the git folder of the repository at `path`; its folder of objects. Raises OSError or ValueError.

    The path is a working tree, one that was added with `git worktree`, a submodule or a bare repository.
    """
    git = path / ".git"
    if git.is_file():
        git = path / _content(git).decode().removeprefix("gitdir:").strip()
    elif not git.is_dir():
        git = path
    shared = git / "commondir"
    common = (git / _content(shared).decode().strip() if shared.is_file() else git).resolve()
    (folder / "HEAD").write_bytes(_content(git / "HEAD"))
    formats = b"".join(b"%s = %s\n" % found for found in _FORMAT.findall(_content(common / "config")))
    version = b"1\n[extensions]\n" + formats if formats else b"0\n"
    (folder / "config").write_bytes(b"[core]\nbare = true\nrepositoryFormatVersion = " + version)
    for name in ("refs", "packed-refs", "reftable", "shallow"):
        if (common / name).exists():
            (folder / name).symlink_to(common / name)
    return common / "objects"


def _content(path: Path) -> bytes:
    with filesystem.Folder(str(path.parent)) as folder:
        data = folder.read(path.name, CHUNK)
    if data is None:
        raise ValueError(f"{path} is larger than {CHUNK:,} bytes")
    return data


class Process(Closing):
    """A git process in a group of its own, which is killed at the end; reading from it has a deadline."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, env=environment, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, start_new_session=True
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        if hasattr(resource, "prlimit"):  # Linux
            with suppress(OSError):  # it has ended
                resource.prlimit(self._process.pid, resource.RLIMIT_DATA, (MEMORY, MEMORY))

    def chunks(self, seconds: float) -> Iterator[bytes]:
        """What it writes, to its end; raises TimeoutError."""
        deadline, poll = time.monotonic() + seconds, select.poll()
        poll.register(self._out, select.POLLIN)
        while (left := deadline - time.monotonic()) > 0 and poll.poll(left * 1000):
            data = os.read(self._out, CHUNK)
            if not data:
                return
            yield data
        raise TimeoutError

    def fields(self, seconds: float) -> Iterator[bytes]:
        """The parts between zero bytes."""
        rest = b""
        for data in self.chunks(seconds):
            *whole, rest = (rest + data).split(b"\0")
            yield from whole
            if len(rest) > MAX_FIELD:
                raise KnowledgeError(f"the repository has a name of more than {MAX_FIELD:,} bytes")
        if rest:
            yield rest

    def read(self, oid: str) -> bytes:
        """The file with this object id, from `git cat-file --batch`; raises OSError when the repository lacks it."""
        os.write(self._in, oid.encode() + b"\n")
        data, end = bytearray(), None
        try:
            for chunk in self.chunks(QUERY_SECONDS):
                data += chunk
                if end is None and b"\n" in data:
                    head, _, data = data.partition(b"\n")
                    parts = head.split()
                    if len(parts) != 3:
                        raise OSError("git does not have the object")
                    end = int(parts[2])
                if end is not None and len(data) > end:  # a line end follows
                    return bytes(data[:end])
        except TimeoutError:
            raise KnowledgeError(f"git did not respond within {QUERY_SECONDS:g} s") from None
        raise OSError("git ended before the file did")

    def succeeded(self) -> bool:
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(QUERY_SECONDS) == 0
        return False

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
