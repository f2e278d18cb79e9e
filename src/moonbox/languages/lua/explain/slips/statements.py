"""Statements and functions written as in other languages."""

from __future__ import annotations

from moonbox.languages.lua.explain.corrections import DECLARATIONS, corrected, with_line
from moonbox.languages.lua.explain.slips import Advice, FailurePoint, Rule
from moonbox.languages.lua.syntax.parser import expression_end
from moonbox.languages.lua.vocabulary import equivalents
from moonbox.suggest import nearest

_CONTINUE = "Lua has no continue; write goto continue here and ::continue:: on a line of its own before the loop's end"
_TYPES = frozenset(
    {"int", "float", "double", "bool", "boolean", "auto", "number", "char", "dynamic", "final", "my", "mut"}
)


def _continue(point: FailurePoint) -> Advice | None:
    word = point.tokens[point.statement]
    if word.kind != "name" or word.text != "continue" or point.index != point.statement + 1:
        return None
    looping = any(point.within(loop) for loop in ("for", "while", "repeat"))
    return Advice(_CONTINUE, point.statement) if looping else None


def _declaration(point: FailurePoint) -> str | None:
    """`const x = 5`, `let x`, `int x = 5`."""
    word = point.tokens[point.statement]
    second = point.index == point.statement + 1 and point.follows_on_line()
    if not second or word.kind != "name" or point.token.kind != "name":
        return None
    if word.text in DECLARATIONS:
        return with_line("variables are declared with local", corrected(point.listing, word.line))
    if word.text in _TYPES and point.after.text == "=":
        stop = expression_end(point.tokens, point.index + 2)
        line = f"local {point.listing.text(point.index, stop)}" if stop else None
        return with_line("variables are declared with local, without a type", line)
    return None


def _destructured(point: FailurePoint) -> str | None:
    """`local {a, b} = t`, `const [a, b] = t`."""
    word, opener = point.tokens[point.statement], point.statement + 1
    if word.text not in (*DECLARATIONS, "local") or point.tokens[opener].text not in ("{", "["):
        return None
    close = point.listing.closing(opener)
    if close is None or point.tokens[close + 1].text != "=":
        return None
    names = [point.tokens[first].text for first, stop in point.listing.parts(opener) or [] if stop == first + 1]
    stop = expression_end(point.tokens, close + 2)
    source = point.listing.text(close + 2, stop) if stop else "t"
    if stop is not None and stop > close + 3:
        source = "t"
    if not names or len(names) > 6:
        return "Lua has no destructuring; write: local a, b = t.a, t.b"
    if point.tokens[opener].text == "{":
        values = ", ".join(f"{source}.{name}" for name in names)
    else:
        values = ", ".join(f"{source}[{number}]" for number in range(1, len(names) + 1))
    return f"Lua has no destructuring; write: local {', '.join(names)} = {values}"


def _elif(point: FailurePoint) -> Advice | None:
    for index in (point.statement, point.index):  # behind a return on the same line it is not where a statement begins
        word = point.tokens[index]
        if word.text in ("elif", "elsif", "elseIf") and word.kind == "name" and point.within("if"):
            written = corrected(point.listing, word.line)
            return Advice(with_line(f"Lua writes elseif, not {word.text}", written), index)
    return None


def _statement_word(point: FailurePoint) -> Advice | None:
    """A statement that opens with a keyword of another language."""
    word = point.tokens[point.statement]
    if word.kind != "name" or (point.index <= point.statement and not point.failure.after_return):
        return None
    follower = point.tokens[point.statement + 1]
    if word.text not in equivalents().statements or follower.text in ("=", ".", ",", "["):
        return None
    calls = follower.text in ("(", "{", ":") or follower.kind == "string"
    if calls and word.text not in ("try", "catch", "switch", "except", "finally", "import", "class", "with"):
        return None
    if not calls and point.index > point.statement + 1:
        return None
    return Advice(equivalents().statements[word.text], point.statement)


def _raised(point: FailurePoint) -> str | None:
    """`throw new Error("x")`, `raise ValueError(…)`, `delete t.x`, `del t[1]`, `print x`."""
    word = point.tokens[point.statement]
    if point.index != point.statement + 1 or word.kind != "name" or not point.follows_on_line():
        return None
    value = point.value(point.index)
    match word.text:
        case "throw" | "raise":
            return 'Lua raises errors with a function; write: error("what went wrong")'
        case "delete" | "del" if value:
            return f"Lua removes a field by setting it to nil; write: {value} = nil"
        case "print" | "assert" if value:
            return f"{word.text} is a function; write: {word.text}({value})"
        case "new":
            return "Lua has no new; call the function that creates the value"
    return None


