"""Tables, lists and arguments written as in other languages, and values that need parentheses."""

from __future__ import annotations

from moonbox.languages.language import is_identifier
from moonbox.languages.lua.explain.corrections import with_line
from moonbox.languages.lua.explain.slips import Advice, FailurePoint, Rule
from moonbox.languages.lua.explain.values import operand_before
from moonbox.languages.lua.syntax.parser import expressions_end


def _colon_field(point: FailurePoint) -> str | None:
    """`{key: 1}`, `{"key": 1}`, `{["key"]: 1}`."""
    if point.bracket() != "{":
        return None
    first = point.part_start()
    colon = _colon_after_key(point, first)
    if colon is None or colon > point.index:
        return None
    key = _key(point, first, colon)
    value = "{…}" if _is_nested_object(point, colon + 1) else point.value(colon + 1)
    return with_line("table fields are written with =", f"{{{key} = {value or '…'}}}")


def _colon_after_key(point: FailurePoint, first: int) -> int | None:
    """Where the colon of `key:` stands if the part beginning at `first` is one."""
    token = point.tokens[first]
    if token.text == "[":
        close = point.listing.closing(first)
        colon = close + 1 if close is not None else first
    else:
        colon = first + 1
        if token.kind not in ("name", "string", "number", "keyword"):
            return None
    return colon if colon < len(point.tokens) and point.tokens[colon].text == ":" else None


def _key(point: FailurePoint, first: int, colon: int) -> str:
    token = point.tokens[first]
    if token.kind == "string":
        inner = token.text[1:-1]
        return inner if is_identifier(inner) else f"[{token.text}]"
    if token.kind == "keyword":
        return f'["{token.text}"]'
    return f"[{token.text}]" if token.kind == "number" else point.listing.text(first, colon)


def _is_nested_object(point: FailurePoint, index: int) -> bool:
    return point.tokens[index].text == "{" and _colon_after_key(point, index + 1) is not None


def _named_arguments(point: FailurePoint) -> str | None:
    """`f(a = 1)`, `f(a: 1)`."""
    if point.bracket() != "(":
        return None
    opener, first = point.failure.brackets[-1], point.part_start()
    if first + 2 >= len(point.tokens):
        return None
    sign = point.tokens[first + 1].text
    if point.tokens[first].kind != "name" or sign not in ("=", ":") or first + 1 > point.index:
        return None
    if sign == ":" and point.index != first + 2:
        return None
    if point.tokens[first + 2].text == ">":
        return None
    name = _called(point, opener)
    fields = _fields(point, opener)
    return f"named arguments are written in braces with =; write: {name}{{{fields}}}"


def _called(point: FailurePoint, opener: int) -> str:
    """The dotted name before the parenthesis."""
    first = opener - 1
    while first >= 2 and point.tokens[first].kind == "name" and point.tokens[first - 1].text in (".", ":"):
        first -= 2
    return point.listing.text(first, opener) if first >= 0 and point.tokens[first].kind == "name" else "f"


def _fields(point: FailurePoint, opener: int) -> str:
    fields = []
    for first, stop in point.listing.parts(opener) or []:
        if point.tokens[first].kind != "name" or first + 2 >= stop or point.tokens[first + 1].text not in ("=", ":"):
            return "name = value"
        fields.append(f"{point.tokens[first].text} = {point.listing.text(first + 2, stop)}")
    return ", ".join(fields) if fields and len(", ".join(fields)) <= 80 else "name = value"


def _list(point: FailurePoint) -> str | None:
    """`[1, 2, 3]`, and `[x for x in list]`."""
    if point.text != "[" or point.failure.text != "unexpected symbol" or point.index == point.statement:
        return None
    close = point.listing.closing(point.index)
    if close is None:
        return "a list is written in braces: {1, 2, 3}"
    inside = point.listing.text(point.index + 1, close)
    if any(point.tokens[index].text == "for" for index in range(point.index, close)):
        return (
            "Lua has no list comprehension; build the list in a loop: "
            "local out = {} for _, x in ipairs(list) do out[#out + 1] = x end"
        )
    if "…" in inside or "[" in inside or ":" in inside:
        return "a list is written in braces: {1, 2, 3}"
    return f"a list is written in braces; write: {{{inside}}}"


