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
import hashlib
import json
import os
import re
import sqlite3
from typing import TYPE_CHECKING, Any

from moonbox.audit.chain import START, ChainLink, Verification, check_chain, json_object, prune_note
from moonbox.audit.files import FileTrail, Pruning
from moonbox.audit.records import DAMAGED, Call, Run
from moonbox.audit.tables import put_call, put_run, put_start, tables_in_memory
from moonbox.audit.writers import state_of_start
from moonbox.errors import AuditError, ClosedError
from moonbox.files import create_private_file
from moonbox.shortage import shortage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


_STUB, _PRUNE, _SEAL = b'{"pruned":true', b'{"prune":', b'{"seal":'
_END = re.compile(rb',"chain":"([0-9a-f]{64})"\}\r?\n\Z')
_END_LENGTH = len(b',"chain":"') + 64 + len(b'"}\r\n')
_DAMAGED = (*DAMAGED, sqlite3.IntegrityError, sqlite3.InterfaceError, sqlite3.ProgrammingError)
_KINDS = {
    b'{"run_started":': "start",
    b'{"call_started":': "call",
    b'{"call_ended":': "call",
    _PRUNE: "prune",
    _SEAL: "seal",
}
"""The kind of a record by how its line begins; others are runs."""


class JsonLinesSink(FileTrail):
    """A file to which each run is appended as one line of JSON; any number of threads and processes may share it.

    A line is in the operating system's hands when `write` returns, so that it survives the end of this process,
    however that comes. With `fsync` it is on the disk too and survives a loss of power.
    """

    def _open(self, *, create: bool, fsync: bool) -> None:
        self._fsync = fsync
        if create:
            with _explained("open", self.path):
                create_private_file(self.path)

    def verify(self, *, expect: str | None = None) -> Verification:
        with _explained("read", self.path), self.path.open("rb") as lines:
            return check_chain(line_links(lines), expect)

    def _put(self, event: str, run: str, record: str, about: Run | Call) -> None:
        more = f',"run":{json.dumps(run)}' if isinstance(about, Call) else ""
        self._append(record if event == "run" else f'{{"{event}":{record}{more}}}')

    def _size(self) -> int:
        with _explained("read", self.path):
            return self.path.stat().st_size

    @contextlib.contextmanager
    def _reading(self, *, records: bool = True, prefix: str = "") -> Iterator[sqlite3.Connection]:
        """The tables, filled from the file. Of a run that has ended, what was written before its end is not needed."""
        started: dict[str, dict[str, Any]] = {}
        calls: dict[str, dict[int, dict[str, Any]]] = {}
        with tables_in_memory(lambda record: state_of_start(json_object(record))) as db:
            for line, data, id in self._records(prefix):
                with contextlib.suppress(*_DAMAGED):
                    if "id" in data:
                        started.pop(id, None)
                        calls.pop(id, None)
                        put_run(db, Run.from_dict(data), _without_hash(line).decode() if records else "")
                    elif "run_started" in data:
                        started[id] = data["run_started"]
                    elif one := data.get("call_ended", data.get("call_started")):
                        calls.setdefault(id, {})[one["index"]] = one
            for id, data in started.items():
                with contextlib.suppress(*_DAMAGED):
                    put_start(db, Run.from_dict(data), json.dumps(data))
                    for one in calls.get(id, {}).values():
                        put_call(db, id, Call.from_dict(one), json.dumps(one))
            yield db

    def _records(self, prefix: str) -> Iterator[tuple[bytes, dict[str, Any], str]]:
        """The lines about runs whose ids start so, each with its object and the id."""
        with _explained("read", self.path):
            for line in _whole_lines(self.path):
                data = json_object(line)
                if (id := _run_of(data)) is not None and id.startswith(prefix):
                    yield line, data, id

    def _append(self, text: str) -> None:
        """Add a JSON object as a line with its hash."""
        if self._closed:
            raise ClosedError(f"the audit trail {self.path} is closed")
        with _explained("write to", self.path), self._locked() as fd:
            size = os.fstat(fd).st_size
            last = os.pread(fd, _END_LENGTH, max(0, size - _END_LENGTH))
            parts = _split(last)
            is_loose = size and parts is None
            _write(fd, self._sealed(text, last) if is_loose else _Tail(parts[1] if parts else START).line(text))
            if self._fsync:
                _to_disk(fd)

    def _sealed(self, text: str, last: bytes) -> bytes:
        """The line, after one that covers what has no hash: lines of an older version, or what a killed writer left."""
        torn = not last.endswith(b"\n")
        tail = _Tail()
        with self.path.open("rb") as lines:
            for line in lines:
                tail.add(line)
        if torn:
            tail.hasher.update(b"\n")
        return (b"\n" if torn else b"") + tail.line(json.dumps({"seal": tail.loose})) + tail.line(text)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        """The file that is at the path now, open and locked against other threads and processes."""
        import fcntl  # not on every platform that has moonbox

        while True:
            try:
                fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
            except FileNotFoundError:  # it was removed
                create_private_file(self.path)
                continue
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                if _is_at(fd, self.path):  # else it was replaced while this one waited
                    yield fd
                    return
            finally:
                fcntl.flock(fd, fcntl.LOCK_UN)  # a process that was forked meanwhile has the file open, too
                os.close(fd)

    def _prune(self, choice: Pruning, *, dry_run: bool = False) -> int:
        """The lines that stay go to a new file that replaces the old one in one step: a process that is killed half-way
        has lost nothing, and those that wait to append find the new file.
        """
        with _explained("prune", self.path), self._locked() as fd:
            runs, whole, pruned = _runs_in(_whole_lines(self.path))
            removed = choice.of_runs(runs)
            if removed and not dry_run:
                self._replace(fd, _pruned(_whole_lines(self.path), whole, removed, pruned))
        return len(removed)

    def _replace(self, fd: int, lines: Iterable[bytes]) -> None:
        place = self.path.resolve()  # what a link points to, not the link
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


