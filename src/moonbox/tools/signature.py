"""A tool's schema as text for a model, at named levels of detail.

    name        add
    signature   add(a: number, b?: string) -> {id: integer, title: string}
    brief       the signature — first sentence of the description
    full        brief, the types, the whole description, what is said of parameters and of the result, hints
    schema      brief, and the JSON Schema of the parameters, minified

The text depends on the tools alone, byte for byte, so that prompt caches hold. Whatever a tool's description and schema
contain, it cannot begin a line of its own, except behind `> `.
"""

from __future__ import annotations

import copy
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from typing import TYPE_CHECKING, Literal, get_args

from moonbox import wording
from moonbox.errors import UsageError
from moonbox.languages.language import SHORT, Notation
from moonbox.schema.facts import SENTENCE, sentences, telling
from moonbox.schema.tree import NARRATION, SchemaNode, without_properties
from moonbox.schema.type_reader import Reader, minified, singular, type_text
from moonbox.schema.types import Template, TypeBook, bare, joined
from moonbox.suggest import unknown
from moonbox.tools.paging import paging_form
from moonbox.tools.search import words
from moonbox.wording import one_line

if TYPE_CHECKING:
    from moonbox.tools.tool import Tool

Level = Literal["name", "signature", "brief", "full", "schema"]
LEVELS: tuple[str, ...] = get_args(Level)

LONGEST_SENTENCE = 140
_FEW = 4


def render(tool: Tool, level: Level = "brief", *, name: str | None = None, notation: Notation = SHORT) -> str:
    """The tool at that level of detail; `name` replaces its path, where a script writes it differently."""
    shown = tool.path if name is None else name
    signatures = Signatures([tool], notation=notation)
    match level:
        case "name":
            return shown
        case "signature":
            return signatures.alone(tool, shown)
        case "brief":
            return signatures.alone(tool, shown) + sentence(tool)
        case "full":
            return "\n".join(described(tool, Signatures([tool], notation=notation, facts_of_results=True), shown))
        case "schema":
            return f"{signatures.alone(tool, shown)}{sentence(tool)}\n  schema: {parameters_schema(tool)}"
    raise UsageError(unknown("level", str(level), LEVELS))


class Signatures:
    """Signatures of several tools, in which each type that they share is written once."""

    def __init__(
        self, tools: Iterable[Tool], *, notation: Notation = SHORT, facts: bool = False, facts_of_results: bool = False
    ) -> None:
        tools = list(tools)
        names = {tool.name for tool in tools}
        self._book = TypeBook(taken=names, notation=notation)
        self._parameters: dict[str, Template] = {}
        self._results: dict[str, Template] = {}
        for tool in tools:
            self._parameters[tool.path] = self._book.enter(_parameters(tool, self._book, facts=facts))
            if tool.returns is not None:
                reader = Reader(self._book, facts=facts or facts_of_results)
                self._results[tool.path] = self._book.enter(reader.read(tool.returned, _thing(tool.name)))

    def without_facts(self) -> Signatures:
        """The same without what descriptions say, as if no type were written yet."""
        other = copy.copy(self)
        other._book = self._book.without_facts()
        other._parameters = {path: bare(template) for path, template in self._parameters.items()}
        other._results = {path: bare(template) for path, template in self._results.items()}
        return other

    def signature(self, tool: Tool, name: str, *, result: bool = True) -> str:
        """`name(a: number) -> Order`, and `-> …` in place of a result that is left out."""
        text = name + self._book.text(self._parameters[tool.path])
        if tool.path in self._results:
            text += f" -> {self._book.text(self._results[tool.path]) if result else '…'}"
        return visible(text) + ("" if paging_form(tool) is None else " -- paged")

    def types(self) -> list[str]:
        """`Order = {…}` for each type that the signatures since the last time name."""
        return [visible(line) for line in self._book.definitions()]

    def alone(self, tool: Tool, name: str) -> str:
        """The signature and its types on one line."""
        text = self.signature(tool, name)
        types = self.types()
        return f"{text} where {', '.join(types)}" if types else text


def described(tool: Tool, signatures: Signatures, name: str) -> list[str]:
    """The lines of a tool's full documentation."""
    lines = [signatures.signature(tool, name) + sentence(tool), *signatures.types()]
    description, first = tool.description.strip(), first_sentence(tool.description)
    rest = description[len(first) :].strip() if description.startswith(first) else description
    if rest and one_line(description) != first:
        lines += [f"> {one_line(line)}".rstrip() for line in rest.splitlines()]
    said = {name: _said(part) for name, part in _shown(tool.accepted)}
    parameters = [f"  {visible(name)}: {'. '.join(texts)}" for name, texts in said.items() if texts]
    lines += ["parameters:", *parameters] if parameters else []
    if tool.returns is not None:
        about = [text for text in [_description(tool.returned)] if text]
        fields = {name: _description(part) for name, part in tool.returned.fields.items()}
        about += [f"{visible(name)}: {text}" for name, text in fields.items() if text]
        lines += ["returns:", *(f"  {text}" for text in about)] if about else []
    if notes := _notes(tool):
        lines.append(f"notes: {', '.join(notes)}")
    return lines


