"""Paths inside granted folders: which folder a path belongs to, and opening it without ever leaving that folder.

A path is walked one component at a time over open folders, and the system never follows a link. Links that stay inside
the folder are followed here; those that lead out of it are refused.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from moonbox.errors import ArgumentError, Denied, ToolError

if TYPE_CHECKING:
    from moonbox.scripts.hostapi.functions import Host

_MAX_LINKS = 40
FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_MAX_PATH = 4_000
_MAX_DEPTH = 100
_ANY = getattr(os, "O_PATH", os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
_CODES = {
    errno.ENOENT: ("not_found", "does not exist"),
    errno.ENOTDIR: ("not_a_folder", "has a part that is not a folder"),
    errno.EISDIR: ("not_a_file", "is a folder, not a file"),
    errno.EEXIST: ("exists", "exists already"),
    errno.ENOTEMPTY: ("not_empty", "is a folder that is not empty"),
    errno.ENAMETOOLONG: ("invalid_path", "has a name that is too long"),
    errno.EACCES: ("no_permission", "cannot be accessed: permission denied"),
    errno.EPERM: ("no_permission", "cannot be accessed: permission denied"),
    errno.ELOOP: ("invalid_path", "has too many links in it"),
    errno.ENXIO: ("not_a_file", "is not a regular file"),
}


@dataclass(frozen=True, slots=True)
class GrantedPath:
    """A path that a script named, and the granted folder that it is in."""

    text: str
    """As the script wrote it."""
    root: Path
    inside: str
    """Relative to the root, normalized; "." for the root itself."""

    @property
    def name(self) -> str:
        return Path(self.inside).name


class Folders:
    """The folders granted for reading, or those for writing."""

    def __init__(self, host: Host, key: str) -> None:
        self._host, self._key = host, key
        self._roots = [Path(os.path.normpath(host.grants.folder(text))) for text in getattr(host.grants, key)]

    def find(self, path: str | bytes, *, is_folder: bool = False) -> GrantedPath:
        """Raises Denied when the path, with its ".." taken literally, is not in a granted folder."""
        text = os.fsdecode(path)
        if not text or "\0" in text or len(text) > _MAX_PATH or text.count("/") > _MAX_DEPTH:
            raise ArgumentError(f"invalid path {text[:100]!r}", code="invalid_path")
        # Two leading slashes mean something else to some systems.
        absolute = os.path.normpath(Path(self._host.grants.base, text)).replace("//", "/", 1)
        for root in sorted(self._roots, key=lambda root: -len(root.parts)):
            if absolute == str(root) or absolute.startswith(f"{root}/"):
                return GrantedPath(text, root, os.path.relpath(absolute, root))
        doing = "reading" if self._key == "read" else "writing"
        base, folder = Path(self._host.grants.base), Path(absolute)
        if not is_folder and folder != base:
            folder = folder.parent
        advice = f"./{folder.relative_to(base)}" if folder.is_relative_to(base) else str(folder)
        raise self._host.not_granted(f"{doing} {text}", self._key, advice.removesuffix("/."))

    @contextlib.contextmanager
    def opened(self, path: GrantedPath, inside: str, flags: int = _ANY, mode: int = 0) -> Iterator[int]:
        """An open file or folder inside the path's root; OSErrors become ToolErrors that name the path."""
        with translated(path), self._root(path) as root:
            with contextlib.closing(_Walk(root)) as walk:
                fd = walk.open(inside.split("/"), flags | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
            try:
                yield fd
            finally:
                os.close(fd)

    @contextlib.contextmanager
    def regular(self, path: GrantedPath, flags: int, mode: int = 0) -> Iterator[int]:
        """An open regular file; pipes, devices and folders are refused, and opening one never waits."""
        with self.opened(path, path.inside, flags | os.O_NONBLOCK | os.O_NOCTTY, mode) as fd:
            refuse_special(path, os.fstat(fd))
            yield fd

    @contextlib.contextmanager
    def _root(self, path: GrantedPath) -> Iterator[int]:
        if os.open not in os.supports_dir_fd:
            raise ToolError("files cannot be confined to folders on this system", code="unsupported")
        if self._key == "write":
            path.root.mkdir(parents=True, exist_ok=True)
        root = os.open(path.root, FOLDER)
        try:
            yield root
        finally:
            os.close(root)


@contextlib.contextmanager
def translated(path: GrantedPath) -> Iterator[None]:
    """OSErrors as ToolErrors that name the path."""
    try:
        yield
    except OSError as problem:
        if problem.errno == errno.EXDEV:
            raise Denied(f"{path.text} leads out of the granted folder", code="not_granted") from None
        code, words = _CODES.get(problem.errno or 0, ("io", f"failed: {problem.strerror}"))
        raise ToolError(f"{path.text} {words}", code=code, retryable=code == "io") from None


def refuse_special(path: GrantedPath, info: os.stat_result) -> None:
    """Raises ToolError for folders, pipes, devices and sockets."""
    if stat.S_ISDIR(info.st_mode):
        raise ToolError(f"{path.text} is a folder, not a file", code="not_a_file")
    if not stat.S_ISREG(info.st_mode) or info.st_dev == _proc_device():
        raise ToolError(f"{path.text} is not a regular file", code="not_a_file")


def _proc_device() -> int:
    """Files of /proc look regular, but they give access to the host process."""
    proc = Path("/proc")
    return proc.stat().st_dev if proc.is_mount() else -1


class _Walk:
    """The open folders from the root to the path."""

    def __init__(self, root: int) -> None:
        self._folders = [os.dup(root)]
        self._links = 0

    def open(self, parts: list[str], flags: int, mode: int) -> int:
        """Open a relative path beneath the root. Raises OSError; EXDEV says that the path leads out of it."""
        todo = [part for part in reversed(parts) if part not in ("", ".")]
        while todo:
            part = todo.pop()
            if part == "..":
                if len(self._folders) == 1:
                    raise OSError(errno.EXDEV, "outside the granted folder", part)
                os.close(self._folders.pop())
                continue
            link = self._link(part)
            if link is not None:
                todo += [step for step in reversed(link.split("/")) if step not in ("", ".")]
            elif todo:
                self._folders.append(os.open(part, FOLDER | os.O_NOFOLLOW, dir_fd=self._folders[-1]))
            else:
                # Should a link have taken its place since the look, O_NOFOLLOW makes this fail.
                return self._final(part, flags, mode)
        return os.open(".", flags & ~os.O_CREAT, dir_fd=self._folders[-1])

    def close(self) -> None:
        for folder in self._folders:
            os.close(folder)

    def _final(self, part: str, flags: int, mode: int) -> int:
        fd = os.open(part, flags, mode, dir_fd=self._folders[-1])
        opens_links = flags & getattr(os, "O_PATH", 0)  # then a link is opened, not refused
        if opens_links and stat.S_ISLNK(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), part)
        return fd

    def _link(self, part: str) -> str | None:
        """What the link of this name says, or None when there is no such link."""
        try:
            text = os.readlink(part, dir_fd=self._folders[-1])
        except OSError as problem:
            if problem.errno in (errno.EINVAL, errno.ENOENT):
                return None
            raise
        self._links += 1
        if self._links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), part)
        if text.startswith("/"):
            raise OSError(errno.EXDEV, "outside the granted folder", part)
        return text
