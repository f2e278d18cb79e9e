"""The lexer: tokens on demand, because the text after an interpolation is read in another mode."""

from __future__ import annotations

import re

from moonbox.languages.rhai.syntax.literals import number, quoted, raw
from moonbox.languages.rhai.syntax.tokens import KEYWORDS, NEXT_IS_UNARY, RESERVED, Pos, Token, is_identifier, words

__all__ = ["Lexer"]

_BLANK = re.compile(r"[ \t\f\r]+")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COMMENT_EDGE = re.compile(r"/\*|\*/|\n")
_LINE_END = re.compile(r"\r\n|\r|\n")
# The longest match wins; what is reserved is recognised here too, so that it can be named in the message.
_SYMBOLS = sorted(
    words(
        "{ } ( ) [ ] () (* *) + += ++ - -= -> -- * *= ** **= / /= ; , . .. ..= ... = == === => : :: ::< := :; < <= <- "
        "<< <<= <| > >= >> >>= ! != !== !. | || |= |> & && &= ^ ^= ~ % %= @ $ ? ?. ?? ?[ #{ #! #"
    ),
    key=len,
    reverse=True,
)
_SYMBOL = re.compile("|".join(re.escape(symbol) for symbol in _SYMBOLS))
_NOT_RUST = {
    "===": "'===' is not a valid operator. This is not JavaScript! Should it be '=='?",
    "!==": "'!==' is not a valid operator. This is not JavaScript! Should it be '!='?",
    "->": "'->' is not a valid symbol. This is not C or C++!",
    "<-": "'<-' is not a valid symbol. This is not Go! Should it be '<='?",
    ":=": "':=' is not a valid assignment operator. This is not Go or Pascal! Should it be simply '='?",
    ":;": "':;' is not a valid symbol. Should it be '::'?",
    "::<": "'::<>' is not a valid symbol. This is not Rust! Should it be '::'?",
    "(*": "'(* .. *)' is not a valid comment format. This is not Pascal! Should it be '/* .. */'?",
    "*)": "'(* .. *)' is not a valid comment format. This is not Pascal! Should it be '/* .. */'?",
    "# {": "'#' is not a valid symbol. Should it be '#{'?",
}


class Lexer:
    """Reads one script. `text` is an attribute that the literal readers share."""

    def __init__(self, text: str, max_string: int | None = None) -> None:
        self.text, self.max_string = text, max_string
        self.at = 0
        self.line, self.line_start = 1, 0
        self._unary = True

    def here(self, at: int | None = None) -> Pos:
        """The position of a character, by default of the one that comes next."""
        return Pos(self.line, (self.at if at is None else at) - self.line_start + 1)

    def new_line(self, at: int) -> None:
        """A line starts at that character."""
        self.line += 1
        self.line_start = at

    def next(self) -> Token:
        """The next token; "end" again and again at the end, "error" with a message where there is none."""
        token = self._read()
        self._unary = token.kind in NEXT_IS_UNARY
        return token

    def text_after_interpolation(self) -> Token:
        """The rest of a backtick string, after the brace that closes an interpolation."""
        token = quoted(self, "`", None)
        self._unary = token.kind in NEXT_IS_UNARY
        return token

    def _read(self) -> Token:
        text, size = self.text, len(self.text)
        while self.at < size:
            char = text[self.at]
            if char == "\n":
                self.at += 1
                self.new_line(self.at)
            elif char in " \t\f\r":
                blank = _BLANK.match(text, self.at)
                self.at = blank.end() if blank else self.at + 1
            elif char == "/" and text.startswith("//", self.at):
                self._line_comment()
            elif char == "/" and text.startswith("/*", self.at):
                self._block_comment()
            else:
                return self._token(char)
        return Token("end", self.here())

    def _line_comment(self) -> None:
        end = _LINE_END.search(self.text, self.at)
        self.at = end.end() if end else len(self.text)
        if end:
            self.new_line(self.at)

    def _block_comment(self) -> None:
        depth, self.at = 1, self.at + 2
        while depth and (edge := _COMMENT_EDGE.search(self.text, self.at)):
            self.at = edge.end()
            match edge.group():
                case "/*":
                    depth += 1
                case "*/":
                    depth -= 1
                case _:
                    self.new_line(self.at)
        if depth:
            self.at = len(self.text)

    def _token(self, char: str) -> Token:
        start = self.here()
        if "0" <= char <= "9":
            return number(self, start, negative=False)
        if char == "-" and self._unary and self.text[self.at + 1 : self.at + 2].isdigit() and self._digit(self.at + 1):
            self.at += 1
            return number(self, start, negative=True)
        if char in "\"'`":
            return self._quoted(char, start)
        if char == "#" and self.text[self.at + 1 : self.at + 2] in ('"', "#"):
            return raw(self, start)
        word = _WORD.match(self.text, self.at)
        if word:
            self.at = word.end()
            return _word(word.group(), start)
        return self._symbol(start)

    def _digit(self, at: int) -> bool:
        return "0" <= self.text[at] <= "9"

    def _quoted(self, char: str, start: Pos) -> Token:
        if char == "'" and self.text.startswith("''", self.at):
            self.at += 1
            return Token("error", start, "Invalid character: ''")
        self.at += 1
        if char == "`":
            # Text that begins on the next line begins there.
            if self.text.startswith("\r\n", self.at):
                self.at += 2
                self.new_line(self.at)
            elif self.text[self.at : self.at + 1] in ("\r", "\n"):
                self.at += 1
                self.new_line(self.at)
        token = quoted(self, char, start)
        if char == "'" and token.kind == "string":
            content = str(token.value)
            return Token("char", start, content) if len(content) == 1 else _bad_char(content, start)
        return token

    def _symbol(self, start: Pos) -> Token:
        text, at = self.text, self.at
        if text.startswith("!in", at) and not _WORD.match(text, at + 3) and not self._digits_follow(at + 3):
            self.at += 3
            return Token("!in", start)
        if text.startswith("# ", at):
            self.at += 3 if text.startswith("# {", at) else 2
            return _reserved("# {" if self.at == at + 3 else "#", start)
        found = _SYMBOL.match(text, at)
        if not found:
            self.at += 1
            return Token("error", start, f"Unexpected '{text[at]}'")
        symbol = found.group()
        self.at = found.end() - (1 if symbol == "#!" else 0)
        if symbol in ("+", "-") and self._unary:
            return Token(symbol + "u", start)
        return _reserved(symbol, start) if symbol in RESERVED else Token(symbol, start)

    def _digits_follow(self, at: int) -> bool:
        return self.text[at : at + 1].isdigit()


def _bad_char(content: str, start: Pos) -> Token:
    return Token("error", start, f"Invalid character: '{content}'")


def _reserved(symbol: str, start: Pos) -> Token:
    if symbol in _NOT_RUST:
        return Token("error", start, _NOT_RUST[symbol])
    return Token("reserved", start, symbol)


def _word(word: str, start: Pos) -> Token:
    if word in KEYWORDS or word == "_":
        return Token(word, start)
    if word in RESERVED:
        return Token("reserved", start, word)
    if not is_identifier(word):
        return Token("error", start, f"Variable name is not proper: '{word}'")
    return Token("name", start, word)
