"""Slips: what a script may say, but hardly ever means."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from moonbox.check import reads
from moonbox.check import values as v
from moonbox.languages import program as p
from moonbox.languages.facts import FACTS

if TYPE_CHECKING:
    from moonbox.check.walk import Walk

_LIST_FUNCTIONS = frozenset({"table.concat", "table.sort", "table.insert", "table.remove", "table.unpack"})
QUOTABLE = (p.Name, p.Field, p.Index, p.FunctionCall, p.Method)
_MOST_LOOKED = 2_000


def used(walk: Walk, node: p.Expression) -> v.Value:
    """The value of what is used: functions that return nothing have none."""
    value = walk.value(node)
    name = walk.without_value.get(id(node)) if walk.without_value else None
    if name is not None:
        list_ = walk.text(node.arguments[0]) if node.arguments else "the list"  # type: ignore[union-attr]  # a FunctionCall
        does = walk.words.no_value[name]
        walk.error(node.at, f"{name} returns nothing", f"it {does} the list itself: call it alone, then use {list_}")
    return value


def declaration(walk: Walk, node: p.Declare) -> None:
    """`local a, b = parallel{…}` and `local ok, r = tools.x{…}`, which give one value."""
    if type(node.values[0]) is not p.FunctionCall:
        return
    called = walk.quiet(node.values[0].function)
    name = called.name if isinstance(called, v.Library) else ""
    if name in ("parallel", "parallel.map", "parallel.settle", "parallel_settle"):
        parts = ", ".join(f"results[{index}]" for index in range(1, len(node.names) + 1))
        walk.error(
            node.at,
            f"{name} returns one list: '{node.names[1]}' gets nothing",
            f"write: local results = {name}…, then {parts}",
        )
    elif isinstance(called, v.ToolValue) and node.names[0] in ("ok", "success", "status"):
        walk.error(
            node.at,
            f"a tool returns one value, and raises an error if it fails: '{node.names[1]}' gets nothing",
            f"write: local {node.names[0]}, {node.names[1]} = pcall({walk.text(node.values[0].function)}, {{…}})",
        )


def text(walk: Walk, node: p.Constant) -> None:
    """Escapes in a backtick string of Rhai, which has none."""
    escape = re.search(r"\\[nrt]", node.value)
    if escape is not None and (not node.stop or walk.text(node).startswith("`")):
        walk.note(
            node.at,
            f"a backtick string has no escapes: {escape[0]} stays as it is",
            f'write "{escape[0]}" in double quotes, or a real line break',
        )


def condition(walk: Walk, node: p.Expression | p.Statement, value: v.Value) -> None:
    """A condition that is always true: 0 counts as true in Lua. In Rhai only truth values are conditions."""
    if walk.words.only_truth_values:
        kinds = v.kinds_of(value) if isinstance(value, v.Data | v.Scalar) else None
        if kinds and "boolean" not in kinds and isinstance(node, QUOTABLE):
            text = walk.text(node)
            empty = "> 0" if kinds <= v.NUMBERS else "!= ()"
            walk.about(value, node, node.at, f"'{text}' is not a truth value", f"write: {text} {empty}")
    elif type(node) is p.Length:
        text = walk.text(node.value)
        walk.note(node.at, f"0 is true in Lua: #{text} always is", f"write: #{text} > 0")
    elif type(node) is p.Constant and type(node.value) is int and node.value == 0:
        walk.note(node.at, "0 is true in Lua")


def negation(walk: Walk, at: int, node: p.Expression | p.Statement, value: v.Value) -> None:
    """`not x.approved` and `x.approved ~= true`, where null is possible beside false."""
    if not isinstance(value, v.Data) or value.facts.kinds != v.TRUTH or not isinstance(node, QUOTABLE):
        return
    kinds = value.node.kinds
    if kinds is not None and "null" in kinds:
        text, nothing = walk.text(node), "nil" if walk.language.runtime is None else "()"
        hint = f"where only one is meant, write: {text} == false, or {text} == {nothing}"
        walk.note(at, f"{reads.described(walk, value, node)} can be null: this counts null like false", hint)


def filled_from_zero(walk: Walk, block: p.Block) -> None:
    """`list[n] = x n = n + 1` with an `n` that is 0 at first."""
    keys: dict[str, p.Index] = {}
    for statement in block.statements:
        if type(statement) is not p.Assign:
            continue
        for target in statement.targets:
            if type(target) is p.Index and type(target.key) is p.Name:
                keys.setdefault(target.key.name, target)
        if not keys:
            continue
        match statement.targets[0], statement.values[0]:
            case p.Name(name=name), p.Operation(operator="+", left=p.Name(name=added), right=p.Constant(value=1)):
                variable = walk.variables.get(name)
                counts = name == added and name in keys and walk.outline.assigned.get(name) == 1
                if counts and variable is not None and variable.starts_at == 0:
                    text = walk.text(keys[name].value)
                    problem = f"the first element goes to {text}[0], which # and ipairs do not see"
                    walk.note(keys[name].at, f"{FACTS['first_element']}: {problem}", f"write: {text}[#{text} + 1] = …")


def count_from_zero(walk: Walk, node: p.Count) -> None:
    """`for i = 0, #list - 1 do … list[i]`, which reads list[0] and never the last element."""
    match node.bounds:
        case (
            p.Constant(value=0),
            p.Operation(operator="-", left=p.Length(value=p.Name(name=name) as counted)),
        ) if walk.language.first_index == 1 and _reads_at(node.body, name, node.name):
            message = f"{FACTS['first_element']}: this loop reads {name}[0], which is nil, and not {name}[#{name}]"
            value = walk.quiet(counted)
            if isinstance(value, v.Results) and not value.is_list:
                return
            report = walk.error if isinstance(value, v.Data | v.Results) else walk.note
            report(node.at, message, f"write: for {node.name} = 1, #{name} do")


def _reads_at(body: p.Block, list_: str, index: str) -> bool:
    """Whether `list[index]` is read anywhere in a block."""
    items = (part for part in islice(p.inside(body), _MOST_LOOKED) if type(part) is p.Index)
    return any((p.path(item.value), p.path(item.key)) == ([list_], [index]) for item in items)


def comparator(walk: Walk, function: p.Function) -> None:
    """A comparison for table.sort that says of equal elements that each comes first."""
    match function.body.statements[-1:]:
        case (p.Return(values=(p.Operation(operator="<=" | ">=" as operator, at=at),)),):
            walk.fact(at, "comparator", certain=False, sign=operator[0])


def sort_key(walk: Walk, node: p.Expression) -> None:
    """`table.sort(list, "name")`."""
    if type(node) is p.Constant and isinstance(node.value, str):
        key = f".{node.value}" if node.value.isidentifier() else f'["{node.value}"]'
        walk.error(
            node.at,
            "table.sort takes a function that compares two elements, not the name of a field",
            f"write: function(a, b) return a{key} < b{key} end",
        )


def f_string(walk: Walk, target: p.Name, node: p.FunctionCall) -> bool:
    """`f"total: {x}"`; whether it is one."""
    match node.arguments:
        case (p.Constant(value=str(text)),) if "{" in text:
            walk.fact(target.at, "f_string")
            return True
    return False


def library_call(walk: Walk, name: str, node: p.FunctionCall, arguments: list[v.Value]) -> None:
    """What library functions are given."""
    if not node.arguments:
        return
    at, first = node.arguments[0], arguments[0]
    data = first if isinstance(first, v.Data) else None
    kinds = data.facts.kinds if data is not None else None
    match name:
        case "json.decode" | "json.parse" if isinstance(first, v.Results) or (kinds and kinds <= v.TABLES):
            what = reads.described(walk, data, at) if data is not None else f"'{walk.text(at)}'"
            walk.about(first, at, at.at, walk.words.fact("decoded", what=what, function=name).message)
        case _ if name in _LIST_FUNCTIONS and data is not None and kinds == v.OBJECT:
            walk.about_result(data, at, at.at, "is an object, not a list", reads.lists_within(data))
        case "table.concat" if data is not None and (v.kinds_of(v.element(data)) or v.TEXT) <= v.TABLES:
            walk.about_result(data, at, at.at, "is not a list of strings", "put the field to join into a list first")
        case "math.max" | "math.min" if len(arguments) == 1 and node.exact and isinstance(first, v.Made | v.Results):
            report, what = (walk.note, "a table") if isinstance(first, v.Made) else (walk.error, "a list")
            report(at.at, f"{name} takes numbers, not {what}", f"write: {name}(table.unpack({walk.text(at)}))")
        case "tonumber":
            _number_from_text(walk, node, at)
        case "string.find" | "string.match" | "string.gmatch" | "string.gsub" if len(node.arguments) > 1:
            pattern(walk, node.arguments[1], plain=len(node.arguments) > 3)


def _number_from_text(walk: Walk, node: p.FunctionCall, at: p.Expression) -> None:
    """`tonumber(s:gsub(…))`, and `tonumber(text)` of numbers that were joined."""
    is_method = type(at) is p.Method and at.name == "gsub"
    is_gsub = is_method or (type(at) is p.FunctionCall and walk.quiet(at.function) == v.Library("string.gsub"))
    if is_gsub and len(node.arguments) == 1 and not node.exact:  # parentheses leave only the first value
        problem = "gsub returns two values, and tonumber takes the second as a base"
        walk.error(at.at, problem, f"write: tonumber(({walk.text(at)}))")
    variable = walk.variables.get(at.name) if type(at) is p.Name else None
    if variable is not None and variable.is_joined:
        problem = f"'{walk.text(at)}' was joined with ..: tonumber reads all its digits as one number"
        walk.note(at.at, problem, "to add up, begin with 0 and use +")


_REGULAR = r"\\[dwsbDWSB]|(?<!%)\(\?[:=!]|(?<!%)[\])a-z]\{\d+,?\d*\}"


def pattern(walk: Walk, node: p.Expression, *, plain: bool = False) -> None:
    """A pattern that is written as a regular expression."""
    if plain or type(node) is not p.Constant or not isinstance(node.value, str):
        return
    text = node.value
    if match := re.search(_REGULAR, text):
        hint = "digits are %d, letters %a, spaces %s; there are no {n} and no groups with ?"
        walk.note(node.at, f"'{match.group()}' is not part of a Lua pattern", hint)
    elif re.search(r"[^%\[|]\|[^|\]]", text) and not re.search(r"\[[^\]]*\|", text):
        walk.note(node.at, "Lua patterns have no alternatives: | stands for itself", "search for each of them")
