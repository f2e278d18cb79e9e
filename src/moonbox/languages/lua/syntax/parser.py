"""A parser of Lua 5.4 that makes a tree of a script, or says where it stops being Lua and in the middle of what.

It follows the reference parser step by step, so that its verdict names the same word and line. It knows no meanings
(labels, constants, `break` outside a loop).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from moonbox.languages import program as p
from moonbox.languages.lua.syntax.lexer import Token, Words, number_value, problem_of, string_value

_DEEPEST = 60  # levels of nesting; each costs a few Python frames
_PRECEDENCE = {
    "or": 1, "and": 2, "<": 3, ">": 3, "<=": 3, ">=": 3, "~=": 3, "==": 3, "|": 4, "~": 5, "&": 6, "<<": 7, ">>": 7,
    "..": 8, "+": 9, "-": 9, "*": 10, "/": 10, "//": 10, "%": 10, "^": 12,
}  # fmt: skip
_RIGHT = frozenset({"..", "^"})
_UNARY = frozenset({"not", "-", "~", "#"})
_SUFFIXES = frozenset({".", "[", ":", "(", "string", "{"})
_CONSTANTS = frozenset({"number", "string", "nil", "true", "false", "..."})
_WORDS = {"nil": None, "true": True, "false": False}
_BLOCK_END = frozenset({"else", "elseif", "end", "until", "<eof>"})


class NotLua(Exception):
    """The grammar does not allow the current word; `text` is what Lua says, without the "near" part."""

    def __init__(self, text: str) -> None:
        self.text = text


class TooDeep(Exception):
    """The script is nested deeper than we follow."""


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
    return Parsed(outline=outline, failure=failure, pairs=tuple(parser.pairs))


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


class _Parser:
    def __init__(self, words: Words, at: int = 0) -> None:
        self.words = words
        self.kinds, self.texts = words.kinds, words.texts
        self.at = at
        self.text = ""
        self.brackets: list[int] = []
        self.filled: dict[str, int] = {}
        self.ends_with = ""
        """What the latest expression ends with: "call" or "..." (any number of values), "place" (what can be assigned
        to) or "value"."""
        self._depth = 0
        self.statement_at = at
        self.after_return = False
        self.blocks: list[int] = []
        self.pairs: list[tuple[int, int]] = []
        self._assigned: dict[str, int] = {}
        self._fields: set[str] = set()
        self._globals: set[str] = set()
        self._script_locals: set[str] = set()
        """Locals of the main block that are declared so far. Those of inner blocks count as globals."""

    # Words

    @property
    def token(self) -> Token:
        return self.words.tokens[self.at]

    def look(self) -> None:
        """See the current word: `text` is its text, or its kind where there are many of that kind."""
        self.at -= 1
        self.next()

    def next(self) -> None:
        self.at = at = self.at + 1
        self.text = text = self.kinds[at]
        if text == "bad":
            raise NotLua(problem_of(self.texts[at]))

    def accept(self, text: str) -> bool:
        if self.text != text:
            return False
        self.next()
        return True

    def expect(self, text: str) -> None:
        if self.text != text:
            raise NotLua(f"'{text}' expected")
        self.next()

    def name(self) -> int:
        if self.text != "name":
            raise NotLua("<name> expected")
        self.next()
        return self.at - 1

    def close(self, text: str, opener: int) -> None:
        """The end of what `opener` began."""
        if self.text != text:
            began = self.words.tokens[opener]
            far = f" (to close '{began.text}' at line {began.line})" if began.line != self.token.last_line else ""
            raise NotLua(f"'{text}' expected{far}")
        self.next()

    def enter(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise TooDeep

    def leave(self) -> None:
        self._depth -= 1

    def fill(self, name: str) -> None:
        """The variable gets an element under a key that only the run knows."""
        self.filled[name] = self.filled.get(name, 0) + 1

    # Statements

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
        names = [self.texts[self.name()]]
        if self.text == "=":
            self.next()
            bounds = [self.expression()]
            self.expect(",")
            bounds.append(self.expression())
            if self.accept(","):
                bounds.append(self.expression())
            return p.Count(opener, names[0], tuple(bounds), self._do(opener))
        if self.text not in (",", "in"):
            raise NotLua("'=' or 'in' expected")
        while self.accept(","):
            names.append(self.texts[self.name()])
        self.expect("in")
        values = self.expressions()
        return p.Each(opener, tuple(names), values, self._do(opener))

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

    def _function_value(self) -> p.Function:
        opener, outer = self.at, (self.statement_at, self.after_return)
        self.next()
        function = self._function(opener)
        self.statement_at, self.after_return = outer
        return function

    # Expressions

    def expressions(self) -> tuple[p.Expression, ...]:
        """A list of at least one."""
        first = self.expression()
        if self.text != ",":
            return (first,)
        values = [first]
        while self.text == ",":
            self.next()
            values.append(self.expression())
        return tuple(values)

    def expression(self) -> p.Expression:
        self._depth += 1  # as `enter`
        if self._depth > _DEEPEST:
            raise TooDeep
        value = self.suffixed() if self.text == "name" else self._operand()
        if self.text in _PRECEDENCE:
            value = self._operation(value)
        self._depth -= 1
        return value

    def _operation(self, first: p.Expression) -> p.Expression:
        """Operands joined by operators, grouped by precedence."""
        values, waiting = [first], list[tuple[int, int]]()
        while (rank := _PRECEDENCE.get(self.text)) is not None:
            operator, at = self.text, self.at
            self.next()
            while waiting and (waiting[-1][0] > rank or (waiting[-1][0] == rank and operator not in _RIGHT)):
                self._join(values, waiting)
            waiting.append((rank, at))
            values.append(self.suffixed() if self.text == "name" else self._operand())
        while waiting:
            self._join(values, waiting)
        self.ends_with = "value"
        return values[0]

    def _join(self, values: list[p.Expression], waiting: list[tuple[int, int]]) -> None:
        _, at = waiting.pop()
        right, left = values.pop(), values.pop()
        values.append(p.Operation(at, self.texts[at], left, right))

    def _operand(self) -> p.Expression:
        if self.text in _CONSTANTS:
            return self._constant()
        if self.text not in _UNARY:
            return self._simple()
        unary: list[int] = []
        while self.text in _UNARY:
            unary.append(self.at)
            self.next()
        value = self._simple()
        for at in reversed(unary):
            operator = self.texts[at]
            if operator == "#":
                value = p.Length(at, value)
            elif operator == "-" and type(value) is p.Constant and type(value.value) in (int, float):
                value = p.Constant(at, -value.value)
            else:
                value = p.Other(at, (value,), operator)
        self.ends_with = "value"
        return value

    def _simple(self) -> p.Expression:
        text = self.text
        if text in _CONSTANTS:
            return self._constant()
        if text == "{":
            return self._table()
        if text == "function":
            function = self._function_value()
            self.ends_with = "value"
            return function
        return self.suffixed()

    def _constant(self) -> p.Expression:
        at, kind = self.at, self.text
        self.next()
        self.ends_with = "value"
        if kind == "string":
            return p.Constant(at, string_value(self.texts[at]), at + 1)
        if kind == "number":
            return p.Constant(at, number_value(self.texts[at]), at + 1)
        if kind == "...":
            self.ends_with = kind
            return p.Other(at, (), kind, at + 1)
        return p.Constant(at, _WORDS[kind], at + 1)

    def suffixed(self) -> p.Expression:
        """A name or a value in parentheses, with all the fields, indexes and calls behind it."""
        first = self.at
        value: p.Expression
        if self.text == "name":
            self.next()
            value, ends_with = p.Name(first, self.texts[first], first + 1), "place"
        elif self.text == "(":
            self._open()
            value, ends_with = self.expression(), "value"
            self._shut(")", first)
        else:
            raise NotLua("unexpected symbol")
        while (text := self.text) in _SUFFIXES:
            ends_with = "place"
            if text == ".":
                self.next()
                key = self.name()
                value = p.Field(first, value, self.texts[key], key, key + 1)
            elif text == "[":
                value = self._index(first, value, self._key())
            elif text == ":":
                self.next()
                key = self.name()
                arguments = self._arguments()
                value = p.Method(first, value, self.texts[key], arguments, key, self.at)
                ends_with = "call"
            else:
                value = self._call(first, value)
                ends_with = "call"
        self.ends_with = ends_with
        return value

    def _index(self, first: int, value: p.Expression, key: p.Expression) -> p.Expression:
        if type(key) is p.Constant and isinstance(key.value, str):
            return p.Field(first, value, key.value, key.at, self.at)
        return p.Index(first, value, key, self.at)

    def _call(self, first: int, function: p.Expression) -> p.Expression:
        self.ends_with = "value"
        arguments = self._arguments()
        if type(function) is p.Field and function.name == "insert" and arguments:
            self.fill(p.root(arguments[0]))
        return p.FunctionCall(first, function, arguments, self.ends_with not in ("call", "..."), self.at)

    def _arguments(self) -> tuple[p.Expression, ...]:
        if self.text == "string":
            return (self._constant(),)
        if self.text == "{":
            return (self._table(),)
        if self.text != "(":
            raise NotLua("function arguments expected")
        opener = self._open()
        arguments = self.expressions() if self.text != ")" else ()
        self._shut(")", opener)
        return arguments

    def _table(self) -> p.Record:
        self.enter()
        opener = self._open()
        entries: list[tuple[str | None, p.Expression]] = []
        exact = is_list = True
        while self.text != "}":
            first = self.at
            name: str | None = None
            key: p.Expression | None = None
            if self.text == "name" and self.texts[self.at + 1] == "=":
                name = self.texts[first]
                self.next()
                self.next()
            elif self.text == "[":
                key = self._key()
                self.expect("=")
                if type(key) is p.Constant and isinstance(key.value, str):
                    name, key = key.value, None
            value = self.expression()
            if key is not None:
                exact, name, value = False, "", p.Other(first, (key, value))
            is_list = is_list and name is None
            entries.append((name, value))
            if self.text != "," and self.text != ";":
                break
            self.next()
        if entries and entries[-1][0] is None and self.ends_with in ("call", "..."):
            exact = False
        self._shut("}", opener)
        self.leave()
        self.ends_with = "value"
        return p.Record(opener, tuple(entries), exact, is_list and bool(entries), self.at)

    def _key(self) -> p.Expression:
        """`[expression]`."""
        self._open()
        key = self.expression()
        self.expect("]")
        self.brackets.pop()
        return key

    def _open(self) -> int:
        opener = self.at
        self.brackets.append(opener)
        self.next()
        return opener

    def _shut(self, text: str, opener: int) -> None:
        if self.text != text:
            self.close(text, opener)
        self.next()
        self.brackets.pop()
