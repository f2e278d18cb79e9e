"""Languages that are compiled to Lua inside the worker: what is common to explaining their errors.

Such a language gives the engine its compiler and its runtime as one Lua chunk that returns `function(host) … return R
end`, where R has `new_state()`, `run(state, source)`, `compile(source)`, `operations(state)`, `export(value)`,
`import(value)`, `type_of(value)`, and raises tables with `kind` ("syntax" of a script that does not compile),
`message`, `text`, `line`, `position`, `trace` and `hint`. What `host` offers is in lua/prelude/guest.lua.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from moonbox.errors import LIMIT_NAMES, ErrorKind, Frame, LimitName, ScriptError, is_denial
from moonbox.languages.limits import limit_hint, limit_message

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from moonbox.languages.language import EngineError
    from moonbox.limits import Limits

__all__ = ["completeness_of", "explain_translated", "pointed", "syntax_error", "without_line"]

_LONGEST_LINE = 200
_LONGEST_MESSAGE = 4_000


def explain_translated(
    error: EngineError, *, sources: Mapping[str, str], tools: Collection[str], limits: Limits
) -> ScriptError:
    """What the language's compiler or runtime reported: `extra` has the position, the hint and the data."""
    source = list(sources.values())[-1] if sources else ""
    line, column = _positive(error.extra.get("line")), _positive(error.extra.get("column"))
    hint = error.extra.get("hint")
    limit = cast(LimitName, error.limit) if error.limit in LIMIT_NAMES else None
    fields: dict[str, Any] = {
        "line": line,
        "column": column,
        "hint": hint if isinstance(hint, str) else limit_hint(limit, limits, error.message) if limit else None,
        "traceback": pointed(source, line, column),
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


def completeness_of(runtime: Callable[[], str]) -> Callable[[str], bool]:
    """Whether a text is complete, for a language whose compiler says where it stopped; it is asked in this process."""
    engine = _compiler(runtime)

    def is_complete(text: str) -> bool:
        report = engine.check(text.encode("utf-8", "replace"))
        if report.kind != "syntax":
            return True
        where = json.loads(report.extra)
        lines = text.rstrip().split("\n")
        at_end = (where.get("line") or 1, where.get("column") or 1) > (len(lines), len(lines[-1]))
        return not at_end or b"string" in report.message

    return is_complete


def syntax_error(source: str, runtime: Callable[[], str] | None) -> EngineError | None:
    """Why a text does not compile, asked in this process; None when it does."""
    from moonbox.languages.language import EngineError

    report = _compiler(runtime).check(source.encode("utf-8", "replace"))
    if report.kind != "syntax":
        return None
    return EngineError.from_report("syntax", report.message.decode("utf-8", "replace"), extra=json.loads(report.extra))


def _compiler(runtime: Callable[[], str] | None) -> Any:
    """An engine that scripts are compiled by and not run in."""
    from moonbox.languages.engine import create_engine

    engine = create_engine()
    environment: dict[str, Any] = {"tools": [], "functions": [], "values": [], "features": []}
    if runtime is not None:
        environment["runtime"] = runtime().encode()
    engine.configure(environment)
    return engine


def pointed(source: str, line: int | None, column: int | None) -> str:
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


def without_line(error: ScriptError, line: int) -> ScriptError:
    """The error as if its outermost call were not there: that of a line that was added after the script."""
    if not error.frames or error.frames[-1].function != "main chunk" or error.frames[-1].line != line:
        return error
    head, called, _ = error.traceback.rpartition("called from ")
    return error.with_(frames=error.frames[:-1], traceback=head.rstrip(",\n ") if called else error.traceback)
