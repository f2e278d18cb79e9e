"""A parser of Lua 5.4 that makes a tree of a script, or says where it stops being Lua and in the middle of what.

It follows the reference parser step by step, so that its verdict names the same word and line. It knows no meanings
(labels, constants, `break` outside a loop).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moonbox.languages.lua.syntax import tree
from moonbox.languages.lua.syntax.expressions import ExpressionParser, NotLua, TooDeep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moonbox.languages.lua.syntax.lexer import Token

__all__ = ["Failure", "OpenBlock", "Parsed", "expression_end", "expressions_end", "parse"]

_BLOCK_END = frozenset({"else", "elseif", "end", "until"})


@dataclass(frozen=True, slots=True)
class OpenBlock:
    """A block that is not closed yet: its keyword and where that stands."""

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
    blocks: tuple[OpenBlock, ...]
    brackets: tuple[int, ...]
    """Open brackets of the innermost statement, outermost first."""
    after_return: bool
    """Whether the last statement before was a return, so that the block had to end."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What the parser saw, up to the failure if there is one."""

    tree: tree.Block | None
    """None where there is a failure."""
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


def parse(tokens: Sequence[Token], *, as_value: bool = False) -> Parsed | None:
    """Parse a script, or with `as_value` what follows a `return`. None when it is nested too deeply to say."""
    parser = _Parser(tokens)
    block = failure = None
    try:
        block = parser.chunk(as_value)
    except NotLua as problem:
        failure = parser.failure(problem.text)
    except TooDeep:
        return None
    return Parsed(
        block,
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


def expressions_end(tokens: Sequence[Token], index: int) -> int | None:
    """Where the list of expressions that begins at `index` ends."""
    return _end_of(tokens, index, many=True)


def _end_of(tokens: Sequence[Token], index: int, *, many: bool) -> int | None:
    parser = _Parser(tokens, index)
    try:
        parser.look()
        if many:
            parser.expressions()
        else:
            parser.expression()
    except (NotLua, TooDeep):
        return None
    return parser.at


class _Parser(ExpressionParser):
    def __init__(self, tokens: Sequence[Token], at: int = 0) -> None:
        super().__init__(tokens, at)
        self.statement_at = at
        self.after_return = False
        self.blocks: list[OpenBlock] = []
        self.pairs: list[tuple[int, int]] = []
        self.locals: list[int] = []
        self.parameters: list[int] = []
        self.functions: list[int] = []
        self.returns: list[int] = []
        self._function_depth = 0

    def failure(self, text: str) -> Failure:
        return Failure(self.at, text, self.statement_at, tuple(self.blocks), tuple(self.brackets), self.after_return)

    def chunk(self, as_value: bool) -> tree.Block:
        self.look()
        block = tree.Block(0, (tree.Return(0, self._return_values()),), self.at) if as_value else self._block()
        if self.text != "<eof>":
            raise NotLua("<eof> expected")
        return block

    def _block(self) -> tree.Block:
        self.enter()
        first = self.at
        statements: list[tree.Statement] = []
        self.after_return = False
        while self.text != "<eof>" and self.text not in _BLOCK_END:
            self.statement_at = self.at
            if self.text == "return":
                if self._function_depth == 0:
                    self.returns.append(self.at)
                self.next()
                statements.append(tree.Return(self.statement_at, self._return_values()))
                self.after_return = True
                break
            if self.text == ";":
                self.next()
            else:
                statements.append(self._statement())
            self.after_return = False
        self.leave()
        return tree.Block(first, tuple(statements), self.at)

    def _return_values(self) -> tuple[tree.Expression, ...]:
        ends = self.text in _BLOCK_END or self.text in ("<eof>", ";")
        values = () if ends else self.expressions()
        self.accept(";")
        return values

    def _statement(self) -> tree.Statement:
        first = self.at
        match self.text:
            case "if":
                return self._if()
            case "while":
                return self._while()
            case "do":
                return tree.Do(first, self._block_until("end"))
            case "for":
                return self._for()
            case "repeat":
                body = self._block_until("until")
                return tree.Repeat(first, body, self.expression())
            case "function":
                return self._function_statement()
            case "local":
                self.next()
                return self._local(first)
            case "break":
                self.next()
            case "::":
                self.next()
                self.name()
                self.expect("::")
            case "goto":
                self.next()
                self.name()
            case _:
                return self._expression_statement()
        return tree.Jump(first)

    def _block_until(self, end: str, opener: int | None = None) -> tree.Block:
        """The block behind the current word, up to the `end` of the statement that began at `opener`."""
        opener = self.at if opener is None else opener
        self.blocks.append(OpenBlock(self.tokens[opener].text, opener))
        self.next()
        block = self._block()
        self._finish_block(end, opener)
        return block

    def _finish_block(self, end: str, opener: int) -> None:
        closing = self.at
        self.close(end, opener)
        self.pairs.append((opener, closing))
        self.after_return = False
        self.blocks.pop()

    def _if(self) -> tree.If:
        opener = self.at
        branches: list[tuple[tree.Expression | None, tree.Block]] = []
        self.blocks.append(OpenBlock("if", opener))
        while True:
            self.statement_at, self.after_return = self.at, False
            self.next()
            condition = self.expression()
            self.expect("then")
            branches.append((condition, self._block()))
            if self.text != "elseif":
                break
        if self.accept("else"):
            branches.append((None, self._block()))
        self._finish_block("end", opener)
        return tree.If(opener, tuple(branches))

    def _while(self) -> tree.While:
        opener = self.at
        self.next()
        condition = self.expression()
        return tree.While(opener, condition, self._do(opener))

    def _do(self, opener: int) -> tree.Block:
        if self.text != "do":
            raise NotLua("'do' expected")
        return self._block_until("end", opener)

    def _for(self) -> tree.NumericFor | tree.GenericFor:
        opener = self.at
        self.next()
        names = [self.name()]
        self.locals.append(names[0])
        if self.text == "=":
            self.next()
            bounds = [self.expression()]
            self.expect(",")
            bounds.append(self.expression())
            if self.accept(","):
                bounds.append(self.expression())
            return tree.NumericFor(opener, names[0], tuple(bounds), self._do(opener))
        if self.text not in (",", "in"):
            raise NotLua("'=' or 'in' expected")
        while self.accept(","):
            names.append(self.name())
            self.locals.append(names[-1])
        self.expect("in")
        values = self.expressions()
        return tree.GenericFor(opener, tuple(names), values, self._do(opener))

    def _function_statement(self) -> tree.FunctionStatement:
        opener = self.at
        self.next()
        first = name = self.name()
        method = None
        target: tree.Expression = tree.Name(name)
        while self.accept("."):
            name = self.name()
            target = tree.Index(first, target, tree.Literal(name), True, self.at)
        if self.accept(":"):
            name = method = self.name()
        self.functions.append(name)
        return tree.FunctionStatement(opener, target, method, self._function(opener))

    def _function(self, opener: int) -> tree.Function:
        parameters: list[int] = []
        self.expect("(")
        while self.text != ")":
            if self.accept("..."):
                break
            if self.text != "name":
                raise NotLua("<name> or '...' expected")
            parameters.append(self.name())
            self.parameters.append(parameters[-1])
            if not self.accept(","):
                break
            if self.text == ")":
                raise NotLua("<name> or '...' expected")
        self.expect(")")
        outer_brackets, self.brackets = self.brackets, []
        self.blocks.append(OpenBlock("function", opener))
        self._function_depth += 1
        self.statement_at = self.at
        body = self._block()
        self._function_depth -= 1
        self._finish_block("end", opener)
        self.brackets = outer_brackets
        return tree.Function(opener, tuple(parameters), body, self.at)

    def _local(self, first: int) -> tree.Local | tree.LocalFunction:
        if self.text == "function":
            opener = self.at
            self.next()
            name = self.name()
            self.locals.append(name)
            self.functions.append(name)
            return tree.LocalFunction(first, name, self._function(opener))
        names: list[int] = []
        while True:
            names.append(self.name())
            self.locals.append(names[-1])
            if self.accept("<"):
                self.name()
                self.expect(">")
            if not self.accept(","):
                break
        values = self.expressions() if self.accept("=") else ()
        return tree.Local(first, tuple(names), values)

    def _expression_statement(self) -> tree.Assignment | tree.CallStatement:
        first = self.at
        targets = [self.suffixed()]
        if self.text not in ("=", ","):
            if not isinstance(targets[0], tree.Call):
                raise NotLua("syntax error")
            return tree.CallStatement(first, targets[0])
        while True:
            if isinstance(targets[-1], tree.Call | tree.Parentheses):
                raise NotLua("syntax error")
            if not self.accept(","):
                break
            targets.append(self.suffixed())
        self.expect("=")
        return tree.Assignment(first, tuple(targets), self.expressions())

    def function_value(self) -> tree.Function:
        opener, outer = self.at, (self.statement_at, self.after_return)
        self.next()
        function = self._function(opener)
        self.statement_at, self.after_return = outer
        return function
