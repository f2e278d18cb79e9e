"""A recogniser of Lua 5.4's grammar that says where a script stops being Lua, and in the middle of what.

It follows the reference parser step by step, so that its verdict names the same token and line; it builds no tree
and knows no meanings (labels, constants, `break` outside a loop).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moonbox.languages.lua.explain.expressions import Expressions, StopReading, TooDeepError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moonbox.languages.lua.explain.lexer import Token

__all__ = ["Block", "Failure", "Reading", "expression_end", "read", "values_end"]

_BLOCK_END = frozenset({"else", "elseif", "end", "until"})


@dataclass(frozen=True, slots=True)
class Block:
    """An open block: its keyword and where that stands."""

    keyword: str
    index: int


@dataclass(frozen=True, slots=True)
class Failure:
    """Where the script stops being Lua."""

    index: int
    text: str
    """What Lua says, without the "near" part."""
    statement: int
    """Where the innermost statement began."""
    blocks: tuple[Block, ...]
    brackets: tuple[int, ...]
    """Open brackets of the innermost statement, outermost first."""
    after_return: bool
    """Whether the last statement before was a return, so that the block had to end."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What the recogniser saw, up to the failure if there is one."""

    failure: Failure | None
    pairs: tuple[tuple[int, int], ...]
    """Each block's keyword and the `end` or `until` that closed it."""
    locals: tuple[int, ...]
    """Names declared by `local` or as loop variables."""
    parameters: tuple[int, ...]
    functions: tuple[int, ...]
    """The (last) names of functions defined by `function name` and `local function name`."""
    returns: tuple[int, ...]
    """`return`s of the main chunk itself."""


def read(tokens: Sequence[Token], *, as_value: bool = False) -> Reading | None:
    """Read a script, or with `as_value` what follows a `return`. None when it is nested too deeply to say."""
    parser = _Parser(tokens)
    failure = None
    try:
        parser.chunk(as_value)
    except StopReading as stop:
        failure = parser.failure(stop.text)
    except TooDeepError:
        return None
    return Reading(
        failure,
        tuple(parser.pairs),
        tuple(parser.locals),
        tuple(parser.parameters),
        tuple(parser.functions),
        tuple(parser.returns),
    )


def expression_end(tokens: Sequence[Token], index: int) -> int | None:
    """Where the expression that begins at `index` ends; None when there is none."""
    return _end_of(tokens, index, many=False)


def values_end(tokens: Sequence[Token], index: int) -> int | None:
    """Where the list of expressions that begins at `index` ends."""
    return _end_of(tokens, index, many=True)


def _end_of(tokens: Sequence[Token], index: int, *, many: bool) -> int | None:
    parser = _Parser(tokens, index)
    try:
        parser.look()
        if many:
            parser.explist()
        else:
            parser.expression()
    except (StopReading, TooDeepError):
        return None
    return parser.at