def _prefix_word(point: FailurePoint) -> str | None:
    """`return await f()`, `local n = new Map()`, `typeof x == …`: the word before the failing one is no value."""
    before = point.before
    if before.kind != "name" or point.token.kind != "name" or not point.follows_on_line():
        return None
    match before.text:
        case "await" | "async":
            return equivalents().statements["await"].replace("await", before.text)
        case "new":
            return "Lua has no new; call the function that creates the value"
        case "typeof":
            return f"type is a function in Lua; write: type({point.text})"
    return None


def _semicolon_block(point: FailurePoint) -> str | None:
    """`try { … }` and `switch (x) { … }`, whose braces Lua reads as a table."""
    for opener in point.failure.brackets:
        if point.tokens[opener].text != "{" or opener == 0:
            continue
        word = point.tokens[opener - 1].text
        if word in ("try", "finally"):
            return equivalents().statements["try"]
        if point.tokens[point.statement].text == "switch":
            return equivalents().statements["switch"]
    return None


def _import_path(point: FailurePoint) -> str | None:
    """`#include`, `using x`, `use x`."""
    included = point.text == "#" and point.index == point.statement and point.after.text == "include"
    return equivalents().statements["import"] if included else None


_FUNCTION_WORDS = frozenset({"def", "func", "fn", "fun", "sub", "procedure"})


def _definition(point: FailurePoint) -> str | None:
    """`def total(items):`."""
    word, name, opener = point.statement, point.statement + 1, point.statement + 2
    if point.index != name or point.tokens[word].text not in _FUNCTION_WORDS or point.token.kind != "name":
        return None
    names = _parameters(point, opener)
    line = f"function {point.text}({', '.join(names)}) … end" if names is not None else "function name(a, b) … end"
    return f"Lua defines a function with function … end; write: {line}"


def _arrow(point: FailurePoint) -> str | None:
    """`x => x * 2`, `(a, b) => a + b`, also with ->."""
    tokens = point.tokens
    close = (
        point.listing.closing(point.failure.brackets[-1])
        if point.bracket() == "(" and point.text in (",", ")")
        else None
    )
    for sign in (point.index, point.index - 1, -1 if close is None else close + 1):
        if sign < 1 or tokens[sign].text not in ("=", "-") or tokens[sign + 1].text != ">":
            continue
        if tokens[sign].end != tokens[sign + 1].start:
            continue
        names, start = _parameters_before(point, sign)
        if names is None or (start > 0 and tokens[start - 1].text in ("if", "while", "elseif")):
            return None
        if start > 0 and tokens[start - 1].kind == "name" and tokens[sign].text == "-":
            return "Lua has no type annotations: remove -> and the type"
        body = _body(point, sign + 2)
        return f"Lua has no {tokens[sign].text}> functions; write: function({', '.join(names)}) {body} end"
    return None


def _parameters_before(point: FailurePoint, sign: int) -> tuple[list[str] | None, int]:
    """The parameters that end before the arrow, and where they begin."""
    last = sign - 1
    if point.tokens[last].kind == "name":
        return [point.tokens[last].text], last
    if point.tokens[last].text != ")":
        return None, last
    opener = last - 1
    while opener >= 0 and point.tokens[opener].text != "(" and last - opener < 40:
        opener -= 1
    names = _parameters(point, opener) if opener >= 0 and point.tokens[opener].text == "(" else None
    if names is not None and opener > 0 and point.tokens[opener - 1].text == "function":
        opener -= 1
    return names, opener


def _lambda(point: FailurePoint) -> str | None:
    """`lambda x: x * 2`."""
    span = point.listing.span(point.token.line)
    for index in range(span.start, min(point.index, span.stop)):
        if point.tokens[index].text != "lambda" or point.tokens[index].kind != "name":
            continue
        colon = next((at for at in range(index + 1, span.stop) if point.tokens[at].text == ":"), None)
        if colon is None:
            continue
        names = [point.tokens[at].text for at in range(index + 1, colon) if point.tokens[at].kind == "name"]
        return f"Lua has no lambda; write: function({', '.join(names)}) {_body(point, colon + 1)} end"
    return None


def _body(point: FailurePoint, first: int) -> str:
    if point.tokens[first].text == "{":
        return "…"
    return f"return {point.value(first) or '…'}"


