"""The tools that an agent has of its own, behind code mode."""

from __future__ import annotations

import contextlib
import json
from contextvars import ContextVar
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from moonbox.codemode.sessions import Sessions
from moonbox.errors import ToolDefinitionError, ToolError
from moonbox.tools.tool import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from moonbox.codemode.mode import CodeMode
    from moonbox.tools.tool import Tool

_MOST_SETS = 50
_running: ContextVar[Mapping[str, Tool]] = ContextVar("moonbox_agent_tools")
"""The agent's own tools in the call that runs the script: another agent, or another request, may have others."""


class AgentTools:
    """Code mode for whatever tools an agent brings: one CodeMode for each set of them, made at its first use.

    `leave_direct` are names, or patterns such as `send_*`, of tools that scripts must not reach.
    """

    def __init__(self, mode: CodeMode, leave_direct: Collection[str] = ()) -> None:
        self._mode = mode
        self._leave_direct = (leave_direct,) if isinstance(leave_direct, str) else tuple(leave_direct)
        self._modes: Sessions[CodeMode] = Sessions(lambda _: None, most=_MOST_SETS, idle_seconds=None)

    def shown(self, tools: Iterable[Any], convert: Callable[[Any], Tool | None]) -> Shown:
        """What the model of an agent with these tools is shown.

        `convert` makes a Tool of the framework's own; a tool for which it gives None, or raises ToolDefinitionError,
        stays the agent's, and so does one whose name is taken.
        """
        taken = {self._mode.tool_name, *self._mode.sandbox.toolbox.paths()}
        own: dict[str, Tool] = {}
        for item in tools:
            with contextlib.suppress(ToolDefinitionError):
                tool = convert(item)
                if tool is not None and tool.path not in taken and not self._is_left(tool.path):
                    own[tool.path] = tool
        if not own:
            return Shown(self._mode, own)
        key = json.dumps([_described(tool) for tool in own.values()])
        routed = [_routed(tool) for tool in own.values()]
        return Shown(self._modes.open(key, lambda: self._mode.with_tools(routed)), own)

    def hiding(self, name: str) -> CodeMode:
        """A CodeMode in which only scripts reach a tool of this name, for the answer to a direct call of it."""
        modes = [mode for mode in self._modes.values() if any(tool.path == name for tool in mode.hidden_tools)]
        return modes[-1] if modes else self._mode

    def _is_left(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self._leave_direct)


@dataclass(frozen=True)
class Shown:
    """A CodeMode with an agent's own tools, and these tools."""

    mode: CodeMode
    own: Mapping[str, Tool]

    @property
    def hidden(self) -> frozenset[str]:
        """The names of the agent's own tools that only scripts call."""
        reached = {tool.path for tool in self.mode.hidden_tools} - {tool.path for tool in self.mode.direct_tools}
        return frozenset(self.own.keys() & reached)

    def functions(self) -> list[dict[str, Any]]:
        """The name, description and parameters of each tool besides the agent's own, as every provider accepts them."""
        functions = [definition["function"] for definition in self.mode.definitions("openai")]
        return [function for function in functions if function["name"] not in self.own]

    @contextlib.contextmanager
    def running(self) -> Iterator[CodeMode]:
        """Around the answer to a call: its script calls these very tools."""
        token = _running.set(self.own)
        try:
            yield self.mode
        finally:
            _running.reset(token)


def _described(tool: Tool) -> list[Any]:
    parts = {name: part for name, part in fingerprint(tool).items() if name != "code"}
    return [tool.path, parts, tool.policy, tool.is_async, tool.timeout, tool.max_concurrency]


def _routed(tool: Tool) -> Tool:
    """The tool with a function that calls the agent's tool of this name in the call that is under way."""
    name = tool.path

    def call(*args: Any, **kwargs: Any) -> Any:
        return _current(name).call(*args, **kwargs)

    async def acall(*args: Any, **kwargs: Any) -> Any:
        return await _current(name).call(*args, **kwargs)

    return tool.with_(call=acall if tool.is_async else call)


def _current(name: str) -> Tool:
    tool = _running.get({}).get(name)
    if tool is None:
        raise ToolError(f"the agent does not have the tool '{name}' now", code="unknown_tool", tool=name)
    return tool
