"""Loops over lists and objects: what their variables are, and what cannot be gone over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.check import reads, slips
from moonbox.check.values import (
    LIST,
    OBJECT,
    TABLES,
    Data,
    Library,
    Made,
    Mapped,
    Results,
    Scalar,
    ToolValue,
    element,
    kinds_of,
)
from moonbox.languages import program as p

if TYPE_CHECKING:
    from moonbox.check.values import Value
    from moonbox.check.walk import Walk

__all__ = ["iteration"]


def iteration(walk: Walk, node: p.Each) -> tuple[Value, ...]:
    """What the variables of a loop are."""
    source = node.values[0] if node.values else None
    for value in node.values[1:]:
        walk.value(value)
    if source is None:
        return ()
    if type(source) is p.Call and type(source.function) is p.Name and len(source.arguments) == 1:
        name, argument = source.function.name, source.arguments[0]
        if name in ("ipairs", "pairs") and walk.value(source.function) == Library(name):
            return _pairs(walk, node, name, argument)
    looped = walk.value(source)
    if walk.language.runtime is not None:
        return _elements(walk, node, source, looped)
    _check_loop(walk, node, source, looped)
    return ()


def _check_loop(walk: Walk, node: p.Each, source: p.Expression, value: Value) -> None:
    """A loop over something without ipairs or pairs."""
    text = walk.text(source)
    if isinstance(value, Data | Results | Made):
        kinds = kinds_of(value)
        if isinstance(value, Made) or (kinds and kinds <= TABLES):
            function = "pairs" if kinds == OBJECT else "ipairs"
            names = ", ".join(node.names if len(node.names) > 1 else ("_", *node.names))
            hint = f"write: for {names} in {function}({text}) do"
            walk.about(value, source.at, "a loop needs ipairs or pairs around a table", hint)
    elif isinstance(value, ToolValue):
        walk.error(
            source.at, f"'{value.name}' is a tool that is not called", f"write: {walk.words.form('call', value.name)}"
        )
    elif isinstance(value, Scalar) and value.kind == "number":
        hint = f"write: for {node.names[0]} = 1, {text} do" if text != "…" else f"write: for {node.names[0]} = 1, n do"
        walk.error(source.at, "a loop cannot go over a number", hint)


def _pairs(walk: Walk, node: p.Each, name: str, argument: p.Expression) -> tuple[Value, ...]:
    value = walk.value(argument)
    key: Value = None
    kinds = kinds_of(value) if not isinstance(value, Made) else None
    if isinstance(value, ToolValue):
        walk.error(
            argument.at, f"'{value.name}' is a tool that is not called", f"write: {walk.words.form('call', value.name)}"
        )
    elif isinstance(value, Data) and kinds and "object" not in kinds and "array" not in kinds:
        what = reads.described(walk, value, argument)
        walk.about(value, argument.at, f"{what} is not a table: {name} cannot go over it")
    elif isinstance(value, Data) and kinds == OBJECT and name == "ipairs":
        what = reads.described(walk, value, argument)
        facts = value.facts
        lists = [item for item, part in facts.properties.items() if value.document.kinds(part) == LIST]
        hint = reads.lists_within(walk, value) if lists or facts.closed else "use pairs for its fields"
        walk.about(value, argument.at, f"{what} is an object, not a list: ipairs finds nothing in it", hint)
    elif name == "ipairs" or kinds == LIST:
        alone = f"ipairs gives the position first: write for _, {node.names[0]} in {name}(…) do"
        key = Scalar("number", alone if len(node.names) == 1 else f"'{node.names[0]}' is the position")
    if isinstance(value, Mapped):
        if name == "ipairs":
            text = walk.text(argument)
            walk.note(
                argument.at, f"{text} is filled under keys that are text: ipairs finds nothing in it", "use pairs"
            )
        return None, value.each
    if isinstance(value, Made) and name == "ipairs":
        slips.ipairs_of_fields(walk, value, argument)
    if kinds == OBJECT and isinstance(value, Data):
        facts = value.facts
        return key, value.part(facts.rest) if not facts.properties else None
    return key, element(value)


def _elements(walk: Walk, node: p.Each, source: p.Expression, value: Value) -> tuple[Value, ...]:
    """`for x in list`, in languages that loop over lists directly."""
    kinds = kinds_of(value)
    if isinstance(value, Data) and kinds and "array" not in kinds and "string" not in kinds:
        what = reads.described(walk, value, source)
        hint = reads.lists_within(walk, value) if kinds == OBJECT else None
        walk.about(value, source.at, f"{what} is not a list: a loop cannot go over it", hint)
    elif isinstance(value, Scalar) and value.kind in ("number", "boolean"):
        walk.error(source.at, "a loop cannot go over a number", "write a range: 0..n")
    return element(value), Scalar("number", f"'{node.names[-1]}' is the position")
