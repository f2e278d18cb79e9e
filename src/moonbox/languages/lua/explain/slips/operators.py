"""Operators that Lua lacks or writes otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages.lua.explain.grammar import expression_end
from moonbox.languages.lua.explain.mend import is_lua, mended, operator_at, with_line
from moonbox.languages.lua.explain.site import operand_before
from moonbox.languages.lua.explain.slips.spot import Advice

if TYPE_CHECKING:
    from moonbox.languages.lua.explain.slips.spot import Rule, Spot

__all__ = ["RULES", "elsewhere"]

_COMPOUND = frozenset({"+", "-", "*", "/", "%", "^", "..", "//", "&", "|", "<<", ">>"})
_MEANINGS = {
    "~=": "not equal is ~= in Lua, not {}",
    "==": "Lua compares with ==, there is no {}",
    "and": "Lua writes 'and' for {}",
    "or": "Lua writes 'or' for {}",
    "not": "Lua writes 'not' for {}",
    "^": "a power is written ^ in Lua, not {}",
}


def _compound(spot: Spot) -> str | None:
    """`count += 1`."""
    first, tokens = spot.statement, spot.tokens
    sign = spot.index
    if sign <= first or spot.text not in _COMPOUND or not spot.follows_on_line():
        return None
    name = spot.text
    equals = sign + 1
    if tokens[equals].text == spot.text and spot.joined(0, 1) and tokens[equals + 1].text == "=":
        name, equals = spot.text * 2, sign + 2  # **=, ||= and &&=
    if tokens[equals].text != "=" or tokens[equals - 1].end != tokens[equals].start or not spot.joined(0, 1):
        return None
    target = spot.listing.text(first, sign)
    stop = expression_end(tokens, equals + 1)
    value = spot.listing.text(equals + 1, stop) if stop else ""
    if "," in target or not value or "…" in (target, value):
        return f"Lua has no {name}=; write the whole assignment, such as: x = x {_lua(name)} y"
    if stop is not None and stop > equals + 2 and not _is_operand(spot, equals + 1, stop):
        value = f"({value})"
    return f"Lua has no {name}=; write: {target} = {target} {_lua(name)} {value}"


def _lua(operator: str) -> str:
    return {"||": "or", "&&": "and", "**": "^"}.get(operator, operator)


def _is_operand(spot: Spot, first: int, stop: int) -> bool:
    """Whether the words are one value, so that no parentheses are needed around them."""
    depth = 0
    for index in range(first, stop):
        token = spot.tokens[index]
        if token.text in ("(", "[", "{"):
            depth += 1
        elif token.text in (")", "]", "}"):
            depth -= 1
        elif (
            depth == 0
            and (token.text in ("and", "or", "not", "function") or token.kind == "op")
            and token.text not in (".", ":")
        ):
            return False
    return True


def _increment(spot: Spot) -> Advice | str | None:
    """`i++`, and `i--`, whose `--` begins a comment."""
    first, last = spot.statement, spot.index - 1
    if spot.index <= first:
        return None
    if spot.text == "+" and spot.joined(0, 1) and spot.tokens[spot.index + 1].text == "+":
        target = spot.listing.text(first, spot.index)
        return f"Lua has no ++; write: {target} = {target} + 1"
    if (
        spot.failure.text == "syntax error"
        and spot.listing.follows(last) == "--"
        and spot.token.line > spot.tokens[last].line
    ):
        target = spot.listing.text(first, spot.index)
        return Advice(f"Lua has no --, which begins a comment; write: {target} = {target} - 1", last)
    return None


def _foreign(spot: Spot) -> Advice | None:
    """`!=`, `&&`, `||`, `!x`, `===`, `**`, `<>`."""
    for index in (spot.index, spot.index - 1):
        operator = operator_at(spot.tokens, index) if index >= 0 else None
        if operator is None or (operator.foreign == "!" and index != spot.index):
            continue
        meaning = _MEANINGS[operator.lua].format(operator.foreign)
        return Advice(with_line(meaning, mended(spot.listing, spot.token.line)), index)
    return None


def _optional(spot: Spot) -> str | None:
    """`x?.y` and `x ?? y`."""
    if spot.text != "?" or spot.after is None or not spot.joined(0, 1):
        return None
    left = operand_before(spot.listing, spot.index)
    if spot.after.text == "?":
        stop = expression_end(spot.tokens, spot.index + 2)
        right = spot.listing.text(spot.index + 2, stop) if stop else ""
        return with_line("Lua has no ??; use or", f"{left} or {right}" if left and right else None)
    if spot.after.text == ".":
        name = spot.at(2)
        known = f"{left} and {left}.{name.text}" if left and name is not None and name.kind == "name" else None
        return with_line("Lua has no ?.; use and", known)
    return None


def _ternary(spot: Spot) -> str | None:
    """`x ? a : b`."""
    if spot.text != "?" or not spot.ends_value(-1):
        return None
    explanation = "Lua has no ?: operator; use and … or"
    tokens, line = spot.tokens, spot.token.line
    span = spot.listing.span(line)
    colon = next((index for index in range(spot.index, span.stop) if tokens[index].text == ":"), None)
    start = _value_start(spot, span.start)
    if colon is None or start is None:
        return explanation
    stop = expression_end(tokens, colon + 1)
    condition, yes = spot.listing.text(start, spot.index), spot.listing.text(spot.index + 1, colon)
    no = spot.listing.text(colon + 1, stop) if stop else ""
    if not (condition and yes and no) or yes in ("false", "nil") or "?" in no:
        return "Lua has no ?: operator; use if … then … else … end"
    return with_line(explanation, f"{condition} and {yes} or {no}")


def _value_start(spot: Spot, floor: int) -> int | None:
    """Where the value begins that ends before the failing word, on the same line."""
    depth = 0
    for index in range(spot.index - 1, floor - 1, -1):
        text = spot.tokens[index].text
        if text in (")", "]", "}"):
            depth += 1
        elif text in ("(", "[", "{"):
            if depth == 0:
                return index + 1
            depth -= 1
        elif depth == 0 and text in ("=", "return", ",", ";", ".."):
            return index + 1
    return None


def _assignment_in_condition(spot: Spot) -> str | None:
    """`if x = 5 then`."""
    keyword = spot.tokens[spot.statement].text
    if spot.text != "=" or keyword not in ("if", "elseif", "while") or spot.index == spot.statement + 1:
        return None
    if spot.after is not None and spot.after.text == ">" and spot.joined(0, 1):
        return "greater or equal is >= in Lua, not =>"
    text = spot.listing.line(spot.token.line)
    column = spot.token.column
    line = f"{text[: column - 1]}=={text[column:]}".strip() if text is not None and len(text) < 120 else None
    return with_line("= assigns; Lua compares with ==", line if line and is_lua(line) else None)


def _chained(spot: Spot) -> str | None:
    """`x = y = 5`, and `x := 5`."""
    if spot.text != "=" or spot.before is None or not spot.follows_on_line():
        return None
    if spot.before.text == ":" and spot.joined(-1, 0) and spot.failure.text == "<name> expected":
        target = spot.listing.text(spot.statement, spot.index - 1)
        return f"Lua assigns with =, not :=; write: {target} = …"
    if spot.index == spot.statement and spot.after is not None and spot.after.text != ">":
        span = spot.listing.span(spot.token.line)
        if any(spot.tokens[index].text == "=" for index in range(span.start, spot.index)):
            return "an assignment is not a value in Lua: assign one variable after the other"
    return None


def _membership(spot: Spot) -> str | None:
    """`if x in list then`."""
    if spot.text != "in" or spot.tokens[spot.statement].text == "for" or spot.before is None:
        return None
    if not spot.ends_value(-1) and spot.before.text != "not":
        return None
    return (
        "Lua has no `in` test; a key is tested with t[key] ~= nil, a value in a loop: "
        "for _, v in ipairs(list) do if v == x then … end end"
    )


def _identity(spot: Spot) -> str | None:
    """`x is None`, `x is not None`, `x instanceof Y`."""
    if not spot.ends_value(-1) or spot.token.kind != "name" or not spot.follows_on_line() or spot.after is None:
        return None
    if spot.text == "is":
        negated = spot.after.text == "not"
        value = spot.at(2 if negated else 1)
        known = {"None": "nil", "nil": "nil", "null": "null", "True": "true", "False": "false"}.get(
            value.text if value else ""
        )
        left = operand_before(spot.listing, spot.index)
        operator = "~=" if negated else "=="
        return with_line(
            f"Lua compares with {operator}, not is", f"{left} {operator} {known}" if left and known else None
        )
    if spot.text in ("instanceof", "typeof"):
        return 'Lua tells types by name; write: type(x) == "table"'
    return None


def elsewhere(spot: Spot) -> str:
    """Where else operators stand that Lua does not have, so that all can be mended at once."""
    tokens, found = spot.tokens, dict[str, list[int]]()
    index = spot.index + 1
    while index < len(tokens) - 1:
        operator = operator_at(tokens, index)
        sure = operator is not None and operator.foreign in ("!=", "!==", "===", "&&", "||", "!")
        name = operator.foreign if operator is not None and sure else _compound_at(spot, index)
        if name and tokens[index].line > spot.token.line:
            lines = found.setdefault(name, [])
            if tokens[index].line not in lines and len(lines) < 5:
                lines.append(tokens[index].line)
        index += len(operator.words) if operator else 1
    return ", ".join(
        f"{name} on line{'s' * (len(lines) > 1)} {' and '.join(map(str, lines))}" for name, lines in found.items()
    )


def _compound_at(spot: Spot, index: int) -> str:
    first, second = spot.tokens[index], spot.tokens[index + 1]
    together = first.end == second.start
    if (
        together
        and first.text in ("+", "-", "*", "/", "..")
        and second.text == "="
        and spot.tokens[index - 1].kind == "name"
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
