"""The look at a Repl's scripts before they run: what cannot work is refused, and what is likely a mistake is noted."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from moonbox.check.checker import Checker
from moonbox.findings import Finding
from moonbox.languages.registry import EngineError
from moonbox.runs.environment import GLOBAL_TOOLS, Additions
from moonbox.runs.held_worker import HeldWorker, Lost
from moonbox.worker.protocol import chunk_name

if TYPE_CHECKING:
    from moonbox.check.tools import ScriptTools
    from moonbox.errors import ScriptError
    from moonbox.languages.language import Language
    from moonbox.runs.calls import CallPath
    from moonbox.runs.execution import Execution
    from moonbox.runs.services import ToolKnowledge
    from moonbox.runs.settings import Settings
    from moonbox.tools.toolbox import Toolbox
    from moonbox.worker.chores import Chores

_SOURCE_SHARE = 4  # the compiler holds a script more than once
_MOST_KEPT = 64
_SECONDS, _MEMORY, _MOST_READ = 5.0, 256 * 1024 * 1024, 4 * 1024 * 1024  # for reading a script
_NONE: frozenset[str] = frozenset()


class ScriptCheck:
    """Checks the scripts of one Repl against its tools, and against the globals that it knows of."""

    def __init__(self, settings: Settings, tools: ToolKnowledge, toolbox: Toolbox, enabled: bool | None) -> None:
        self._settings = settings
        self._tools = tools
        self._toolbox = toolbox
        self._enabled = settings.check if enabled is None else enabled
        reader = settings.language.reader
        self._checker = Checker(settings.language, partial(_facts, reader) if reader else None)
        self._kept: dict[str, None] = {}  # globals with values that answers may have cut: see prelude/kept.lua
        self._view: ScriptTools | None = None
        self._names = _NONE
        self._names_of: Additions | None = None

    def findings(
        self, source: str, additions: Additions, inputs: Sequence[tuple[str, Any]] = ()
    ) -> tuple[Finding, ...]:
        """What a look at the script shows; `inputs` are globals that this run has besides."""
        view = self._view
        if view is None or view.revision != self._toolbox.revision or additions is not self._names_of:
            view = self._view = self._tools.view(self._toolbox)
            global_tools = {name for name in GLOBAL_TOOLS if name in self._toolbox}
            self._names, self._names_of = self._added_names(additions) | global_tools, additions
        names = self._names
        if inputs or self._kept:
            names = names | self._kept_in(source) | {name for name, _ in inputs}
        return self._checker.check(source, view, names)

    def admit(
        self,
        execution: Execution,
        size: int,
        additions: Additions,
        inputs: Sequence[tuple[str, Any]] = (),
        *,
        was_admitted: bool = False,
    ) -> EngineError | ScriptError | None:
        """Why the script, of `size` bytes, cannot be run; None where it can. Notes go into the record.

        One that is run again `was_admitted` when its tools were others, perhaps.
        """
        source, limits = execution.record.source, execution.calls.limits
        if size > limits.max_source:
            message = f"the script has {size} bytes; max_source is {limits.max_source}"
            return EngineError("stop", message, limit="source")
        if len(source) > limits.max_memory // _SOURCE_SHARE:
            message = f"the script has {len(source)} characters, too many for max_memory = {limits.max_memory} bytes"
            return EngineError("stop", message, limit="memory")
        if not self._enabled:
            self._checker.skip()
            return None
        findings = self.findings(source, additions, inputs)
        if findings:
            from moonbox.languages.explanations import refusal  # few scripts need it

            execution.record.notes = tuple(finding for finding in findings if finding.severity == "note")
            if not was_admitted and (refused := refusal(findings, source)) is not None:
                return refused
        self._checker.remember(source)
        return None

    @property
    def has_globals(self) -> bool:
        """False where a look at the scripts has shown that none of them sets a global."""
        return self._checker.has_globals

    def forget(self) -> None:
        """The globals of earlier scripts are gone."""
        self._checker.forget()
        self._kept.clear()

    def keep(self, name: str) -> None:
        """A value of the latest run stays under that name."""
        if len(self._kept) == _MOST_KEPT:  # the worker has let the oldest go before that
            del self._kept[next(iter(self._kept))]
        self._kept[name] = None

    def _kept_in(self, source: str) -> frozenset[str]:
        """Those of the kept names that may stand in the script: scripts without them can be admitted as before."""
        newest = self._settings.language.kept_name()
        words = re.findall(rf"{newest}\w*", source)  # also inside other names, which does no harm
        return frozenset(word for word in words if word == newest or word in self._kept) if words else _NONE

    def _added_names(self, additions: Additions) -> frozenset[str]:
        """Globals that the host has added."""
        settings = self._settings
        known, names = self._tools.added_names
        if known is not additions:
            opened = [name for feature in settings.features for name in settings.language.features[feature]]
            added = [name.partition(".")[0] for name in (*additions.functions, *additions.values)]
            names = frozenset((*opened, *added))
            self._tools.added_names = additions, names  # in one step: threads that come between do no harm
        return names


def _facts(reader: str, source: str) -> Any:
    """What the check asks of a script, read by a chore; None where that fails, as of a text that cannot be read."""
    from moonbox.worker.chores import ChoreFailed

    try:
        text = source.encode("utf-8", "replace").decode()
        return _chores(os.getpid(), reader).run("facts", text, seconds=_SECONDS, answer=_MOST_READ)
    except ChoreFailed:
        return None


@cache
def _chores(pid: int, reader: str) -> Chores:  # a fork of the process needs one of its own
    from moonbox.worker.chores import Chores

    return Chores(reader, memory=_MEMORY)


def begin_reading(language: Language) -> None:
    """Start what reads its scripts, where that is a process of its own, and load what judges them."""
    from moonbox.check.tools import ScriptTools
    from moonbox.tools.toolbox import Toolbox

    if language.reader:
        _chores(os.getpid(), language.reader).begin()
    Checker(language, lambda _: None).check(" ", ScriptTools(Toolbox(), language))


def engine_findings(source: str, worker: HeldWorker, calls: CallPath, additions: Additions) -> tuple[Finding, ...]:
    """What the engine finds in a script without running it."""
    data, limits = source.encode("utf-8", "replace"), calls.limits
    if len(data) > limits.max_source:
        return ()
    try:
        report = worker.check(data, calls.toolbox, additions, limits)
    except Lost as lost:
        return (Finding("error", f"the engine cannot read the script: {lost}", 1),)
    if report.kind == "ok":
        return ()
    problem = EngineError(report.kind, report.message, report.limit, extra=report.extra)
    tools = calls.toolbox.paths()
    error = calls.language.explain(problem, sources={chunk_name(1): source}, tools=tools, limits=limits)
    code = "syntax" if error.kind == "syntax" else error.code
    message = error.message.removesuffix(f" (line {error.line}, position {error.column})")  # Rhai's own
    return (Finding("error", message, error.line or 1, error.column, error.hint, code),)
