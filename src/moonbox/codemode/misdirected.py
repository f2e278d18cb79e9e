"""Scripts that call a tool which only the model itself may call: what to do instead."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from moonbox.tools.naming import safe_alias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moonbox.audit.records import Run
    from moonbox.errors import ScriptError
    from moonbox.tools.tool import Tool

__all__ = ["explain_misdirected"]

_LONGEST_LINE = 10_000
"""Of what is looked through for each direct tool: a script may be one line of megabytes."""
_NAMED = re.compile(r"\((?:field|global|method) '([^']*)'\)|(?:Function|Module) not found: (\w+)")


def explain_misdirected(run: Run, direct: Mapping[str, Tool]) -> Run:
    """The run with a hint, if it failed on one of the direct tools; `direct` has them by the names that models use."""
    error = run.error
    if error is None:
        return run
    found = _asked_for(error, direct) if error.code == "unknown_tool" else _called(error, run.source, direct)
    if found is None:
        return run
    hint = f"`{direct[found].path}` cannot be reached from scripts: call the tool `{found}` itself, outside a script"
    return replace(run, error=error.with_(hint=hint))


def _asked_for(error: ScriptError, direct: Mapping[str, Tool]) -> str | None:
    asked = (error.tool or "").removeprefix("tools.")
    return next((name for name, tool in direct.items() if asked in (tool.path, name, safe_alias(tool.path))), None)


def _called(error: ScriptError, source: str, direct: Mapping[str, Tool]) -> str | None:
    """The direct tool that the failing line means; the longest, where `a` and `a.b` both fit."""
    if error.kind != "runtime" or not ("nil value" in error.message or "not found" in error.message):
        return None
    lines = source.splitlines()
    line = lines[error.line - 1] if error.line and error.line <= len(lines) else source
    line = next((frame.source for frame in error.frames if frame.source), line)
    line = line[:_LONGEST_LINE]
    said = _NAMED.search(error.message)
    missing = (said[1] or said[2]) if said else ""
    fitting = [name for name, tool in direct.items() if _is_written(tool.path, line, missing)]
    return max(fitting, key=lambda name: len(direct[name].path), default=None)


def _is_written(path: str, line: str, missing: str) -> bool:
    """Whether the line has `tools.a.b`, `tools["a.b"]`, `a::b` or `a.b`, of which some part is what is missing."""
    for written in {path, safe_alias(path)}:
        dotted = r"\s*(?:\.|::)\s*".join(map(re.escape, written.split(".")))
        if missing in written.split(".") and re.search(rf"(?<![\w]){dotted}(?![\w])", line):
            return True
        if re.search(rf"tools\s*\[\s*[\"']{re.escape(written)}[\"']\s*\]", line):
            return True
    return False
