"""moonbox: a language model acts by writing one sandboxed script instead of making many tool calls."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from moonbox._version import __version__

if TYPE_CHECKING:
    from moonbox.audit.records import Call, Run, Usage
    from moonbox.errors import MoonboxError, ScriptError, ToolError
    from moonbox.limits import Limits

# Everything heavier than this file loads on first use: `import moonbox` stays cheap.
_EXPORTS = {
    "Call": "moonbox.audit.records",
    "Limits": "moonbox.limits",
    "MoonboxError": "moonbox.errors",
    "Run": "moonbox.audit.records",
    "ScriptError": "moonbox.errors",
    "ToolError": "moonbox.errors",
    "Usage": "moonbox.audit.records",
}

__all__ = ["Call", "Limits", "MoonboxError", "Run", "ScriptError", "ToolError", "Usage", "__version__"]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(importlib.import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module 'moonbox' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
