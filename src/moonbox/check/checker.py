"""Checker: checks the scripts of one Repl before they run, and remembers which globals they set."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moonbox.check.tools import ScriptTools
    from moonbox.findings import Finding
    from moonbox.languages.language import Language

    Checked = tuple[tuple[Finding, ...], frozenset[str] | None]
    """The findings, and the globals that the script sets; None where these are not known."""

_LONGEST = 64_000
_MOST_NAMES = 10_000
_MOST_KEPT = 128  # scripts whose findings are remembered


class Checker:
    """The checker of one Repl. Costs no more than a fixed time for each character of a script, whatever it holds."""

    _names: frozenset[str] = frozenset()
    may_miss_globals = False
    """Whether scripts may have set globals in ways that are not followed."""
    _latest_defines: tuple[str, frozenset[str] | None] = ("", None)

    def __init__(self, language: Language, read: Callable[[str], Any] | None = None) -> None:
        """`read` reads a script for the language in a process of its own, where it has `reader`."""
        self._language = language
        self._read = read

    def check(self, source: str, view: ScriptTools, names: frozenset[str] = frozenset()) -> tuple[Finding, ...]:
        """The findings, in the order of their lines; `names` are globals that the host has added."""
        subject, recent = (source, view.learned.state, names, self._names, self.may_miss_globals), view.recent_checks
        checked = recent.pop(subject, None)  # each step is atomic: several checkers share it, in any thread
        if checked is None:
            checked = self._look(source, view, names)
            if len(recent) >= _MOST_KEPT:
                oldest, *_ = recent
                recent.pop(oldest, None)
        recent[subject] = checked
        self._latest_defines = source, checked[1]
        return checked[0]

    def _look(self, source: str, view: ScriptTools, names: frozenset[str]) -> Checked:
        from moonbox.check.walk import TooMuch, Walk  # here: loaded while the first worker starts

        if len(source) > _LONGEST:
            return (), None
        if self._language.look is not None:
            return self._language.look(source, view, self._names | names, self.may_miss_globals, self._read)
        if self._language.program is None:
            return (), None
        # Whether globals may be set in ways that are not followed.
        dynamic = any(word in source for word in ("_G", "_ENV", "rawset", "setmetatable"))
        try:
            program = self._language.program(source)
            if program is None:
                return (), None
            walk = Walk(
                program,
                self._language,
                view,
                names=self._names | names,
                open_names=self.may_miss_globals or dynamic,
            )
            with contextlib.suppress(TooMuch):
                walk.block(program.outline.body)
        except RecursionError:
            return (), None
        findings = sorted(walk.findings.values(), key=lambda finding: (finding.line, finding.column or 0))
        return tuple(findings), None if dynamic else program.outline.defines

    def remember(self, source: str) -> None:
        """A script that was checked is being run: the globals that it sets exist from now on."""
        checked, defines = self._latest_defines
        if checked != source or defines is None or len(self._names) > _MOST_NAMES:
            self.skip()
        elif not defines <= self._names:
            self._names |= defines

    @property
    def has_globals(self) -> bool:
        """Whether scripts may have set globals."""
        return self.may_miss_globals or bool(self._names)

    def forget(self) -> None:
        """The globals of earlier scripts are gone."""
        self._names = frozenset()
        self.may_miss_globals = False

    def skip(self) -> None:
        """A script runs unchecked: it may set any global."""
        self.may_miss_globals = True
