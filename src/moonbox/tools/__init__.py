"""Tools of the host: Tool, Toolbox, schemas, binding, rendering and search."""

# pydantic and jsonschema-rs are loaded only when a schema is built or checked.
from moonbox.tools.function import Context, Injected
from moonbox.tools.hints import Hints
from moonbox.tools.results import scrub, to_tool_error
from moonbox.tools.search import ToolSearch
from moonbox.tools.signature import LEVELS, Level, render
from moonbox.tools.tool import Policy, Tool, tool
from moonbox.tools.toolbox import Toolbox

__all__ = [
    "LEVELS",
    "Context",
    "Hints",
    "Injected",
    "Level",
    "Policy",
    "Tool",
    "ToolSearch",
    "Toolbox",
    "render",
    "scrub",
    "to_tool_error",
    "tool",
]
