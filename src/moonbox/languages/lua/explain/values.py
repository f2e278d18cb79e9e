"""A value that a runtime error speaks of: what Lua complains of, and how the script wrote it."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from moonbox.languages.lua.syntax.lexer import Token
    from moonbox.languages.lua.syntax.listing import Listing

_COMPLAINT = re.compile(
    r"attempt to (?P<action>call|index|perform arithmetic on|perform bitwise operation on|concatenate|get length of)"
    r" an? (?P<type>[^()\n]{1,80}?) value"
    r"(?: \((?P<role>global|local|method|field|upvalue|constant|for iterator) '(?P<name>[^'\n]{1,80})'\))?"
)
_CALL_STARTS = frozenset({"(", "{"})
_CLOSING = frozenset({")", "]", "}"})
_INDEX_STARTS = frozenset({".", "[", ":"})
_FARTHEST = 200
_LONGEST_CHAIN = 50
_MOST_VALUES = 50
_ROLES = frozenset({"global", "local", "upvalue", "field", "method"})


class Complaint(Struct, frozen=True):
    """What Lua says about a value that cannot do what was asked of it."""

    action: str
    type: str
    role: str = ""
    name: str = ""


class ScriptValue(Struct, frozen=True):
    """A value in the script: its words from `start` up to before `stop`; `index` is the word that names it."""

    listing: Listing
    start: int
    index: int
    stop: int

    @property
    def token(self) -> Token:
        return self.listing.tokens[self.index]

    @property
    def text(self) -> str:
        """The value as the script writes it, such as `order.items[1]`."""
        return self.listing.text(self.start, self.stop)

    @property
    def receiver(self) -> str:
        """What stands before the last dot, colon or bracket."""
        return self.listing.text(self.start, self.index - 1) if self.index > self.start else ""

    @property
    def root(self) -> str:
        return self.listing.tokens[self.start].text

    @property
    def path(self) -> list[str]:
        """The names of a plain dotted chain; empty when there are other things in it."""
        tokens = self.listing.tokens[self.start : self.stop]
        names, dots = tokens[::2], tokens[1::2]
        plain = all(token.kind == "name" for token in names) and all(token.text in (".", ":") for token in dots)
        return [token.text for token in names] if plain and len(tokens) % 2 else []

    @property
    def is_of_result(self) -> bool:
        """Whether it is read from what a call returned: `tools.list{}.items`, `f()[1]`."""
        return any(token.text in ("(", "{") for token in self.listing.tokens[self.start : self.index])

    def following(self) -> Token:
        return self.listing.tokens[self.stop]

    def arguments(self) -> list[str]:
        """The texts of the call's arguments; empty when it is not a call or they cannot be told."""
        following = self.following()
        if following.kind == "string":
            return [following.text]
        parts = self.listing.parts(self.stop) if following.text == "(" else None
        if following.text == "{":
            close = self.listing.closing(self.stop)
            return [self.listing.text(self.stop, close + 1)] if close is not None else []
        return [self.listing.text(*part) for part in parts or []]


def read_complaint(message: str) -> Complaint | None:
    match = _COMPLAINT.fullmatch(message)
    if match is None:
        return None
    return Complaint(match["action"], match["type"], match["role"] or "", match["name"] or "")


def operand_before(listing: Listing, index: int) -> str:
    """The text of the plain value (names, fields, indexes) that ends before that word."""
    last = index - 1
    if last < 0 or not (listing.tokens[last].kind == "name" or listing.tokens[last].text == "]"):
        return ""
    start = _start_of(listing.tokens, last)
    return listing.text(start, index) if listing.tokens[start].kind == "name" else ""


def _named(listing: Listing, span: range, complaint: Complaint) -> Iterator[ScriptValue]:
    tokens = listing.tokens
    for index in span:
        token, before = tokens[index], tokens[index - 1].text if index else ""
        match complaint.role:
            case "global" | "local" | "upvalue":
                if token.kind == "name" and token.text == complaint.name and before not in (".", ":"):
                    yield ScriptValue(listing, index, index, index + 1)
            case "method":
                if token.kind == "name" and token.text == complaint.name and before == ":":
                    yield ScriptValue(listing, _start_of(tokens, index), index, index + 1)
            case "field":
                yield from _fields(listing, index, complaint.name)


