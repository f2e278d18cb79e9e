"""Values for people: JSON-like, coloured, formatted for the terminal's width, and shortened if they are long."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from moonbox.compact import binary, clean, pieces
from moonbox.wording import counted, visible

if TYPE_CHECKING:
    from rich.pretty import Node
    from rich.text import Text

_STRING = r'"(?:[^"\\]|\\.)*"'
# The names of the groups are styles. Compiled when they are first used: a pipe needs no colours.
_COLOURS = (
    rf"(?P<blue>(?:{_STRING}|\[[^\]\n]*\])(?=: ))|(?P<green>{_STRING})|(?P<dim>… [\d,]+ more(?: \w+)?)"
    r"|(?P<magenta>\b(?:true|false|null)\b)|(?P<cyan>-?\b\d[\w.+-]*)"
)
_PARTS_OF_A_ROW = 20
"""So many values a row, on average, are looked at; further ones would hardly be shown."""


def pretty(value: Any, width: int, *, items: int = 30, chars: int = 500, rows: int = 60) -> tuple[Text, bool]:
    """A value on the screen, and whether something of it was left out.

    At most `rows` lines: of each table the first `items`, of each string the first `chars` characters.
    """
    from rich.text import Text

    tree = _PrintedTree(items, chars, rows * _PARTS_OF_A_ROW)
    lines = tree.node(value).render(width, indent_size=2).split("\n")
    hidden = len(lines) - rows
    if hidden > 0:
        lines[rows:] = [f"… {counted(hidden, 'more line')}"]
    text = Text("\n".join(lines))
    text.highlight_regex(_COLOURS)
    return text, tree.shortened or hidden > 0


def plain_text(value: Any) -> str:
    """The value for another program: text as it is, everything else as JSON on one line."""
    return value if isinstance(value, str) else "".join(pieces(value))


class _PrintedTree(Struct):
    """Makes the nodes that rich lays out: on one line where they fit, else one item to a line."""

    items: int
    chars: int
    left: int
    """How many more values are looked at."""
    shortened: bool = False

    def node(self, value: Any, key: str = "") -> Node:
        from rich.pretty import Node

        if not isinstance(value, list | dict):
            return Node(key, self._scalar(value))
        # Sorted, so that the same table always looks the same.
        members = (
            sorted(value.items(), key=lambda item: (isinstance(item[0], str), item[0]))
            if isinstance(value, dict)
            else ((None, item) for item in value)
        )
        children: list[Node] = []
        for name, item in members:
            if len(children) == self.items or self.left <= 0:
                self.shortened = True
                children.append(Node(value_repr=f"… {len(value) - len(children):,} more"))
                break
            self.left -= 1
            label = "" if name is None else _quoted(name) if isinstance(name, str) else f"[{name}]"
            children.append(self.node(item, label))
        if children:
            children[-1].last = True
        opener, closer = "[]" if isinstance(value, list) else "{}"
        return Node(key, "", opener, closer, opener + closer, children=children)

    def _scalar(self, value: Any) -> str:
        if isinstance(value, str):
            cut = len(value) - self.chars
            self.shortened = self.shortened or cut > 0
            note = f" … {counted(cut, 'more character')}" if cut > 0 else ""
            return _quoted(value[: self.chars]) + note
        if isinstance(value, bytes):
            return visible(binary(value), keep="")
        return json.dumps(value) if isinstance(value, bool | int | float | None) else visible(str(value))


def _quoted(text: str) -> str:
    return visible(json.dumps(clean(text), ensure_ascii=False), keep="")
