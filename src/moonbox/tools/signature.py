"""A tool's schema as text for a model, at named levels of detail.

    name        add
    signature   add(a: number, b?: string) -> {id: integer, title: string}
    brief       the signature — first sentence of the description
    full        brief, the whole description, each parameter, what is returned, hints
    schema      brief, and the JSON Schema of the parameters, minified

The text depends on the tool alone, byte for byte, so that prompt caches hold.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import TYPE_CHECKING, Any, Literal, get_args

from moonbox.errors import UsageError
from moonbox.languages.language import is_identifier
from moonbox.suggest import unknown
from moonbox.tools.document import NARRATION, Document, Schema
from moonbox.tools.paging import paging_form

if TYPE_CHECKING:
    from moonbox.tools.tool import Tool

Level = Literal["name", "signature", "brief", "full", "schema"]
LEVELS: tuple[str, ...] = get_args(Level)

LONGEST_SENTENCE = 140
_MOST_FIELDS = 16
_PLAIN = frozenset({"string", "integer", "number", "boolean", "null"})
_MOST_CHOICES = 8
_LONGEST_CHOICES = 80
_SENTENCE = r"(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\bvs)(?<!\bcf)[.!?](?=\s)|[。！？]"


def render(tool: Tool, level: Level = "brief", *, name: str | None = None) -> str:
    """The tool at that level of detail; `name` replaces its path, where a script writes it differently."""
    shown = tool.path if name is None else name
    match level:
        case "name":
            return shown
        case "signature":
            return shown + _signature(tool)
        case "brief":
            return shown + _signature(tool) + _sentence(tool)
        case "full":
            return "\n".join([shown + _signature(tool) + _sentence(tool), *_details(tool)])
        case "schema":
            minified = _minified(_without_narration(tool.parameters))
            return f"{shown}{_signature(tool)}{_sentence(tool)}\n  schema: {minified}"
    raise UsageError(unknown("level", str(level), LEVELS))


def type_text(schema: Schema, document: Document, *, nested: int = 1) -> str:
    """A schema as a short type: `integer|null`, `"a"|"b"`, `{id: integer, tags?: string[]}`."""
    return _Types(document).text(schema, nested)


def first_sentence(text: str, longest: int = LONGEST_SENTENCE) -> str:
    """The first sentence on one line, cut with `…` where it is longer."""
    paragraph = text.strip().split("\n\n")[0]
    line = " ".join("".join(" " if unicodedata.category(char) in _UNPRINTABLE else char for char in paragraph).split())
    end_of_sentence = re.search(_SENTENCE, line)
    if end_of_sentence is not None:
        line = line[: end_of_sentence.end()]
    if len(line) <= longest:
        return line
    end = longest - 1
    while end > 0 and _joins(line, end):  # never between a letter and its accent, or inside a joined emoji
        end -= 1
    return line[:end].rstrip() + "…"


def parameter_list(document: Document) -> str:
    """`employee_id* (integer), limit (integer, default 10)`, the required ones starred."""
    return ", ".join(
        f"{name}{'*' if required else ''} ({text}{_default(part, document)})"
        for name, part, text, required in _parameters(document, 0)
    )


def _parameters(document: Document, nested: int) -> list[tuple[str, Schema, str, bool]]:
    """Each parameter that is shown: its name, its schema, its type as text, and whether it is required."""
    named, must = document.properties(document.root), set(document.required(document.root))
    shown = [name for name in document.positional_order() if name != NARRATION]
    types = _Types(document)
    return [(name, named[name], types.text(named[name], nested), name in must) for name in shown]


def _signature(tool: Tool) -> str:
    shown = _parameters(tool.document, 1)
    parts = [f"{_key(name)}{'' if required else '?'}: {text}" for name, _, text, required in shown]
    returned = "" if tool.returns is None else f" -> {type_text(tool.returns, Document(tool.returns), nested=2)}"
    paged = "" if paging_form(tool) is None else " -- paged"
    return f"({', '.join(parts)}){returned}{paged}"


def _sentence(tool: Tool) -> str:
    sentence = first_sentence(tool.description)
    return f" — {sentence}" if sentence else ""


def _details(tool: Tool) -> list[str]:
    lines = []
    description, sentence = tool.description.strip(), first_sentence(tool.description)
    rest = description[len(sentence) :].strip() if description.startswith(sentence) else description
    if rest and " ".join(description.split()) != sentence:
        lines.append(rest)
    document = tool.document
    shown = _parameters(document, 1)
    if shown:
        lines.append("parameters:")
    for name, part, text, required in shown:
        rank = ", required" if required else _default(part, document) or ", optional"
        lines.append(f"  {name} ({text}{rank}){_described(part, document)}")
    if tool.returns is not None:
        returns = Document(tool.returns)
        fields = returns.properties(returns.root)
        lines.append(f"returns: {type_text(tool.returns, returns, nested=2)}{_described(tool.returns, returns)}")
        lines += [f"  {name}{text}" for name, part in fields.items() if (text := _described(part, returns))]
    if facts := _facts(tool):
        lines.append(f"notes: {', '.join(facts)}")
    return lines


def _facts(tool: Tool) -> list[str]:
    hints = tool.hints
    pairs = [
        (hints.read_only, "changes nothing"),
        (hints.destructive, "may delete or overwrite"),
        (hints.idempotent, "safe to repeat"),
        (hints.open_world, "reaches outside services"),
        (tool.policy == "approve", "a person must approve each call"),
        (tool.timeout is not None, f"timeout {tool.timeout} s"),
    ]
    return [text for true, text in pairs if true]


def _default(schema: Schema, document: Document) -> str:
    part = document.deref(schema)
    if not isinstance(part, dict) or part.get("default") is None:
        return ""
    text = _minified(part["default"])
    return f", default {text}" if len(text) <= 60 else ""


def _described(schema: Schema, document: Document) -> str:
    part = document.deref(schema)
    text = part.get("description") if isinstance(part, dict) else None
    return f": {' '.join(text.split())}" if isinstance(text, str) and text.strip() else ""


def _minified(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _without_narration(schema: dict[str, Any]) -> dict[str, Any]:
    if NARRATION not in (schema.get("properties") or {}):
        return schema
    kept = {name: part for name, part in schema["properties"].items() if name != NARRATION}
    changed = {**schema, "properties": kept}
    if "required" in schema:
        changed["required"] = [name for name in schema["required"] if name != NARRATION]
    return changed


class _Types:
    """One rendering: schemas that contain themselves end at their JSON type instead of never."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.open: set[int] = set()
        self.left = 400  # subschemas; a server's schema may be built to grow without end

    def text(self, schema: Schema, nested: int) -> str:
        schema = self.document.deref(schema)
        if schema is False:
            return "never"
        if not isinstance(schema, dict):
            return "any"
        if id(schema) in self.open or self.left <= 0:
            return _either(sorted(self.document.kinds(schema) or ())) or "any"
        self.left -= 1
        self.open.add(id(schema))
        try:
            return self.choices(schema) or self.union(schema, nested) or self.typed(schema, nested) or "any"
        finally:
            self.open.discard(id(schema))

    def choices(self, schema: dict[str, Any]) -> str:
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if not isinstance(values, list) or not values:
            return ""
        text = "|".join(_minified(value) for value in values)
        if len(values) <= _MOST_CHOICES and len(text) <= _LONGEST_CHOICES:
            return text
        return _either(sorted(self.document.kinds(schema) or ())) or "any"

    def union(self, schema: dict[str, Any], nested: int) -> str:
        for keyword in ("anyOf", "oneOf"):
            branches = schema.get(keyword)
            if isinstance(branches, list) and branches and not schema.get("properties"):
                return _either([self.text(branch, nested) for branch in branches[:_MOST_FIELDS]])
        parts = schema.get("allOf")
        if isinstance(parts, list) and "type" not in schema and not self.document.properties(schema):
            return next((text for part in parts if (text := self.text(part, nested)) != "any"), "any")
        return ""

    def typed(self, schema: dict[str, Any], nested: int) -> str:
        declared = schema.get("type")
        if isinstance(declared, list):
            return _either([self.one(str(kind), schema, nested) for kind in declared])
        if isinstance(declared, str):
            return self.one(declared, schema, nested)
        return _either([self.one(kind, schema, nested) for kind in sorted(self.document.kinds(schema) or ())]) or "any"

    def one(self, kind: str, schema: dict[str, Any], nested: int) -> str:
        if kind == "array":
            return self.array(schema, nested)
        if kind == "object":
            return self.object(schema, nested)
        return kind if kind in _PLAIN else "any"  # a server's result schema may say anything

    def array(self, schema: dict[str, Any], nested: int) -> str:
        if isinstance(schema.get("prefixItems"), list):
            return f"[{', '.join(self.text(part, nested) for part in schema['prefixItems'][:_MOST_FIELDS])}]"
        items = schema.get("items")
        if not isinstance(items, dict):
            return "array"
        text = self.text(items, nested)
        return f"({text})[]" if _has_bar(text) else f"{text}[]"

    def object(self, schema: dict[str, Any], nested: int) -> str:
        if nested <= 0:
            return "object"
        named, must = self.document.properties(schema), set(self.document.required(schema))
        if not named:
            rest = schema.get("additionalProperties")
            return f"{{[string]: {self.text(rest, nested - 1)}}}" if isinstance(rest, dict) and rest else "object"
        shown = list(named.items())[:_MOST_FIELDS]
        fields = [f"{_key(name)}{'' if name in must else '?'}: {self.text(part, nested - 1)}" for name, part in shown]
        return f"{{{', '.join(fields + ['…'] * (len(named) > len(shown)))}}}"


def _either(texts: list[str]) -> str:
    unique = list(dict.fromkeys(texts))
    return "any" if "any" in unique else "|".join(unique)


def _has_bar(text: str) -> bool:
    """Whether a `|` stands outside all brackets."""
    depth = 0
    for char in text:
        depth += (char in "{[(") - (char in "}])")
        if char == "|" and depth == 0:
            return True
    return False


def _key(name: str) -> str:
    return name if is_identifier(name) else f"[{_minified(name)}]"


_UNPRINTABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})


def _joins(text: str, at: int) -> bool:
    """Whether the characters before and after this place are drawn as one."""
    after, before = text[at], text[at - 1]
    return unicodedata.combining(after) != 0 or after in "\u200d\ufe0f" or before == "\u200d"
