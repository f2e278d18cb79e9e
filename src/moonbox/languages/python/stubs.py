"""What workers need to know about tools besides their names: the order of parameters, and stubs for type checks.

A stub says no more than is certain: what a schema leaves open is `Any`, and every parameter that the host would convert
takes what can be converted.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterable
from typing import Any

from moonbox.languages.python.language import PYTHON

_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_HEAD = "from typing import Any, NotRequired, TypedDict\n\ndef __getattr__(name: str) -> Any: ..."  # it may have more
_MOST_DEPTH = 6
_MOST_SUBSCHEMAS = 1000  # of one tool; a server's schema may be built to grow without end


def describe(toolbox: Any) -> dict[str, Any]:
    """The names of each tool's parameters in order, and stubs: of functions, and of the module of each namespace.

    Beside these, the words that cannot name a tool, and those that name something else.
    """
    tools = [tool for tool in toolbox if tool.policy != "direct"]
    parameters = {f"tools.{tool.path}": _parameters(tool) for tool in tools}
    spaces: dict[str, list[Any]] = {}
    for tool in tools:
        spaces.setdefault(toolbox.alias(tool).rpartition(".")[0], []).append(tool)
    stubs = {space: _Stubs(members).text for space, members in spaces.items()}
    words = {"reserved": PYTHON.texts.reserved.split(), "taken": PYTHON.texts.taken.split()}
    return {"parameters": parameters, "stubs": stubs, **words}


def _parameters(tool: Any) -> list[str]:
    """The names of its parameters in order, `*name` for the one that takes all further values."""
    spread = tool.plan.spread
    return [f"*{name}" if name == spread else name for name in tool.accepted.positional_order()]


class _Stubs:
    def __init__(self, tools: list[Any]) -> None:
        self._types: list[str] = []
        functions = [self._function(tool) for tool in tools if _is_name(tool.name)]
        self.text = "\n".join([_HEAD, *self._types, *functions])

    def _function(self, tool: Any) -> str:
        """Every argument is `Any`, because the host converts and checks them; the result is what it returns."""
        shown = [name for name in _parameters(tool) if _is_name(name.lstrip("*"))]
        parts = [f"{name}: Any" if name[0] == "*" else f"{name}: Any = ..." for name in shown]
        self._left = _MOST_SUBSCHEMAS
        result = self._type(tool.returned, tool.name, 0)
        return f"def {tool.name}({', '.join([*parts, '**more: Any'])}) -> {result}: ..."

    def _type(self, node: Any, name: str, depth: int) -> str:
        """The type of a schema; `name` is what a class of it would be called after."""
        self._left -= 1
        if depth > _MOST_DEPTH or self._left < 0:
            return "Any"
        name = node.reference.split("/")[-1] if node.reference else name
        node = node.target
        for choices in node.unions.values():
            return self._either(self._type(choice, name, depth + 1) for choice in choices)
        declared = node.says.get("type")
        kinds = declared if isinstance(declared, list) else [declared]
        return self._either(self._one(str(kind), node, name, depth) for kind in kinds)

    def _either(self, types: Iterable[str]) -> str:
        return " | ".join(dict.fromkeys(types)) or "Any"

    def _one(self, kind: str, node: Any, name: str, depth: int) -> str:
        if kind == "array":
            return f"list[{self._type(node.items, name, depth + 1)}]"
        return self._object(node, name, depth) if kind == "object" else _SCALARS.get(kind, "Any")

    def _object(self, node: Any, name: str, depth: int) -> str:
        if node.rest.schema is not False or not node.named or not all(map(_is_name, node.named)):
            return "dict[str, Any]"  # a tool may return more than it declares
        lines = []
        for field, part in node.named.items():
            kind = self._type(part, field, depth + 1)
            lines.append(f"    {field}: {kind if field in node.needed else f'NotRequired[{kind}]'}")
        words = "".join(word.capitalize() for word in (node.word("title") or name).split("_"))
        title = f"{words if _is_name(words) else 'Row'}{len(self._types) or ''}"
        self._types.append("\n".join([f"class {title}(TypedDict):", *lines]))
        return title


def _is_name(text: str) -> bool:
    return text.isascii() and text.isidentifier() and not keyword.iskeyword(text)