def _bare_list(point: FailurePoint) -> str | None:
    """`[1, 2, 3]` as the whole script."""
    if point.text == "[" and point.index == 0 and point.failure.text == "unexpected symbol":
        close = point.listing.closing(0)
        inside = point.listing.text(1, close) if close else ""
        plain = inside and not set("[:…") & set(inside) and " for " not in inside
        return with_line("a list is written in braces", f"return {{{inside}}}" if plain else "return {1, 2, 3}")
    return None


def _slice(point: FailurePoint) -> str | None:
    """`list[1:3]`."""
    if point.bracket() != "[":
        return None
    between = point.text == "]" and point.failure.text == "function arguments expected"
    if point.text != ":" and not between:
        return None
    return "Lua has no slices; use s:sub(first, last) for a string, {table.unpack(list, first, last)} for a list"


def _spread(point: FailurePoint) -> str | None:
    """`f(...args)`, `{...list}`."""
    before = point.before
    if before.text != "..." or point.token.kind != "name" or not point.joined(-1, 0):
        return None
    if point.bracket() not in ("(", "{"):
        return None
    return f"Lua has no spread operator; write: table.unpack({point.text})"


def _reserved(point: FailurePoint) -> str | None:
    """`t.end`, `{end = 5}`, `local end`."""
    before, after = point.before, point.after
    if point.token.kind != "keyword":
        return None
    message_text = f"'{point.text}' is a reserved word in Lua"
    if before.text == "." and point.follows_on_line():
        return f'{message_text}: use ["{point.text}"] instead of .{point.text}'
    if point.bracket() == "{" and after.text == "=" and point.part_start() == point.index:
        return f'{message_text}; write: ["{point.text}"] = …'
    if before.text in ("local", "function", "for", "goto") and point.failure.text == "<name> expected":
        return f"{message_text}: choose another name"
    return None


def _missing_comma(point: FailurePoint) -> str | None:
    """`{a = 1 b = 2}`, and lines of a table without a comma between them."""
    if point.bracket() != "{" or not point.failure.text.startswith("'}' expected") or not point.ends_value(-1):
        return None
    before = point.before
    if not (point.token.kind in ("name", "string", "number") or point.text in ("{", "[")):
        return None
    if not point.follows_on_line() and _leaves(point):
        return None
    if point.follows_on_line() and not (point.token.kind == "name" and point.after.text == "="):
        return None
    where = f"at the end of line {before.last_line}" if not point.follows_on_line() else f"before '{point.text}'"
    return f"table fields are separated by commas: one is missing {where}"


def _unclosed(point: FailurePoint) -> str | None:
    """A bracket that should have been closed before this line."""
    closes = {"'}' expected": "}", "')' expected": ")", "']' expected": "]"}
    close = next((close for text, close in closes.items() if point.failure.text.startswith(text)), None)
    if close is None or not point.failure.brackets or point.follows_on_line() or point.text == "<eof>":
        return None
    if not _leaves(point):
        return None
    opener = point.tokens[point.failure.brackets[-1]]
    return f"the {opener.text} of line {opener.line} is not closed before this line: add {close}"


def _leaves(point: FailurePoint) -> bool:
    """Whether the failing word, the first on its line, stands too far left to be inside the innermost bracket."""
    opener = point.failure.brackets[-1]
    inner, first = point.tokens[opener + 1], point.listing.span(point.tokens[opener].line).start
    if inner.line == point.tokens[opener].line:
        return point.token.column <= point.tokens[first].column
    return point.token.column < inner.column


def _double_comma(point: FailurePoint) -> str | None:
    if point.text == "," and point.before.text == "," and point.bracket() in ("{", "("):
        return "there are two commas in a row: remove one, or write nil between them"
    return None


def _trailing_comma(point: FailurePoint) -> str | None:
    """`f(a, b,)`."""
    if point.text == ")" and point.before.text == "," and point.bracket() == "(":
        return "no comma may follow the last argument: remove it"
    return None


