"""What providers check before they answer."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any

from wire.model import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["a_list", "a_table", "a_text", "needs", "schema", "text_of", "tool_name"]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_TYPES = {"string", "number", "integer", "boolean", "object", "array", "null"}
_NOT_AT_ROOT = ("oneOf", "anyOf", "allOf", "enum", "not")


def needs(condition: object, message: str) -> None:
    if not condition:
        raise Refused(message)


def a_text(value: Any, where: str, *, empty: bool = True) -> str:
    needs(isinstance(value, str), f"{where}: expected a string, got {type(value).__name__}")
    needs(empty or value, f"{where}: expected a string that is not empty")
    return str(value)


def a_list(value: Any, where: str, *, empty: bool = True) -> list[Any]:
    needs(isinstance(value, list), f"{where}: expected an array, got {type(value).__name__}")
    needs(empty or value, f"{where}: expected an array that is not empty")
    return list(value)


def a_table(value: Any, where: str) -> dict[str, Any]:
    needs(isinstance(value, dict), f"{where}: expected an object, got {type(value).__name__}")
    return dict(value)


def tool_name(value: Any, where: str, known: dict[str, Any], *, letter_first: bool = False) -> str:
    name = a_text(value, where)
    needs(_NAME.fullmatch(name), f"{where}: {name!r} does not match ^[a-zA-Z0-9_-]{{1,64}}$")
    needs(not letter_first or name[0].isalpha() or name[0] == "_", f"{where}: {name!r} must start with a letter or _")
    needs(name not in known, f"{where}: tool names must be unique, {name!r} is not")
    return name


def schema(value: Any, where: str) -> dict[str, Any]:
    """A JSON Schema for parameters: an object at its root, and well-formed all the way down."""
    found = a_table(value, where)
    needs(found.get("type") == "object", f"{where}: schema must have type 'object', got {found.get('type')!r}")
    for keyword in _NOT_AT_ROOT:
        needs(keyword not in found, f"{where}: schema must not have {keyword!r} at the top level")
    _node(found, where)
    return found


def _node(node: Any, where: str) -> None:
    if isinstance(node, bool):
        return
    a_table(node, where)
    kinds = node.get("type", [])
    for kind in [kinds] if isinstance(kinds, str) else a_list(kinds, f"{where}.type"):
        needs(kind in _TYPES, f"{where}: {kind!r} is not a JSON Schema type")
    properties = a_table(node.get("properties", {}), f"{where}.properties")
    for name, part in properties.items():
        _node(part, f"{where}.properties.{name}")
    for name in a_list(node.get("required", []), f"{where}.required"):
        needs(name in properties or "$ref" in node, f"{where}.required: there is no property {name!r}")
    if isinstance(node.get("items"), dict):
        _node(node["items"], f"{where}.items")
    needs(kinds != "array" or "items" in node or "prefixItems" in node, f"{where}: array schema missing items")
    for keyword in ("anyOf", "oneOf", "allOf"):
        for number, part in enumerate(a_list(node.get(keyword, []), f"{where}.{keyword}")):
            _node(part, f"{where}.{keyword}[{number}]")


def text_of(
    content: Any, where: str, kinds: tuple[str, ...] = ("text",), media: Mapping[str, tuple[str, ...]] | None = None
) -> str:
    """The text of a content that is a string or a list of parts; `media` says where other parts have their data."""
    if isinstance(content, str):
        return content
    parts = []
    for number, part in enumerate(a_list(content, where)):
        kind = a_table(part, f"{where}[{number}]").get("type")
        if media is not None and isinstance(kind, str) and kind in media:
            _medium(part, media[kind], f"{where}[{number}]")
            continue
        needs(kind in kinds, f"{where}[{number}].type: {kind!r} is not one of {', '.join(kinds)}")
        parts.append(a_text(part.get("text"), f"{where}[{number}].text"))
    return "".join(parts)


def _medium(part: Any, path: tuple[str, ...], where: str) -> None:
    """Its data must be base64, alone or in a data URI."""
    for key in path:
        part = a_table(part, where).get(key)
    data = a_text(part, f"{where}.{'.'.join(path)}", empty=False)
    head, _, rest = data.partition(";base64,")
    needs(rest or not data.startswith("data:"), f"{where}: {head!r} is not a data URI")
    try:
        base64.b64decode(rest or data, validate=True)
    except ValueError:
        raise Refused(f"{where}: the data is not base64") from None


def json_text(value: Any) -> str:
    """Arguments as a provider sends them: text as it is, data as JSON."""
    return value if isinstance(value, str) else json.dumps(value)
