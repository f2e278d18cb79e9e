"""The catalog: the hidden tools as text on the code tool's description, as detailed as a budget allows.

    schemas      brief, and the JSON Schema of each tool's parameters
    full         types, signatures with what descriptions say of their fields, and sentences
    brief        types, signatures, first sentences
    signatures   types and signatures
    names        names by group; signatures of the groups that labels name or that were used most, as there is room
    search       how to search; the same signatures

A type is written once, and so are namespaces that have the same tools.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from moonbox.tools.signature import (
    Signatures,
    first_sentence,
    parameters_schema,
    shared_words,
    visible,
    worth_saying,
)

if TYPE_CHECKING:
    from moonbox.languages.language import Texts
    from moonbox.schema.tree import Schema
    from moonbox.tools.tool import Tool
    from moonbox.tools.toolbox import Toolbox

Detail = Literal["schemas", "full", "brief", "signatures", "names", "search"]
STEPS: tuple[Detail, ...] = ("full", "brief", "signatures", "names", "search")
_LONGEST_LINE = 4000
"""Of one tool or type, before it is left to `docs.describe`: no tool may push all the others out of the budget."""
_MOST_NAMESPACES = 60
_MOST_USED_GROUPS = 20
_SHARED_BY = 3
_MOST_OPENINGS = 4
BYTES_PER_TOKEN = 4


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
    uses: Mapping[str, int] | None = None,
    labels: Mapping[str, str] | None = None,
) -> Catalog:
    """The most detailed catalog within the budget of tokens. Its text depends on what is given alone, byte for byte.

    `shapes` are shown where tools do not say what they return. `leave_out` are paths of tools that the model is shown
    elsewhere. `uses` is how often tools were called before, `labels` are those of the conversation: where there is no
    room for all signatures, groups that a label names keep theirs, and then the tools that were used.
    """
    shown = [tool.with_shape((shapes or {}).get(tool.path)) for tool in toolbox if tool.path not in leave_out]
    tools = sorted(shown, key=lambda tool: (*_place(tool, toolbox), tool.path))
    if not tools:
        return Catalog("", "full", 0, 0)
    steps: tuple[Detail, ...] = ("schemas", *STEPS) if full_schemas else STEPS
    writer = _Writer(tools, toolbox, texts)
    for step in steps:
        text = writer.text(step)
        tokens = count(text)
        if budget is None or tokens <= budget or step == steps[-1]:
            break
    if budget is not None and step in ("names", "search"):
        text = writer.with_signatures(text, step, uses or {}, labels or {}, lambda text: count(text) <= budget)
    return Catalog(text, step, len(tools), count(text))


def rough_tokens(text: str) -> int:
    """About four bytes to a token: good enough to compare definitions, not to bill by."""
    return (len(text.encode("utf-8", "replace")) + BYTES_PER_TOKEN - 1) // BYTES_PER_TOKEN


class _Writer:
    """Writes tools of a toolbox at each step of detail."""

    def __init__(self, tools: list[Tool], toolbox: Toolbox, texts: Texts) -> None:
        self._tools, self._toolbox, self._texts = tools, toolbox, texts

    def text(self, step: Detail, with_signatures: Sequence[Tool] = ()) -> str:
        """All tools at that step; some of them with signatures where the others have none."""
        match step:
            case "names":
                return "\n".join([*self._some(with_signatures), *self._names(with_signatures)])
            case "search":
                return "\n".join([*self._some(with_signatures), self._search()])
        return "\n".join(self._detailed(step, *self._all))

    def with_signatures(
        self,
        text: str,
        step: Detail,
        uses: Mapping[str, int],
        labels: Mapping[str, str],
        fits: Callable[[str], bool],
    ) -> str:
        """The text with signatures of the first groups, or else of those of their tools that were used."""
        chosen: list[Tool] = []
        for group in self._first(uses, labels)[:_MOST_USED_GROUPS]:
            used = [tool for tool in group if uses.get(tool.path)]
            for more in (group, used):
                longer = self.text(step, [*chosen, *more])
                if fits(longer):
                    text, chosen = longer, [*chosen, *more]
                    break
        return text

    def _first(self, uses: Mapping[str, int], labels: Mapping[str, str]) -> list[list[Tool]]:
        """The tools of each group that a label names or that was used: those named first, then the most used."""
        named = {word for text in labels.values() for word in (text.lower(), *re.findall(r"\w+", text.lower()))}
        groups = self._groups(self._tools, lambda tool: tool.path)
        ranked = [
            (any(space.lower() in named for space in group.spaces), sum(uses.get(tool.path, 0) for tool in group.tools))
            for group in groups
        ]
        order = sorted(range(len(groups)), key=lambda at: ranked[at], reverse=True)
        return [groups[at].tools for at in order if any(ranked[at])]

    @cached_property
    def _all(self) -> tuple[list[_Group], Set[str], Signatures]:
        """What every step writes of all tools, read once."""
        return self._read(self._tools, facts=True)

    def _some(self, tools: Sequence[Tool]) -> list[str]:
        return self._detailed("brief", *self._read(tools, facts=False)) if tools else []

    def _read(self, tools: Sequence[Tool], *, facts: bool) -> tuple[list[_Group], Set[str], Signatures]:
        shown = _without_shared_openings(tools)
        # Alike are those that are written the same, but for their namespaces.
        groups = self._groups(
            shown, lambda tool: json.dumps([tool.name, tool.description, tool.parameters, tool.returns])
        )
        members = [tool for group in groups for tool in group.tools]
        return groups, shared_words(shown), Signatures(members, notation=self._texts.types, facts=facts)

    def _detailed(self, step: Detail, groups: list[_Group], shared: Set[str], read: Signatures) -> list[str]:
        signatures = read if step == "full" else read.without_facts()
        lines = [
            _line(step, tool, self._texts.written(f"{group.place}{_place(tool, self._toolbox)[1]}"), signatures, shared)
            for group in groups
            for tool in group.tools
        ]
        types = [line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…" for line in signatures.types()]
        return [*([self._texts.types_title, *types] if types else []), self._texts.catalog_title, *lines]

    def _names(self, without: Sequence[Tool]) -> list[str]:
        known = {tool.path for tool in without}
        groups = self._groups([tool for tool in self._tools if tool.path not in known], self._name)
        if not groups:
            return []
        grouped = next((group for group in groups if group.place), groups[0])
        first = grouped.tools[0]
        call = self._texts.call.format(name=self._texts.written(self._toolbox.alias(first)))
        lines = [f"- {group.title}{', '.join(map(self._name, group.tools))}" for group in groups]
        return [self._texts.names_title.format(call=call), *lines]

    def _search(self) -> str:
        spaces = [group.place.rstrip(".") or "tools" for group in self._groups(self._tools, self._name)]
        more = len(spaces) - _MOST_NAMESPACES
        named = ", ".join(spaces[:_MOST_NAMESPACES]) + (f" and {more} more" if more > 0 else "")
        call = self._texts.call.format(name=self._texts.written(self._toolbox.alias(self._tools[-1])))
        return self._texts.search_title.format(count=len(self._tools), namespaces=named, call=call)

    def _name(self, tool: Tool) -> str:
        return _place(tool, self._toolbox)[1]

    def _groups(self, tools: Sequence[Tool], key: Callable[[Tool], Hashable]) -> list[_Group]:
        """The tools by namespace; namespaces whose tools are alike by that key are one group."""
        spaces: dict[str, list[Tool]] = {}
        for tool in tools:
            spaces.setdefault(_place(tool, self._toolbox)[0], []).append(tool)
        groups: dict[Hashable, _Group] = {}
        for space, members in spaces.items():
            alike = (space == "", *(key(tool) for tool in members))
            groups.setdefault(alike, _Group(members)).spaces.append(space)
        return list(groups.values())


@dataclass(slots=True)
class _Group:
    """Tools of a namespace; `spaces` are all namespaces that have the same."""

    tools: list[Tool]
    spaces: list[str] = field(default_factory=list)

    @property
    def place(self) -> str:
        """What stands before the tools' names."""
        return f"{together(self.spaces)}." if self.spaces != [""] else ""

    @property
    def title(self) -> str:
        return f"{together(self.spaces)}: " if self.spaces != [""] else ""


