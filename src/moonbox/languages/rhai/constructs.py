"""Rhai's constructs that begin with a word or a brace, and are values like everything else there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages import program as p
from moonbox.languages.rhai.scanner import UNIT, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.languages.rhai.parser import Reader

__all__ = ["CONSTRUCTS"]


def _if(reader: Reader) -> p.Expression:
    at = reader.at
    branches: list[tuple[p.Expression | None, p.Block]] = []
    reader.at += 1
    condition = reader.expression()
    branches.append((condition, _value_block(reader)))
    while reader.accept("else"):
        if reader.accept("if"):
            condition = reader.expression()
            branches.append((condition, _value_block(reader)))
        else:
            branches.append((None, _value_block(reader)))
            break
    return p.Other(at, (p.Branches(at, tuple(branches)),))


def _value_block(reader: Reader) -> p.Block:
    """A block whose last value is not a function's result."""
    block = reader.block()
    last = block.statements[-1] if block.statements else None
    if type(last) is p.Give and reader.tokens[last.at].text != "return":
        return p.Block((*block.statements[:-1], p.Evaluate(last.at, last.values[0])))
    return block


def _block_value(reader: Reader) -> p.Expression:
    return p.Other(reader.at, (_value_block(reader),))


def _switch(reader: Reader) -> p.Expression:
    at = reader.at
    reader.at += 1
    parts: list[p.Expression | p.Statement] = [reader.expression()]
    reader.expect("{")
    while not reader.accept("}"):
        if reader.kind == "name" and reader.tokens[reader.at].text == "_":
            reader.at += 1
        else:
            while True:
                reader.expression(30)
                if not reader.accept("|"):
                    break
        if reader.accept("if"):
            parts.append(reader.expression())
        reader.expect("=>")
        parts.append(_value_block(reader) if reader.text == "{" else reader.statement())
        reader.accept(",")
    return p.Other(at, tuple(parts))


def _loop(reader: Reader) -> p.Expression:
    at = reader.at
    reader.at += 1
    return p.Other(at, (p.Loop(at, None, _value_block(reader)),))


def _while(reader: Reader) -> p.Expression:
    at = reader.at
    reader.at += 1
    condition = reader.expression()
    return p.Other(at, (p.Loop(at, condition, _value_block(reader)),))


def _do(reader: Reader) -> p.Expression:
    at = reader.at
    reader.at += 1
    body = _value_block(reader)
    if reader.text not in ("while", "until"):
        raise Unreadable
    reader.at += 1
    return p.Other(at, (p.Loop(at, None, body), reader.expression()))


def _for(reader: Reader) -> p.Expression:
    at = reader.at
    reader.at += 1
    if reader.accept("("):
        names = [reader.name()]
        reader.expect(",")
        names.append(reader.name())
        reader.expect(")")
    else:
        names = [reader.name()]
    reader.expect("in")
    source = reader.expression()
    body = _value_block(reader)
    if type(source) is p.Other and source.what == "range":
        return p.Other(at, (p.Count(at, names[0], tuple(source.parts), body),))  # type: ignore[arg-type]  # values
    return p.Other(at, (p.Each(at, tuple(names), (source,), body),))


def _try(reader: Reader) -> p.Expression:
    at = reader.at
    reader.at += 1
    guarded = p.Guarded(at, _value_block(reader))
    reader.expect("catch")
    names: tuple[str, ...] = ()
    if reader.accept("("):
        names = (reader.name(),)
        reader.expect(")")
    else:
        reader.accept(UNIT)
    handler = _value_block(reader)
    return p.Other(at, (guarded, p.Block((p.Declare(at, names, ()), *handler.statements))))


def _return(reader: Reader) -> p.Expression:
    at = reader.at
    reader.at += 1
    value = () if reader.text in (";", "}") or reader.kind == "eof" else (reader.expression(),)
    return p.Other(at, (p.Give(at, value),))


def _throw(reader: Reader) -> p.Expression:
    at = reader.at
    reader.at += 1
    if reader.text in (";", "}") or reader.kind == "eof":
        return p.Other(at, ())
    return p.Other(at, (reader.expression(),))


def _break(reader: Reader) -> p.Expression:
    at = reader.at
    reader.at += 1
    if reader.text in (";", "}", ",") or reader.kind == "eof":
        return p.Other(at, ())
    return p.Other(at, (reader.expression(),))


CONSTRUCTS: dict[str, Callable[[Reader], p.Expression]] = {
    "if": _if,
    "switch": _switch,
    "{": _block_value,
    "loop": _loop,
    "while": _while,
    "do": _do,
    "for": _for,
    "try": _try,
    "return": _return,
    "throw": _throw,
    "break": _break,
    "continue": _break,
}
