"""The catalog: the hidden tools as text on the code tool's description, as detailed as a budget allows."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from moonbox.tools.signature import first_sentence, render

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from moonbox.languages.texts import Texts
    from moonbox.tools.tool import Tool
    from moonbox.tools.toolbox import Toolbox

__all__ = ["STEPS", "Catalog", "Detail", "make_catalog"]

Detail = Literal["schemas", "full", "signatures", "names", "search"]
STEPS: tuple[Detail, ...] = ("full", "signatures", "names", "search")
_LONGEST_LINE = 4000
"""Of one tool, before its signature is left to `docs.describe`: no tool may push all the others out of the budget."""
_MOST_NAMESPACES = 60
_SHARED_BY = 3
_MOST_OPENINGS = 4


@dataclass(frozen=True, slots=True)
class Catalog:
    """The text, and how detailed it is."""

    text: str
    detail: Detail
    tools: int
    tokens: int


def make_catalog(
    toolbox: Toolbox, texts: Texts, *, full_schemas: bool, budget: int | None, count: Callable[[str], int]
) -> Catalog:
    """The most detailed catalog within the budget of tokens. Its text depends on the tools alone, byte for byte."""
    tools = sorted(toolbox, key=lambda tool: (*_place(tool, toolbox), tool.path))
    if not tools:
        return Catalog("", "full", 0, 0)
    steps: tuple[Detail, ...] = ("schemas", *STEPS) if full_schemas else STEPS
    for step in steps:
        text = _written(step, tools, toolbox, texts)
        tokens = count(text)
        if budget is None or tokens <= budget or step == steps[-1]:
            return Catalog(text, step, len(tools), tokens)
    raise AssertionError


def _written(step: Detail, tools: list[Tool], toolbox: Toolbox, texts: Texts) -> str:
    match step:
        case "schemas" | "full" | "signatures":
            shown = tools if step == "signatures" else _told_apart(tools)
            lines = [_line(step, tool, texts.written(toolbox.alias(tool))) for tool in shown]
            return "\n".join([texts.catalog_title, *lines])
        case "names":
            return "\n".join([texts.names_title, *_by_namespace(tools, toolbox)])
        case "search":
            spaces = list(dict.fromkeys(_place(tool, toolbox)[0] or "tools" for tool in tools))
            more = len(spaces) - _MOST_NAMESPACES
            named = ", ".join(spaces[:_MOST_NAMESPACES]) + (f" and {more} more" if more > 0 else "")
            return texts.search_title.format(count=len(tools), namespaces=named)


def _line(step: Detail, tool: Tool, name: str) -> str:
    """One tool; whatever its description and schema hold, it begins one line and imitates no other."""
    written = render(tool, "signature" if step == "signatures" else "brief", name=name)
    if len(written) > _LONGEST_LINE:
        sentence = first_sentence(tool.description) if step != "signatures" else ""
        written = f"{name}(…)" + (f" — {sentence}" if sentence else "")
    line = f"- {_visible(written)}"
    if step != "schemas":
        return line
    schema = render(tool, "schema", name=name).rpartition("\n  schema: ")[2]
    return f"{line}\n  schema: {_visible(schema)}"


def _visible(text: str) -> str:
    """The text with what cannot be seen, or breaks or turns a line, spelled out as JSON would."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_spelled(char) if unicodedata.category(char) in _UNSEEN else char for char in text)


def _spelled(char: str) -> str:
    if char in _JOINERS:
        return char
    return "".join(f"\\u{unit:04x}" for unit in _units(char))


def _units(char: str) -> Iterable[int]:
    """A character's code in UTF-16, in which JSON counts."""
    data = char.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[place : place + 2]) for place in range(0, len(data), 2)]


def _told_apart(tools: list[Tool]) -> list[Tool]:
    """The tools without the sentences with which every tool of a namespace begins: they tell none from another."""
    spaces: dict[str | None, list[Tool]] = {}
    for tool in tools:
        spaces.setdefault(tool.namespace, []).append(tool)
    told: dict[str, str] = {}
    for group in spaces.values():
        told.update(zip((tool.path for tool in group), _without_opening(group), strict=True))
    return [tool if told[tool.path] == tool.description else tool.with_(description=told[tool.path]) for tool in tools]


def _without_opening(tools: list[Tool]) -> list[str]:
    texts = [tool.description for tool in tools]
    if len(texts) < _SHARED_BY:
        return texts
    for _ in range(_MOST_OPENINGS):
        opening = first_sentence(texts[0], len(texts[0]) + 1)
        flat = [" ".join(text.split()) for text in texts]
        rest = [text[len(opening) :].strip() for text in flat]
        alike = all(first_sentence(text, len(text) + 1) == opening for text in texts)
        if not alike or not all(rest) or not all(text.startswith(opening) for text in flat):
            break
        texts = rest
    return texts


def _by_namespace(tools: list[Tool], toolbox: Toolbox) -> list[str]:
    groups: dict[str, list[str]] = {}
    for tool in tools:
        space, name = _place(tool, toolbox)
        groups.setdefault(space, []).append(name)
    return [f"- {space + ': ' if space else ''}{', '.join(names)}" for space, names in groups.items()]


def _place(tool: Tool, toolbox: Toolbox) -> tuple[str, str]:
    """The namespace and the name as scripts write them."""
    space, _, name = toolbox.alias(tool).rpartition(".")
    return space, name


_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_JOINERS = frozenset("\u200c\u200d")  # parts of words and emoji
