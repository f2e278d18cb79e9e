"""Languages that are compiled to Lua: the translator's contract, and what is common to explaining their errors.

The runtime of such a language is a Lua chunk that returns `function(host) … return R end`, where R has `new_state()`,
`run(state, chunk)`, `operations(state)`, `export(value)`, `import(value)`, `type_of(value)`, and raises tables with
`kind`, `message`, `text`, `line`, `position`, `trace` and `hint`. What `host` offers is in lua/prelude/guest.lua.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

from moonbox.errors import LIMIT_NAMES, ErrorKind, Frame, LimitName, ScriptError, is_denial
from moonbox.languages.limits import limit_hint, limit_message

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from moonbox.languages.language import EngineError
    from moonbox.limits import Limits

__all__ = ["BadSyntax", "Translator", "completeness_of", "explain_translated"]

_LONGEST_LINE = 200
_LONGEST_MESSAGE = 4_000


class BadSyntax(Exception):
    """A script that does not compile, in its own language's words."""

    def __init__(self, message: str, line: int | None, column: int | None, hint: str | None) -> None:
        self.message, self.line, self.column, self.hint = message, line, column, hint
        super().__init__(message)

    @property
    def error(self) -> EngineError:
        """The same as what an engine reports."""
        from moonbox.languages.language import EngineError

        where = {"line": self.line, "column": self.column, "hint": self.hint}
        return EngineError("syntax", self.message, extra=where)


class Translator(Protocol):
    """Compiles scripts of one language to Lua; one for each Sandbox, so that it may remember."""

    def translate(self, source: str) -> str:
        """The Lua chunk; raises BadSyntax, and nothing else."""


def explain_translated(
    error: EngineError, *, sources: Mapping[str, str], tools: Collection[str], limits: Limits
) -> ScriptError:
    """What the translator or the language's runtime reported: `extra` has the position, the hint and the data."""
    source = list(sources.values())[-1] if sources else ""
    line, column = _positive(error.extra.get("line")), _positive(error.extra.get("column"))
    hint = error.extra.get("hint")
    limit = cast(LimitName, error.limit) if error.limit in LIMIT_NAMES else None
    fields: dict[str, Any] = {
        "line": line,
        "column": column,
        "hint": hint if isinstance(hint, str) else limit_hint(limit, limits, error.message) if limit else None,
        "traceback": _pointed(source, line, column),
        "frames": tuple(Frame(at if at > 0 else None, name) for chunk, at, name in error.frames if chunk == "script"),
    }
    message = error.message[:_LONGEST_MESSAGE]
    if error.kind == "stop":
        kind: ErrorKind = "limit" if limit else "cancelled"
        return ScriptError(kind, limit_message(error.limit, message, limits), limit=limit, **fields)
    if error.kind == "tool" and isinstance(error.data, dict):
        code, tool = error.data.get("code"), error.data.get("tool")
        fields.update(
            code=code if isinstance(code, str) else None,
            tool=tool if isinstance(tool, str) else None,
            retryable=error.data.get("retryable") is True,
            data=error.data.get("data"),
        )
        return ScriptError("denied" if is_denial(code) else "tool", message, **fields)
    known = cast(ErrorKind, error.kind if error.kind in ("syntax", "tool") else "runtime")
    return ScriptError(known, message, data=error.data, **fields)


def completeness_of(make: Callable[[], Translator]) -> Callable[[str], bool]:
    """Whether a text is complete, for a language whose compiler says where it stopped."""
    translator = make()

    def is_complete(text: str) -> bool:
        try:
            translator.translate(text)
        except BadSyntax as problem:
            lines = text.rstrip().split("\n")
            at_end = (problem.line or 1, problem.column or 1) > (len(lines), len(lines[-1]))
            return not at_end or "string" in problem.message
        return True

    return is_complete


def _pointed(source: str, line: int | None, column: int | None) -> str:
    """The source line with its number and a caret below the column."""
    lines = source.splitlines()
    if line is None or not 1 <= line <= len(lines):
        return ""
    text = lines[line - 1].replace("\t", " ")
    at = max(0, (column or 1) - 1)
    start = max(0, at - _LONGEST_LINE // 2)
    number = str(line)
    return f"{number} | {text[start : start + _LONGEST_LINE]}\n{' ' * len(number)} | {' ' * (at - start)}^"


def _positive(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None
