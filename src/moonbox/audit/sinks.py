"""Where runs are kept: the sink seam, runs in memory and in a file of JSON lines, and how a sink is named."""

from __future__ import annotations

import json
import os
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from moonbox.audit.lines import LineFile, prepare
from moonbox.audit.pruning import Pruning
from moonbox.audit.query import RunSummary, Stats, matching, pick, statistics
from moonbox.audit.records import Run
from moonbox.errors import AuditError, ClosedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "JsonLinesSink",
    "MemorySink",
    "Sink",
    "Store",
    "Trail",
    "default_path",
    "names_a_file",
    "open_sink",
    "open_trail",
]


class Sink(Protocol):
    """Takes every run before its result is returned. Called from many threads at once."""

    def write(self, run: Run) -> None:
        """Keep the run; what is kept when this returns stays kept. Raises AuditError where that cannot be."""

    def close(self) -> None:
        """Let go of files. Closing twice is fine."""


class Trail(Protocol):
    """What can be asked about runs that were kept; every built-in sink answers."""

    def list(
        self,
        limit: int = 50,
        offset: int = 0,
        *,
        ok: bool | None = None,
        tool: str | None = None,
        since: float | None = None,
        repl: str | None = None,
    ) -> tuple[RunSummary, ...]:
        """Summaries, the latest run first."""

    def get(self, id: str) -> Run:
        """The run with that id, or with the only id that starts so; raises UsageError for none and for several."""

    def stats(self, *, since: float | None = None) -> Stats:
        """How runs and tools did."""


class Store(Trail, Protocol):
    """A trail in a file: runs can be removed from it, also while others write to it."""

    def prune(self, *, older_than: float | None = None, keep: int | None = None, dry_run: bool = False) -> int:
        """Remove runs older than that many seconds, and all but the latest `keep`; how many they were, or would be."""


class _Readable:
    """A Trail over runs that are read one after the other, oldest first."""

    def runs(self) -> Iterator[Run]:
        raise NotImplementedError

    def list(self, limit: int = 50, offset: int = 0, **where: Any) -> tuple[RunSummary, ...]:
        return matching(self.runs(), limit=limit, offset=offset, **where)

    def get(self, id: str) -> Run:
        found = {run.id: run for run in self.runs() if run.id.startswith(id)}
        return found[pick(id, tuple(found))]

    def stats(self, *, since: float | None = None) -> Stats:
        return statistics(self.runs(), since=since)


class MemorySink(_Readable):
    """The latest runs, in memory."""

    def __init__(self, capacity: int = 1000) -> None:
        if capacity < 1:
            raise UsageError(f"MemorySink needs a capacity of at least 1, not {capacity}")
        self._runs: deque[Run] = deque(maxlen=capacity)

    def write(self, run: Run) -> None:
        self._runs.append(run)

    def runs(self) -> Iterator[Run]:
        return iter(tuple(self._runs))

    def close(self) -> None:
        """Nothing to let go of: the runs stay readable."""


class JsonLinesSink(_Readable):
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
            prepare(self.path)

    def write(self, run: Run) -> None:
        if self._closed:
            raise ClosedError(f"the audit trail {self.path} was closed")
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
        """Remove runs older than that many seconds, and all but the latest `keep`; how many they were, or would be."""
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


def open_sink(where: str | os.PathLike[str], *, fsync: bool = False) -> Sink:
    """A sink by name: "memory", "sqlite:PATH", "jsonl:PATH", or a path that ends in .db, .sqlite or .jsonl."""
    kind, path = _parse(where)
    if kind == "memory":
        return MemorySink()
    if kind == "jsonl":
        return JsonLinesSink(path, fsync=fsync)
    from moonbox.audit.sqlite import SqliteSink

    return SqliteSink(path, fsync=fsync)


def open_trail(where: str | os.PathLike[str]) -> Store:
    """A trail that exists, to look into and to prune; raises UsageError when there is none."""
    kind, path = _parse(where)
    if kind == "memory":
        raise UsageError("runs in memory can be read only by the program that made them; name a file")
    if not path.is_file():
        raise UsageError(f"there is no audit trail at {path}")
    if kind == "jsonl":
        return JsonLinesSink(path, create=False)
    from moonbox.audit.sqlite import SqliteSink

    return SqliteSink(path, create=False)


def names_a_file(where: str | os.PathLike[str]) -> bool:
    """Whether a sink of that name would be kept in a file."""
    try:
        return _parse(where)[0] != "memory"
    except UsageError:
        return False


def default_path() -> Path:
    """Where the command line keeps its trail: $MOONBOX_HOME, or else the user's folder for state."""
    if home := os.environ.get("MOONBOX_HOME"):
        return Path(home).expanduser() / "audit.db"
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    return base / "moonbox" / "audit.db"


def _read_line(line: bytes) -> Run | None:
    try:
        return Run.from_dict(json.loads(line))
    except (ValueError, TypeError, AttributeError):
        return None  # the unfinished line of a killed writer, ended by the next one


_SUFFIXES = {".db": "sqlite", ".sqlite": "sqlite", ".sqlite3": "sqlite", ".jsonl": "jsonl", ".ndjson": "jsonl"}


def _parse(where: str | os.PathLike[str]) -> tuple[str, Path]:
    text = os.fspath(where)
    if text == "memory":
        return "memory", Path()
    kind, colon, rest = text.partition(":")
    if colon and kind in ("sqlite", "jsonl"):
        if not rest:
            raise UsageError(f"the audit sink {text!r} names no file; write {kind}:PATH")
        return kind, Path(rest).expanduser()
    path = Path(text).expanduser()
    if path.suffix.lower() in _SUFFIXES:
        return _SUFFIXES[path.suffix.lower()], path
    raise UsageError(
        f"unknown audit sink {text!r}; use 'memory', 'sqlite:PATH', 'jsonl:PATH' "
        "or a path that ends in .db, .sqlite or .jsonl"
    )
