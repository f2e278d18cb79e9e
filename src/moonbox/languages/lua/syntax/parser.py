"""A parser of Lua 5.4 that makes a tree of a script, or says where it stops being Lua and in the middle of what.

It follows the reference parser step by step, so that its verdict names the same word and line. It knows no meanings
(labels, constants, `break` outside a loop).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from moonbox.languages import program as p
from moonbox.languages.lua.syntax.expressions import ExpressionParser, NotLua, TooDeep

if TYPE_CHECKING:
    from moonbox.languages.lua.syntax.lexer import Token, Words

_BLOCK_END = frozenset({"else", "elseif", "end", "until", "<eof>"})


class SyntaxFailure(Struct, frozen=True, kw_only=True):
    """Where the script stops being Lua."""

    index: int
    token: Token
    """The word there, and the one before it."""
    before: Token
    text: str
    """What Lua says, without the "near" part."""
    statement: int
    """Where the innermost statement began."""
    blocks: tuple[Token, ...]
    """Keywords of open blocks, outermost first."""
    brackets: tuple[Token, ...]
    """Open brackets of the innermost statement, outermost first."""
    after_return: bool
    """Whether the last statement before was a return, so that the block had to end."""


class Parsed(Struct, frozen=True, kw_only=True):
    """What the parser saw, up to the failure if there is one. Numbers are indexes of words, in the tree too."""

    outline: p.Outline | None
    """None where there is a failure."""
    failure: SyntaxFailure | None
    pairs: tuple[tuple[int, int], ...]
    """Each block's keyword and the `end` or `until` that closed it."""


def parse(words: Words, *, as_value: bool = False) -> Parsed | None:
    """Parse a script, or with `as_value` what follows a `return`. None when it is nested too deeply to say."""
    parser = _Parser(words)
    outline = failure = None
    try:
        outline = parser.outline(as_value)
    except NotLua as problem:
        failure = parser.failure(problem.text)
    except TooDeep:
        return None
    return Parsed(
        outline=outline,
        failure=failure,
        pairs=tuple(parser.pairs),
    )


def expressions_end(words: Words, index: int, *, only_one: bool = False) -> int | None:
    """Where the list of expressions, or the only one, that begins at `index` ends; None when there is none."""
    parser = _Parser(words, index)
    try:
        parser.look()
        if only_one:
            parser.expression()
        else:
            parser.expressions()
    except (NotLua, TooDeep):
        return None
    return parser.at


