"""The hash chain of a trail: each record carries a hash over itself and the record before."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from moonbox.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

START = ""
"""What the first record follows."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What a check of a trail came to."""

    records: int
    """Records that fit, up to the first that does not."""
    pruned: int
    """Runs that `prune` or the retention removed."""
    head: str
    """The hash of the last record: note it elsewhere, and `expect` it the next time."""
    problem: str | None = None
    """What does not fit, and where; None when everything does."""
    kinds: dict[str, int] = field(default_factory=dict)
    """How many of the records there are of each kind."""

    @property
    def ok(self) -> bool:
        return self.problem is None

    @property
    def counted(self) -> str:
        """What was counted, in words."""
        parts = [counted(number, *words) for kind, words in _KINDS.items() if (number := self.kinds.get(kind))]
        return counted(self.records, "record") + (f": {', '.join(parts)}" if parts else "")

    def to_dict(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self)}


_KINDS = {
    "run": ("complete run", "complete runs"),
    "start": ("start of a run", "starts of runs"),
    "call": ("start or end of a call", "starts and ends of calls"),
    "prune": ("pruning", "prunings"),
    "seal": ("seal over lines without a hash", "seals over lines without a hash"),
}


class ChainCheck:
    """A check of a chain, record by record. The latest record of a pruning must name every stub before it."""

    def __init__(self, expect: str | None) -> None:
        self._expect = expect
        self._stubs: dict[str, str] = {}
        self._kinds = Counter[str]()
        self._pruned = 0
        self.head = START

    def stub(self, hash: str, place: str) -> None:
        """Records were removed at this place; `hash` is that of the last of them."""
        self._stubs[hash] = place
        self._follow(hash)

    def record(self, hash: str, kind: str, note: Any = None) -> None:
        """A record that fits; `note` is what one of a pruning says about the places before it."""
        self._kinds[kind] += 1
        self._follow(hash)
        if isinstance(note, dict) and isinstance(note.get("stubs"), list):
            named = {stub for stub in note["stubs"] if isinstance(stub, str)}
            self._stubs = {hash: place for hash, place in self._stubs.items() if hash not in named}
            if isinstance(runs := note.get("runs"), int):
                self._pruned = runs

    def result(self, problem: str | None, *, at_end: Callable[[], str | None]) -> Verification:
        """What the check came to. `at_end` is asked for a problem of the whole trail where no record has one."""
        if problem is None and self._stubs:
            place = next(iter(self._stubs.values()))
            problem = f"{place}: records were removed here, but not by `moonbox audit prune` or the trail's retention"
        problem = problem or at_end()
        if problem is None and self._expect is not None:
            expected = f"no record has the expected hash {self._expect}"
            problem = f"{expected}: records were removed from the end, or replaced"
        return Verification(self._kinds.total(), self._pruned, self.head, problem, dict(self._kinds))

    def _follow(self, hash: str) -> None:
        self.head = hash
        self._expect = None if self._expect == hash else self._expect


def prune_note(stubs: Sequence[str], runs: int) -> dict[str, Any]:
    """What a pruning writes down: when it was, how many runs went in all, and where."""
    return {"at": time.time(), "runs": runs, "stubs": list(stubs)}


def link(before: str, *parts: str) -> str:
    """The hash of a record of these parts that follows the one with the hash `before`."""
    # As JSON: no two lists of parts give the same bytes.
    return digest(json.dumps([before, *parts], separators=(",", ":")).encode())


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


STUB = b'{"pruned":true'
_END = re.compile(rb',"chain":"([0-9a-f]{64})"\}\r?\n\Z')
END_LENGTH = len(b',"chain":"') + 64 + len(b'"}\r\n')


def split_line(line: bytes) -> tuple[bytes, str] | None:
    """A line of JSON without its hash, and that hash; None for a line that has none."""
    match = _END.search(line, max(0, len(line) - END_LENGTH))
    return (line[: match.start()], match[1].decode()) if match else None


class Tail:
    """The end of a chained file: the hash of the last line that has one, and what came after it."""

    def __init__(self, head: str = START) -> None:
        self._follow(head)

    def _follow(self, head: str) -> None:
        self.head = head
        self.loose = 0
        """How many lines follow that have no hash: of an older version, or left by a writer that was killed."""
        self._hasher = hashlib.sha256(head.encode())

    @classmethod
    def of(cls, lines: Iterable[bytes]) -> Tail:
        tail = cls()
        for line in lines:
            parts = split_line(line)
            if parts is None:
                tail.add_loose(line)
            else:
                tail = cls(parts[1])
        return tail

    def add_loose(self, line: bytes) -> None:
        self.loose += 1
        self._hasher.update(line)

    def add_to_loose(self, piece: bytes) -> None:
        """What ends the last loose line."""
        self._hasher.update(piece)

    def line(self, text: str) -> bytes:
        """A JSON object as the line that comes next, with a hash that covers the loose lines too."""
        body = text.encode()[:-1]
        self._follow(self.hash_of(body))
        return _with_hash(body, self.head)

    def hash_of(self, body: bytes) -> str:
        """The hash of a line that comes next."""
        hasher = self._hasher.copy()
        hasher.update(body)
        return hasher.hexdigest()


def stub_line(hash: str) -> bytes:
    """What stays of removed lines: the hash of the last of them, which the next line follows."""
    return _with_hash(STUB, hash)


def _with_hash(body: bytes, hash: str) -> bytes:
    return b'%s,"chain":"%s"}\n' % (body, hash.encode())


def verify_lines(lines: Iterable[bytes], expect: str | None = None) -> Verification:
    """Check a file of JSON lines from its first line to its last."""
    check, tail, first_loose = ChainCheck(expect), Tail(), b""
    problem: str | None = None
    number = 0
    for number, line in enumerate(lines, 1):
        parts = split_line(line)
        if parts is None:
            first_loose = first_loose if tail.loose else line
            tail.add_loose(line)
            continue
        body, hash = parts
        if body == STUB and not tail.loose:
            check.stub(hash, f"line {number}")
        elif hash != tail.hash_of(body):
            problem = f"line {number}{_described(line)} does not fit the lines before it"
            break
        else:
            kind = next((kind for start, kind in _LINES.items() if body.startswith(start)), "run")
            check.record(hash, kind, json_object(line).get("prune") if kind == "prune" else None)
        tail = Tail(hash)

    def loose_problem() -> str | None:
        # A last line without an end was being written when its writer was killed: the next writer seals it.
        if tail.loose == 0 or (tail.loose == 1 and not first_loose.endswith(b"\n")):
            return None
        if not tail.head:
            return "no line has a hash: an older version wrote the trail; the next run that is written seals it"
        return f"line {number - tail.loose + 1}{_described(first_loose)} has no hash, but the lines before it have"

    return check.result(problem, at_end=loose_problem)


_LINES = {
    b'{"run_started":': "start",
    b'{"call_started":': "call",
    b'{"call_ended":': "call",
    b'{"prune":': "prune",
    b'{"seal":': "seal",
}


def _described(line: bytes) -> str:
    run = run_of(json_object(line))
    return "" if run is None else f" (run {run})"


def run_of(data: dict[str, Any]) -> str | None:
    """Which run a line is about."""
    started = data.get("run_started")
    id = data.get("id", data.get("run", started.get("id") if isinstance(started, dict) else None))
    return id if isinstance(id, str) else None


def json_object(line: bytes) -> dict[str, Any]:
    """The object of a line; empty for a line that is none, such as the unfinished one of a killed writer."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
