"""The code tool and its catalog: the hidden tools as text on its description, as detailed as a budget allows.

Also the choice between the code tool with its catalog, direct definitions of all tools, and both with a lean code tool.
"""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from moonbox.codemode.definitions import Definition, in_format
from moonbox.tools.document import Document
from moonbox.tools.signature import first_sentence, render, type_text
from moonbox.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence

    from moonbox.codemode.routing import Routes
    from moonbox.config.sections import CodeModeSettings
    from moonbox.languages.language import Texts
    from moonbox.limits import Limits
    from moonbox.tools.document import Schema
    from moonbox.tools.learned import ResultSize
    from moonbox.tools.tool import Tool
    from moonbox.tools.toolbox import Toolbox

Detail = Literal["schemas", "full", "signatures", "names", "search"]
STEPS: tuple[Detail, ...] = ("full", "signatures", "names", "search")
_LONGEST_LINE = 4000
"""Of one tool, before its signature is left to `docs.describe`: no tool may push all the others out of the budget."""
_MOST_NAMESPACES = 60
_SHARED_BY = 3
_MOST_OPENINGS = 4
_BYTES_PER_TOKEN = 4
LEAN_TOKENS = 250
"""The most that the definition of a lean code tool takes."""
_ENOUGH_RESULTS = 3
"""Of one tool, before its results count as known."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """The text, and how detailed it is."""

    text: str
    detail: Detail
    tools: int
    tokens: int


def make_catalog(
    toolbox: Toolbox,
    texts: Texts,
    *,
    full_schemas: bool,
    budget: int | None,
    count: Callable[[str], int],
    shapes: Mapping[str, Schema] | None = None,
    leave_out: Container[str] = (),
) -> Catalog:
    """The most detailed catalog within the budget of tokens. Its text depends on the tools alone, byte for byte.

    `shapes` are shown as the results of tools that do not say what they return. `leave_out` are paths of tools that
    the model is shown elsewhere.
    """
    shown = [_with_shape(tool, shapes or {}) for tool in toolbox if tool.path not in leave_out]
    tools = sorted(shown, key=lambda tool: (*_place(tool, toolbox), tool.path))
    if not tools:
        return Catalog("", "full", 0, 0)
    steps: tuple[Detail, ...] = ("schemas", *STEPS) if full_schemas else STEPS
    for step in steps:
        text = _written(step, tools, toolbox, texts)
        tokens = count(text)
        if budget is None or tokens <= budget or step == steps[-1]:
            return Catalog(text, step, len(tools), tokens)
    raise AssertionError


def _with_shape(tool: Tool, shapes: Mapping[str, Schema]) -> Tool:
    shape = shapes.get(tool.path) if tool.returns is None else None
    return tool if shape is None else tool.with_(returns=shape)


@dataclass(frozen=True, slots=True)
class Choice:
    """Which way the tools are shown, and why."""

    code: bool
    """Whether the code tool is offered."""
    code_tokens: int
    """What goes with every request in code mode: the code tool, its catalog, the direct tools and the system prompt."""
    direct_tokens: int
    """The same with every tool direct: their definitions."""
    reason: str
    both: bool = False
    """Whether every tool is direct too, beside a lean code tool."""
    both_tokens: int = 0
    """The same with both."""


def choose(
    mode: str,
    with_code: Sequence[Definition],
    all_direct: Sequence[Definition],
    lean: Definition,
    *,
    prompt: str,
    hidden: Toolbox,
    sizes: Mapping[str, ResultSize],
    count: Callable[[str], int],
) -> Choice:
    """Take what the mode says. `hidden` is what scripts would reach, `sizes` what is known of results.

    `auto` takes the code tool where its definition is smaller, and both otherwise. What is known of results decides
    from then on: one that takes more than all of code mode belongs into a script; where every result is smaller than
    the lean code tool, and no script ever asked for one, the code tool is not worth its place.
    """
    code_tokens = count(_sent(with_code)) + (count(prompt) if prompt else 0)
    direct_tokens = count(_sent(all_direct))
    lean_tokens = count(_sent([lean]))
    known = [sizes[tool.path] for tool in hidden if tool.path in sizes and sizes[tool.path].results >= _ENOUGH_RESULTS]
    tokens = [size.mean / _BYTES_PER_TOKEN for size in known]
    code, both = False, False
    if mode == "never":
        why = "mode is never"
    elif mode == "always" or not all_direct:
        code, why = True, f"mode is {mode}"
    elif not len(hidden):
        why = "no tool may be called from scripts"
    elif code_tokens < direct_tokens:
        code, why = True, "the code tool is smaller"
    elif max(tokens, default=0) > code_tokens:
        code, why = True, f"results are large, up to {counted(round(max(tokens)), 'token')}"
    elif len(known) == len(hidden) and max(tokens) < lean_tokens and not any(size.scripted for size in known):
        why = "results are small, and no script asked for them"
    else:
        code, both, why = True, True, "direct definitions are smaller, and a lean code tool is beside them"
    both_tokens = direct_tokens + lean_tokens
    costs = (
        f"{counted(code_tokens, 'token')} with the code tool, {direct_tokens:,} with every tool direct, "
        f"{both_tokens:,} with both"
    )
    return Choice(code, code_tokens, direct_tokens, f"{why} ({costs})", both, both_tokens)


def rough_tokens(text: str) -> int:
    """About four bytes to a token: good enough to compare definitions, not to bill by."""
    return (len(text.encode("utf-8", "replace")) + _BYTES_PER_TOKEN - 1) // _BYTES_PER_TOKEN


def with_results(
    definition: Definition,
    tools: Iterable[Tool],
    texts: Texts,
    shapes: Mapping[str, Schema],
    count: Callable[[str], int],
) -> Definition:
    """A lean code tool that also says what the tools return, as far as it is known and there is room."""
    results: list[str] = []
    described = definition
    for tool in tools:
        schema = tool.returns if tool.returns is not None else shapes.get(tool.path)
        text = "" if schema is None else type_text(schema, Document(schema), nested=2)
        if "{" not in text:
            continue  # no field to know
        results.append(_visible(f"{tool.path} {text}"))
        line = texts.lean_results.format(results="; ".join(results))
        longer = replace(definition, description=f"{definition.description}\n{line}")
        if count(_sent([longer])) > LEAN_TOKENS:
            break
        described = longer
    return described


def _written(step: Detail, tools: list[Tool], toolbox: Toolbox, texts: Texts) -> str:
    match step:
        case "schemas" | "full" | "signatures":
            shown = tools if step == "signatures" else _without_shared_openings(tools)
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


def _without_shared_openings(tools: list[Tool]) -> list[Tool]:
    """The tools without the sentences with which every tool of a namespace begins: they tell none from another."""
    spaces: dict[str | None, list[Tool]] = {}
    for tool in tools:
        spaces.setdefault(tool.namespace, []).append(tool)
    descriptions: dict[str, str] = {}
    for group in spaces.values():
        descriptions.update(zip((tool.path for tool in group), _without_opening(group), strict=True))
    return [
        tool if descriptions[tool.path] == tool.description else tool.with_(description=descriptions[tool.path])
        for tool in tools
    ]


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


def _sent(definitions: Sequence[Definition]) -> str:
    """The definitions as a request carries them; the formats differ by a few characters for each tool."""
    return json.dumps(in_format(definitions, "anthropic"), ensure_ascii=False, separators=(",", ":"))


_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_JOINERS = frozenset("\u200c\u200d")  # parts of words and emoji


class CodeTool:
    """The description of the tool that takes scripts."""

    def __init__(
        self, settings: CodeModeSettings, texts: Texts, routes: Routes, limits: Limits, count: Callable[[str], int]
    ) -> None:
        self._settings, self._texts, self._routes, self._limits, self._count = settings, texts, routes, limits, count

    @property
    def name(self) -> str:
        return self._settings.name or self._texts.name

    @property
    def parameter(self) -> str:
        """The name of its one parameter."""
        return self._settings.parameter or self._texts.parameter

    def prompt(self) -> str:
        """The addition to the system prompt."""
        if self._settings.system_prompt is not None:
            return self._settings.system_prompt
        reached = len(self._routes.hidden) > 0
        chosen = self._texts.system_prompt if reached else self._texts.system_prompt_without_tools
        return chosen.format(name=self.name)

    def definition(self, catalog: Catalog) -> Definition:
        """With the catalog of what scripts reach."""
        texts, hidden, kept = self._texts, self._routes.hidden, self._routes.kept
        own = self._settings.description
        parts = [texts.description if own is None else own]
        if len(hidden):
            parts += [texts.with_tools, *self._limits_text()] if own is None else []
            parts += [catalog.text] if catalog.tools else []
        if kept:
            names = ", ".join(sorted(texts.written(hidden.alias(path)) for path in kept))
            parts.append(texts.also_in_scripts.format(names=names))
        parameter = {"type": "string", "description": texts.parameter_description}
        return self._make("\n".join(parts), parameter, read_only=not len(hidden))

    def lean(self, everything: Mapping[str, Tool], shapes: Mapping[str, Schema]) -> Definition:
        """Beside direct definitions of every tool, by their names: these say the rest."""
        texts, hidden = self._texts, self._routes.hidden
        parts = [texts.lean if self._settings.description is None else self._settings.description]
        if any(tool.namespace for tool in hidden):
            parts.append(texts.lean_namespaces)
        if direct := [name for name, tool in everything.items() if tool.path not in hidden]:
            parts.append(texts.not_in_scripts.format(names=", ".join(direct)))
        definition = self._make(" ".join(parts), {"type": "string"}, read_only=False)
        return with_results(definition, hidden, texts, shapes, self._count)

    def _make(self, description: str, parameter: dict[str, Any], *, read_only: bool) -> Definition:
        schema = {
            "type": "object",
            "properties": {self.parameter: parameter},
            "required": [self.parameter],
            "additionalProperties": False,
        }
        annotations = {"readOnlyHint": read_only}
        return Definition(self.name, description, schema, annotations=annotations, overflow=self.parameter)

    def _limits_text(self) -> list[str]:
        limits = self._limits
        calls = [] if limits.max_tool_calls is None else [f"{limits.max_tool_calls} tool calls"]
        time = [] if limits.timeout is None else [f"{limits.timeout:g} seconds"]
        what = " and ".join([*calls, *time])
        return [self._texts.limits.format(what=what)] if what and self._texts.limits else []
