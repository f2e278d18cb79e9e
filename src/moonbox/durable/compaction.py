"""Compaction: which runs of a Repl can go from its journal, because its globals are the same without them.

The proof needs no knowledge of the language. A script reaches what earlier ones have left only by the names of globals
in its text: globals that one script names may share values and functions, so they are looked at together. When all
globals of such a group are gone, or the last one is overwritten unread, nothing of earlier runs is left in it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moonbox.durable.recorded import RecordedRun
    from moonbox.languages.registry import Language
    from moonbox.runs.environment import Additions

_WORD = re.compile(r"[^\W\d]\w*")
_FIRST = re.compile(r"\s*([^\W\d]\w*)\s*=(?!=)")
_BY_OTHER_NAMES = {
    "_G",
    "_ENV",
    "globals",
    "locals",
    "vars",
    "eval",
    "exec",
    "load",
    "rawset",
    "setmetatable",
    "setattr",
}
"""With these, a script may reach globals that it does not name."""


def dead_runs(runs: Sequence[RecordedRun], after: Sequence[Collection[str]], predefined: Collection[str]) -> set[str]:
    """The ids of runs that are not needed; `after` has the globals that there were after each run.

    Empty where a script may have changed what every script finds.
    """
    changes = re.compile(
        rf"\b(?:function|def|fn|class|as|import|for[\w\s,]*)\s+(?:{'|'.join(map(re.escape, predefined))})\b"
        rf"|\b(?:{'|'.join(map(re.escape, predefined))})\s*(?:,[^=(){{}}]*)?=(?!=)"
    )
    ever = {name for names in after for name in names}
    words = [[*_WORD.findall(run.begin.source), *(name for name, _ in run.begin.inputs)] for run in runs]
    if any(_BY_OTHER_NAMES.intersection(found) for found in words):
        return set()
    if any(changes.search(run.begin.source) for run in runs):
        return set()
    named = [ever.intersection(found) for found in words]
    dead: set[str] = set()
    for group in _groups(named):
        gone = -1  # the latest place from which nothing earlier is left in the group
        for place, run in enumerate(runs):
            before = group.intersection(after[place - 1]) if place else set()
            if named[place] & group and before <= {*_overwritten(run, words[place])}:
                gone = place - 1
            if not group.intersection(after[place]):
                gone = place
        dead |= {run.begin.run for place, run in enumerate(runs) if place <= gone and named[place] & group}
    dead |= {run.begin.run for run, names in zip(runs, named, strict=True) if not names}
    needed = {run.begin.run for run in runs if run.is_left_out or run.allowances}
    return dead - needed


def predefined_names(language: Language, additions: Additions) -> set[str]:
    """What every script finds."""
    heads = {name.partition(".")[0] for name in (*language.docs, *additions.functions, *additions.values)}
    return heads | {*language.texts.taken.split()}


def _overwritten(run: RecordedRun, words: Sequence[str]) -> Iterable[str]:
    """The global that a script sets first of all, and does not read."""
    first = _FIRST.match(run.begin.source)
    is_ok = run.end is not None and run.end.outcome == "ok"
    return [first[1]] if first is not None and is_ok and words.count(first[1]) == 1 else []


def _groups(named: Iterable[set[str]]) -> list[set[str]]:
    """The names, together with those that stand beside them in any script."""
    groups: list[set[str]] = []
    for names in named:
        if names:
            touching = [group for group in groups if group & names]
            groups = [group for group in groups if not group & names]
            groups.append(names.union(*touching))
    return groups
