"""Granted folders: which of them a path belongs to, and open files beneath it."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from moonbox.errors import ArgumentError, Denied, ToolError
from moonbox.scripts.hostapi.fs.beneath import FOLDER, Escape, Opener, best_opener

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moonbox.scripts.hostapi.function import Host

__all__ = ["Folders", "Place"]

_MAX_PATH = 4_000
_NO_LOOK = getattr(os, "O_PATH", os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
_CODES = {
    errno.ENOENT: ("not_found", "does not exist"),
    errno.ENOTDIR: ("not_a_folder", "goes through something that is not a folder"),
    errno.EISDIR: ("not_a_file", "is a folder, not a file"),
    errno.EEXIST: ("exists", "exists already"),
    errno.ENOTEMPTY: ("not_empty", "is a folder that is not empty"),
    errno.ENAMETOOLONG: ("invalid_path", "has a name that is too long"),
    errno.EACCES: ("no_permission", "may not be accessed by the host"),
    errno.EPERM: ("no_permission", "may not be accessed by the host"),
    errno.ELOOP: ("invalid_path", "goes through too many links"),
    errno.ENXIO: ("not_a_file", "is not a regular file"),
}


@dataclass(frozen=True, slots=True)
class Place:
    """A path that a script named: the granted folder it is in, and the way from there."""

    shown: str
    root: Path
    inside: str
    """Relative to the root, normal; "." for the root itself."""

    @property
    def parent(self) -> str:
        return str(Path(self.inside).parent)

    @property
    def name(self) -> str:
        return Path(self.inside).name


class Folders:
    """The folders granted for reading, or those for writing."""

    def __init__(self, host: Host, key: str, opener: Opener | None = None) -> None:
        self._host, self._key = host, key
        self._open = opener or best_opener()
        self._roots = [Path(os.path.normpath(host.grants.folder(text))) for text in getattr(host.grants, key)]

    def find(self, path: str | bytes) -> Place:
        """Raises Denied when the path, with its ".." taken literally, lies in no granted folder."""
        shown = os.fsdecode(path)
        if not shown or "\0" in shown or len(shown) > _MAX_PATH:
            raise ArgumentError(f"{shown[:100]!r} is not a path", code="invalid_path")
        # Two leading slashes mean something else to some systems.
        absolute = os.path.normpath(Path(self._host.grants.base, shown)).replace("//", "/", 1)
        for root in sorted(self._roots, key=lambda root: -len(root.parts)):
            if absolute == str(root) or absolute.startswith(f"{root}/"):
                return Place(shown, root, os.path.relpath(absolute, root))
        doing = "reading" if self._key == "read" else "writing"
        raise self._host.not_granted(f"{doing} {shown}", self._key, self._advice(Path(absolute).parent))

    def _advice(self, folder: Path) -> str:
        base = Path(self._host.grants.base)
        return f"./{folder.relative_to(base)}" if folder.is_relative_to(base) and folder != base else str(folder)

    @contextlib.contextmanager
    def opened(self, place: Place, inside: str, flags: int = _NO_LOOK, mode: int = 0) -> Iterator[int]:
        """An open file or folder beneath the root of the place; OSErrors become ToolErrors that name the path."""
        with translated(place), self._root(place) as root:
            fd = self._open(root, inside, flags, mode)
            try:
                yield fd
            finally:
                os.close(fd)

    @contextlib.contextmanager
    def folder(self, place: Place, inside: str) -> Iterator[int]:
        with self.opened(place, inside, FOLDER) as fd:
            yield fd

    @contextlib.contextmanager
    def regular(self, place: Place, flags: int, mode: int = 0) -> Iterator[int]:
        """An open regular file; pipes, devices and folders are refused, and opening one never waits."""
        with self.opened(place, place.inside, flags | os.O_NONBLOCK | os.O_NOCTTY, mode) as fd:
            refuse_special(place, os.fstat(fd))
            yield fd

    @contextlib.contextmanager
    def _root(self, place: Place) -> Iterator[int]:
        if os.open not in os.supports_dir_fd:
            raise ToolError("files cannot be confined to folders on this system", code="unsupported")
        if self._key == "write":
            place.root.mkdir(parents=True, exist_ok=True)
        root = os.open(place.root, FOLDER)
        try:
            yield root
        finally:
            os.close(root)


@contextlib.contextmanager
def translated(place: Place) -> Iterator[None]:
    """OSErrors as what the script is told."""
    try:
        yield
    except OSError as problem:
        _raise(place, problem)


def refuse_special(place: Place, info: os.stat_result) -> None:
    if stat.S_ISDIR(info.st_mode):
        raise ToolError(f"{place.shown} is a folder, not a file", code="not_a_file")
    if not stat.S_ISREG(info.st_mode) or info.st_dev == _proc_device():
        raise ToolError(f"{place.shown} is not a regular file", code="not_a_file")


def _proc_device() -> int:
    """Files of /proc look regular, but they are doors into the host process."""
    proc = Path("/proc")
    return proc.stat().st_dev if proc.is_mount() else -1


def _raise(place: Place, problem: OSError) -> NoReturn:
    if isinstance(problem, Escape):
        raise Denied(f"{place.shown} leads out of the granted folder", code="not_granted") from None
    code, words = _CODES.get(problem.errno or 0, ("io", f"failed: {problem.strerror}"))
    raise ToolError(f"{place.shown} {words}", code=code, retryable=code == "io") from None
