"""The hash chain of a trail: each record carries a hash over itself and the record before."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from moonbox.wording import counted

START = ""
"""What the first record follows."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a check of a trail."""

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


_one_line = json.JSONEncoder(separators=(",", ":")).encode
_KINDS = {
    "run": ("complete run", "complete runs"),
    "start": ("start of a run", "starts of runs"),
    "call": ("start or end of a call", "starts and ends of calls"),
    "prune": ("pruning", "prunings"),
    "seal": ("seal over lines without a hash", "seals over lines without a hash"),
}


class ChainLink(NamedTuple):
    """One record of a chain, as its format has read and compared it."""

    kind: str
    """Also "pruned", the place of records that were removed, and "end", which only has a problem of the whole trail."""
    place: str = ""
    hash: str = ""
    problem: str | None = None
    """Why the record does not fit."""
    note: Any = None
    """What the record of a pruning says: how many runs are gone, and the hashes of their places."""


def check_chain(links: Iterable[ChainLink], expect: str | None) -> Verification:
    """Check a chain up to the first record that does not fit. A record of a pruning must name every place before it."""
    stubs, kinds = dict[str, str](), Counter[str]()
    head, pruned, expected = START, 0, expect is None
    problem = at_end = None
    for link in links:
        if link.kind == "end":
            at_end = link.problem
            continue
        if problem := link.problem:
            break
        head, expected = link.hash, expected or link.hash == expect
        if link.kind == "pruned":
            stubs[link.hash] = link.place
            continue
        kinds[link.kind] += 1
        if isinstance(link.note, dict) and isinstance(link.note.get("stubs"), list):
            named = {stub for stub in link.note["stubs"] if isinstance(stub, str)}
            stubs = {hash: place for hash, place in stubs.items() if hash not in named}
            if isinstance(runs := link.note.get("runs"), int):
                pruned = runs
    if problem is None and stubs:
        place = next(iter(stubs.values()))
        problem = f"{place}: records were removed here, but not by `moonbox audit prune` or the trail's retention"
    problem = problem or at_end
    if problem is None and not expected:
        problem = f"no record has the expected hash {expect}: records were removed from the end, or replaced"
    return Verification(kinds.total(), pruned, head, problem, dict(kinds))


def prune_note(stubs: Sequence[str], runs: int) -> dict[str, Any]:
    """What a pruning writes down: when it was, how many runs went in all, and where."""
    return {"at": time.time(), "runs": runs, "stubs": list(stubs)}


def link(before: str, *parts: str) -> str:
    """The hash of a record of these parts that follows the one with the hash `before`."""
    # As JSON: no two lists of parts give the same bytes.
    return digest(_one_line([before, *parts]).encode())


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def json_object(line: bytes | str) -> dict[str, Any]:
    """The object of a JSON text; empty for any other text, such as the unfinished line of a killed writer."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
