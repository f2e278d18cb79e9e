"""Operators that Lua lacks or writes otherwise."""

from __future__ import annotations

from moonbox.languages.lua.explain.corrections import corrected, is_lua, operator_at, with_line
from moonbox.languages.lua.explain.slips import Advice, FailurePoint, Rule
from moonbox.languages.lua.explain.values import operand_before
from moonbox.languages.lua.syntax.parser import expression_end

_COMPOUND = frozenset({"+", "-", "*", "/", "%", "^", "..", "//", "&", "|", "<<", ">>"})
_OF_OPERANDS = frozenset({".", ":", "nil", "true", "false"})
_MEANINGS = {
    "~=": "not equal is ~= in Lua, not {}",
    "==": "Lua compares with ==, there is no {}",
    "and": "Lua writes 'and' for {}",
    "or": "Lua writes 'or' for {}",
    "not": "Lua writes 'not' for {}",
    "^": "a power is written ^ in Lua, not {}",
}


def _compound(point: FailurePoint) -> str | None:
    """`count += 1`."""
    first, tokens = point.statement, point.tokens
    sign = point.index
    if sign <= first or point.text not in _COMPOUND or not point.follows_on_line():
        return None
    name = point.text
    equals = sign + 1
    if tokens[equals].text == point.text and point.joined(0, 1) and tokens[equals + 1].text == "=":
        name, equals = point.text * 2, sign + 2  # **=, ||= and &&=
    if tokens[equals].text != "=" or tokens[equals - 1].end != tokens[equals].start or not point.joined(0, 1):
        return None
    target = point.listing.text(first, sign)
    stop = expression_end(tokens, equals + 1)
    value = point.listing.text(equals + 1, stop) if stop else ""
    if "," in target or not value or "…" in (target, value):
        return f"Lua has no {name}=; write the whole assignment, such as: x = x {_lua(name)} y"
    if stop is not None and stop > equals + 2 and not _is_operand(point, equals + 1, stop):
        value = f"({value})"
    return f"Lua has no {name}=; write: {target} = {target} {_lua(name)} {value}"


def _lua(operator: str) -> str:
    return {"||": "or", "&&": "and", "**": "^"}.get(operator, operator)


def _is_operand(point: FailurePoint, first: int, stop: int) -> bool:
    """Whether the words are one value, so that no parentheses are needed around them."""
    outer = [point.tokens[index] for index in point.listing.outer(first, stop)]
    return not any(token.kind in ("op", "keyword") and token.text not in _OF_OPERANDS for token in outer)


def _increment(point: FailurePoint) -> Advice | str | None:
    """`i++`, and `i--`, whose `--` begins a comment."""
    first, last = point.statement, point.index - 1
    if point.index <= first:
        return None
    if point.text == "+" and point.joined(0, 1) and point.tokens[point.index + 1].text == "+":
        target = point.listing.text(first, point.index)
        return f"Lua has no ++; write: {target} = {target} + 1"
    if (
        point.failure.text == "syntax error"
        and point.listing.follows(last) == "--"
        and point.token.line > point.tokens[last].line
    ):
        target = point.listing.text(first, point.index)
        return Advice(f"Lua has no --, which begins a comment; write: {target} = {target} - 1", last)
    return None


def _foreign(point: FailurePoint) -> Advice | None:
    """`!=`, `&&`, `||`, `!x`, `===`, `**`, `<>`."""
    for index in (point.index, point.index - 1):
        operator = operator_at(point.tokens, index) if index >= 0 else None
        if operator is None or (operator.foreign == "!" and index != point.index):
            continue
        meaning = _MEANINGS[operator.lua].format(operator.foreign)
        return Advice(with_line(meaning, corrected(point.listing, point.token.line)), index)
    return None


def _optional(point: FailurePoint) -> str | None:
    """`x?.y` and `x ?? y`."""
    if point.text != "?" or not point.joined(0, 1):
        return None
    left = operand_before(point.listing, point.index)
    if point.after.text == "?":
        right = point.value(point.index + 2)
        return with_line("Lua has no ??; use or", f"{left} or {right}" if left and right else None)
    if point.after.text == ".":
        name = point.at(2)
        known = f"{left} and {left}.{name.text}" if left and name.kind == "name" else None
        return with_line("Lua has no ?.; use and", known)
    return None


