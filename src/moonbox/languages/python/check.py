"""The look at a Python script before it runs: what Monty lacks, names that nothing sets, and calls that cannot work.

What is judged here was read elsewhere (reading.py). What is certain to fail is an error; where the script catches
errors, it is a note.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any

from msgspec import Struct, ValidationError, convert

from moonbox.findings import Finding
from moonbox.languages.facts import by_word
from moonbox.languages.language import REST, UNKNOWN
from moonbox.languages.program import Vocabulary
from moonbox.languages.python.language import PYTHON
from moonbox.languages.python.rewriting import parameter
from moonbox.languages.tables import table
from moonbox.suggest import did_you_mean, nearest

_MOST_FINDINGS = 20
_OURS = (
    "ToolError failure parallel_map parallel_settle pages sort_by group_by count_by sum_by min_by max_by "
    "unique take asyncio json docs tools"
)
_ASYNCIO = frozenset({"run", "gather", "sleep"})
_TOGETHER = "parallel_map(f, items), or await asyncio.gather(a(id=1), b(id=2))"
_UNKNOWN = {"...": 1}  # see reading.py


class Modules(Struct, frozen=True):
    """What `modules.toml` holds."""

    there: str
    ours: str
    system: str
    builtins_missing: str
    instead: Mapping[str, str]
    builtins: Mapping[str, str]
    advice: Mapping[str, str]
    """Patterns of error messages, and the hint for each; `{0}` is the first group."""


@cache
def modules() -> Modules:
    known = table("python/modules.toml")
    words = {name: by_word(known[name]) for name in ("instead", "builtins")}
    return Modules(**{**known, **words})


@cache
def vocabulary() -> Vocabulary:
    """The few words that messages about tools need."""
    return Vocabulary(language="python", globals=frozenset(_OURS.split()))


def look(
    source: str, view: Any, names: Collection[str], open_names: bool, read: Callable[[str], Any] | None = None
) -> tuple[tuple[Finding, ...], frozenset[str] | None]:
    """The findings in the order of their lines, and the globals that the script sets.

    `read` gives the facts of the script, which are not trusted; without it, they are read here.
    """
    if read is None:
        from moonbox.languages.python.reading import facts

        read = facts
    try:
        found: _Facts | None = convert(read(source), _Facts | None)
    except ValidationError:
        found = None
    if found is None:
        return (), None
    judge = _Judge(found, view, names, open_names)
    for use in found.uses:
        judge.judge(*use)
        if len(judge.findings) >= _MOST_FINDINGS:
            break
    findings = sorted(judge.findings.values(), key=lambda finding: (finding.line, finding.column or 0))
    return tuple(findings), None if found.dynamic else frozenset(found.bound)


class _Facts(Struct):
    bound: list[str]
    dynamic: bool
    open: bool
    uses: list[tuple[Any, ...]]


class _Judge:
    def __init__(self, facts: _Facts, view: Any, names: Collection[str], open_names: bool) -> None:
        self.findings: dict[tuple[int, str], Finding] = {}
        self._bound = frozenset(facts.bound)
        there = sorted({*dir(builtins), "__name__", "__file__", "_"} - {*modules().builtins_missing.split()})
        self._known = dict.fromkeys((*_OURS.split(), *names, *there))
        self._open = open_names or facts.open
        self._view = view
        self._hints: dict[str, str | None] = {}

    def judge(self, what: str = "", line: int = 1, column: int = 1, is_caught: bool = False, *more: Any) -> None:
        self._place = line, column, is_caught
        if what == "finding" and len(more) == 2:
            self._error(str(more[0]), str(more[1]))
        elif what == "name":
            if self._is_unset(name := str(more[0])):
                self._report("note", f"'{name}' is not set anywhere: reading it is an error", self._hint(name))
        elif what == "module":
            self._module(str(more[0]))
        elif what == "system" and str(more[0]) not in modules().system.split():
            module = str(more[0]).partition(".")[0]
            self._error(f"there is no {more[0]}", modules().instead[module])
        elif what == "back" and self._tool(str(more[0])) is not None:
            problem = "a tool cannot be called inside map, filter, sorted, min or max"
            self._error(problem, f"call it first, in a list comprehension: [{more[0]}(…) for x in items]")
        elif what == "call" and len(more) == 3:
            self._called(str(more[0]), *more[1:])

    def _error(self, message: str, hint: str | None = None, **more: str) -> None:
        self._report("note" if self._place[2] else "error", message, hint, **more)

    def _report(self, severity: Any, message: str, hint: str | None, **more: str) -> None:
        line, column, _ = self._place
        finding = Finding(severity, message, line, column, hint, more.get("code"), more.get("tool"))
        self.findings.setdefault((line, message), finding)

    def _module(self, name: str) -> None:
        known = modules()
        if name in known.there.split() or name in known.ours.split() or name in self._view.root.members:
            return
        hint = known.instead.get(name.partition(".")[0])
        there = " ".join(sorted({*known.there.split(), *known.ours.split()} - {"__future__"}))
        self._error(f"there is no module '{name}'", hint or f"the modules are: {there}")

    def _is_unset(self, name: str) -> bool:
        is_private = name.startswith("__")  # in a class it has another name
        is_known = name in self._bound or name in self._known or name in self._view.root.members
        return not (is_known or self._open or is_private)

    def _hint(self, name: str) -> str | None:
        """What to write instead; looked for once, however often the name is there."""
        if name not in self._hints:
            tools = self._view.root.members
            near = nearest(name, [*self._bound, *tools], parts=True, count=2) or nearest(name, self._known)
            self._hints[name] = modules().builtins.get(name) or did_you_mean([f"'{each}'" for each in near])
        return self._hints[name]

    def _called(self, name: str, args: Any, words: Any) -> None:
        root, _, rest = name.partition(".")
        if root == "asyncio" and rest and rest not in _ASYNCIO:
            self._error(f"there is no {name}", f"use {_TOGETHER}")
        elif name in ("asyncio.gather", "gather") and any(word[0] == "return_exceptions" for word in words):
            settle = 'use parallel_settle(f, items), which gives {"ok", "value", "error"} each'
            self._error("asyncio.gather has no return_exceptions here", settle)
        elif name in ("time.sleep", "asyncio.sleep"):
            self._error(f"there is no {name}", modules().instead["time_sleep"])
        tool = self._tool(name)
        if tool is not None:
            self._arguments(tool, args, words)
        elif root == "tools" and rest and "tools" not in self._bound:
            self._error(*self._view.unknown(rest), code="unknown_tool", tool=rest)
        elif self._is_unset(root):
            known = modules()
            hint = self._hint(root) or ('docs.search("words") finds tools' if self._view.root.members else None)
            hint = f"write: import {root}" if rest and root in f"{known.there} {known.ours}".split() else hint
            self._error(f"unknown function '{name}'", hint, code="unknown_tool", tool=name)

    def _tool(self, name: str) -> Any:
        """The tool of a dotted name; None where it is something else."""
        path = name.split(".")
        is_hidden = path[0] in PYTHON.texts.taken.split() and path[0] != "tools"
        if not name or path[0] in self._bound or is_hidden:
            return None
        path = path[1:] if path[0] == "tools" else path
        at: Any = self._view.root.members
        for part in path:
            at = at.get(part) if isinstance(at, dict) else None
        return None if at is None or isinstance(at, dict) else at

    def _arguments(self, tool: Any, args: Any, words: Any) -> None:
        names = tool.accepted.positional_order()
        args = tool.binder.gathered(args) if isinstance(args, list) else None
        if args is None or len(args) > len(names):
            return  # what the run makes of it is not known here
        given: dict[Any, Any] = {each: _value(item) for each, item in zip(names, args, strict=False)}
        for word, item in words:
            if word is None:
                given[REST] = UNKNOWN
            else:
                given[parameter(word, names)] = _value(item)
        error = self._view.problem_with(tool, [given])
        if error is not None:
            self._error(error.message, code=error.code, tool=tool.path)


def _value(item: Any) -> Any:
    """An argument as it was read; UNKNOWN where only the run knows it."""
    if item == _UNKNOWN:
        return UNKNOWN
    if isinstance(item, list):
        return [_value(each) for each in item]
    return {key: _value(each) for key, each in item.items()} if isinstance(item, dict) else item
