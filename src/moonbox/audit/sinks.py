"""Where runs are kept: the sink seam, runs in memory and in a file of JSON lines, and how a sink is named."""

from __future__ import annotations

import contextlib
import json
import os
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from moonbox.audit.files import Retention
from moonbox.audit.jsonlines import JsonLinesSink
from moonbox.audit.query import RunReader, pick
from moonbox.audit.sqlite import SqliteSink
from moonbox.audit.tables import put_run, tables_in_memory
from moonbox.config.file import resolve_path
from moonbox.errors import UsageError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator

    from moonbox.audit.records import Call, Run

__all__ = [
    "IntentSink", "JsonLinesSink", "MemorySink", "Retention", "Sink", "Store", "Trail", "default_path", "names_a_file",
    "open_sink", "open_trail",
]  # fmt: skip

DEFAULT_RETENTION = Retention()


class Sink(Protocol):
    """Gets every run before its result is returned. Called from many threads at once."""

    def write(self, run: Run) -> None:
        """Store the run, so that it is durable when this returns; raises AuditError when that fails."""

    def close(self) -> None:
        """Close files. Closing twice is fine."""


class IntentSink(Sink, Protocol):
    """A durable sink: what a run is about to do is on file before it is done."""

    def start_run(self, run: Run) -> None:
        """Called before the first call of a run: what is known of it so far."""

    def start_call(self, run: str, call: Call) -> None:
        """Called before the tool of a call is invoked, with the id of its run; raises AuditError when that fails."""

    def end_call(self, run: str, call: Call) -> None:
        """Called when a call has ended, and before the script gets its answer. A sink may do without this method."""


Trail = RunReader
"""What can be asked about the runs of a sink; every built-in sink is one."""
Store = JsonLinesSink | SqliteSink
"""A trail in a file: runs can be removed from it, and its hash chain verified."""


class MemorySink(RunReader):
    """The latest runs, in memory."""

    def __init__(self, capacity: int = 1000) -> None:
        if capacity < 1:
            raise UsageError(f"MemorySink needs a capacity of at least 1, not {capacity}")
        self._runs: deque[Run] = deque(maxlen=capacity)

    def write(self, run: Run) -> None:
        self._runs.append(run)

    def runs(self) -> Iterator[Run]:
        return iter(tuple(self._runs))

    def get(self, id: str) -> Run:
        runs = {run.id: run for run in self.runs() if run.id.startswith(id)}
        return runs[pick(id, tuple(runs))]

    @contextlib.contextmanager
    def _reading(self, *, records: bool = True, prefix: str = "") -> Iterator[sqlite3.Connection]:
        with tables_in_memory(lambda record: str(json.loads(record)["state"])) as db:
            for run in self.runs():
                put_run(db, run, run.to_json() if records else f'{{"state":"{run.state}"}}')
            yield db

    def close(self) -> None:
        """Nothing to close: the runs stay readable."""


def open_sink(
    where: str | os.PathLike[str], *, fsync: bool = False, retention: Retention | None = DEFAULT_RETENTION
) -> Sink:
    """A sink by name: "memory", "sqlite:PATH", "jsonl:PATH", or a path that ends in .db, .sqlite or .jsonl.

    A file keeps what `retention` says, by default the latest gigabyte; None keeps everything.
    """
    kind, path = parse_place(where)
    if kind == "memory":
        return MemorySink()
    if kind == "jsonl":
        return JsonLinesSink(path, fsync=fsync, retention=retention)
    return SqliteSink(path, fsync=fsync, retention=retention)


def open_trail(where: str | os.PathLike[str]) -> Store:
    """A trail that exists, to look into and to prune; raises UsageError when there is none."""
    kind, path = parse_place(where)
    if kind == "memory":
        raise UsageError("runs in memory can only be read by the program that made them; choose a file")
    if not path.is_file():
        raise UsageError(f"there is no audit trail at {path}")
    return JsonLinesSink(path, create=False) if kind == "jsonl" else SqliteSink(path, create=False)


def names_a_file(where: str | os.PathLike[str]) -> bool:
    """Whether a sink of that name would be kept in a file."""
    try:
        return parse_place(where)[0] != "memory"
    except UsageError:
        return False


def default_path() -> Path:
    """Where the command line keeps its trail: $MOONBOX_HOME, or else the user's folder for state."""
    if home := os.environ.get("MOONBOX_HOME"):
        return Path(home).expanduser() / "audit.db"
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    return base / "moonbox" / "audit.db"


_SUFFIXES = {".db": "sqlite", ".sqlite": "sqlite", ".sqlite3": "sqlite", ".jsonl": "jsonl", ".ndjson": "jsonl"}


def parse_place(where: str | os.PathLike[str]) -> tuple[str, Path]:
    """The kind of a sink and its file; UsageError where it does not name one."""
    text = os.fspath(where)
    if text == "memory":
        return "memory", Path()
    kind, colon, rest = text.partition(":")
    if colon and kind in ("sqlite", "jsonl"):
        if not rest:
            raise UsageError(f"the audit sink {text!r} has no path; write {kind}:PATH")
        return kind, resolve_path(Path(), rest)
    path = resolve_path(Path(), text)
    if path.suffix.lower() in _SUFFIXES:
        return _SUFFIXES[path.suffix.lower()], path
    raise UsageError(
        f"unknown audit sink {text!r}; use 'memory', 'sqlite:PATH', 'jsonl:PATH' "
        "or a path that ends in .db, .sqlite or .jsonl"
    )


class SinkAround:
    """A sink that passes everything on to another, and tells of each run once it is kept.

    Its other attributes are those of that sink.
    """

    def __init__(self, inner: Sink, tell: Callable[[Run], None] = lambda _: None) -> None:
        self._inner, self._tell = inner, tell

    def write(self, run: Run) -> None:
        self._inner.write(run)
        self._tell(run)

    def close(self) -> None:
        self._inner.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class SharedSink(SinkAround):
    """A sink that another closes."""

    def close(self) -> None:
        """Not ours to close."""
