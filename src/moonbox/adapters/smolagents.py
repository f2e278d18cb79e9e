"""smolagents: code mode as tools for its agents."""

from __future__ import annotations

import contextlib
import io
import json
import keyword
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from moonbox.adapters.base import AgentAdapter, Shown, imported_from, new_conversation
from moonbox.schema.tree import SchemaNode, with_parts
from moonbox.tools.importers import from_openai

with imported_from("smolagents", extra="smolagents"):
    from smolagents import Tool
    from smolagents.models import get_tool_json_schema

if TYPE_CHECKING:
    from moonbox.media import Media
    from moonbox.tools.tool import Tool as ScriptTool


class Smolagents(AgentAdapter):
    """Code mode for smolagents.

        box = Smolagents([get_expenses])
        agent = ToolCallingAgent(tools=box.tools, model=model, instructions=box.system_prompt)

    An agent is a conversation: script state is kept for each list of tools that is taken from here, so take one for
    each agent. `tools_for` names the conversation instead, for agents that come and go.

    smolagents has no place for images in a tool's result. With `step_callbacks=[box.show_images]` the agent shows those
    that scripts returned or showed with the observations of the same step.
    """

    @property
    def tools(self) -> list[Tool]:
        """The code tool and the direct tools, for one agent."""
        return self.tools_for(new_conversation("agent"))

    def tools_for(self, conversation: str) -> list[Tool]:
        """The same, with the script state of a conversation."""
        return self._tools_of(self.alone, conversation)

    def hiding(self, tools: Iterable[Tool], conversation: str | None = None) -> list[Tool]:
        """The same for an agent with tools of its own: scripts reach these, and what they cannot reach follows.

        `leave_direct` names tools, or patterns of names, that stay as they are.
        """
        given = list(tools)
        shown = self.shown_with(given, _converted)
        ours = self._tools_of(shown, conversation or new_conversation("agent"))
        return [*ours, *(tool for tool in given if tool.name not in shown.hidden)]

    def _tools_of(self, shown: Shown, conversation: str) -> list[Tool]:
        tools: dict[str, Tool] = {}
        images: deque[Media] = deque(maxlen=_MOST_IMAGES)
        for function in shown.functions():
            name = _identifier(function["name"], tools)
            tools[name] = SmolagentsTool(shown, name, function, conversation, images)
        return list(tools.values())

    def show_images(self, step: Any, agent: Any) -> None:
        """A callback for `step_callbacks`: the images of the step's calls become part of its observations."""
        from PIL import Image  # type: ignore[import-not-found]  # comes with smolagents

        images = []
        for tool in agent.tools.values():
            while isinstance(tool, SmolagentsTool) and tool.images:
                with contextlib.suppress(OSError):  # the format, such as SVG, is none that Pillow reads
                    images.append(Image.open(io.BytesIO(tool.images.popleft().data)))
        if images:
            step.observations_images = [*(getattr(step, "observations_images", None) or ()), *images]


class SmolagentsTool(Tool):
    """One tool of code mode. What the model got wrong is in its answer."""

    # Class attributes, because smolagents looks for them there before an instance has them.
    name = "moonbox"
    description = ""
    inputs: dict[str, Any] = {}  # noqa: RUF012 - smolagents declares it so; each instance has its own
    output_type = "string"
    skip_forward_signature_validation = True

    def __init__(
        self, shown: Shown, name: str, function: dict[str, Any], conversation: str, images: deque[Media]
    ) -> None:
        self.name, self.description = name, function["description"]
        self.inputs = _inputs(function["parameters"])
        self.conversation = conversation
        self._shown, self._called = shown, function["name"]
        self.images = images
        """Those that the agent's calls have returned since its last step."""
        optional = {name: entry["type"] for name, entry in self.inputs.items() if "nullable" in entry}
        self._not_null = {name for name, types in optional.items() if "null" not in types}
        super().__init__()

    def forward(self, *args: Any, **kwargs: Any) -> str:
        # smolagents says `nullable` of what may be left out, so that models send null for it.
        given = {key: value for key, value in kwargs.items() if value is not None or key not in self._not_null}
        with self._shown.running() as mode:
            reply = mode.reply(self._called, args[0] if args else given, conversation=self.conversation)
        self.images.extend(medium for medium in reply.media if medium.kind == "image")
        return reply.text

    def __call__(self, *args: Any, sanitize_inputs_outputs: bool = False, **kwargs: Any) -> str:
        # Not the base's: it would take a dict that is an argument for the arguments.
        return self.forward(*args, **kwargs)


