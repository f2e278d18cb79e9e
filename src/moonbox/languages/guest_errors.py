"""Errors of guest languages: their own words and positions, with the source line and a caret."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moonbox.errors import LIMIT_NAMES, Frame, ScriptError, kind_of_code

if TYPE_CHECKING:
    from moonbox.languages.registry import EngineError

__all__ = ["explain_guest"]

_LONGEST_LINE = 200


def explain_guest(ended: EngineError, source: str) -> ScriptError:
    """What the compiler or the language's runtime reported; `extra` has the position, the hint and the data."""
    line, column = _whole(ended.extra.get("line")), _whole(ended.extra.get("column"))
    value = ended.data
    hint = ended.extra.get("hint")
    fields: dict[str, Any] = {
        "line": line,
        "column": column,
        "hint": hint if isinstance(hint, str) else None,
        "traceback": _pointed(source, line, column),
        "frames": tuple(Frame(at if at > 0 else None, name) for _, at, name in ended.frames),
    }
    if ended.kind == "syntax":
        return ScriptError("syntax", ended.message, **fields)
    if ended.kind == "stop":
        limit: Any = ended.limit if ended.limit in LIMIT_NAMES else None
        return ScriptError("limit", ended.message, limit=limit, **fields)
    if ended.kind == "tool" and isinstance(value, dict):
        code = value.get("code")
        fields.update(
            code=code if isinstance(code, str) else None,
            tool=value.get("tool") if isinstance(value.get("tool"), str) else None,
            retryable=value.get("retryable") is True,
            data=value.get("data"),
        )
        return ScriptError(kind_of_code(code), ended.message, **fields)
    return ScriptError("tool" if ended.kind == "tool" else "runtime", ended.message, data=value, **fields)


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


def _whole(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None