def together(names: Sequence[str]) -> str:
    """Several names as one: `{acme, globex}_math`."""
    if len(names) == 1:
        return names[0]
    head = re.sub(r"[A-Za-z0-9]+$", "", _common_start(names))
    rest = [name[len(head) :] for name in names]
    tail = re.sub(r"^[A-Za-z0-9]+", "", _common_start([name[::-1] for name in rest])[::-1])
    return f"{head}{{{', '.join(name[: len(name) - len(tail)] for name in rest)}}}{tail}"


def _common_start(names: Sequence[str]) -> str:
    first, last = min(names), max(names)
    return first[: next((at for at, char in enumerate(first) if last[at] != char), len(first))]


def _line(step: Detail, tool: Tool, name: str, signatures: Signatures, shared: Set[str]) -> str:
    """One tool; whatever its description and schema hold, it begins one line and imitates no other."""
    words = "" if step == "signatures" else worth_saying(tool, facts=step == "full", shared=shared)
    line = f"- {signatures.signature(tool, name)}{words}"
    if len(line) > _LONGEST_LINE:
        line = f"- {signatures.signature(tool, name, result=False)}{words}"
    if len(line) > _LONGEST_LINE:
        line = f"- {visible(name)}(…){words}"
    return f"{line}\n  schema: {parameters_schema(tool)}" if step == "schemas" else line


def _without_shared_openings(tools: Sequence[Tool]) -> list[Tool]:
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


def _place(tool: Tool, toolbox: Toolbox) -> tuple[str, str]:
    """The namespace and the name as scripts write them."""
    space, _, name = toolbox.alias(tool).rpartition(".")
    return space, name