def _parameter(point: FailurePoint) -> str | None:
    """Types, defaults and rest parameters inside the parentheses of a function."""
    opener = _header(point)
    if opener is None or point.failure.text != "')' expected":
        return None
    if point.text == ":":
        names = _names_until(point, opener)
        keyword = _keyword(point, opener)
        if keyword and point.tokens[keyword - 1].text == "local":
            keyword -= 1
        header = point.listing.text(keyword, opener)
        return with_line("Lua has no type annotations", f"{header}({', '.join(names)})" if names else None)
    before = point.before
    if point.text == "=":
        value = point.value(point.index + 1) or "…"
        default = f"if {before.text} == nil then {before.text} = {value} end"
        return f"Lua has no default values for parameters; begin the body with: {default}"
    if before.text == "..." and point.token.kind == "name":
        return f"Lua's rest parameter has no name; write ... there and in the body: local {point.text} = {{...}}"
    return None


def _header(point: FailurePoint) -> int | None:
    """The opening parenthesis of the function header in which the failing word stands."""
    for index in range(point.index - 1, max(-1, point.index - 60), -1):
        text = point.tokens[index].text
        if text == "(":
            return index if point.tokens[_keyword(point, index)].text == "function" else None
        if text in (")", "{", "}"):
            return None
    return None


def _keyword(point: FailurePoint, opener: int) -> int:
    """Where `function` stands if the parenthesis is that of a function's header."""
    index = opener - 1
    while index > 1 and point.tokens[index].kind == "name" and point.tokens[index - 1].text in (".", ":"):
        index -= 2
    return index - 1 if index > 0 and point.tokens[index].kind == "name" else max(index, 0)


def _names_until(point: FailurePoint, opener: int) -> list[str]:
    """The parameters' names, without what stands behind their colons."""
    parts = point.listing.parts(opener)
    return [point.tokens[first].text for first, _ in parts] if parts else []


def _typed_local(point: FailurePoint) -> str | None:
    """`local x: number = 5`, `function f(): number`."""
    before = point.before
    if point.text != ":" or point.index != point.statement or not point.follows_on_line():
        return None
    if point.after.kind != "name":
        return None
    if before.text == ")":
        return "Lua has no type annotations: remove the colon and the type"
    if before.kind == "name" and point.index >= 2 and point.tokens[point.index - 2].text in ("local", ","):
        value = point.value(point.index + 3) if point.at(2).text == "=" else ""
        return f"Lua has no type annotations; write: local {before.text}{f' = {value}' if value else ''}"
    return None


def _nameless(point: FailurePoint) -> str | None:
    """`function (x) … end` as a statement, and `local f = function f(x)`."""
    if point.before.text != "function":
        return None
    if point.failure.text == "<name> expected" and point.text == "(":
        names = _parameters(point, point.index)
        return f"a function needs a name here; write: local function name({_joined(names)}) … end"
    if point.failure.text == "'(' expected" and point.token.kind == "name":
        names = _parameters(point, point.index + 1)
        return f"a function expression has no name; write: function({_joined(names)}) … end"
    return None


def _joined(names: list[str] | None) -> str:
    return "…" if names is None else ", ".join(names)


def _parameters(point: FailurePoint, opener: int) -> list[str] | None:
    """The names in parentheses; None when there are other things between them."""
    parts = point.listing.parts(opener) if point.tokens[opener].text == "(" else None
    if parts is None or any(
        point.tokens[first].kind != "name" and point.tokens[first].text != "..." for first, _ in parts
    ):
        return None
    return [point.tokens[first].text for first, _ in parts]


def misspelled(point: FailurePoint) -> Advice | None:
    """`retrun x`, `if x tehn`."""
    for index in (point.index, point.statement):
        word = point.tokens[index]
        keywords = nearest(word.text, _LONG_KEYWORDS) if word.kind == "name" else []
        if keywords and point.index <= index + 1:
            return Advice(f"did you mean {keywords[0]}?", index)
    return None


_LONG_KEYWORDS = ("else", "elseif", "function", "local", "repeat", "return", "then", "until", "while")

RULES: tuple[Rule, ...] = (
    _continue,
    _destructured,
    _declaration,
    _elif,
    _statement_word,
    _raised,
    _prefix_word,
    _semicolon_block,
    _import_path,
    _definition,
    _arrow,
    _lambda,
    _parameter,
    _typed_local,
    _nameless,
)
