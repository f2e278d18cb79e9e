"""Parameter schemas as providers accept them. Calls are still checked against the tool's own schema."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

from moonbox.tools.document import Document

__all__ = ["acceptable", "sendable"]

_NOT_AT_ROOT = ("oneOf", "anyOf", "allOf", "not", "enum", "const", "if", "then", "else")
_META = ("$schema", "$id", "$anchor", "$comment")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_TABLES = ("properties", "$defs", "definitions", "patternProperties")
_SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains")


def acceptable(parameters: dict[str, Any]) -> dict[str, Any]:
    """An object at the root without unions beside it, and every array with its items.

    What the root said with a union is kept as text in its description, and each branch's parameters are named.
    """
    root = _root(parameters)
    dropped = {key: root.pop(key) for key in _NOT_AT_ROOT if key in root}
    root["type"] = "object"
    document = Document({**parameters, **dropped})
    if not isinstance(root.get("properties"), dict):
        root["properties"] = {}
    if dropped:
        _name_branches(root, dropped, document)
    known = root["properties"]
    if "required" in root:
        root["required"] = [name for name in root["required"] if name in known]
    _mend(root)
    return root


def sendable(value: Any) -> Any:
    """A copy that every JSON writer takes: no half of a surrogate pair, no number that JSON has not."""
    try:
        return _sendable(value)
    except RecursionError:  # only a model's own data is that deep, and only what wrote it can say what becomes of it
        return value


def _sendable(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_sendable(key): _sendable(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_sendable(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _root(parameters: dict[str, Any]) -> dict[str, Any]:
    found = Document(parameters).deref(parameters)
    beside = {key: parameters[key] for key in ("$defs", "definitions") if key in parameters}
    merged = {**beside, **(found if isinstance(found, dict) else {})}
    return copy.deepcopy({key: value for key, value in merged.items() if key not in _META and key != "$ref"})


def _name_branches(root: dict[str, Any], dropped: dict[str, Any], document: Document) -> None:
    required = list(root.get("required") or ())
    for keyword in ("allOf", "anyOf", "oneOf"):
        for branch in dropped.get(keyword) or ():
            for name, part in document.properties(branch).items():
                root["properties"].setdefault(name, copy.deepcopy(part))
            if keyword == "allOf":
                required += [name for name in document.required(branch) if name not in required]
    if required:
        root["required"] = required
    rule = json.dumps(dropped, separators=(",", ":"), ensure_ascii=False)
    said = root.get("description")
    root["description"] = f"{said}\n" if isinstance(said, str) and said else ""
    root["description"] += f"The arguments must also fit this JSON Schema: {rule}"


def _mend(node: Any) -> None:
    """Give arrays without `items` one that accepts everything; some providers refuse them otherwise."""
    if not isinstance(node, dict):
        return
    kinds = node.get("type")
    if (kinds == "array" or (isinstance(kinds, list) and "array" in kinds)) and "prefixItems" not in node:
        node.setdefault("items", {})
    for keyword in _SINGLE:
        _mend(node.get(keyword))
    for keyword in _LISTS:
        for part in node.get(keyword) or () if isinstance(node.get(keyword), list) else ():
            _mend(part)
    for keyword in _TABLES:
        table = node.get(keyword)
        for part in table.values() if isinstance(table, dict) else ():
            _mend(part)
