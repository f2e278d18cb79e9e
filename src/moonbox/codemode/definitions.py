"""Forms of providers: tool definitions as each of them takes them, and calls as models write them."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from moonbox.errors import UsageError
from moonbox.languages.registry import LANGUAGES
from moonbox.schema.tree import DEFINITIONS, SchemaNode, with_parts
from moonbox.suggest import unknown

if TYPE_CHECKING:
    from moonbox.tools.tool import Tool

Format = Literal["openai", "openai-responses", "anthropic", "gemini", "mcp"]
FORMATS: tuple[str, ...] = get_args(Format)
_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 64
_CONTINUED = "(Continued in the description of {}.)"
_SCRIPT_NAMES = frozenset({"code", "source", "sourcecode", "script", "program", "input"}).union(
    *(language.parameter_aliases for language in LANGUAGES.values())
)
"""What models call the one parameter when they forget its name: a script is still a script."""
_NOT_AT_ROOT = ("oneOf", "anyOf", "allOf", "not", "enum", "const", "if", "then", "else")
_META = ("$schema", "$id", "$anchor", "$comment")


@dataclass(frozen=True, slots=True)
class Definition:
    """One tool as providers describe it to a model."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    returns: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)
    overflow: str | None = None
    """The parameter whose description takes what a provider has no room for in the tool's own."""

    def within(self, longest: int | None) -> Definition:
        """The same with a description of at most so many characters; the rest moves to the parameters."""
        if longest is None or len(self.description) <= longest:
            return self
        note = _CONTINUED.format(self.overflow) if self.overflow else "…"
        head, rest = _cut(self.description, longest - len(note) - 1)
        parameters = copy.deepcopy(dict(self.parameters))
        place = parameters["properties"][self.overflow] if self.overflow else parameters
        place["description"] = "\n".join([part for part in (place.get("description"), rest) if part])
        return replace(self, description=f"{head}\n{note}" if self.overflow else head + note, parameters=parameters)


def from_tool(tool: Tool, name: str) -> Definition:
    """What any client can send on, whatever the tool's own server has said."""
    description, parameters, returns = portable_value([tool.description, tool.parameters, tool.returns])
    return Definition(name, description, parameters, returns, tool.hints.to_mcp())


def in_format(definitions: Iterable[Definition], form: str) -> list[dict[str, Any]]:
    """The definitions as plain dicts of that provider."""
    match form:
        case "openai":
            return [{"type": "function", "function": _named(item, "parameters")} for item in definitions]
        case "openai-responses":
            return [{"type": "function", **_named(item, "parameters"), "strict": False} for item in definitions]
        case "anthropic":
            return [_named(item, "input_schema") for item in definitions]
        case "gemini":
            return [{"function_declarations": [_named(item, "parameters_json_schema") for item in definitions]}]
        case "mcp":
            return [_mcp(item) for item in definitions]
    raise UsageError(unknown("format", str(form), FORMATS))


def provider_names(tools: Iterable[Tool], taken: Iterable[str]) -> dict[str, Tool]:
    """Names that every provider accepts, for tools that are called directly."""
    names: dict[str, Tool] = {}
    used = set(taken)
    last: dict[str, int] = {}  # a server may have thousands of names that come out the same
    for tool in tools:
        # Letters, digits, `_` and `-`, a letter or `_` first, at most 64: what the strictest of them wants.
        name = _NOT_ALLOWED.sub("_", tool.path.replace(".", "__"))
        name = base = (name if name[0].isalpha() or name[0] == "_" else f"_{name}")[:_LONGEST_NAME]
        while name in used:
            last[base] = last.get(base, 1) + 1
            ending = f"_{last[base]}"
            name = base[: _LONGEST_NAME - len(ending)] + ending
        used.add(name)
        names[name] = tool
    return names


def portable_schema(parameters: dict[str, Any]) -> dict[str, Any]:
    """A schema that every provider accepts: an object without unions at its root, and every array with its items.

    What the root said with a union is kept as text in its description, and each branch's parameters are named. Calls
    are still validated against the tool's own schema.
    """
    merged = {key: part for key, part in parameters.items() if key in DEFINITIONS} | SchemaNode(parameters).says
    root = copy.deepcopy({key: part for key, part in merged.items() if key not in _META and key != "$ref"})
    dropped = {key: root.pop(key) for key in _NOT_AT_ROOT if key in root}
    root["type"] = "object"
    if not isinstance(root.get("properties"), dict):
        root["properties"] = {}
    if dropped:
        _name_branches(root, dropped, SchemaNode({**parameters, **dropped}))
    known = root["properties"]
    if "required" in root:
        root["required"] = [name for name in root["required"] if name in known]
    completed: dict[str, Any] = _with_items(root)
    return completed


