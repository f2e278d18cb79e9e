"""Reading files below one folder, whatever somebody does to the folder meanwhile."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Entry", "Folder", "shown"]

MAX_DEPTH = 100


@dataclass(frozen=True, slots=True)
class Entry:
    """A file as the listing found it."""

    path: str
    """Relative to the folder, with slashes."""
    size: int
    modified: int
    """In nanoseconds."""
    link: bool = False


class Folder:
    """A folder whose files are opened one path component after the other, never through a symbolic link.

    What a check sees is what is read: a file or folder that is exchanged for a link after the listing is not followed.
    """

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)
        self._fd = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._parent: tuple[str, int] | None = None

    def list(self, descends: Callable[[str], bool], on_error: Callable[[str, OSError], None]) -> Iterator[Entry]:
        """Every regular file and every link, in order."""
        yield from self._list("", os.dup(self._fd), descends, on_error, 0)

    def read(self, path: str, most: int) -> bytes | None:
        """A file's bytes; None when there are more than `most`. Raises OSError for whatever is no regular file."""
        folder, _, name = path.rpartition("/")
        # NONBLOCK: opening a named pipe must not wait for somebody to write into it.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, dir_fd=self._folder(folder)), "rb", buffering=0) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise OSError(errno.EINVAL, "not a regular file any more")
            if found.st_size > most:
                return None
            data = file.readall()
            return data if data is None or len(data) <= most else None

    def target(self, path: str) -> str | None:
        """Where a link leads, as a path inside the folder; None when that is outside of it or nowhere."""
        try:
            real = Path(self._root, path).resolve(strict=True)
        except (OSError, RuntimeError):  # a loop of links is a RuntimeError before Python 3.13
            return None
        return real.relative_to(self._root).as_posix() if real.is_relative_to(self._root) else None

    def close(self) -> None:
        if self._parent is not None:
            os.close(self._parent[1])
        os.close(self._fd)

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _list(
        self,
        prefix: str,
        fd: int,
        descends: Callable[[str], bool],
        on_error: Callable[[str, OSError], None],
        depth: int,
    ) -> Iterator[Entry]:
        try:
            with os.scandir(fd) as listing:
                found = sorted(listing, key=lambda entry: entry.name)
            for entry in found:
                path = prefix + entry.name
                try:
                    if entry.is_dir(follow_symlinks=False):
                        if depth < MAX_DEPTH and descends(path):
                            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                            inner = os.open(entry.name, flags, dir_fd=fd)
                            yield from self._list(path + "/", inner, descends, on_error, depth + 1)
                    elif entry.is_symlink() or entry.is_file(follow_symlinks=False):
                        about = entry.stat(follow_symlinks=False)
                        yield Entry(path, about.st_size, about.st_mtime_ns, entry.is_symlink())
                except OSError as error:
                    on_error(path, error)
        finally:
            os.close(fd)

    def _folder(self, path: str) -> int:
        """A descriptor of a folder; the last one is kept, because files come folder by folder."""
        if not path:
            return self._fd
        if self._parent is not None:
            if self._parent[0] == path:
                return self._parent[1]
            os.close(self._parent[1])
            self._parent = None
        fd = os.dup(self._fd)
        for name in path.split("/"):
            try:
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            finally:
                os.close(fd)
            fd = inner
        self._parent = (path, fd)
        return fd


def shown(path: str) -> str:
    """A path as text: bytes that are not UTF-8 become escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