class _Parser(Expressions):
    def __init__(self, tokens: Sequence[Token], at: int = 0) -> None:
        super().__init__(tokens, at)
        self.statement_at = at
        self.after_return = False
        self.blocks: list[Block] = []
        self.pairs: list[tuple[int, int]] = []
        self.locals: list[int] = []
        self.parameters: list[int] = []
        self.functions: list[int] = []
        self.returns: list[int] = []
        self._function_depth = 0

    def failure(self, text: str) -> Failure:
        return Failure(self.at, text, self.statement_at, tuple(self.blocks), tuple(self.brackets), self.after_return)

    def chunk(self, as_value: bool) -> None:
        self.look()
        if as_value:
            self._return_values()
        else:
            self._statements()
        if self.text != "<eof>":
            raise StopReading("<eof> expected")

    def _statements(self) -> None:
        self.enter()
        self.after_return = False
        while self.text != "<eof>" and self.text not in _BLOCK_END:
            self.statement_at = self.at
            if self.text == "return":
                if self._function_depth == 0:
                    self.returns.append(self.at)
                self.next()
                self._return_values()
                self.after_return = True
                break
            self._statement()
            self.after_return = False
        self.leave()

    def _return_values(self) -> None:
        if self.text not in _BLOCK_END and self.text not in ("<eof>", ";"):
            self.explist()
        self.accept(";")

    def _statement(self) -> None:
        match self.text:
            case ";" | "break":
                self.next()
            case "if":
                self._if()
            case "while":
                self._while()
            case "do":
                self._block_until("do", "end")
            case "for":
                self._for()
            case "repeat":
                self._block_until("repeat", "until")
                self.expression()
            case "function":
                self._function_statement()
            case "local":
                self.next()
                self._local()
            case "::":
                self.next()
                self.name()
                self.expect("::")
            case "goto":
                self.next()
                self.name()
            case _:
                self._expression_statement()

    def _block_until(self, keyword: str, end: str, opener: int | None = None) -> None:
        """A block that `keyword`, the current token, opens, up to the `end` of the statement that began at `opener`."""
        opener = self.at if opener is None else opener
        self.blocks.append(Block(self.tokens[opener].text, opener))
        self.next()
        self._statements()
        self._finish_block(end, opener)

    def _finish_block(self, end: str, opener: int) -> None:
        closing = self.at
        self.close(end, opener)
        self.pairs.append((opener, closing))
        self.after_return = False
        self.blocks.pop()

    def _if(self) -> None:
        opener = self.at
        self.blocks.append(Block("if", opener))
        while True:
            self.statement_at, self.after_return = self.at, False
            self.next()
            self.expression()
            self.expect("then")
            self._statements()
            if self.text != "elseif":
                break
        if self.accept("else"):
            self._statements()
        self._finish_block("end", opener)

    def _while(self) -> None:
        opener = self.at
        self.next()
        self.expression()
        self._do(opener)

    def _do(self, opener: int) -> None:
        if self.text != "do":
            raise StopReading("'do' expected")
        self._block_until("do", "end", opener)

    def _for(self) -> None:
        opener = self.at
        self.next()
        self.locals.append(self.name())
        if self.text == "=":
            self.next()
            self.expression()
            self.expect(",")
            self.expression()
            if self.accept(","):
                self.expression()
        elif self.text in (",", "in"):
            while self.accept(","):
                self.locals.append(self.name())
            self.expect("in")
            self.explist()
        else:
            raise StopReading("'=' or 'in' expected")
        self._do(opener)

    def _function_statement(self) -> None:
        opener = self.at
        self.next()
        name = self.name()
        while self.accept("."):
            name = self.name()
        if self.accept(":"):
            name = self.name()
        self.functions.append(name)
        self._body(opener)

    def _body(self, opener: int) -> None:
        self.expect("(")
        while self.text != ")":
            if self.accept("..."):
                break
            if self.text != "name":
                raise StopReading("<name> or '...' expected")
            self.parameters.append(self.name())
            if not self.accept(","):
                break
            if self.text == ")":
                raise StopReading("<name> or '...' expected")
        self.expect(")")
        kept, self.brackets = self.brackets, []
        self.blocks.append(Block("function", opener))
        self._function_depth += 1
        self.statement_at = self.at
        self._statements()
        self._function_depth -= 1
        self._finish_block("end", opener)
        self.brackets = kept

    def _local(self) -> None:
        if self.text == "function":
            opener = self.at
            self.next()
            name = self.name()
            self.locals.append(name)
            self.functions.append(name)
            self._body(opener)
            return
        while True:
            self.locals.append(self.name())
            if self.accept("<"):
                self.name()
                self.expect(">")
            if not self.accept(","):
                break
        if self.accept("="):
            self.explist()

    def _expression_statement(self) -> None:
        last = self.suffixed()
        if self.text not in ("=", ","):
            if last != "call":
                raise StopReading("syntax error")
            return
        while True:
            if last == "call" or last == "value":
                raise StopReading("syntax error")
            if not self.accept(","):
                break
            last = self.suffixed()
        self.expect("=")
        self.explist()

    def function_value(self) -> None:
        opener, kept = self.at, (self.statement_at, self.after_return)
        self.next()
        self._body(opener)
        self.statement_at, self.after_return = kept
