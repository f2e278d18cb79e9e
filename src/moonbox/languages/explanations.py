"""Explanations that languages share: limits that ended a run, scripts that are refused, errors of compiled languages.

A language that is compiled inside the worker gives the engine its compiler and its runtime as one Lua chunk that
returns `function(host) … return R end`, where R has `new_state()`, `run(state, source)`, `compile(source)`,
`operations(state)`, `export(value)`, `import(value)`, `type_of(value)`, and raises tables with `kind` ("syntax" of a
script that does not compile), `message`, `text`, `line`, `position`, `trace` and `hint`. What `host` offers is in
lua/prelude/guest.lua.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, cast

from moonbox.errors import LIMIT_NAMES, ErrorKind, Frame, LimitName, ScriptError, is_denial

if TYPE_CHECKING:
    from moonbox.findings import Finding
    from moonbox.languages.language import EngineError
    from moonbox.limits import Limits

_LONG_PATH = r"^(\S{60})\S{20,}(\S{20} (?:is|has) )"
WIDEST = 100
"""Characters of a source line that are shown."""
LONGEST_MESSAGE = 4_000
LONGEST_NAME = 200


_MESSAGES = {
    "time": "the script ran longer than timeout = {timeout:g} seconds",
    "calls": "the script made more than max_tool_calls = {max_tool_calls} tool calls",
    "memory": "the script needed more memory than max_memory = {max_memory} bytes",
    "operations": "the script used more than max_operations = {max_operations} operations",
    "output": "the script printed more than max_output = {max_output} bytes",
    "string": "a string is longer than max_string = {max_string} bytes",
    "array": "an array has more than max_array = {max_array} elements",
    "depth": "a value is nested deeper than max_depth = {max_depth}",
    "source": "the script is longer than max_source = {max_source} bytes",
    "cancelled": "the run was cancelled",
}
_HINTS = {
    "time": "do less in one run, or split the work over several runs",
    "operations": (
        "do less in one run: filter in the tool calls, work on fewer items, or split the work over several runs"
    ),
    "calls": (
        "a run may make {calls} (max_tool_calls): ask for more with each call, or split the work over several runs"
    ),
    "memory": "process the data in parts and keep only what is needed",
    "output": "print less: return the result as a value and print only a summary",
    "string": "make shorter strings: work on parts, or keep the parts in a list",
    "array": "send less in one call: pass the data in parts",
    "depth": "return a flatter value: only the fields that are needed",
    "source": "write a shorter script: loop instead of repeating, and get data from tools",
}


def limit_message(limit: str, reported: str, limits: Limits) -> str:
    """The message of a stop: the engine's own where it has one."""
    if reported and not reported.startswith("the script needed more memory"):
        return re.sub(_LONG_PATH, r"\1…\2", reported)
    if limit == "time" and limits.timeout is None:
        return "the script ran out of time"
    return _MESSAGES.get(limit, "the run was stopped").format(**limits.to_dict())


def limit_hint(limit: str, limits: Limits, message: str) -> str | None:
    """What to change in the script."""
    if limit == "array" and message.startswith("value"):
        return "return less: filter or summarise the data in the script, and return the result"
    hint, most = _HINTS.get(limit), limits.max_tool_calls
    calls = "no tool calls" if most == 0 else f"{most} tool call{'s' * (most != 1)}"
    return None if hint is None else hint.format(calls=calls)


def explain_translated(error: EngineError, *, sources: Mapping[str, str], limits: Limits) -> ScriptError:
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
    message = error.message[:LONGEST_MESSAGE]
    if error.kind == "stop":
        kind: ErrorKind = "limit" if limit else "cancelled"
        return ScriptError(kind, limit_message(error.limit, message, limits), limit=limit, **fields)
    if error.kind == "tool" and isinstance(error.data, dict):
        failed = failed_call(error)
        return ScriptError("denied" if is_denial(failed["code"]) else "tool", message, **failed, **fields)
    known = cast(ErrorKind, error.kind if error.kind in ("syntax", "tool") else "runtime")
    return ScriptError(known, message, data=error.data, **fields)


def refusal(findings: Collection[Finding], source: str) -> ScriptError | None:
    """The error of a script that is not run; None when there is no reason not to run it."""
    errors = [finding for finding in findings if finding.severity == "error"]
    if not errors:
        return None
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


def failed_call(error: EngineError) -> dict[str, Any]:
    """What an error of a tool says of the call. The script may have changed it: names are cut."""
    data: dict[str, Any] = error.data if isinstance(error.data, dict) else {}
    return {
        "code": name_in(data.get("code")),
        "tool": name_in(data.get("tool")),
        "retryable": data.get("retryable") is True,
        "data": data.get("data"),
    }


def name_in(value: Any) -> str | None:
    return value[:LONGEST_NAME] if isinstance(value, str) else None


def pointed(source: str, line: int | None, column: int | None) -> str:
    """The source line with its number and a caret below the column."""
    lines = source.splitlines()
    return pointed_line(lines[line - 1], line, column) if line is not None and 1 <= line <= len(lines) else ""


def pointed_line(text: str, line: int, column: int | None) -> str:
    """That line with its number, and a caret below the column or the first word; of a long line a part around it."""
    text = visible(text.expandtabs(1))
    at = min(column - 1 if column is not None else len(text) - len(text.lstrip()), len(text))
    if len(text) > WIDEST:
        start = max(0, min(at - WIDEST // 2, len(text) - WIDEST))
        before, after = "…" * (start > 0), "…" * (start + WIDEST < len(text))
        text, at = f"{before}{text[start : start + WIDEST]}{after}", at - start + len(before)
    return f"{line} | {text}\n{' ' * len(str(line))} | {' ' * at}^"


def visible(text: str) -> str:
    """The text without characters that would change how a terminal shows what follows."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "·" for char in text)


def _positive(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None


def without_line(error: ScriptError, line: int) -> ScriptError:
    """The error without this line, which was added after the script: neither as its place nor as its outermost call."""
    if error.line == line:
        calls = [text for text in error.traceback.splitlines() if not re.match(r"\s*\d* \| ", text)]
        error = error.with_(line=None, column=None, traceback="\n".join(calls))
    if not error.frames or error.frames[-1].function != "main chunk" or error.frames[-1].line != line:
        return error
    head, called, _ = error.traceback.rpartition("called from ")
    return error.with_(frames=error.frames[:-1], traceback=head.rstrip(",\n ") if called else error.traceback)
