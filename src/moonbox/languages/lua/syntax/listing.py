"""A script's source as hints look at it: its lines, its words, and its own text between two words."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from operator import attrgetter
from typing import TypeVar

from moonbox.languages.lua.syntax.lexer import Token, Words
from moonbox.languages.lua.syntax.parser import Parsed, parse
from moonbox.languages.program import Expression, Node, Outline, Program, children, inside

MOST_READ = 64_000
MOST_WORDS = 12_000
"""Characters and words that are read."""
LONGEST_QUOTE = 100
_NEWLINE = re.compile(r"\r\n|\n\r|\n|\r")
_Kind = TypeVar("_Kind", bound=Node)
_BLANK = re.compile(r"\s+")


def lua_program(source: str) -> Program | None:
    """The script's program; None where it is not Lua, or too long or too deep to follow."""
    listing = Listing(source)
    return Program(listing.outline, listing.place, listing.text_of) if listing.outline is not None else None


class Listing:
    """One script's source."""

    def __init__(self, source: str) -> None:
        self._source = source

    @cached_property
    def lines(self) -> list[str]:
        return _NEWLINE.split(self._source)

    def line(self, number: int | None) -> str | None:
        """The text of a line, without its end."""
        return self.lines[number - 1] if number is not None and 1 <= number <= len(self.lines) else None

    @cached_property
    def read(self) -> Words:
        """Its words as the parser looks at them."""
        return Words(self._source[:MOST_READ], MOST_WORDS)

    @property
    def tokens(self) -> list[Token]:
        """Its words with their places."""
        return self.read.tokens

    @property
    def whole(self) -> bool:
        """Whether all of it is read into words."""
        return len(self._source) <= MOST_READ and len(self.read.texts) <= MOST_WORDS

    @cached_property
    def parsed(self) -> Parsed | None:
        """What the parser makes of it; None when it is too long or too deep to say."""
        return parse(self.read) if self.whole else None

    @cached_property
    def parsed_as_value(self) -> Parsed | None:
        """The same when parsed as an expression, as a script may be."""
        return parse(self.read, as_value=True) if self.whole else None

    @cached_property
    def outline(self) -> Outline | None:
        """What the script is made of; None where it is not Lua, or too long or too deep to follow."""
        parsed = self.parsed
        if parsed is not None and parsed.outline is None:
            parsed = self.parsed_as_value
        return parsed.outline if parsed is not None else None

    @cached_property
    def nodes(self) -> list[Node]:
        """Everything in it, in the order of the source."""
        return list(inside(self.outline.body)) if self.outline is not None else []

    def all(self, kind: type[_Kind]) -> Iterator[_Kind]:
        """The nodes of one kind."""
        return (node for node in self.nodes if isinstance(node, kind))

    @cached_property
    def _users(self) -> dict[int, Node]:
        return {id(child): node for node in self.nodes for child in children(node)}

    def around(self, node: Node) -> Iterator[Node]:
        """What a node is a part of, from the inside out."""
        while (user := self._users.get(id(node))) is not None:
            yield user
            node = user

    def span(self, line: int) -> range:
        """Indexes of the words that begin on that line."""
        first, stop = (bisect_left(self.tokens, number, key=attrgetter("line")) for number in (line, line + 1))
        return range(first, min(stop, len(self.tokens) - 1))

    def words(self, line: int | None) -> Sequence[Token]:
        """The words of one line, as far as they were read."""
        span = self.span(line) if line is not None else range(0)
        return self.tokens[span.start : span.stop]

    def text(self, first: int, stop: int) -> str:
        """The script's own text from one word up to before another, on one line and not too long."""
        start, end = (self.tokens[first].start, self.tokens[stop - 1].end) if stop > first else (0, 0)
        if end - start > 4 * LONGEST_QUOTE:
            return "…"
        text = _BLANK.sub(" ", self._source[start:end]).strip()
        return text if len(text) <= LONGEST_QUOTE else "…"

    def place(self, index: int) -> tuple[int, int]:
        """The line and column of a word."""
        token = self.tokens[min(index, len(self.tokens) - 1)]
        return token.line, token.column

    def text_of(self, value: Expression) -> str:
        """The script's own text of a value, as far as its end is known."""
        return self.text(value.at, value.stop) if value.stop else "…"