def portable_value(value: Any) -> Any:
    """A copy that every JSON writer takes: no half of a surrogate pair, no NaN or infinity."""
    try:
        return _portable(value)
    except RecursionError:  # only a model's own data is that deep: left as it is
        return value


def _portable(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_portable(key): _portable(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_portable(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def parse_arguments(arguments: Any) -> dict[str, Any] | None:
    """A call's arguments as a dict; text is read as JSON, as providers send it. None for anything else."""
    if arguments is None:
        return {}
    if isinstance(arguments, str | bytes | bytearray):
        if not arguments:
            return {}
        try:
            arguments = json.loads(arguments, strict=False)  # small models leave line breaks in strings as they are
        except (ValueError, RecursionError):
            return None
    return dict(arguments) if isinstance(arguments, dict) else None


def find_script(given: dict[str, Any], parameter: str) -> str | None:
    """The script in a call's arguments, if there is one; also under another name that models often use for it."""
    source = given.get(parameter)
    if source is None and len(given) == 1 and str(next(iter(given))).lower() in _SCRIPT_NAMES:
        source = next(iter(given.values()))
    return _without_fence(source) if isinstance(source, str) else None


def shorten(value: Any) -> str:
    """A value for a message."""
    try:
        text = repr(value)
    except RecursionError:
        return f"a {type(value).__name__} that is nested too deeply"
    except Exception:  # noqa: BLE001 - a number with thousands of digits, an object of the caller's own
        return f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= 80 else text[:79] + "…"


def _named(item: Definition, key: str) -> dict[str, Any]:
    description = item.description or item.name  # some providers refuse an empty one
    return {"name": item.name, "description": description, key: portable_schema(dict(item.parameters))}


def _cut(text: str, longest: int) -> tuple[str, str]:
    """As many whole lines as fit, and the rest; of a single long line, as many characters as fit."""
    end = text.rfind("\n", 0, longest + 1)
    if end <= 0:
        return text[:longest], text[longest:]
    return text[:end], text[end + 1 :]


def _mcp(item: Definition) -> dict[str, Any]:
    schema = copy.deepcopy(dict(item.parameters))
    definition = {"name": item.name, "description": item.description, "inputSchema": schema}
    if item.returns is not None and item.returns.get("type") == "object":
        definition["outputSchema"] = dict(item.returns)
    if item.annotations:
        definition["annotations"] = dict(item.annotations)
    return definition


def _name_branches(root: dict[str, Any], dropped: dict[str, Any], whole: SchemaNode) -> None:
    required = list(root.get("required") or ())
    for keyword, branches in {"allOf": whole.parts, **whole.unions}.items():
        for branch in branches if keyword in dropped else ():
            for name, part in branch.fields.items():
                root["properties"].setdefault(name, copy.deepcopy(part.schema))
            if keyword == "allOf":
                required += [name for name in branch.required if name not in required]
    if required:
        root["required"] = required
    rule = json.dumps(dropped, separators=(",", ":"), ensure_ascii=False)
    description = root.get("description")
    root["description"] = f"{description}\n" if isinstance(description, str) and description else ""
    root["description"] += f"The arguments must also fit this JSON Schema: {rule}"


def _with_items(schema: Any) -> Any:
    """With `items` that accept everything for arrays that have none; some providers refuse them otherwise."""
    if not isinstance(schema, dict):
        return schema
    made, kinds = with_parts(schema, lambda part, _: _with_items(part)), schema.get("type")
    if (kinds == "array" or (isinstance(kinds, list) and "array" in kinds)) and "prefixItems" not in made:
        made.setdefault("items", {})
    return made


def _without_fence(source: str) -> str:
    """The script without the Markdown fence that models sometimes put around it; line numbers stay."""
    text = source.strip()
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        return "\n" + text[text.index("\n") + 1 : -3]
    return source