RULES: tuple[Rule, ...] = (
    _colon_field,
    _named_arguments,
    _list,
    _bare_list,
    _slice,
    _spread,
    _reserved,
    _missing_comma,
    _unclosed,
    _double_comma,
    _trailing_comma,
)


def _literal_access(point: FailurePoint) -> str | None:
    """`"abc".upper()`, `"abc"[1]`, `{1, 2}[1]`, `", ".join(list)`."""
    before, after = point.before, point.after
    if point.text not in (".", ":", "[") or not point.follows_on_line():
        return None
    if before.kind == "string":
        literal, call = before.text, point.at(2)
        if len(literal) > 60:
            literal = '"…"'
        if point.text in (".", ":") and after.kind == "name" and call.text == "(":
            if after.text == "join":
                parts = point.listing.parts(point.index + 2)
                inner = point.listing.text(*parts[0]) if parts else "list"
                return f"Lua joins a list with a function; write: table.concat({inner}, {literal})"
            return f"to call a method on a string, put it in parentheses; write: ({literal}):{after.text}(…)"
        return f"to index a string, put it in parentheses: ({literal})" if point.text != "[" else _character(literal)
    if before.text == "}" and point.text in (".", "["):
        return "to index a table constructor, put it in parentheses: ({…})[1]"
    return None


def _character(literal: str) -> str:
    return f"strings cannot be indexed with [ ]; get one character with: ({literal}):sub(1, 1)"


def _neighbours(point: FailurePoint) -> str | None:
    """`"a" "b"` and `"a" x`, which other languages join."""
    before = point.before
    if before.kind != "string" or point.token.kind not in ("string", "name") or point.joined(-1, 0):
        return None
    if not point.follows_on_line() or point.bracket() == "{" or point.failure.text == "syntax error":
        return None
    if point.index == point.statement and point.token.kind == "name":
        return None
    left, right = point.listing.text(point.index - 1, point.index), point.listing.text(point.index, point.index + 1)
    return f"strings are joined with ..; write: {left} .. {right}"


def _method_without_call(point: FailurePoint) -> str | None:
    """`x:y` without arguments."""
    before = point.before
    if point.failure.text != "function arguments expected" or before.kind != "name":
        return None
    if point.index < 3 or point.tokens[point.index - 2].text != ":" or point.bracket() == "{":
        return None
    owner = operand_before(point.listing, point.index - 2) or "x"
    method, field = f"{owner}:{before.text}()", f"{owner}.{before.text}"
    return f"a colon calls a method and needs parentheses: {method}; read a field with a dot: {field}"


def _missing_return(point: FailurePoint) -> Advice | str | None:
    """An expression as the last line."""
    if (
        point.failure.text not in ("syntax error", "unexpected symbol")
        or point.failure.blocks
        or point.failure.after_return
    ):
        return None
    first = point.statement
    if point.failure.text == "unexpected symbol" and point.index != first:
        return None
    stop = expressions_end(point.tokens, first)
    if stop is None or (first and not _begins_line(point, first)):
        return None
    text = point.listing.text(first, stop)
    end = point.tokens[stop]
    if text == "…":
        return "an expression is not a statement: return its value, or assign it"
    if end.kind == "eof" or (end.text == ";" and point.tokens[stop + 1].kind == "eof"):
        return Advice(f"the last line is an expression; write: return {text}", first)
    if end.line > point.tokens[stop - 1].last_line and point.text == "==":
        left, right = point.listing.text(first, point.index), point.listing.text(point.index + 1, stop)
        return f"== compares, = assigns; to assign write: {left} = {right}"
    if end.line > point.tokens[stop - 1].last_line and stop > first + 1:
        return f"an expression is not a statement; use its value, for example: local result = {text}"
    return None


def _begins_line(point: FailurePoint, index: int) -> bool:
    return point.tokens[index - 1].last_line < point.tokens[index].line or point.tokens[index - 1].text == ";"


EXPRESSION_RULES: tuple[Rule, ...] = (_literal_access, _neighbours, _method_without_call, _missing_return)
