"""What workers need to know about tools besides their names: the order of parameters, and stubs for type checks.

A stub says no more than is certain: what a schema leaves open is `Any`, and every parameter that the host would convert
takes what can be converted.
"""

from __future__ import annotations

import keyword
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
    parameters = {f"tools.{tool.path}": tool.document.positional_order() for tool in tools}
    spaces: dict[str, list[Any]] = {}
    for tool in tools:
        spaces.setdefault(toolbox.alias(tool).rpartition(".")[0], []).append(tool)
    stubs = {space: _Stubs(members).text for space, members in spaces.items()}
    words = {"reserved": PYTHON.texts.reserved.split(), "taken": PYTHON.texts.taken.split()}
    return {"parameters": parameters, "stubs": stubs, **words}


class _Stubs:
    def __init__(self, tools: list[Any]) -> None:
        self._types: list[str] = []
        functions = [self._function(tool) for tool in tools if _is_name(tool.name)]
        self.text = "\n".join([_HEAD, *self._types, *functions])

    def _function(self, tool: Any) -> str:
        """Every argument is `Any`, because the host converts and checks them; the result is what it returns."""
        parts = [f"{name}: Any = ..." for name in tool.document.positional_order() if _is_name(name)]
        self._root, self._left = tool.returns, _MOST_SUBSCHEMAS
        result = self._type(tool.returns, tool.name, 0)
        return f"def {tool.name}({', '.join([*parts, '**more: Any'])}) -> {result}: ..."

    def _type(self, schema: Any, name: str, depth: int) -> str:
        """The type of a schema; `name` is what a class of it would be called after."""
        self._left -= 1
        if not isinstance(schema, dict) or depth > _MOST_DEPTH or self._left < 0:
            return "Any"
        if "$ref" in schema:
            parts = str(schema["$ref"]).removeprefix("#/").split("/")
            target: Any = self._root
            for part in parts:
                target = target.get(part) if isinstance(target, dict) else None
            return self._type(target, parts[-1], depth + 1)
        choices, kind = schema.get("anyOf") or schema.get("oneOf"), schema.get("type")
        if isinstance(kind, list) and not isinstance(choices, list):
            choices = [{**schema, "type": each} for each in kind]
        if isinstance(choices, list):
            return " | ".join(dict.fromkeys(self._type(choice, name, depth + 1) for choice in choices)) or "Any"
        if kind == "array":
            return f"list[{self._type(schema.get('items'), name, depth + 1)}]"
        if kind == "object":
            return self._object(schema, name, depth)
        return _SCALARS.get(str(kind), "Any")

    def _object(self, schema: dict[str, Any], name: str, depth: int) -> str:
        fields = schema.get("properties")
        if schema.get("additionalProperties") is not False or not fields or not all(map(_is_name, fields)):
            return "dict[str, Any]"  # a tool may return more than it declares
        required = schema.get("required", ())
        lines = []
        for field, part in fields.items():
            kind = self._type(part, field, depth + 1)
            lines.append(f"    {field}: {kind if field in required else f'NotRequired[{kind}]'}")
        words = "".join(word.capitalize() for word in str(schema.get("title") or name).split("_"))
        title = f"{words if _is_name(words) else 'Row'}{len(self._types) or ''}"
        self._types.append("\n".join([f"class {title}(TypedDict):", *lines]))
        return title


def _is_name(text: str) -> bool:
    return text.isascii() and text.isidentifier() and not keyword.iskeyword(text)
