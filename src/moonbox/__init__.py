"""moonbox: a language model acts by writing one sandboxed script instead of making many tool calls."""

from __future__ import annotations

from moonbox._version import __version__

TYPE_CHECKING = False  # `typing` would be most of what importing this costs
if TYPE_CHECKING:
    from typing import Any

    from moonbox.audit.records import Call, Run, Usage
    from moonbox.codemode.client_calls import Paused
    from moonbox.codemode.conversation import Conversation
    from moonbox.codemode.mode import CodeMode
    from moonbox.errors import Diverged, InDoubt, MoonboxError, ScriptError, ToolError
    from moonbox.findings import Finding
    from moonbox.limits import Limits
    from moonbox.media import Media
    from moonbox.sandbox.decisions import Answer, Decision, Middleware, ToolCall
    from moonbox.sandbox.options import RunOptions
    from moonbox.sandbox.repl import Repl
    from moonbox.sandbox.sandbox import Sandbox, run
    from moonbox.sandbox.stepped import Pause
    from moonbox.tools.function import Context
    from moonbox.tools.tool import Tool, tool
    from moonbox.tools.toolbox import Toolbox

# Everything heavier than this file loads on first use: `import moonbox` stays cheap.
_EXPORTS = {
    "Answer": "moonbox.sandbox.decisions",
    "Call": "moonbox.audit.records",
    "CodeMode": "moonbox.codemode.mode",
    "Context": "moonbox.tools.function",
    "Conversation": "moonbox.codemode.conversation",
    "Decision": "moonbox.sandbox.decisions",
    "Diverged": "moonbox.errors",
    "Finding": "moonbox.findings",
    "InDoubt": "moonbox.errors",
    "Limits": "moonbox.limits",
    "Media": "moonbox.media",
    "Middleware": "moonbox.sandbox.decisions",
    "MoonboxError": "moonbox.errors",
    "Pause": "moonbox.sandbox.stepped",
    "Paused": "moonbox.codemode.client_calls",
    "Repl": "moonbox.sandbox.repl",
    "Run": "moonbox.audit.records",
    "RunOptions": "moonbox.sandbox.options",
    "Sandbox": "moonbox.sandbox.sandbox",
    "ScriptError": "moonbox.errors",
    "Tool": "moonbox.tools.tool",
    "ToolCall": "moonbox.sandbox.decisions",
    "ToolError": "moonbox.errors",
    "Toolbox": "moonbox.tools.toolbox",
    "Usage": "moonbox.audit.records",
    "run": "moonbox.sandbox.sandbox",
    "tool": "moonbox.tools.tool",
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
        if name in _EXPORTS:
            import importlib

            return getattr(importlib.import_module(_EXPORTS[name]), name)
        raise AttributeError(f"module 'moonbox' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
