"""What the parser carries along: the token stream, nesting levels, the variables in scope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from moonbox.languages.rhai.errors import RhaiSyntaxError
from moonbox.languages.rhai.syntax.hints import hint_for
from moonbox.languages.rhai.syntax.lexer import Lexer
from moonbox.languages.rhai.syntax.names import Names

if TYPE_CHECKING:
    from moonbox.languages.rhai.syntax.nodes import Function
    from moonbox.languages.rhai.syntax.tokens import Pos, Token

__all__ = ["ParseLimits", "Scope", "Settings", "Stream", "fail"]


@dataclass(frozen=True, slots=True)
class ParseLimits:
    """What a script's text may hold. None means no limit of its own."""

    expr_depth: int = 64
    function_expr_depth: int = 32
    max_string: int | None = None
    max_array: int | None = None
    max_map: int | None = None
    max_functions: int | None = None
    max_variables: int | None = None


class Settings:
    """What holds at one place of the text. Never changed, only copied."""

    __slots__ = ("at_top", "breakable", "expression_only", "in_function", "level", "max_level", "pos")

    def __init__(
        self,
        max_level: int,
        *,
        pos: Pos | None = None,
        level: int = 0,
        at_top: bool = False,
        in_function: bool = False,
        breakable: bool = False,
        expression_only: bool = False,
    ) -> None:
        self.max_level, self.pos, self.level = max_level, pos, level
        self.at_top, self.in_function, self.breakable = at_top, in_function, breakable
        self.expression_only = expression_only

    def at(self, pos: Pos | None) -> Settings:
        """The same, at another place."""
        return self._copy(pos, self.level)

    def up(self, pos: Pos | None = None) -> Settings:
        """One level deeper; fails where that is too deep."""
        if self.level >= self.max_level:
            fail("Expression exceeds maximum complexity", self.pos)
        return self._copy(self.pos if pos is None else pos, self.level + 1)

    def inside(self, *, breakable: bool) -> Settings:
        """Within a block: not at the top any more."""
        copy = self._copy(self.pos, self.level)
        copy.at_top, copy.breakable = False, breakable
        return copy

    def closure(self) -> Settings:
        copy = self.inside(breakable=False)
        copy.in_function = True
        return copy

    def _copy(self, pos: Pos | None, level: int) -> Settings:
        copy = Settings.__new__(Settings)
        copy.max_level, copy.pos, copy.level = self.max_level, pos, level
        copy.at_top, copy.in_function, copy.breakable = self.at_top, self.in_function, self.breakable
        copy.expression_only = self.expression_only
        return copy


class Scope:
    """The variables that the text of one function declares so far, and whether each is a constant."""

    def __init__(self) -> None:
        self.names: Names[bool] = Names()
        self.frame = 0

    def is_constant(self, name: str) -> bool:
        at = self.names.find(name)
        return at >= 0 and self.names.value(at)

    def declare(self, name: str, constant: bool) -> bool:
        """Add a variable; False if it takes the place of one in the same block."""
        at = self.names.find(name)
        if at >= self.frame:
            self.names.replace(at, constant)
            return False
        self.names.push(name, constant)
        return True


class Stream:
    """The tokens, one of them in sight, and what all parts of the parser share."""

    def __init__(self, text: str, limits: ParseLimits) -> None:
        self._lexer = Lexer(text, limits.max_string)
        self._seen: Token | None = None
        self.limits = limits
        self.functions: dict[tuple[str, int, str | None], Function] = {}
        self.closures = 0
        self.runs_in_scope = False
        self.scope = Scope()
        self.no_pipe = False  # within the values of a switch case, | separates
        self.recent: list[Token] = []  # the last few tokens, for hints

    def peek(self) -> Token:
        if self._seen is None:
            self._seen = self._lexer.next()
        return self._seen

    def next(self) -> Token:
        token = self.peek()
        self._seen = None
        self.recent.append(token)
        if len(self.recent) > 4:
            del self.recent[0]
        return token

    def next_text(self) -> Token:
        """The token that follows the brace which ends an interpolation."""
        return self._lexer.text_after_interpolation()

    def take(self, kind: str) -> bool:
        """Consume the next token if it is of that kind."""
        if self.peek().kind == kind:
            self.next()
            return True
        return False

    def expect(self, kind: str, why: str) -> Token:
        """The next token, which must be of that kind."""
        token = self.next()
        if token.kind == kind:
            return token
        raise self._missing(kind, why, token)

    def missing(self, kind: str, why: str, token: Token) -> NoReturn:
        """Fail because another token should be here."""
        raise self._missing(kind, why, token)

    def _missing(self, kind: str, why: str, token: Token) -> RhaiSyntaxError:
        if token.kind == "error":
            return self.error(str(token.value), token.pos)
        return self.error(f"Expecting '{kind}' {why}", token.pos)

    def fail_on(self, token: Token) -> NoReturn:
        """Fail with what the lexer said of a token."""
        self.fail(str(token.value), token.pos)

    def fail(self, message: str, pos: Pos | None) -> NoReturn:
        raise self.error(message, pos)

    def error(self, message: str, pos: Pos | None) -> RhaiSyntaxError:
        """A syntax error with a hint, where the tokens before it suggest one."""
        near = [*self.recent, self._seen] if self._seen is not None else self.recent
        return error(message, pos, hint_for(message, [str(token) for token in near if token is not None]))

    def count_function(self, pos: Pos | None) -> None:
        most = self.limits.max_functions
        if most is not None and len(self.functions) + self.closures >= most:
            self.fail("Number of functions defined exceeds maximum limit", pos)


def error(message: str, pos: Pos | None, hint: str | None = None) -> RhaiSyntaxError:
    """A syntax error at that place."""
    return RhaiSyntaxError(message, pos.line if pos else None, pos.column if pos else None, hint)


def fail(message: str, pos: Pos | None, hint: str | None = None) -> NoReturn:
    """Raise a syntax error."""
    raise error(message, pos, hint)
