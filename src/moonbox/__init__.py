"""moonbox: a language model acts by writing one sandboxed script instead of making many tool calls."""

from __future__ import annotations

from moonbox._version import __version__

TYPE_CHECKING = False  # `typing` would be most of what importing this costs
if TYPE_CHECKING:
    from typing import Any

    from moonbox.audit.records import Call, Run, Usage
    from moonbox.codemode.client_calls import Paused
    from moonbox.codemode.mode import CodeMode, Conversation
    from moonbox.errors import Diverged, InDoubt, MoonboxError, ScriptError, ToolError
    from moonbox.findings import Finding
    from moonbox.limits import Limits
    from moonbox.media import Media
    from moonbox.retry import Retry
    from moonbox.runs.decisions import Answer, Decision, Middleware, ToolCall
    from moonbox.runs.options import RunOptions
    from moonbox.runs.stepped import Pause
    from moonbox.sandbox.one_off import run
    from moonbox.sandbox.repl import Repl
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.tools.function import Context
    from moonbox.tools.tool import Tool, tool
    from moonbox.tools.toolbox import Toolbox

# Everything heavier than this file loads on first use: `import moonbox` stays cheap.
_EXPORTS = {
    "moonbox.audit.records": ("Call", "Run", "Usage"),
    "moonbox.codemode.client_calls": ("Paused",),
    "moonbox.codemode.mode": ("CodeMode", "Conversation"),
    "moonbox.errors": ("Diverged", "InDoubt", "MoonboxError", "ScriptError", "ToolError"),
    "moonbox.findings": ("Finding",),
    "moonbox.limits": ("Limits",),
    "moonbox.media": ("Media",),
    "moonbox.retry": ("Retry",),
    "moonbox.runs.decisions": ("Answer", "Decision", "Middleware", "ToolCall"),
    "moonbox.runs.options": ("RunOptions",),
    "moonbox.sandbox.repl": ("Repl",),
    "moonbox.sandbox.one_off": ("run",),
    "moonbox.sandbox.sandbox": ("Sandbox",),
    "moonbox.runs.stepped": ("Pause",),
    "moonbox.tools.function": ("Context",),
    "moonbox.tools.tool": ("Tool", "tool"),
    "moonbox.tools.toolbox": ("Toolbox",),
}

_SOURCES_OF_TOOLS = {
    "openapi": "moonbox.sources.openapi",
    "scripts": "moonbox.project.assembly",
    "sql": "moonbox.sources.sql",
}

__all__ = [
    "Answer",
    "Call",
    "CodeMode",
    "Context",
    "Conversation",
    "Decision",
    "Diverged",
    "Finding",
    "InDoubt",
    "Limits",
    "Media",
    "Middleware",
    "MoonboxError",
    "Pause",
    "Paused",
    "Repl",
    "Retry",
    "Run",
    "RunOptions",
    "Sandbox",
    "ScriptError",
    "Tool",
    "ToolCall",
    "ToolError",
    "Toolbox",
    "Usage",
    "__version__",
    "run",
    "tool",
]


if not TYPE_CHECKING:  # checkers read the imports above; with this they would accept any name

    def __getattr__(name: str) -> Any:
        for module, names in _EXPORTS.items():
            if name in names:
                import importlib

                return getattr(importlib.import_module(module), name)
        raise AttributeError(f"module 'moonbox' has no attribute {name!r}")


def source_of_tools(kind: str) -> Any:
    """The module that has what `Toolbox.from_<kind>` calls."""
    import importlib

    return importlib.import_module(_SOURCES_OF_TOOLS[kind])


def __dir__() -> list[str]:
    return sorted(__all__)