def sentence(tool: Tool) -> str:
    """` — ` and the first sentence of the description."""
    first = first_sentence(tool.description)
    return f" — {visible(first)}" if first else ""


def worth_saying(tool: Tool, *, facts: bool = False, shared: Set[str] = frozenset()) -> str:
    """The same for a list of many tools: without a sentence that only repeats the signature's names.

    With facts, also with later sentences that tell what to know. `shared` words (see `shared_words`) say nothing
    either, but as the first.
    """
    first = first_sentence(tool.description)
    stems, called = words(first), set(words(tool.path))
    known = called.union(shared, *map(words, [*tool.accepted.fields, *tool.returned.fields]))
    said = [] if not first or (stems and stems[0] in called and known >= set(stems)) else [first]
    if facts:
        later = [text for text in sentences(one_line(tool.description[:_LONGEST_LOOKED_AT]))[1:] if telling(text)]
        said += [text for text in later if len(text) <= LONGEST_SENTENCE][:_MOST_SENTENCES]
    return f" — {visible(' '.join(said))}" if said else ""


def shared_words(tools: Sequence[Tool]) -> Set[str]:
    """Words in the first sentences of a quarter of the tools and more: they tell none from another."""
    counts = Counter(stem for tool in tools for stem in set(words(first_sentence(tool.description))))
    return {stem for stem, count in counts.items() if count >= max(_FEW, len(tools) / 4)}


def parameters_schema(tool: Tool) -> str:
    """The JSON Schema of a tool's parameters on one line."""
    return visible(minified(without_properties(tool.parameters, {NARRATION})))


def first_sentence(text: str, longest: int = LONGEST_SENTENCE) -> str:
    """The first sentence on one line, cut with `…` where it is longer."""
    paragraph = text.strip().split("\n\n")[0]
    line = " ".join("".join(" " if unicodedata.category(char) in _UNPRINTABLE else char for char in paragraph).split())
    end_of_sentence = re.search(SENTENCE, line)
    if end_of_sentence is not None:
        line = line[: end_of_sentence.end()]
    if len(line) <= longest:
        return line
    end = longest - 1
    while end > 0 and _joins(line, end):  # never between a letter and its accent, or inside a joined emoji
        end -= 1
    return line[:end].rstrip() + "…"


def parameter_list(root: SchemaNode) -> str:
    """`employee_id* (integer), limit (integer, default 10)`, the required ones starred."""
    must = set(root.required)
    return ", ".join(
        f"{name}{'*' if name in must else ''} ({type_text(part, nested=0)}{_default(part)})"
        for name, part in _shown(root)
    )


def visible(text: str) -> str:
    """The text with what cannot be seen, or breaks or turns a line, spelled out as JSON would."""
    return wording.visible(text, keep=_JOINERS, as_json=True)


def _shown(root: SchemaNode) -> list[tuple[str, SchemaNode]]:
    """Each parameter that is shown, and its schema."""
    return [(name, root.fields[name]) for name in root.positional_order() if name != NARRATION]


def _parameters(tool: Tool, book: TypeBook, *, facts: bool) -> Template:
    must = set(tool.accepted.required)
    reader = Reader(book, facts=facts)
    fields = [reader.parameter(name, part, required=name in must) for name, part in _shown(tool.accepted)]
    return ("(", *joined(", ", fields), ")")


def _thing(name: str) -> str:
    """What a tool of that name gives: the order of `get_order`."""
    words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name)
    return singular("_".join(words[1:] or words))


def _said(node: SchemaNode) -> list[str]:
    return [said for said in (_default(node).removeprefix(", "), _description(node)) if said]


def _notes(tool: Tool) -> list[str]:
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


def _default(node: SchemaNode) -> str:
    default = node.says.get("default")
    text = visible(minified(default))
    return f", default {text}" if default is not None and len(text) <= 60 else ""


def _description(node: SchemaNode) -> str:
    return one_line(node.word("description"))


_MOST_SENTENCES = 2
_LONGEST_LOOKED_AT = 2000
_UNPRINTABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"  # parts of words and emoji


def _joins(text: str, at: int) -> bool:
    """Whether the characters before and after this place are drawn as one."""
    after, before = text[at], text[at - 1]
    return unicodedata.combining(after) != 0 or after in "\u200d\ufe0f" or before == "\u200d"