def _is_at(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _to_disk(fd: int) -> None:
    import fcntl

    if full := getattr(fcntl, "F_FULLFSYNC", None):  # macOS: fsync alone stops at the drive's cache
        fcntl.fcntl(fd, full)
    else:
        os.fsync(fd)


def _whole_lines(path: Path) -> Iterator[bytes]:
    """Every line that has an end: one without was being written when its writer was killed."""
    with path.open("rb") as lines:
        yield from (line for line in lines if line.endswith(b"\n"))


def _run_of(data: dict[str, Any]) -> str | None:
    """Which run a line is about."""
    id = data.get("id", data.get("run", _inner(data, "run_started").get("id")))
    return id if isinstance(id, str) else None


def _inner(data: dict[str, Any], key: str) -> dict[str, Any]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _split(line: bytes) -> tuple[bytes, str] | None:
    """A line without its hash and closing brace, and that hash; None for a line that has none."""
    match = _END.search(line, max(0, len(line) - _END_LENGTH))
    return (line[: match.start()], match[1].decode()) if match else None


def _without_hash(line: bytes) -> bytes:
    parts = _split(line)
    return parts[0] + b"}\n" if parts else line


def _with_hash(body: bytes, hash: str) -> bytes:
    return b'%s,"chain":"%s"}\n' % (body, hash.encode())


class _Tail:
    """The end of a chained file: the hash of the last line that has one, and what came after it."""

    def __init__(self, head: str = START) -> None:
        self.follow(head)

    def follow(self, head: str) -> None:
        self.head = head
        self.loose = 0
        """How many lines follow that have no hash: of an older version, or left by a writer that was killed."""
        self.hasher = hashlib.sha256(head.encode())

    def add(self, line: bytes) -> None:
        """The next line of the file."""
        if (parts := _split(line)) is not None:
            self.follow(parts[1])
        else:
            self.loose += 1
            self.hasher.update(line)

    def line(self, text: str) -> bytes:
        """A JSON object as the line that comes next, with a hash that covers the loose lines too."""
        body = text.encode()[:-1]
        self.follow(self.hash_of(body))
        return _with_hash(body, self.head)

    def hash_of(self, body: bytes) -> str:
        """The hash of a line that comes next."""
        hasher = self.hasher.copy()
        hasher.update(body)
        return hasher.hexdigest()


def line_links(lines: Iterable[bytes]) -> Iterator[ChainLink]:
    """The chain of a file from its first line to its last."""
    tail, number, first_loose = _Tail(), 0, b""
    for number, line in enumerate(lines, 1):
        parts = _split(line)
        if parts is None:
            first_loose = first_loose if tail.loose else line
        elif parts[0] == _STUB and not tail.loose:
            yield ChainLink("pruned", f"line {number}", parts[1])
        else:
            body, hash = parts
            kind = next((kind for start, kind in _KINDS.items() if body.startswith(start)), "run")
            fits = hash == tail.hash_of(body)
            problem = None if fits else f"line {number}{_described(line)} does not fit the lines before it"
            yield ChainLink(
                kind, hash=hash, problem=problem, note=json_object(line).get("prune") if kind == "prune" else None
            )
        tail.add(line)
    # A last line without an end was being written when its writer was killed: the next writer seals it.
    if tail.loose > 1 or (tail.loose and first_loose.endswith(b"\n")):
        problem = "no line has a hash: an older version wrote the trail; the next run that is written seals it"
        if tail.head:
            place = f"line {number - tail.loose + 1}{_described(first_loose)}"
            problem = f"{place} has no hash, but the lines before it have"
        yield ChainLink("end", problem=problem)


def _described(line: bytes) -> str:
    run = _run_of(json_object(line))
    return "" if run is None else f" (run {run})"


def _runs_in(lines: Iterable[bytes]) -> tuple[list[tuple[str, float, int]], set[str], int]:
    """The runs of a file in the order they were written, those with their whole record, and how many were pruned."""
    sizes, starts, whole, pruned = dict[str, int](), dict[str, float](), set[str](), 0
    for line in lines:
        data = json_object(line)
        id, started = _run_of(data), data.get("started", _inner(data, "run_started").get("started"))
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

    def stays(line: bytes) -> bool:
        data = json_object(line)
        id = _run_of(data)
        return id not in removed and ("id" in data or id not in whole) and not line.startswith((_STUB, _PRUNE))

    tail, stubs, loose, gap = _Tail(), list[str](), list[bytes](), ""
    group = list[bytes]()  # a line with a hash, after those without one that it covers
    for line in lines:
        group.append(line)
        if (parts := _split(line)) is None:
            continue
        kept = [line for line in group if stays(line)]
        if len(kept) < len(group):
            gap = parts[1]
            loose += [_without_hash(line) for line in kept if not line.startswith(_SEAL)]
        else:
            if gap:
                stubs.append(gap)
                yield _with_hash(_STUB, gap)
            yield from group
            tail, gap = _Tail(parts[1]), ""
        group = []
    if gap:
        stubs.append(gap)
        yield _with_hash(_STUB, gap)
        tail = _Tail(gap)
    for line in (*loose, *filter(stays, group)):
        tail.add(line)
        yield line
    yield tail.line(json.dumps({"prune": prune_note(stubs, before + len(removed))}, separators=(",", ":")))
