"""A file of lines that any number of threads and processes append to, and that can be rewritten under them."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING

from moonbox.errors import AuditError, ClosedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

__all__ = ["LineFile", "prepare"]


class LineFile:
    """An open file to which whole lines are appended under a lock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._fd: int | None = _open(path)

    def append(self, line: bytes, fsync: bool) -> None:
        with self._alone() as fd:
            size = os.fstat(fd).st_size
            if size and os.pread(fd, 1, size - 1) != b"\n":
                line = b"\n" + line  # ends what a killed writer left unfinished
            _write(fd, line)
            if fsync:
                _to_disk(fd)

    def rewrite(self, choose: Callable[[Iterable[bytes]], set[int]], *, dry_run: bool = False) -> int:
        """Remove the lines whose numbers `choose` gives; how many they are.

        The rest goes to a new file that takes the old one's place at once: whoever is killed half-way has lost nothing,
        and whoever waits to append finds the new one.
        """
        with self._alone() as fd:
            doomed = choose(self._lines())
            if doomed and not dry_run:
                self._replace(fd, (line for number, line in enumerate(self._lines()) if number not in doomed))
        return len(doomed)

    def close(self) -> None:
        with self._lock:
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None

    @contextlib.contextmanager
    def _alone(self) -> Iterator[int]:
        """With nobody else writing, the file that is at the path now: another process may have replaced it."""
        with self._lock:
            while True:
                if self._fd is None:  # by now its number may be another file's
                    raise ClosedError("the audit trail was closed while a run was being written")
                with _file_lock(self._fd):
                    if _is_at(self._fd, self._path):
                        yield self._fd
                        return
                os.close(self._fd)
                self._fd = None
                prepare(self._path)
                self._fd = _open(self._path)

    def _lines(self) -> Iterator[bytes]:
        """Every line that has an end: one without was being written when its writer was killed."""
        with self._path.open("rb") as lines:
            yield from (line for line in lines if line.endswith(b"\n"))

    def _replace(self, fd: int, lines: Iterable[bytes]) -> None:
        place = self._path.resolve()  # what a link points to, not the link
        draft = place.with_name(f"{place.name}.new")
        new = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(new, os.fstat(fd).st_mode & 0o777)
            for line in lines:
                _write(new, line)
            _to_disk(new)
            draft.replace(place)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        finally:
            os.close(new)


def prepare(path: Path) -> None:
    """Make the file and its folders, readable by their owner alone: a trail holds what scripts saw."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise AuditError(f"cannot open the audit trail {path}: {error.strerror}") from error


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)


def _is_at(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


@contextlib.contextmanager
def _file_lock(fd: int) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # no such locks on this platform: appends of one write() each are all there is
        yield
        return
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)


def _to_disk(fd: int) -> None:
    import fcntl

    if full := getattr(fcntl, "F_FULLFSYNC", None):  # macOS: fsync alone stops at the drive's cache
        fcntl.fcntl(fd, full)
    else:
        os.fsync(fd)
