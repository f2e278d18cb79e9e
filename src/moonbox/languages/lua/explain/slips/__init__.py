"""Slips of models that think in other languages: rules that look at where a script stops being Lua."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from moonbox.languages.lua.syntax.lexer import Token
from moonbox.languages.lua.syntax.parser import expression_end

if TYPE_CHECKING:
    from moonbox.languages.lua.syntax.listing import Listing
    from moonbox.languages.lua.syntax.parser import Failure

__all__ = ["Advice", "FailurePoint", "Rule"]

_NOTHING = Token("", "", 0, 0, -1, -1, 0)
_VALUE_ENDS = frozenset({")", "]", "}", "nil", "true", "false", "...", "end"})


class Advice(NamedTuple):
    """A hint, and the word that it is about where that is not the one at which Lua stopped."""

    text: str
    word: int


class FailurePoint(Struct, frozen=True):
    """A failure and the script around it. Indexes count words of the listing."""

    listing: Listing
    failure: Failure

    @property
    def tokens(self) -> list[Token]:
        return self.listing.tokens

    @property
    def index(self) -> int:
        return self.failure.index

    @property
    def statement(self) -> int:
        """Where the statement begins, or would begin if something could follow a return."""
        behind = self.failure.after_return and not self.follows_on_line()
        return self.failure.index if behind else self.failure.statement

    @property
    def token(self) -> Token:
        return self.tokens[self.failure.index]

    @property
    def text(self) -> str:
        return self.token.text

    @property
    def before(self) -> Token:
        return self.at(-1)

    @property
    def after(self) -> Token:
        return self.at(1)

    def at(self, offset: int) -> Token:
        """The word that many places from the failing one; an empty one outside of the script."""
        index = self.failure.index + offset
        return self.tokens[index] if 0 <= index < len(self.tokens) else _NOTHING

    def value(self, first: int) -> str:
        """The text of the expression that begins at that word; empty where none does."""
        stop = expression_end(self.tokens, first)
        return self.listing.text(first, stop) if stop else ""

    def follows_on_line(self) -> bool:
        """Whether the failing word stands on the same line as the one before it."""
        return self.before.last_line == self.token.line

    def joined(self, first: int, second: int) -> bool:
        """Whether two words (as offsets) stand together without a space."""
        return self.at(first).end == self.at(second).start

    def ends_value(self, offset: int) -> bool:
        """Whether the word there can be the end of a value."""
        token = self.at(offset)
        return token.kind in ("name", "number", "string") or token.text in _VALUE_ENDS

    def within(self, keyword: str) -> bool:
        """Whether a block of that keyword is open here."""
        return any(block.keyword == keyword for block in self.failure.blocks)

    def bracket(self) -> str:
        """The innermost open bracket of the statement, or nothing."""
        return self.tokens[self.failure.brackets[-1]].text if self.failure.brackets else ""

    def part_start(self) -> int:
        """Where the part between commas begins in which the failing word stands."""
        first = self.failure.brackets[-1] + 1
        commas = [index for index in self.listing.outer(first, self.index) if self.tokens[index].text in (",", ";")]
        return commas[-1] + 1 if commas else first


Rule = Callable[[FailurePoint], "Advice | str | None"]
