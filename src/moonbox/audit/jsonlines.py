"""Runs as lines of JSON in a file that any number of threads and processes append to."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from moonbox.audit.query import Pruning, RunReader
from moonbox.audit.records import Run
from moonbox.database import create_private_file
from moonbox.errors import AuditError, ClosedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["JsonLinesSink", "LineFile"]


class JsonLinesSink(RunReader):
    """A file to which each run is appended as one line of JSON; any number of threads and processes may share it.

    A line is in the operating system's hands when `write` returns, so that it survives the end of this process,
    however that comes. With `fsync` it is on the disk too and survives a loss of power.
    """

    def __init__(self, path: str | os.PathLike[str], *, fsync: bool = False, create: bool = True) -> None:
        self.path = Path(path)
        self._fsync = fsync
        self._closed = False
        self._files: dict[int, LineFile] = {}  # one for each process: locks do not work across a fork
        if create:
            _create(self.path)

    def write(self, run: Run) -> None:
        if self._closed:
            raise ClosedError(f"the audit trail {self.path} is closed")
        line = run.to_json().encode() + b"\n"
        try:
            self._file().append(line, self._fsync)
        except OSError as error:
            raise AuditError(f"cannot write to the audit trail {self.path}: {error.strerror}") from error

    def runs(self) -> Iterator[Run]:
        try:
            with self.path.open("rb") as lines:
                for line in lines:
                    # A line without an end was cut short when its writer was killed: that run was never returned.
                    if line.endswith(b"\n") and (run := _read_line(line)):
                        yield run
        except OSError as error:
            raise AuditError(f"cannot read the audit trail {self.path}: {error.strerror}") from error

    def prune(self, *, older_than: float | None = None, keep: int | None = None, dry_run: bool = False) -> int:
        """Remove runs older than that many seconds, and all but the latest `keep`; returns their number."""
        choice = Pruning(older_than, keep)
        try:
            return self._file().rewrite(choice.of_lines, dry_run=dry_run)
        except OSError as error:
            raise AuditError(f"cannot prune the audit trail {self.path}: {error.strerror}") from error

    def close(self) -> None:
        self._closed = True
        if file := self._files.pop(os.getpid(), None):
            file.close()

    def _file(self) -> LineFile:
        pid = os.getpid()
        if (file := self._files.get(pid)) is None:
            mine = LineFile(self.path)
            file = self._files.setdefault(pid, mine)
            if file is not mine:  # another thread was first
                mine.close()
        return file


class LineFile:
    """An open file to which whole lines are appended under a lock, and which can be rewritten under its writers."""

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
        """Remove the lines whose numbers `choose` returns; returns how many.

        The others go to a new file that replaces the old one in one step: a process that is killed half-way has lost
        nothing, and those that wait to append find the new file.
        """
        with self._alone() as fd:
            removed = choose(self._lines())
            if removed and not dry_run:
                self._replace(fd, (line for number, line in enumerate(self._lines()) if number not in removed))
        return len(removed)

    def close(self) -> None:
        with self._lock:
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None

    @contextlib.contextmanager
    def _alone(self) -> Iterator[int]:
        """The file that is at the path now, with nobody else writing: another process may have replaced it."""
        with self._lock:
            while True:
                if self._fd is None:  # the number may be that of another file by now
                    raise ClosedError("the audit trail was closed while a run was being written")
                with _file_lock(self._fd):
                    if _is_at(self._fd, self._path):
                        yield self._fd
                        return
                os.close(self._fd)
                self._fd = None
                _create(self._path)
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


def _create(path: Path) -> None:
    try:
        create_private_file(path)
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
    except ImportError:  # no such locks on this platform: each append is one write()
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


def _read_line(line: bytes) -> Run | None:
    try:
        return Run.from_dict(json.loads(line))
    except (ValueError, TypeError, AttributeError):
        return None  # the unfinished line of a killed writer, ended by the next one
