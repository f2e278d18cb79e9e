"""Facts that the checker states before a run and the explanations state after it, in the same words.

A fact says what is wrong; what to write instead is a form in the language's vocabulary. The checker shows the two as
message and hint, an explanation shows them as one hint.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from msgspec import Struct

from moonbox.suggest import did_you_mean, nearest

FACTS = {
    "alternative_constant": "{language} writes {word}, not {name}",
    "called_too_early": "{function} must make the call itself: here the tool is called before it",
    "colon_call": "tools are called with a dot, not with a colon",
    "comparator": "the function must return true only if a comes before b: use {sign}, not {sign}=",
    "decoded": "{what} is data already: use it without {function}",
    "f_string": "there are no f-strings: join the parts with ..",
    "first_element": "lists start at 1",
    "last_element": "negative indexes do not count from the end",
    "library_member": "{name} belongs to a library",
    "loop": "a loop needs ipairs around a list, and pairs around an object",
    "new_variable": "this '{name}' is a new variable in each round of the loop: the one outside does not change",
    "not_called": "'{tool}' is a tool that is not called",
    "tool_name": "'{name}' is not a global: tools are called through the table 'tools'",
}
LENGTHS = frozenset({"length", "len", "Length", "size", "count"})
"""Fields from which other languages read a length."""

_FEW = 12


class Fact(Struct, frozen=True):
    """What is wrong, and what to write."""

    message: str
    form: str = ""

    @property
    def hint(self) -> str | None:
        return f"write: {self.form}" if self.form else None

    def __str__(self) -> str:
        return f"{self.message}; write: {self.form}" if self.form else self.message


def filled(text: str, texts: Mapping[str, str]) -> str:
    """The text with the named texts in its holes."""
    return re.sub(r"\{(\w+)\}", lambda hole: texts.get(hole[1], hole[0]), text)


def by_word(table: Mapping[str, Any]) -> dict[str, Any]:
    """The table, and those in it, with an entry for each word: in a file, words that share an entry share a key."""
    return {
        word: by_word(entry) if isinstance(entry, dict) else entry
        for words, entry in table.items()
        for word in words.split() or [""]
    }


def unknown_tool(path: str, tools: Collection[str], written: Callable[[str], str], search: str) -> str:
    """The hint for a tool that does not exist, among the paths of those that do."""
    if not tools:
        return "there are no tools here"
    unusable = f"{path.rpartition('.')[0]}.unavailable"  # what a source that cannot be used has in place of its tools
    if unusable in tools:
        return f"this source of tools cannot be used now; {written(unusable)} says why"
    close = nearest_tools(path, tools) if path else []
    if close:
        return did_you_mean(list(map(written, close))) or ""
    if path and len(tools) <= _FEW:
        return f"the tools are: {', '.join(map(written, sorted(tools)))}"
    return f"no tool has that name; {search} finds tools"


def nearest_tools(path: str, tools: Collection[str]) -> list[str]:
    """Tools that were probably meant: of that name elsewhere, spelled alike, or with the same words."""
    last = path.rpartition(".")[2]
    same = sorted(known for known in tools if known != path and known.rpartition(".")[2] == last)
    if same:
        return same[:3]
    ends = {known.rpartition(".")[2]: known for known in sorted(tools, reverse=True)}
    return (
        nearest(path, tools, count=3)
        or [ends[end] for end in nearest(last, ends, count=3)]
        or nearest(path, tools, parts=True, count=3)
    )