def _ternary(point: FailurePoint) -> str | None:
    """`x ? a : b`."""
    if point.text != "?" or not point.ends_value(-1):
        return None
    written = corrected(point.listing, point.token.line)
    missing = "Lua has no ?: operator"
    return with_line(missing, written) if written else f"{missing}; use if … then … else … end"


def _assignment_in_condition(point: FailurePoint) -> str | None:
    """`if x = 5 then`."""
    keyword = point.tokens[point.statement].text
    if point.text != "=" or keyword not in ("if", "elseif", "while") or point.index == point.statement + 1:
        return None
    if point.after.text == ">" and point.joined(0, 1):
        return "greater or equal is >= in Lua, not =>"
    text = point.listing.line(point.token.line)
    column = point.token.column
    line = f"{text[: column - 1]}=={text[column:]}".strip() if text is not None and len(text) < 120 else None
    return with_line("= assigns; Lua compares with ==", line if line and is_lua(line) else None)


def _chained(point: FailurePoint) -> str | None:
    """`x = y = 5`, and `x := 5`."""
    if point.text != "=" or not point.follows_on_line():
        return None
    if point.before.text == ":" and point.joined(-1, 0) and point.failure.text == "<name> expected":
        target = point.listing.text(point.statement, point.index - 1)
        return f"Lua assigns with =, not :=; write: {target} = …"
    if point.index == point.statement and point.after.text != ">":
        span = point.listing.span(point.token.line)
        if any(point.tokens[index].text == "=" for index in range(span.start, point.index)):
            return "an assignment is not an expression in Lua: assign the variables one after the other"
    return None


def _membership(point: FailurePoint) -> str | None:
    """`if x in list then`."""
    if point.text != "in" or point.tokens[point.statement].text == "for":
        return None
    if not point.ends_value(-1) and point.before.text != "not":
        return None
    return (
        "Lua has no `in` operator; test a key with t[key] ~= nil, a value with a loop: "
        "for _, v in ipairs(list) do if v == x then … end end"
    )


def _identity(point: FailurePoint) -> str | None:
    """`x is None`, `x is not None`, `x instanceof Y`."""
    if not point.ends_value(-1) or point.token.kind != "name" or not point.follows_on_line():
        return None
    if point.text == "is":
        operator = "~=" if point.after.text == "not" else "=="
        return with_line(f"Lua compares with {operator}, not is", corrected(point.listing, point.token.line))
    if point.text in ("instanceof", "typeof"):
        return 'Lua compares types by name; write: type(x) == "table"'
    return None


def elsewhere(point: FailurePoint) -> str:
    """Where else operators stand that Lua does not have, so that all can be mended at once."""
    tokens, lines_of = point.tokens, dict[str, list[int]]()
    index = point.index + 1
    while index < len(tokens) - 1:
        operator = operator_at(tokens, index)
        sure = operator is not None and operator.foreign in ("!=", "!==", "===", "&&", "||", "!")
        name = operator.foreign if operator is not None and sure else _compound_at(point, index)
        if name and tokens[index].line > point.token.line:
            lines = lines_of.setdefault(name, [])
            if tokens[index].line not in lines and len(lines) < 5:
                lines.append(tokens[index].line)
        index += len(operator.words) if operator else 1
    return ", ".join(
        f"{name} on line{'s' * (len(lines) > 1)} {' and '.join(map(str, lines))}" for name, lines in lines_of.items()
    )


def _compound_at(point: FailurePoint, index: int) -> str:
    first, second = point.tokens[index], point.tokens[index + 1]
    together = first.end == second.start
    if (
        together
        and first.text in ("+", "-", "*", "/", "..")
        and second.text == "="
        and point.tokens[index - 1].kind == "name"
    ):
        return f"{first.text}="
    return "++" if together and first.text == second.text == "+" else ""


RULES: tuple[Rule, ...] = (
    _compound,
    _increment,
    _foreign,
    _optional,
    _ternary,
    _assignment_in_condition,
    _chained,
    _membership,
    _identity,
)
