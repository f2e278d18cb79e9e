"""Checker: checks the scripts of one Repl before they run, and remembers which globals they set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moonbox.errors import ScriptError

if TYPE_CHECKING:
    from collections.abc import Collection

    from moonbox.check.tools import ToolView
    from moonbox.findings import Finding
    from moonbox.languages import program as p
    from moonbox.languages.language import Language

__all__ = ["Checker", "Latest", "refusal"]

_LONGEST = 64_000
_MOST_NAMES = 10_000


class Latest:
    """The script that was checked last, with its findings; several checkers may share it, in any thread."""

    __slots__ = ("checked", "program")

    def __init__(self) -> None:
        self.program: tuple[str, p.Program | None] = ("", None)
        self.checked: tuple[tuple[Any, ...], tuple[Finding, ...]] = ((), ())
        """The script with all that its findings depend on, and the findings."""


class Checker:
    """The checker of one Repl. Costs no more than a fixed time for each character of a script, whatever it holds."""

    _names: frozenset[str] = frozenset()
    _open = False  # scripts may have set globals that were not seen
    revision = 0
    """Grows when it knows of other globals than before."""

    def __init__(self, language: Language, latest: Latest | None = None) -> None:
        self._language = language
        self._latest = latest or Latest()

    def check(self, source: str, view: ToolView, names: frozenset[str] = frozenset()) -> tuple[Finding, ...]:
        """The findings, in the order of their lines; `names` are globals that the host has added."""
        subject = source, view, view.learned.revision, names, self._names, self._open
        before, findings = self._latest.checked
        if subject != before:
            findings = self._findings(source, view, names)
            self._latest.checked = subject, findings
        return findings

    def _findings(self, source: str, view: ToolView, names: frozenset[str]) -> tuple[Finding, ...]:
        from moonbox.check.walk import TooMuch, Walk  # here: loaded while the first worker starts

        program = self._program(source)
        if program is None:
            return ()
        walk = Walk(
            program,
            self._language,
            view,
            names=self._names | names,
            open_names=self._open or _is_dynamic(source),
        )
        try:
            walk.block(program.outline.body)
        except TooMuch:
            pass
        except RecursionError:
            return ()
        return tuple(sorted(walk.findings.values(), key=lambda finding: (finding.line, finding.column or 0)))

    def remember(self, source: str) -> None:
        """A script is being run: the globals that it sets exist from now on."""
        program = self._program(source)
        if program is None or _is_dynamic(source) or len(self._names) > _MOST_NAMES:
            self.skip()
        elif not program.outline.defines <= self._names:
            self._names |= program.outline.defines
            self.revision += 1

    @property
    def has_globals(self) -> bool:
        """Whether scripts may have set globals."""
        return self._open or bool(self._names)

    def forget(self) -> None:
        """The globals of earlier scripts are gone."""
        self._names = frozenset()
        self._open = False
        self.revision += 1

    def skip(self) -> None:
        """A script runs unchecked: it may set any global."""
        if not self._open:
            self._open = True
            self.revision += 1

    def _program(self, source: str) -> p.Program | None:
        if self._language.program is None or len(source) > _LONGEST:
            return None
        before, program = self._latest.program
        if source != before:
            try:
                program = self._language.program(source)
            except RecursionError:
                program = None
            self._latest.program = source, program
        return program


def _is_dynamic(source: str) -> bool:
    """Whether globals may be set in ways that are not followed."""
    return "_G" in source or "_ENV" in source or "rawset" in source or "setmetatable" in source


def refusal(findings: Collection[Finding], source: str) -> ScriptError | None:
    """The error of a script that is not run; None when there is no reason not to run it."""
    errors = [finding for finding in findings if finding.severity == "error"]
    if not errors:
        return None
    from moonbox.languages.explanations import pointed

    first, *others = errors
    more = "".join(f"\nalso on {other}" for other in others)
    return ScriptError(
        "check",
        first.message + more,
        line=first.line,
        column=first.column,
        hint=first.hint,
        code=first.code,
        tool=first.tool,
        traceback=pointed(source, first.line, first.column),
    )
