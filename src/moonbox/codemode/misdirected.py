"""Tools as scripts reach them, and the hint for a script that calls one of the model's own tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from moonbox.schema.tree import NARRATION
from moonbox.tools.naming import safe_alias

if TYPE_CHECKING:
    from moonbox.errors import ScriptError
    from moonbox.tools.tool import Tool

_LONGEST_LINE = 10_000
"""Of what is looked through for each direct tool: a script may be one line of megabytes."""
_NAMED = re.compile(r"\((?:field|global|method) '([^']*)'\)|(?:Function|Module) not found: (\w+)")


def misdirection(error: ScriptError, source: str, direct: Mapping[str, Tool]) -> str | None:
    """The hint for a script that failed on one of the direct tools; `direct` has them by the names that models use."""
    if error.code == "unknown_tool":
        asked = (error.tool or "").removeprefix("tools.")
        fits = [name for name, tool in direct.items() if asked in (tool.path, name, safe_alias(tool.path))]
        name = fits[0] if fits else None
    else:
        name = _called(error, source, direct)
    if name is None:
        return None
    return f"scripts cannot call '{direct[name].path}'; call the tool '{name}' directly, outside a script"


def without_narration(tool: Tool) -> Tool:
    """Scripts do not narrate: a required parameter in which a model explains itself is filled in for them."""
    properties = tool.parameters.get("properties")
    if not isinstance(properties, dict) or NARRATION not in tool.accepted.needed or NARRATION not in properties:
        return tool
    narration = properties[NARRATION]
    if isinstance(narration, dict):
        narration = {"default": "Called from a script.", **narration}
    required = [name for name in tool.accepted.needed if name != NARRATION]
    return tool.with_(
        parameters={**tool.parameters, "properties": {**properties, NARRATION: narration}, "required": required}
    )


def _called(error: ScriptError, source: str, direct: Mapping[str, Tool]) -> str | None:
    """The direct tool that the failing line means; the longest, where `a` and `a.b` both fit."""
    if error.kind != "runtime" or not ("nil value" in error.message or "not found" in error.message):
        return None
    lines = source.splitlines()
    line = lines[error.line - 1] if error.line and error.line <= len(lines) else source
    line = next((frame.source for frame in error.frames if frame.source), line)
    line = line[:_LONGEST_LINE]
    named = _NAMED.search(error.message)
    missing = (named[1] or named[2]) if named else ""
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
