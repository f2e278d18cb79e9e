"""Runs as lines of JSON in a file that any number of threads and processes append to.

A line is one of these, and each ends with its hash, "chain" (see `chain`):

{"id": …}                               a run, whole
{"run_started": {…}}                    a run that is about to make its first call, and its writer
{"call_started": {…}, "run": "…"}       a call that is about to be made
{"call_ended": {…}, "run": "…"}         what came of it
{"prune": {…}}  {"pruned": true}        what was removed, and where
{"seal": …}                             covers lines before it that have no hash
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moonbox.audit.chain import (
    END_LENGTH,
    START,
    STUB,
    Tail,
    Verification,
    json_object,
    prune_note,
    run_of,
    split_line,
    stub_line,
    verify_lines,
)
from moonbox.audit.reader import LoadedRuns
from moonbox.audit.records import DAMAGED, Call, Run, cut_off
from moonbox.audit.retention import Prunable, Pruning, Retention
from moonbox.audit.writers import Writer, state_of_start
from moonbox.database import create_private_file
from moonbox.errors import AuditError, ClosedError
from moonbox.shortage import shortage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class JsonLinesSink(LoadedRuns, Prunable):
    """A file to which each run is appended as one line of JSON; any number of threads and processes may share it.

    A line is in the operating system's hands when `write` returns, so that it survives the end of this process,
    however that comes. With `fsync` it is on the disk too and survives a loss of power.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        fsync: bool = False,
        create: bool = True,
        retention: Retention | None = None,
    ) -> None:
        super().__init__(retention)
        self.path = Path(path)
        self._fsync = fsync
        self._closed = False
        self._files: dict[int, LineFile] = {}  # one for each process: locks do not work across a fork
        if create:
            _create(self.path)

    def write(self, run: Run) -> None:
        self._append(run.to_json())

    def start_run(self, run: Run) -> None:
        """Write down a run that is about to make its first call."""
        data = {**run.to_dict(), "writer": Writer.current().to_dict()}
        self._append(json.dumps({"run_started": data}, separators=(",", ":")))

    def start_call(self, run: str, call: Call) -> None:
        """Write down a call of the run of that id before its tool is invoked."""
        self._append(json.dumps({"call_started": call.to_dict(), "run": run}, separators=(",", ":")))

    def end_call(self, run: str, call: Call) -> None:
        """Write down what came of a call."""
        self._append(json.dumps({"call_ended": call.to_dict(), "run": run}, separators=(",", ":")))

    def runs(self) -> Iterator[Run]:
        started: dict[str, dict[str, Any]] = {}
        calls: dict[str, dict[int, Call]] = {}
        with _explained("read", self.path), self.path.open("rb") as lines:
            for line in lines:
                # A line without an end was cut short when its writer was killed: that run was never returned.
                data = json_object(line) if line.endswith(b"\n") else {}
                with contextlib.suppress(*DAMAGED):
                    if "id" in data:
                        run = Run.from_dict(data)
                        started.pop(run.id, None)
                        calls.pop(run.id, None)
                        yield run
                    elif "run_started" in data:
                        started[str(run_of(data))] = data["run_started"]
                    elif (one := data.get("call_ended", data.get("call_started"))) and data["run"] in started:
                        calls.setdefault(data["run"], {})[one["index"]] = Call.from_dict(one)
        for id, data in started.items():
            with contextlib.suppress(*DAMAGED):
                yield cut_off(Run.from_dict(data), calls.get(id, {}).values(), state_of_start(data))

    def verify(self, *, expect: str | None = None) -> Verification:
        """Whether every line fits the one before; `expect` is the hash of a record that must be there."""
        with _explained("read", self.path), self.path.open("rb") as lines:
            return verify_lines(lines, expect)

    def close(self) -> None:
        self._closed = True
        if file := self._files.pop(os.getpid(), None):
            file.close()

    def _append(self, text: str) -> None:
        if self._closed:
            raise ClosedError(f"the audit trail {self.path} is closed")
        with _explained("write to", self.path):
            self._file().append(text, self._fsync)
        self._retain(len(text))

    def _extent(self) -> tuple[int, int, float | None]:
        keep, starts = self._retention, list[float]()
        if keep.max_runs is not None or keep.max_age is not None:  # else there is no need to read the file
            starts = [run.started for run in self.runs()]
        with _explained("read", self.path):
            return len(starts), self.path.stat().st_size, min(starts, default=None)

    def _prune(self, choice: Pruning, *, dry_run: bool = False) -> int:
        with _explained("prune", self.path):
            return self._file().prune(choice, dry_run=dry_run)

    def _file(self) -> LineFile:
        pid = os.getpid()
        if (file := self._files.get(pid)) is None:
            mine = LineFile(self.path)
            file = self._files.setdefault(pid, mine)
            if file is not mine:  # another thread was first
                mine.close()
        return file


