"""A Rhai script as the checker sees it.

The compiler runs in the worker, behind the wall; this is a small reader for the host, which takes time in proportion to
the script's length and gives up (None) on anything that it does not know.
"""

from __future__ import annotations

import re

from moonbox.languages import program as p
from moonbox.languages.rhai.parser import Reader
from moonbox.languages.rhai.scanner import Unreadable, tokenize

__all__ = ["rhai_program"]

_LONGEST_QUOTE = 100


def rhai_program(source: str) -> p.Program | None:
    """The script's program; None where it cannot be read."""
    try:
        tokens = tokenize(source)
        reader = Reader(tokens)
        body = reader.program()
    except (Unreadable, IndexError):
        return None
    starts = [0, *(match.end() for match in re.finditer("\n", source))]

    def place(at: int) -> tuple[int, int]:
        from bisect import bisect_right

        start = tokens[min(at, len(tokens) - 1)].start
        line = bisect_right(starts, start)
        return line, start - starts[line - 1] + 1

    def text(value: p.Expression) -> str:
        stop = reader.stops.get(id(value))
        if stop is None:
            return "…"
        quoted = " ".join(source[tokens[value.at].start : tokens[stop - 1].end].split())
        return quoted if len(quoted) <= _LONGEST_QUOTE else "…"

    defines = {name for statement in body.statements if type(statement) is p.Declare for name in statement.names}
    outline = p.Outline(
        body=body,
        assigned=reader.assigned,
        fields=frozenset(reader.fields),
        defines=frozenset(defines | reader.assigned.keys()),
        filled=reader.filled,
    )
    return p.Program(outline, place, text)
