"""The vocabulary of Rhai: symbols, keywords, reserved words, precedences."""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "ASSIGNMENTS",
    "KEYWORDS",
    "KEYWORD_FOR_PARAMETER",
    "NEXT_IS_UNARY",
    "PRECEDENCE",
    "RESERVED",
    "Pos",
    "Token",
    "is_identifier",
    "is_name",
    "words",
]


class Pos(NamedTuple):
    """A place in the script, both counted from 1."""

    line: int
    column: int


class Token:
    """One token. `kind` is the symbol or keyword itself, or one of int, float, char, string, interpolated, name,
    reserved, error, end; unary plus and minus are "+u" and "-u"."""

    __slots__ = ("kind", "pos", "value")

    def __init__(self, kind: str, pos: Pos | None, value: str | int | float = "") -> None:
        self.kind, self.pos, self.value = kind, pos, value

    def __str__(self) -> str:
        """The token as messages show it."""
        if self.kind == "string":
            return f'"{self.value}"'
        if self.kind == "interpolated":
            return "string"
        if self.kind == "end":
            return "{EOF}"
        if self.kind in ("int", "float", "char", "name", "reserved", "error"):
            return str(self.value)
        return self.kind.removesuffix("u") if self.kind in ("+u", "-u") else self.kind


def words(text: str) -> list[str]:
    """A table written as one line of text."""
    return text.split()


KEYWORDS = frozenset(
    words(
        "true false let const if else switch do while until loop for in fn continue break return throw try catch "
        "private import export as"
    )
)

# Each reserved word or symbol, and how it may be called all the same: "" not at all, "f" as a function, "m" as a
# method too.
RESERVED: dict[str, str] = {
    **dict.fromkeys(
        words(
            "use case async public package super var protected spawn shared is sync static default this thread yield "
            "new match await null with void nil module go goto"
        ),
        "",
    ),
    **dict.fromkeys(words("print is_def_var is_def_fn eval debug Fn"), "f"),
    **dict.fromkeys(words("curry is_shared call type_of"), "m"),
    **dict.fromkeys(words("? # === !== #! ~ !. := ... @ <- -- <| $ -> |> ::< ++ :; *) (*"), ""),
}

PRECEDENCE: dict[str, int] = {
    **dict.fromkeys(("||", "^", "|"), 30),
    **dict.fromkeys(("&&", "&"), 60),
    **dict.fromkeys(("==", "!="), 90),
    **dict.fromkeys(("in", "!in"), 110),
    **dict.fromkeys(("<", "<=", ">", ">="), 130),
    "??": 135,
    **dict.fromkeys(("..", "..="), 140),
    **dict.fromkeys(("+", "-"), 150),
    **dict.fromkeys(("*", "/", "%"), 180),
    "**": 190,
    **dict.fromkeys(("<<", ">>"), 210),
}

ASSIGNMENTS = frozenset(("+=", "-=", "*=", "/=", "<<=", ">>=", "%=", "**=", "&=", "|=", "^="))

# After one of these a plus or minus is a sign, not an operator.
NEXT_IS_UNARY = frozenset(
    words(
        "; : , ?? .. ..= { ( [ + += +u - -= -u * *= / /= % %= ** **= << <<= >> >>= = == != < > ! <= >= | & if while "
        "until in !in && &= || |= ^ ^= return throw ?[ error"
    )
)

# Where the name of a parameter is expected, these say "a variable is expected".
KEYWORD_FOR_PARAMETER = KEYWORDS - {"switch"}


def is_identifier(text: str) -> bool:
    """Whether this may name a variable: letters, digits and underscores, the first of which is not a digit."""
    return text.isascii() and text.lstrip("_")[:1].isalpha() and text.replace("_", "a").isalnum()


def is_name(text: str) -> bool:
    """Whether a script may define a function of this name."""
    return is_identifier(text) and text not in KEYWORDS and text not in RESERVED