class LineFile:
    """An open file to which whole lines are appended under a lock, and which can be pruned under its writers."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._fd: int | None = _open(path)

    def append(self, text: str, fsync: bool) -> None:
        """Add a JSON object as a line with its hash."""
        with self._locked() as fd:
            size = os.fstat(fd).st_size
            last = os.pread(fd, END_LENGTH, max(0, size - END_LENGTH))
            parts = split_line(last)
            is_loose = size and parts is None
            _write(fd, self._seal(text, last) if is_loose else Tail(parts[1] if parts else START).line(text))
            if fsync:
                _to_disk(fd)

    def _seal(self, text: str, last: bytes) -> bytes:
        """The line, after one that covers what has no hash: lines of an older version, or what a killed writer left."""
        torn = not last.endswith(b"\n")
        with self._path.open("rb") as lines:
            tail = Tail.of(lines)
        if torn:
            tail.add_to_loose(b"\n")
        return (b"\n" if torn else b"") + tail.line(json.dumps({"seal": tail.loose})) + tail.line(text)

    def prune(self, choice: Pruning, *, dry_run: bool = False) -> int:
        """Remove the lines of the chosen runs; returns how many runs.

        The others go to a new file that replaces the old one in one step: a process that is killed half-way has lost
        nothing, and those that wait to append find the new file.
        """
        with self._locked() as fd:
            runs, whole, pruned = _runs_in(self._lines())
            removed = choice.of_runs(runs)
            if removed and not dry_run:
                self._replace(fd, _pruned(self._lines(), whole, removed, pruned))
        return len(removed)

    def close(self) -> None:
        with self._lock:
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        """The file that is at the path now, locked; another process may have replaced the one that was open."""
        with self._lock:
            while True:
                if self._fd is None:  # the number may be that of another file by now
                    raise ClosedError("the audit trail was closed while a run was being written")
                with _file_lock(self._fd):
                    if _is_at(self._fd, self._path):
                        yield self._fd
                        return
                _create(self._path)
                fresh = _open(self._path)  # before the old one is closed: a failure leaves one to try again with
                os.close(self._fd)
                self._fd = fresh

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


@contextlib.contextmanager
def _explained(deed: str, path: Path) -> Iterator[None]:
    """Says what could not be done, and why."""
    try:
        yield
    except OSError as error:
        reason = shortage(error) or error.strerror or str(error)
        raise AuditError(f"cannot {deed} the audit trail {path}: {reason}") from error


def _create(path: Path) -> None:
    with _explained("open", path):
        create_private_file(path)


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


def _runs_in(lines: Iterable[bytes]) -> tuple[list[tuple[str, float, int]], set[str], int]:
    """The runs of a file in the order they were written, those with their whole record, and how many were pruned."""
    sizes, starts, whole, pruned = dict[str, int](), dict[str, float](), set[str](), 0
    for line in lines:
        data = json_object(line)
        id, started = run_of(data), data.get("started", (_inner(data, "run_started")).get("started"))
        if id is not None:
            sizes[id] = sizes.get(id, 0) + len(line)
            if isinstance(started, int | float):
                starts[id] = float(started)
            if "id" in data:
                whole.add(id)
                starts[id] = starts.pop(id, 0.0)  # the latest record decides on the place
        elif isinstance(runs := _inner(data, "prune").get("runs"), int):
            pruned = runs
    return [(id, started, sizes[id]) for id, started in starts.items()], whole, pruned


def _pruned(lines: Iterable[bytes], whole: set[str], removed: set[str], before: int) -> Iterator[bytes]:
    """The lines that stay, a stub where some went, and at the end a record of the pruning.

    Lines that were written during a run go when its whole record is there. Lines without a hash whose seal cannot stay
    as it is go to the end, where the record of the pruning covers them.
    """
    tail, stubs, loose, gap = Tail(), list[str](), list[bytes](), ""

    def goes(line: bytes) -> bool:
        data = json_object(line)
        id = run_of(data)
        return id in removed or ("id" not in data and id in whole)

    between = list[bytes]()  # lines without a hash, which the next line with one covers
    for line in lines:
        parts = split_line(line)
        if parts is None:
            between.append(line)
            continue
        body, hash = parts
        kept = [line for line in between if not goes(line)]
        if len(kept) < len(between) or goes(line) or body == STUB or body.startswith(b'{"prune":'):
            loose += kept
            if run_of(json_object(line)) is not None and not goes(line):
                loose.append(body + b"}\n")
            gap = hash
        else:
            if gap:
                stubs.append(gap)
                yield stub_line(gap)
                gap = ""
            yield from between
            yield line
            tail = Tail(hash)
        between = []
    if gap:
        stubs.append(gap)
        yield stub_line(gap)
        tail = Tail(gap)
    loose += [line for line in between if not goes(line)]
    for line in loose:
        tail.add_loose(line)
        yield line
    yield tail.line(json.dumps({"prune": prune_note(stubs, before + len(removed))}, separators=(",", ":")))


def _inner(data: dict[str, Any], key: str) -> dict[str, Any]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}
