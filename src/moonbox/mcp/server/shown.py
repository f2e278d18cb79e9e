"""What a client is shown: the code tool, the tools that it calls itself, and what they honestly are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mcp_types import Tool as Listed
from mcp_types import ToolAnnotations

from moonbox.codemode.definitions import Definition, from_tool, provider_names
from moonbox.mcp.server.conversations import STATE
from moonbox.mcp.upstreams.tools import annotations_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moonbox.codemode.mode import CodeMode
    from moonbox.mcp.server.peer import Peer
    from moonbox.tools.tool import Tool

__all__ = ["CODE_RESULT", "Shown", "View"]

CODE_RESULT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "value": {
            "type": ["object", "array", "string", "number", "boolean", "null"],
            "description": "What the script returned.",
        },
        "output": {"type": "string", "description": "What it printed."},
        "run": {"type": "string", "description": "The run's id: moonbox://runs/{run} is its record."},
        "calls": {"type": "integer"},
        "cut": {"type": "boolean", "description": "The value is too long to be here; the text shows its ends."},
        STATE: {"type": "string", "description": "Pass it as `state` to go on with this script's globals."},
    },
    "required": ["run", "calls"],
}
_STATE_PARAMETER = {
    "type": "string",
    "description": "Optional: the state that an earlier call gave, to go on with its globals.",
}


@dataclass(frozen=True, slots=True)
class View:
    """The tools for one kind of client, in their fixed order."""

    tools: tuple[Listed, ...]
    code: str | None
    """The code tool's name, where there is one."""
    needing: Mapping[str, Tool] = field(default_factory=dict)
    """Tools that need approval and that this client calls itself because it cannot pass a question on; by name."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The name of each tool that a client calls itself, by the tool's path."""

    def schema(self, name: str) -> dict[str, Any] | None:
        return next((tool.input_schema for tool in self.tools if tool.name == name), None)


class Shown:
    """Makes views and keeps them until the tools change."""

    def __init__(self, mode: CodeMode, *, structured: bool) -> None:
        self._mode = mode
        self._structured = structured
        self._revision = -1
        self._views: dict[tuple[bool, bool, bool], View] = {}

    def to(self, peer: Peer) -> View:
        return self.view(asks=peer.elicits, stateless=peer.session is None, modern=peer.modern)

    def view(self, *, asks: bool = True, stateless: bool = False, modern: bool = False) -> View:
        """`asks`: the client can be asked for approval; `stateless`: it has no session; `modern`: its protocol."""
        toolbox = self._mode.sandbox.toolbox
        key = (asks, stateless, modern)
        while toolbox.revision != self._revision or key not in self._views:
            if toolbox.revision != self._revision:
                self._revision, self._views = toolbox.revision, {}
            try:
                self._views[key] = self._made(asks=asks, stateless=stateless, modern=modern)
            except ValueError:
                if toolbox.revision == self._revision:
                    raise
                # Otherwise the tools changed in another thread while they were looked at: look again.
        return self._views[key]

    def _made(self, *, asks: bool, stateless: bool, modern: bool) -> View:
        mode = self._mode
        definitions = mode.neutral_definitions()
        code = definitions.pop(0) if mode.choice.code else None
        direct = dict(zip((item.name for item in definitions), mode.direct_tools, strict=True))
        needing: dict[str, Tool] = {}
        if not asks:
            hidden = sorted(
                (tool for tool in mode.hidden_tools if tool.policy == "approve"), key=lambda tool: tool.path
            )
            needing = provider_names(hidden, [*direct, mode.tool_name])
            definitions += [from_tool(tool, name) for name, tool in needing.items()]
        everything = {**direct, **needing}
        listed = [_listed(item, annotations_of(everything[item.name]).to_mcp(), modern) for item in definitions]
        listed.sort(key=lambda tool: tool.name)  # whichever server was up first
        if code is not None:
            listed.insert(0, self._code(code, stateless=stateless))
        names = {tool.path: name for name, tool in everything.items()}
        return View(tuple(listed), None if code is None else code.name, needing, names)

    def _code(self, definition: Definition, *, stateless: bool) -> Listed:
        schema = dict(definition.parameters)
        if stateless:
            schema["properties"] = {**schema["properties"], STATE: _STATE_PARAMETER}
        return Listed(
            name=definition.name,
            title="Run a script",
            description=definition.description,
            input_schema=schema,
            output_schema=CODE_RESULT if self._structured else None,
            annotations=_of_code(self._mode.hidden_tools),
        )


def _listed(item: Definition, annotations: dict[str, bool], modern: bool) -> Listed:
    returns = item.returns
    if returns is not None and not modern and returns.get("type") != "object":
        returns = None  # the earlier protocol knows only objects
    return Listed(
        name=item.name,
        description=item.description,
        input_schema={"type": "object", **item.parameters},
        output_schema=None if returns is None else dict(returns),
        annotations=ToolAnnotations.model_validate(annotations) if annotations else None,
    )


def _of_code(hidden: Iterable[Tool]) -> ToolAnnotations:
    """A script can do whatever its tools can: what one of them does not deny must be assumed."""
    hints = [annotations_of(tool) for tool in hidden]
    changing = [item for item in hints if item.read_only is not True]
    return ToolAnnotations(
        read_only_hint=not changing,
        destructive_hint=any(item.destructive is not False for item in changing),
        idempotent_hint=all(item.idempotent is True for item in changing),
        open_world_hint=any(item.open_world is not False for item in hints),
    )
