"""The fingerprint of a tool: a hash of each part of its definition, to notice that it has become another."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moonbox.tools.tool import Tool

__all__ = ["changed_parts", "fingerprint"]


def fingerprint(tool: Tool) -> dict[str, str]:
    """A hash for each part that a person's decision may rest on."""
    parts: dict[str, Any] = {
        "description": tool.description,
        "parameters": tool.parameters,
        "result": tool.returns,
        "hints": tool.hints.to_dict(),
        "origin": dict(tool.meta),
        "code": _code(tool.call),
    }
    return {name: _hash(part) for name, part in parts.items()}


def changed_parts(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the parts that differ."""
    return tuple(name for name in after if before.get(name) != after[name])


def _hash(part: Any) -> str:
    import hashlib  # it loads OpenSSL

    text = json.dumps(part, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _code(call: Any) -> list[str]:
    """What the callable is, as far as that can be told: the same function defined again is the same."""
    inner = getattr(call, "__wrapped__", None) or getattr(call, "func", None) or getattr(call, "__func__", None) or call
    code = getattr(inner, "__code__", None)
    name = f"{getattr(inner, '__module__', '')}.{getattr(inner, '__qualname__', type(inner).__qualname__)}"
    if code is None:
        return [name]
    return [name, code.co_code.hex(), *(repr(item) for item in code.co_consts if not hasattr(item, "co_code"))]
