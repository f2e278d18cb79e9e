"""The words and expressions of Lua's grammar, as a recogniser reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moonbox.languages.lua.explain.lexer import Token

__all__ = ["Expressions", "StopReading", "TooDeepError"]

_DEEPEST = 60  # levels of nesting; each costs a few Python frames
_ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "^", "//", "&", "|", "~", "<<", ">>"})
_BINARY = _ARITHMETIC | {"..", "==", "~=", "<", "<=", ">", ">=", "and", "or"}
_UNARY = frozenset({"not", "-", "~", "#"})
_CONSTANTS = frozenset({"nil", "true", "false", "..."})


class StopReading(Exception):
    """The grammar does not allow the current word."""

    def __init__(self, text: str) -> None:
        self.text = text


class TooDeepError(Exception):
    """The script is nested deeper than we follow."""


class Expressions:
    """Moves over words and reads expressions; what functions consist of is read by a subclass."""

    def __init__(self, tokens: Sequence[Token], at: int = 0) -> None:
        self.tokens = tokens
        self.at = at
        self.token = tokens[at]
        self.text = ""
        self.brackets: list[int] = []
        self._depth = 0

    def function_value(self) -> None:
        """A function as a value, from `function` on."""
        raise NotImplementedError

    # Moving over the tokens

    def look(self) -> None:
        token = self.tokens[self.at]
        self.token = token
        self.text = token.text if token.kind in ("keyword", "op", "eof") else token.kind
        if token.kind == "bad":
            raise StopReading(token.problem)

    def next(self) -> None:
        self.at += 1
        self.look()

    def accept(self, text: str) -> bool:
        if self.text != text:
            return False
        self.next()
        return True

    def expect(self, text: str) -> None:
        if self.text != text:
            raise StopReading(f"'{text}' expected")
        self.next()

    def name(self) -> int:
        if self.text != "name":
            raise StopReading("<name> expected")
        self.next()
        return self.at - 1

    def close(self, text: str, opener: int) -> None:
        """The end of what `opener` began."""
        if self.text != text:
            began = self.tokens[opener]
            far = f" (to close '{began.text}' at line {began.line})" if began.line != self.token.last_line else ""
            raise StopReading(f"'{text}' expected{far}")
        self.next()

    def enter(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise TooDeepError

    def leave(self) -> None:
        self._depth -= 1

    # Expressions

    def explist(self) -> None:
        self.expression()
        while self.accept(","):
            self.expression()

    def expression(self) -> None:
        self.enter()
        while True:
            while self.text in _UNARY:
                self.next()
            self._simple()
            if self.text not in _BINARY:
                break
            self.next()
        self.leave()

    def _simple(self) -> None:
        if self.text in ("number", "string") or self.text in _CONSTANTS:
            self.next()
        elif self.text == "{":
            self._table()
        elif self.text == "function":
            self.function_value()
        else:
            self.suffixed()

    def suffixed(self) -> str:
        """Returns what the last part was: "name", "index", "call" or "value" (in parentheses)."""
        if self.text == "name":
            self.next()
            last = "name"
        elif self.text == "(":
            opener = self._open()
            self.expression()
            self._shut(")", opener)
            last = "value"
        else:
            raise StopReading("unexpected symbol")
        while True:
            match self.text:
                case ".":
                    self.next()
                    self.name()
                    last = "index"
                case "[":
                    self._key()
                    last = "index"
                case ":":
                    self.next()
                    self.name()
                    self._arguments()
                    last = "call"
                case "(" | "string" | "{":
                    self._arguments()
                    last = "call"
                case _:
                    return last

    def _arguments(self) -> None:
        if self.text == "string":
            self.next()
        elif self.text == "{":
            self._table()
        elif self.text == "(":
            opener = self._open()
            if self.text != ")":
                self.explist()
            self._shut(")", opener)
        else:
            raise StopReading("function arguments expected")

    def _table(self) -> None:
        self.enter()
        opener = self._open()
        while self.text != "}":
            if self.text == "name" and self.tokens[self.at + 1].text == "=":
                self.next()
                self.next()
            elif self.text == "[":
                self._key()
                self.expect("=")
            self.expression()
            if not (self.accept(",") or self.accept(";")):
                break
        self._shut("}", opener)
        self.leave()

    def _key(self) -> None:
        """`[expression]`."""
        self._open()
        self.expression()
        self.expect("]")
        self.brackets.pop()

    def _open(self) -> int:
        opener = self.at
        self.brackets.append(opener)
        self.next()
        return opener

    def _shut(self, text: str, opener: int) -> None:
        self.close(text, opener)
        self.brackets.pop()
