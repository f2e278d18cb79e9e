"""The git program, called so that a hostile repository's configuration starts nothing."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from moonbox.knowledge.errors import KnowledgeError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Blob", "Blobs", "Change", "Repository"]

CHUNK = 1 << 16
QUIET = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.pager=cat", "gpg.program=/bin/false")


@dataclass(frozen=True, slots=True)
class Blob:
    """A file of a commit."""

    path: str
    oid: str
    size: int | None
    """None when the repository lacks the file's content."""
    mode: str


@dataclass(frozen=True, slots=True)
class Change:
    """Who changed a file last, and when."""

    when: str
    author: str


class Repository:
    """One commit of a repository on this machine, read without touching its working tree.

    The user's own configuration counts (it says which folders of other owners are safe); the repository's can start no
    program: there are no hooks, pagers, filters, signatures or external diffs in what is called here, and no protocol
    is allowed, so that a missing object is not fetched either.
    """

    def __init__(self, path: Path, ref: str) -> None:
        self._path = path.resolve()
        self._program = shutil.which("git")
        if self._program is None:
            raise KnowledgeError("a git source needs the program git, which is not installed")
        if not self._path.is_dir():
            raise KnowledgeError(f"there is no folder {path}")
        if self._run("rev-parse", "--git-dir") is None:
            raise KnowledgeError(f"{path} is not a git repository, or git does not trust its owner (safe.directory)")
        # A ref that begins with a dash would be an option; `--end-of-options` keeps it a ref.
        found = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", ref + "^{commit}")
        if not found:
            raise KnowledgeError(f"{ref!r} names no commit of the repository {path}")
        self.commit = found.decode().strip()

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
        wanted, found = set(paths), {}
        # The mark cannot be foreseen, so no file's name can pass for one.
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
            for field in _fields(_output(process)):
                text = os.fsdecode(field)
                position = 0 if text == mark else position + 1
                if position == 1:
                    change = Change(text, "")
                elif position == 2:
                    change = Change(change.when, text)
                elif position > 2:
                    path = text.removeprefix("\n") if position == 3 else text
                    if path in wanted:
                        found[path] = change
                        wanted.discard(path)
                if not wanted:
                    break
            process.kill()
        return found

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
        ask, answer = self._process.stdin, _output(self._process)
        if ask is None:
            raise OSError("git was started without a question")
        ask.write(oid.encode() + b"\n")
        ask.flush()
        head = answer.readline().split()
        if len(head) != 3:
            raise OSError("git has no such object")
        size = int(head[2])
        data = answer.read(size + 1)
        if len(data) != size + 1:
            raise OSError("git ended early")
        return data[:-1]

    def __enter__(self) -> Blobs:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def _output(process: subprocess.Popen[bytes]) -> IO[bytes]:
    if process.stdout is None:
        raise OSError("git was started without an answer")
    return process.stdout


def _fields(stream: IO[bytes]) -> Iterator[bytes]:
    """The parts between zero bytes."""
    rest = b""
    while data := stream.read(CHUNK):
        *whole, rest = (rest + data).split(b"\0")
        yield from whole
    if rest:
        yield rest