class _Parser(ExpressionParser):
    def __init__(self, words: Words, at: int = 0) -> None:
        super().__init__(words, at)
        self.statement_at = at
        self.after_return = False
        self.blocks: list[int] = []
        self.pairs: list[tuple[int, int]] = []
        self._assigned: dict[str, int] = {}
        self._fields: set[str] = set()
        self._globals: set[str] = set()
        self._script_locals: set[str] = set()
        """Locals of the main block that are declared so far. Those of inner blocks count as globals."""

    def failure(self, text: str) -> SyntaxFailure:
        tokens = self.words.tokens
        return SyntaxFailure(
            index=self.at,
            token=tokens[self.at],
            before=tokens[self.at - 1],
            text=text,
            statement=self.statement_at,
            blocks=tuple(tokens[block] for block in self.blocks),
            brackets=tuple(tokens[bracket] for bracket in self.brackets),
            after_return=self.after_return,
        )

    def outline(self, as_value: bool) -> p.Outline:
        self.look()
        body = p.Block((p.Return(0, self._return_values()),)) if as_value else self._block()
        if self.text != "<eof>":
            raise NotLua("<eof> expected")
        return p.Outline(
            body=body,
            assigned=self._assigned,
            fields=frozenset(self._fields),
            defines=frozenset(self._globals),
            filled=self.filled,
        )

    def _text_of(self, index: int) -> str:
        return self.texts[index]

    def _block(self) -> p.Block:
        self.enter()
        statements: list[p.Statement] = []
        self.after_return = False
        while (text := self.text) not in _BLOCK_END:
            self.statement_at = self.at
            if text == "name":
                statements.append(self._expression_statement())
            elif text == "return":
                self.next()
                statements.append(p.Return(self.statement_at, self._return_values()))
                self.after_return = True
                break
            elif text == ";":
                self.next()
            elif (statement := self._statement()) is not None:
                statements.append(statement)
            self.after_return = False
        self.leave()
        return p.Block(tuple(statements))

    def _return_values(self) -> tuple[p.Expression, ...]:
        ends = self.text in _BLOCK_END or self.text == ";"
        values = () if ends else self.expressions()
        self.accept(";")
        return values

    def _statement(self) -> p.Statement | None:
        """One statement; None for a jump or a label."""
        first = self.at
        match self.text:
            case "if":
                return self._if()
            case "while":
                self.next()
                condition = self.expression()
                return p.Loop(first, condition, self._do(first))
            case "do":
                return self._block_until("end")
            case "for":
                return self._for()
            case "repeat":
                body = self._block_until("until")
                # The condition sees the block's locals.
                return p.Loop(first, None, p.Block((*body.statements, p.Evaluate(first, self.expression()))))
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
        return None

    def _block_until(self, end: str, opener: int | None = None) -> p.Block:
        """The block behind the current word, up to the `end` of the statement that began at `opener`."""
        opener = self.at if opener is None else opener
        self.blocks.append(opener)
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

    def _if(self) -> p.Branches:
        opener = self.at
        branches: list[tuple[p.Expression | None, p.Block]] = []
        self.blocks.append(opener)
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
        return p.Branches(opener, tuple(branches))

    def _do(self, opener: int) -> p.Block:
        if self.text != "do":
            raise NotLua("'do' expected")
        return self._block_until("end", opener)

    def _for(self) -> p.Count | p.Each:
        opener = self.at
        self.next()
        names = [self.name()]
        if self.text == "=":
            self.next()
            bounds = [self.expression()]
            self.expect(",")
            bounds.append(self.expression())
            if self.accept(","):
                bounds.append(self.expression())
            return p.Count(opener, self.texts[names[0]], tuple(bounds), self._do(opener))
        if self.text not in (",", "in"):
            raise NotLua("'=' or 'in' expected")
        while self.accept(","):
            names.append(self.name())
        self.expect("in")
        values = self.expressions()
        return p.Each(opener, tuple(map(self._text_of, names)), values, self._do(opener))

    def _function_statement(self) -> p.Define:
        opener = self.at
        self.next()
        first = name = self.name()
        target: p.Expression = p.Name(name, self.texts[name], name + 1)
        while self.accept("."):
            name = self.name()
            target = p.Field(first, target, self.texts[name], name, self.at)
        is_method = self.accept(":")
        if is_method:
            name = self.name()
            target = p.Field(opener, target, self.texts[name], name)
        self._assign_to(target)
        return p.Define(opener, target, self._function(opener, ("self",) if is_method else ()), False)

    def _function(self, opener: int, implied: tuple[str, ...] = ()) -> p.Function:
        parameters = list(implied)
        self.expect("(")
        while self.text != ")":
            if self.accept("..."):
                break
            if self.text != "name":
                raise NotLua("<name> or '...' expected")
            parameters.append(self.texts[self.name()])
            if not self.accept(","):
                break
            if self.text == ")":
                raise NotLua("<name> or '...' expected")
        self.expect(")")
        outer_brackets, self.brackets = self.brackets, []
        self.blocks.append(opener)
        self.statement_at = self.at
        body = self._block()
        self._finish_block("end", opener)
        self.brackets = outer_brackets
        return p.Function(opener, tuple(parameters), body)

    def _local(self, first: int) -> p.Declare | p.Define:
        if self.text == "function":
            opener = self.at
            self.next()
            name = self.name()
            target = p.Name(name, self.texts[name])
            definition = p.Define(first, target, self._function(opener), True)
            self._declare((target.name,))
            return definition
        names: list[str] = []
        while True:
            names.append(self.texts[self.name()])
            if self.accept("<"):
                self.name()
                self.expect(">")
            if self.text != ",":
                break
            self.next()
        values = self.expressions() if self.accept("=") else ()
        self._declare(names)
        return p.Declare(first, tuple(names), values)

    def _declare(self, names: Sequence[str]) -> None:
        """From here on these are locals: to the end of the script, if they are not of an inner block."""
        if self._depth == 1:
            self._script_locals.update(names)

    def _expression_statement(self) -> p.Assign | p.Evaluate:
        first = self.at
        targets = [self.suffixed()]
        if self.text not in ("=", ","):
            if self.ends_with != "call":
                raise NotLua("syntax error")
            return p.Evaluate(first, targets[0])
        while True:
            if self.ends_with != "place":
                raise NotLua("syntax error")
            if not self.accept(","):
                break
            targets.append(self.suffixed())
        self.expect("=")
        for target in targets:
            self._assign_to(target)
        return p.Assign(first, tuple(targets), self.expressions())

    def _assign_to(self, target: p.Expression) -> None:
        if type(target) is p.Name:
            self._assigned[target.name] = self._assigned.get(target.name, 0) + 1
            if target.name not in self._script_locals:
                self._globals.add(target.name)
        elif type(target) is p.Field:
            self._fields.add(target.name)
        elif type(target) is p.Index and type(target.key) is not p.Constant:
            self.fill(p.root(target))

    def function_value(self) -> p.Function:
        opener, outer = self.at, (self.statement_at, self.after_return)
        self.next()
        function = self._function(opener)
        self.statement_at, self.after_return = outer
        return function
