"""Values of a Python script for a person to read: bounded in size, depth and count, and always JSON.

What is no data is text in angle brackets; what is cut says so. prelude/inspect.lua does the same for Lua.
"""

from __future__ import annotations

import json
from math import isfinite

TYPE_CHECKING = False  # see worker/protocol.py: a worker starts without `typing`
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

MOST_NAMES = 200
_MOST_ITEMS, _DEEPEST, _LONGEST, _MOST_TEXT = 100, 6, 2000, 200_000


class NamespaceShown:
    """Shortens values, which have so many characters together."""

    def __init__(self) -> None:
        self._left = _MOST_TEXT

    def value(self, value: Any, depth: int = 0) -> Any:
        self._left -= 8
        if self._left <= 0:
            return "…"
        if isinstance(value, dict) and depth < _DEEPEST:
            return self._mapping(value, depth + 1)
        if isinstance(value, (list, tuple, set, frozenset)) and depth < _DEEPEST:
            return self._items(value, len(value), depth + 1)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int) and abs(value) < 2**63:
            return int(value)
        if isinstance(value, float):
            return float(value) if isfinite(value) else f"<{value}>"
        return self._text(value if isinstance(value, str) else f"<{type(value).__name__}: {value!r}>")

    def _text(self, text: str) -> str:
        cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… {len(text) - _LONGEST} more characters"
        self._left -= len(cut)
        return cut.encode("utf-8", "replace").decode()

    def _items(self, items: Iterable[Any], count: int, depth: int) -> list[Any]:
        found: list[Any] = []
        for item in items:
            if len(found) == _MOST_ITEMS or self._left <= 0:
                found.append(f"… {count - len(found)} more")
                break
            found.append(self.value(item, depth))
        return found

    def _mapping(self, mapping: dict[Any, Any], depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, item in mapping.items():
            if len(found) == _MOST_ITEMS or self._left <= 0:
                found["…"] = f"{len(mapping) - len(found)} more"
                break
            found[self._text(key if isinstance(key, str) else repr(key))] = self.value(item, depth)
        return found


def told(frames: Iterable[tuple[str, int, bool]], variables: dict[str, Any]) -> bytes:
    """What the host is sent: function, line, and whether it is of this run's script, of each frame; and the globals."""
    listed = [{"function": name, "line": line, "own": own, "locals": {}} for name, line, own in frames]
    return json.dumps({"frames": listed, "globals": variables}).encode()
