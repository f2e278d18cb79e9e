"""Reading words one by one, and the expressions of Lua's grammar."""

from __future__ import annotations

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


class NotLua(Exception):
    """The grammar does not allow the current word; `text` is what Lua says, without the "near" part."""

    def __init__(self, text: str) -> None:
        self.text = text


class TooDeep(Exception):
    """The script is nested deeper than we follow."""


class ExpressionParser:
    """Moves over words and reads expressions; what functions consist of is read by a subclass."""

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

    def function_value(self) -> p.Function:
        """A function as a value, from `function` on."""
        raise NotImplementedError

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
            function = self.function_value()
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