def _converted(tool: Any) -> ScriptTool | None:
    """A tool of the agent for scripts; None for one of ours, and for the one that ends a run."""
    if not isinstance(tool, Tool) or isinstance(tool, SmolagentsTool) or tool.name == "final_answer":
        return None
    [converted] = from_openai([get_tool_json_schema(tool)], lambda name, arguments: tool(**arguments))
    return converted


def _identifier(name: str, taken: dict[str, Any]) -> str:
    """A name that is a Python identifier, which smolagents demands."""
    base = name.replace("-", "_")
    if keyword.iskeyword(base):
        base += "_"
    candidate, number = base, 2
    while candidate in taken:
        candidate, number = f"{base}_{number}", number + 1
    return candidate


def _inputs(schema: dict[str, Any]) -> dict[str, Any]:
    """The parameters in smolagents' form: each with types and a description, and what may be left out is nullable."""
    root = SchemaNode(schema)
    inputs = {}
    for name, part in root.named.items():
        entry = _without_union(_written_out(part), part.kinds)
        entry["description"] = entry.get("description") or name
        if name not in root.needed:
            entry["nullable"] = True
        inputs[name] = entry
    return inputs


def _written_out(node: SchemaNode) -> dict[str, Any]:
    """The schema with its references replaced by what they lead to: smolagents has no place for definitions.

    A type inside itself is written twice. Further inside, and where it is too deep or too much, everything is accepted.
    """
    left = _MOST_PARTS

    def write_out(part: SchemaNode, above: tuple[str, ...], depth: int) -> Any:
        nonlocal left
        left -= 1
        if isinstance(part.schema, bool):
            return part.schema
        reference = part.reference or ""
        if depth > _DEEPEST or left < 0 or (reference and above.count(reference) > 1):
            return {}
        within = (*above, reference)
        return with_parts(part.says, lambda inner, _: write_out(part.tree.node(inner), within, depth + 1))

    made: dict[str, Any] = write_out(node, (), 0) or {}
    return made


def _without_union(entry: dict[str, Any], kinds: frozenset[str] | None) -> dict[str, Any]:
    """The entry with its types in one list: smolagents reads nothing else. The rest of a union is put into words."""
    unions = {key: entry.pop(key) for key in ("anyOf", "oneOf", "allOf") if key in entry}
    branches = [part for part in unions.get("anyOf", unions.get("oneOf", ())) if part.get("type") != "null"]
    if len(branches) == 1 and len(unions) == 1:
        entry = {**branches[0], **entry}
    elif any(set(part) - {"type", "title"} for part in branches) or "allOf" in unions:
        rule = json.dumps(unions, ensure_ascii=False, separators=(",", ":"))
        entry["description"] = f"{entry.get('description', '')} JSON Schema: {rule}".strip()
    types = sorted(kinds if kinds is not None else _EVERY_TYPE)
    if "number" in types and len(types) > 1 and "integer" not in types:
        types.append("integer")  # smolagents takes a whole number for a number only where that is all there is
    if "array" in types:
        entry.setdefault("items", {})
    entry["type"] = types[0] if len(types) == 1 else types
    return entry


_DEEPEST = 5
_MOST_PARTS = 300
"""Of one parameter's schema: types that refer to each other would fill gigabytes."""
_MOST_IMAGES = 20
_EVERY_TYPE = ("array", "boolean", "integer", "null", "number", "object", "string")