def _fields(listing: Listing, index: int, name: str) -> Iterator[ScriptValue]:
    tokens = listing.tokens
    token, before = tokens[index], tokens[index - 1].text if index else ""
    if token.kind == "name" and token.text == name and before == ".":
        yield ScriptValue(listing, _start_of(tokens, index), index, index + 1)
    elif before == "[" and index > 1 and _is_value_end(tokens[index - 2]):
        close = listing.closing(index - 1)
        if close is None:
            return
        literal = token.kind == "string" and token.text[1:-1] == name
        number = name == "integer index" and token.kind == "number" and close == index + 1
        unknown = name == "?"
        if literal or number or unknown:
            yield ScriptValue(listing, _start_of(tokens, index - 2), index, close + 1)


def _fits(value: ScriptValue, action: str) -> bool:
    following = value.following()
    if action == "call":
        return _is_called(following)
    if action == "index":
        return following.text in _INDEX_STARTS and following.kind == "op"
    return not (following.text == "=" and following.kind == "op")


def _is_called(token: Token) -> bool:
    return token.kind == "string" or (token.kind == "op" and token.text in _CALL_STARTS)


def _is_value_end(token: Token) -> bool:
    return token.kind in ("name", "string") or token.text in _CLOSING


def _start_of(tokens: Sequence[Token], last: int) -> int:
    """Where the value begins (`a.b[1]:c{}`) whose last word stands at `last`."""
    at = last
    for _ in range(_LONGEST_CHAIN):
        while tokens[at].text in _CLOSING:
            opener = _opener(tokens, at)
            if opener is None:
                return last
            if opener == 0 or not _is_value_end(tokens[opener - 1]):
                return opener
            at = opener - 1
        if at < 2 or tokens[at - 1].text not in (".", ":"):
            return at
        at -= 2
    return last


def _opener(tokens: Sequence[Token], close: int) -> int | None:
    depth = 0
    for index in range(close, max(-1, close - _FARTHEST), -1):
        if tokens[index].text in _CLOSING:
            depth += 1
        elif tokens[index].text in ("(", "[", "{"):
            depth -= 1
            if depth == 0:
                return index
    return None


class RuntimeFailure(Struct, frozen=True):
    """Where a runtime error happened and what is known there."""

    listing: Listing
    """The script in whose line it happened."""
    line: int | None
    message: str
    tools: Collection[str]
    """Their paths, such as `add` and `github.create_issue`."""
    names: Collection[str] = ()
    """Globals, as far as the engine told them."""
    earlier: Sequence[Listing] = ()
    """Scripts of earlier runs."""
    functions: tuple[str, ...] = ()
    """The functions that were under way, innermost first."""
    complaint: Complaint = Complaint("", "")
    """Without an action where the message is another."""
    value: ScriptValue | None = None

    @property
    def span(self) -> range:
        """Indexes of the words of its line; empty where they are not known."""
        return self.listing.span(self.line) if self.line is not None and self.listing.whole else range(0)

    def values_meant(self, complaint: Complaint) -> list[ScriptValue] | None:
        """The values on the line that the complaint can mean; None when that cannot be told."""
        if self.line is None or not self.listing.whole or complaint.role not in _ROLES:
            return None
        named = _named(self.listing, self.span, complaint)
        return list(islice((value for value in named if _fits(value, complaint.action)), _MOST_VALUES))

    def calls_of(self, name: str) -> list[ScriptValue]:
        """Calls on the line of a function whose last name is `name`."""
        listing, tokens = self.listing, self.listing.tokens
        return [
            ScriptValue(listing, _start_of(tokens, index), index, index + 1)
            for index in self.span
            if tokens[index].text == name and tokens[index].kind == "name" and _is_called(tokens[index + 1])
        ]

    def fields_of(self, name: str) -> list[ScriptValue]:
        """Fields (and methods) of that name on the line."""
        complaints = Complaint("index", "", "field", name), Complaint("index", "", "method", name)
        return [value for each in complaints for value in _named(self.listing, self.span, each)]

    def declarations(self, name: str) -> Iterator[Token]:
        yield from declared(self.listing, name)

    def is_local(self, name: str) -> bool:
        return next(self.declarations(name), None) is not None or self.parameter(name) is not None

    def parameter(self, name: str) -> Token | None:
        """Where a function of the script has a parameter of that name."""
        parsed, tokens = self.listing.parsed, self.listing.tokens
        return (
            next((tokens[index] for index in parsed.parameters if tokens[index].text == name), None) if parsed else None
        )

    def line_words(self) -> Sequence[Token]:
        return self.listing.words(self.line) if self.line is not None else ()


def declared(listing: Listing, name: str) -> Iterator[Token]:
    """Where a script declares a local of that name."""
    parsed = listing.parsed
    for index in parsed.locals if parsed else ():
        if listing.tokens[index].text == name:
            yield listing.tokens[index]
