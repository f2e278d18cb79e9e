"""Routing: which tools scripts reach, and which the model calls directly. One predicate decides both."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from moonbox.errors import ConfigError
from moonbox.suggest import suggestion
from moonbox.tools.document import NARRATION
from moonbox.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from collections.abc import Collection

    from moonbox.tools.tool import Tool

__all__ = ["Routes", "is_eligible"]


def is_eligible(tool: Tool, *, approvals: bool = False) -> bool:
    """Whether scripts may reach the tool; then, and only then, it leaves the direct list.

    With `approvals`, tools that a person must approve are reached from scripts too: the script waits for the person.
    """
    hints = tool.hints
    if tool.execution or hints.client_side or hints.cpu_bound:
        return False
    if tool.policy == "approve":
        return approvals
    return tool.policy == "auto" and not hints.destructive


class Routes:
    """The two halves of a toolbox. Follows it when it changes."""

    def __init__(self, toolbox: Toolbox, *, keep_visible: Collection[str] = (), approvals: bool = False) -> None:
        self._source = toolbox
        self._kept = frozenset(keep_visible)
        self._approvals = approvals
        self._seen = -1
        self._direct: tuple[Tool, ...] = ()
        self.hidden = Toolbox()
        """What scripts reach."""
        unknown = [name for name in keep_visible if name not in toolbox]
        if unknown:
            raise ConfigError(
                f"keep_visible names an unknown tool {unknown[0]!r}{suggestion(unknown[0], toolbox.paths())}"
            )
        self.update()

    def is_hidden(self, tool: Tool) -> bool:
        return tool.path not in self._kept and is_eligible(tool, approvals=self._approvals)

    def update(self) -> bool:
        """Take over what has changed in the toolbox; whether anything had."""
        revision = self._source.revision
        if revision == self._seen:
            return False
        self._seen = revision
        tools = list(self._source)
        self._direct = tuple(tool for tool in tools if not self.is_hidden(tool))
        hidden = {tool.path: _without_narration(tool) for tool in tools if self.is_hidden(tool)}
        if gone := [path for path in self.hidden.paths() if path not in hidden]:
            self.hidden.remove(*gone)
        self.hidden.add(list(hidden.values()), replace=True)
        return True

    @property
    def direct(self) -> tuple[Tool, ...]:
        """What the model calls itself, in the toolbox's order."""
        return self._direct


def _without_narration(tool: Tool) -> Tool:
    """Scripts do not narrate: the parameter in which a model explains itself is filled in for them."""
    properties = tool.parameters.get("properties")
    if not isinstance(properties, dict) or NARRATION not in properties:
        return tool
    parameters = copy.deepcopy(tool.parameters)
    if isinstance(parameters["properties"][NARRATION], dict):
        parameters["properties"][NARRATION].setdefault("default", "Called from a script.")
    parameters["required"] = [name for name in parameters.get("required", ()) if name != NARRATION]
    return tool.with_(parameters=parameters)
