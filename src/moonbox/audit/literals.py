"""Literals beside hidden names: in texts, as in `cvv = 123`, and in scripts, whatever the shape of the value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from moonbox.languages.registry import DEFAULT_LANGUAGE, LANGUAGES

if TYPE_CHECKING:
    from moonbox.languages.language import Lexis

_SEPARATOR = re.compile(r"=>|[~!]=|={1,3}|:=?|\t")
_AROUND_NAME = " \t\r\n\"'`]\\"
_LONGEST_NAME = 120
_NAME_BACKWARDS = re.compile(r"[\w-]+(?: [\w-]+){0,2}")
_VALUE = re.compile(
    r"""\s{0,20}(?:
        "(?P<double>(?:[^"\\]|\\.)*+)" | '(?P<single>(?:[^'\\]|\\.)*+)' | `(?P<back>[^`]*+)`
        | (?P<bracket>[(\[{])
        | (?:(?i:bearer|basic)[ ]{1,3})?\\?["'`]?(?P<bare>[^\s,;&|(){}\[\]<>"'`\\]++)
    )""",
    re.VERBOSE | re.DOTALL,
)
_IN_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[()\[\]{}]', re.DOTALL)


def folded(name: str) -> str:
    """The name as names are compared: letter case, `_`, `-` and spaces do not count."""
    return name.casefold().replace("_", "").replace("-", "").replace(" ", "")


class LiteralRedaction:
    """Replaces the value after each name that `hides`, which gets it folded, says yes to: a word, a text in quotes, or
    all that is in brackets. The time grows with the text.
    """

    def __init__(self, hides: Callable[[str], bool], replacement: str) -> None:
        self._hides, self.replacement = cache(hides), replacement

    def text(self, text: str) -> str:
        parts: list[str] = []
        done = 0
        for separator in _SEPARATOR.finditer(text):
            if separator.start() < done:
                continue
            if not self.ends_with_hidden(text[max(0, separator.start() - _LONGEST_NAME) : separator.start()]):
                continue
            found = _VALUE.match(text, separator.end())
            if found is None or not found[kind := found.lastgroup or "bare"]:
                continue
            start, end = found.span(kind)
            if kind == "bracket":
                start, end = end, _closed(text, end)
            if end > start:
                parts += (text[done:start], self.replacement)
                done = end
        return "".join((*parts, text[done:])) if parts else text

    def ends_with_hidden(self, before: str) -> bool:
        """Whether this text ends with a hidden name, of up to three words."""
        name = _NAME_BACKWARDS.match(before.rstrip(_AROUND_NAME)[::-1])
        if name is None:
            return False
        words = name[0][::-1].split(" ")
        return any(self._hides(folded(" ".join(words[start:]))) for start in range(len(words)))


def _closed(text: str, start: int) -> int:
    """Where a bracket that begins before `start` is closed; where it never is, the end of the text."""
    depth = 1
    for mark in _IN_BRACKETS.finditer(text, start):
        if mark[0][0] != '"':
            depth += 1 if mark[0] in "([{" else -1
            if not depth:
                return mark.start()
    return len(text)


_REST = r"""
  | (?P<number> \.?\d[\w.]*+)
  | (?P<name> [^\W\d]\w*+)
  | (?P<open> \#?[(\[{])
  | (?P<close> [)\]}])
  | (?P<gap> (?:[^\S\n]|\\\r?\n)++)
  | (?P<line> \n)
  | (?P<separator> =>|[~!]=|==?=?|:=?)
  | (?P<end> [,;])
  | (?P<operator> .)
"""
_PREFIXES = "[bBfFrRuU]{0,2}"
_PATTERNS = {name: re.compile(each.lexis.tokens + _REST, re.VERBOSE | re.DOTALL) for name, each in LANGUAGES.items()}
_EDGE = re.compile(_PREFIXES + r"(?:\"\"\"|'''|[\"'`]|\[=*\[|\#++\")")
_LITERALS = ("string", "number")
_TRUTH = ("true", "false", "True", "False")
_INFIX = {"and", "or", "not", "if", "else", "in", "is"}
"""Words that go on with a value, after another one."""
_PREFIX = {"not", "await", "lambda", "if", "switch", "function"}
_OPENING, _CLOSING = {"function", "if", "do", "repeat"}, {"end", "until"}
"""Words that open and close blocks in the body of a function, which may be a value."""
_BEFORE_ARGUMENTS = "([{,.="


class _Token(NamedTuple):
    kind: str
    end: int
    text: str


@dataclass(slots=True)
class _Value:
    """The value of a hidden name, while it is read."""

    several: bool
    """Whether it may be a list without brackets, as in `user, password = "a", "b"`."""
    depth: int = 0
    block: bool = False
    """Whether it is an `if` or `switch` in whose blocks it continues."""
    complete: bool = False
    """Whether the tokens so far are a value, so that a statement may follow."""
    arguments: list[bool] = field(default_factory=list)
    """Of each bracket: whether it has arguments or an index."""


def redact_source(text: str, language: str, literals: LiteralRedaction) -> tuple[str, list[str]]:
    """The script without the literals in values of hidden names, and those literals that may be such a value.

    Strings and comments are texts of their own, in which names may stand too. The time grows with the script.
    """
    parts: list[str] = []
    found: list[str] = []
    names: list[_Token] = []  # the latest tokens, without gaps
    value: _Value | None = None
    after_gap = False
    known = language if language in LANGUAGES else DEFAULT_LANGUAGE
    lexis = LANGUAGES[known].lexis
    for token in _tokens(text, _PATTERNS[known]):
        if token.kind in ("gap", "line", "comment"):
            ends_line = token.kind == "line" and lexis.lines_end
            value = None if value is not None and ends_line and value.complete and not value.depth else value
            parts.append(literals.text(token.text) if token.kind == "comment" else token.text)
            after_gap = True
            continue
        if value is not None and _ends(value, token, lexis, after_gap):
            value = None
        hidden = value is not None and (token.kind in _LITERALS or token.text in _TRUTH)
        if value is not None:
            if hidden and not (value.arguments and value.arguments[-1]) and token.kind in _LITERALS:
                found.append(token.text)
            _advance(value, token, lexis)
        elif token.kind == "separator" or (token.text == "in" and token.kind == "name"):
            value = _value_of(names, token, literals, text, lexis)
        parts.append(_shown(token, literals, hidden=hidden))
        names = [*names[-_MOST_NAMES:], token]
        after_gap = False
    return "".join(parts), [content for literal in found if (content := _quoted(literal)[1])]


_MOST_NAMES = 40


def _tokens(text: str, pattern: re.Pattern[str]) -> Iterator[_Token]:
    place = 0
    while found := pattern.match(text, place):
        kind, end = found.lastgroup or "operator", found.end()
        if kind == "begin":
            kind, end = _long(text, found[0], end)
        yield _Token(kind, end, text[place:end])
        place = end


def _long(text: str, opening: str, start: int) -> tuple[str, int]:
    """The kind and the end of a text between long brackets; without a closing one it has the rest of the script."""
    if opening == "/*":
        depth = 1
        for mark in re.compile(r"/\*|\*/").finditer(text, start):
            depth += 1 if mark[0] == "/*" else -1
            if not depth:
                return "comment", mark.end()
        return "comment", len(text)
    bare = opening.removeprefix("--").lstrip("bBfFrRuU")
    closing = bare.replace("[", "]") if bare.startswith("[") else '"' + bare[:-1] if bare.startswith("#") else bare
    end = text.find(closing, start)
    return "comment" if opening.startswith("-") else "string", len(text) if end < 0 else end + len(closing)


def _value_of(
    names: list[_Token], separator: _Token, literals: LiteralRedaction, text: str, lexis: Lexis
) -> _Value | None:
    """What begins after a separator, if the name before it is hidden."""
    if lexis.word_blocks and separator.text == ":" and re.match(r"\w+\s{0,20}[({\"'\[]", text[separator.end :][:200]):
        return None  # a method
    left = names[:]
    targets = [_target(left)]
    while left and left[-1].text == ",":
        left.pop()
        targets.append(_target(left))
    is_list = len(targets) > 1 and separator.text in ("=", "in") and not (left and left[-1].text in _BEFORE_ARGUMENTS)
    wanted = [name for target in (targets if is_list else targets[:1]) for name in target]
    return _Value(several=is_list) if any(map(literals.ends_with_hidden, wanted)) else None


def _target(left: list[_Token]) -> list[str]:
    """Take what is assigned to, such as `t.a["b"]`, from the end of these tokens; the names in it."""
    names: list[str] = []
    depth, after = 0, ""
    while left and (depth or left[-1].kind in ("name", "string", "close", "open") or left[-1].text == "."):
        kind = left[-1].kind
        depth += (kind == "close") - (kind == "open")
        if depth < 0 or (not depth and kind == after == "name"):
            break
        token = left.pop()
        after = token.kind
        if after in ("name", "string"):
            names.append(token.text)
    return names


def _ends(value: _Value, token: _Token, lexis: Lexis, after_gap: bool) -> bool:
    """Whether a token no longer belongs to the value."""
    if value.depth:
        return False
    if token.kind == "close" or token.text in _CLOSING:
        return True
    if token.kind == "end":
        return not (value.several and token.text == ",")
    if lexis.lines_end and token.text == ":":
        return True
    if not value.complete:
        return False
    if token.kind == "open":
        return lexis.block_values and token.text == "{" and not value.block
    if token.kind == "name" and token.text in _INFIX:
        return token.text == "if" and not lexis.lines_end
    return after_gap and token.kind in ("name", "number")


def _advance(value: _Value, token: _Token, lexis: Lexis) -> None:
    if token.kind == "open":
        value.arguments.append(value.complete and token.text[-1] in "([")
    elif token.kind == "close" and value.arguments:
        value.arguments.pop()
    is_word = token.kind == "name"
    opens = token.kind == "open" or (
        lexis.word_blocks and is_word and token.text in (_OPENING if value.depth else {"function"})
    )
    closes = token.kind == "close" or (lexis.word_blocks and is_word and token.text in _CLOSING)
    value.depth += opens - closes
    value.block = value.block or (lexis.block_values and not value.complete and token.text in ("if", "switch"))
    joins = is_word and token.text in (_INFIX | _PREFIX)
    value.complete = token.kind in ("string", "number", "close") or closes or (is_word and not joins and not opens)


def _shown(token: _Token, literals: LiteralRedaction, *, hidden: bool) -> str:
    if token.kind != "string":
        return literals.replacement if hidden else token.text
    if not hidden:
        return literals.text(token.text)
    opening, content, closing = _quoted(token.text)
    return f"{opening}{literals.replacement if content else ''}{closing}"


def _quoted(text: str) -> tuple[str, str, str]:
    """A string's quotes and content; an incomplete one has no second quotes."""
    edge = _EDGE.match(text)
    opening = edge[0] if edge else ""
    closing = opening.lstrip("bBfFrRuU").replace("[", "]")[::-1]
    if len(text) < len(opening) + len(closing) or not text.endswith(closing):
        closing = ""
    return opening, text[len(opening) : len(text) - len(closing)], closing
