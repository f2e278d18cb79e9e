"""Routing: which tools scripts reach, and which the model calls directly. One predicate decides both.

What scripts do not reach is direct, and so is what `keep_visible` names, which scripts reach all the same. Client-side
tools are direct unless a function answers them; scripts reach them if the caller can pause.
"""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import Literal

from moonbox.codemode.misdirected import without_narration
from moonbox.errors import ConfigError
from moonbox.suggest import unknown
from moonbox.tools.tool import ALSO_DIRECT, ASKS_IN_SCRIPTS, Tool
from moonbox.tools.toolbox import Toolbox

ClientTools = Literal["hidden", "kept", "direct"]
"""Client-side tools without a function: only scripts reach them, or the model too, or only the model."""


def is_eligible(tool: Tool, *, approvals: bool = False) -> bool:
    """Whether scripts may reach the tool; then it leaves the direct list, unless it is kept there too.

    With `approvals`, tools that a person must approve are reached from scripts too: the script waits for the person.
    """
    hints = tool.hints
    if tool.execution or hints.client_side or hints.cpu_bound:
        return False
    if tool.policy == "approve":
        return approvals or tool.meta.get(ASKS_IN_SCRIPTS) is True
    return tool.policy == "auto" and not hints.destructive


class Routes:
    """What scripts reach of a toolbox, and what the model does. Follows it when it changes."""

    def __init__(
        self,
        toolbox: Toolbox,
        *,
        keep_visible: Collection[str] = (),
        approvals: bool = False,
        client_tools: ClientTools = "kept",
        later: Collection[str] = (),
    ) -> None:
        self._source = toolbox
        self._kept = frozenset(name for name in keep_visible if not is_pattern(name))
        self._patterns = tuple(name for name in keep_visible if is_pattern(name))
        self._approvals = approvals
        self._client_tools = client_tools
        self._seen = -1
        self.direct: tuple[Tool, ...] = ()
        """What the model calls itself, in the toolbox's order."""
        self.has_client_tools = False
        """Whether scripts reach a tool that the caller answers."""
        self.hidden = Toolbox()
        """What scripts reach."""
        self.kept: frozenset[str] = frozenset()
        """The paths of those among them that the model calls directly too."""
        spaces = tuple(f"{space}." for space in later)
        for name in keep_visible:
            if name in self._kept and name not in toolbox and not name.startswith(spaces):
                raise ConfigError(f"keep_visible: {unknown('tool', name, toolbox.paths())}")
        self.update()

    def _is_kept(self, tool: Tool) -> bool:
        is_client_tool = tool.answered_by_caller and self._client_tools == "kept"
        if tool.path in self._kept or tool.meta.get(ALSO_DIRECT) is True or is_client_tool:
            return True
        # A pattern names tools by their path or, in any namespace, by their own name.
        return any(fnmatchcase(tool.path, pattern) or fnmatchcase(tool.name, pattern) for pattern in self._patterns)

    def update(self) -> bool:
        """Take over what has changed in the toolbox; whether anything had."""
        revision = self._source.revision
        if revision == self._seen:
            return False
        self._seen = revision
        tools = list(self._source)
        reached = [tool for tool in tools if is_eligible(tool, approvals=self._approvals)]
        if self._client_tools == "direct":
            reached = [tool for tool in reached if not tool.answered_by_caller]
        hidden = {tool.path: without_narration(tool) for tool in reached}
        self.kept = frozenset(tool.path for tool in reached if self._is_kept(tool))
        self.direct = tuple(tool for tool in tools if tool.path not in hidden or tool.path in self.kept)
        if gone := [path for path in self.hidden.paths() if path not in hidden]:
            self.hidden.remove(*gone)
        self.hidden.add(list(hidden.values()), replace=True)
        self.has_client_tools = any(tool.answered_by_caller for tool in reached)
        return True


def is_pattern(name: str) -> bool:
    return any(mark in name for mark in "*?[")
