"""Calls: of tools, of the library, of the script's own functions and of methods."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from moonbox.check import reads, slips
from moonbox.check import values as v
from moonbox.check.tools import literal
from moonbox.languages import program as p
from moonbox.suggest import did_you_mean, nearest

if TYPE_CHECKING:
    from moonbox.check.walk import Walk


def call(walk: Walk, node: p.FunctionCall) -> v.Value:
    """What a call returns."""
    function = _called(walk, node)
    if isinstance(function, v.Library):
        if function.name in walk.words.no_value:
            walk.without_value[id(node)] = function.name
        handler = _LIBRARY.get(function.name)
        if handler is not None:
            return handler(walk, node)
        is_shown = function.name == "print"
        arguments = [walk.value(each) if is_shown else slips.used(walk, each) for each in node.arguments]
        slips.library_call(walk, function.name, node, arguments)
        if function.name == "table.insert" and len(arguments) == 2:
            walk.fill(node.arguments[0], v.NUMBERS, arguments[1], appends=True)
        elif function.name in ("table.move", "rawset", "setmetatable", "array"):
            for argument in node.arguments:
                walk.hand_over(argument)
        return _RETURNS.get(function.name)
    for argument in node.arguments:
        slips.used(walk, argument)
        if not isinstance(function, v.ToolValue):
            walk.hand_over(argument)
    if isinstance(function, v.ToolValue):
        if node.exact:
            _arguments(walk, function, node.at, node.arguments)
        return walk.view.result(function.tool)
    return function.returns if isinstance(function, v.ScriptFunction) else None


def _called(walk: Walk, node: p.FunctionCall) -> v.Value:
    """The function that is called."""
    target = node.function
    if type(target) is p.Name:
        return _named(walk, target, node)
    if type(target) is not p.Field:
        return walk.value(target)
    path = tool_path(walk, target)
    if path is None:
        return reads.field(walk, target, arguments=node.arguments)
    if walk.tools_are_functions and len(path) == 2 and path[0] == "tools" not in walk.view.root.members:
        path = path[1:]  # `tools::name` means the function `name`
    found: v.Value = walk.view.root
    for name in path:
        found = walk.view.member(found, name) if isinstance(found, v.ToolSpace) else found
    if len(path) == 1 and isinstance(found, v.ToolValue):
        return found
    if found is None:
        if not walk.is_tested(target):
            walk.error(target.key, *walk.view.unknown(".".join(path)), code="unknown_tool", tool=".".join(path))
        return None
    # The field also says what is wrong with `tools.name.field(…)`.
    return found if walk.tools_are_functions else reads.field(walk, target)


def tool_path(walk: Walk, node: p.Expression) -> list[str] | None:
    """The names behind `tools`; None for anything else."""
    if p.root(node) != "tools":
        return None
    path = p.path(node)
    is_tools = path[:1] == ["tools"] and isinstance(walk.name(p.Name(node.at, "tools")), v.ToolSpace)
    return path[1:] if is_tools else None


def _named(walk: Walk, target: p.Name, node: p.FunctionCall) -> v.Value:
    name = target.name
    if not walk.is_unset(name):
        return walk.value(target)
    tools_are_functions = walk.tools_are_functions
    if tools_are_functions and (tool := walk.view.named(name)) is not None:
        return tool
    texts = tuple(map(walk.text, node.arguments))
    written = None if tools_are_functions else walk.view.is_name(name)
    advice = walk.words.advice(name, True, texts)
    if written is not None:
        walk.fact(target.at, "tool_name", name=name, tool=written)
    elif advice is not None:
        walk.error(target.at, f"there is no function '{name}'", advice)
    elif name == "f" and slips.f_string(walk, target, node):
        pass
    elif tools_are_functions:
        known = [*walk.view.root.members, *walk.words.globals, *walk.names]
        hint = did_you_mean([f"'{item}'" for item in nearest(name, known, parts=True, count=2)])
        walk.error(target.at, f"unknown function '{name}'", hint, code="unknown_tool", tool=name)
    else:
        walk.unset(target)
    return None


def _arguments(walk: Walk, tool: v.ToolValue, at: int, arguments: tuple[p.Expression, ...]) -> None:
    given = [literal(argument, keeps_null=walk.language.runtime is not None) for argument in arguments]
    error = walk.view.problem_with(tool.tool, given)
    if error is not None:  # word for word what the call itself would say
        walk.error(at, error.message, code=error.code, tool=tool.tool.path)


def method(walk: Walk, node: p.Method) -> v.Value:
    """What a method call returns."""
    base = walk.value(node.value)
    if node.name == "len" and walk.words.only_truth_values:
        if isinstance(base, v.Data) and base.facts.kinds == v.OBJECT and base.facts.listed:
            problem = "is an object, not a list: len() counts its fields"
            walk.about_result(base, node.value, node.key, problem, reads.lists_within(base))
        return v.NUMBER
    handler = walk.words.methods.get(node.name)
    if handler is not None and isinstance(base, v.Data | v.Results):
        return _over_list(walk, base, node.name, handler, node.arguments)
    values = [walk.value(argument) for argument in node.arguments]
    name = node.name
    if name == "type_of" and walk.words.only_truth_values:
        walk.probe(node.value)
    if name == "push" and len(values) == 1 and walk.words.methods:
        walk.fill(node.value, v.NUMBERS, values[0], appends=True)
    if isinstance(base, v.ToolSpace):
        member = walk.view.member(base, name)
        path = f"{base.path}.{name}" if base.path else name
        written = member.name if isinstance(member, v.ToolValue) else walk.view.written(path)
        if walk.tools_are_functions:
            problem = f"'{path}' is a function, not a method of 'tools'"
            walk.error(node.key, problem, f"write: {walk.words.form('call', tool=written)}")
        else:
            walk.fact(node.key, "colon_call", tool=written)
        return None
    if name in ("find", "match", "gmatch", "gsub") and node.arguments and walk.language.runtime is None:
        slips.pattern(walk, node.arguments[0], plain=len(node.arguments) > 2)
    kinds = v.kinds_of(base) if isinstance(base, v.Data | v.Scalar) else None
    if kinds == v.TEXT:
        if name in walk.words.string_methods:
            return _RETURNS.get(f"string.{name}")
        _no_method(walk, base, node, "a string")
    elif kinds and kinds <= v.TABLES and isinstance(base, v.Data):
        is_list = kinds == v.LIST
        has = name in walk.outline.fields or name in base.facts.properties
        if not has and not (is_list and name in walk.words.any_methods):
            _no_method(walk, base, node, "a list" if is_list else "an object")
    elif isinstance(base, v.Made) and base.record.exact and walk.language.runtime is None:
        has = name in walk.outline.fields or name in dict(base.record.entries)
        if not has:
            _no_method(walk, base, node, "a table")
    return None


def _no_method(walk: Walk, base: v.Value, node: p.Method, kind: str) -> None:
    # In Rhai every function can be called as a method.
    functions = walk.words.any_methods
    if functions and (node.name in functions or not walk.is_unset(node.name) or walk.view.named(node.name)):
        return
    receiver = walk.text(node.value)
    texts = tuple(map(walk.text, node.arguments))
    hint = walk.words.method_advice(node.name, receiver if receiver != "…" else "x", texts)
    if hint is None:
        if isinstance(base, v.Made):  # only what other languages have is certain to be a slip
            return
        close = nearest(node.name, walk.words.string_methods if kind == "a string" else functions)
        hint = did_you_mean([f"'{name}'" for name in close])
    walk.about(base, node.value, node.key, f"{kind} has no method '{node.name}'", hint)


def _over_list(walk: Walk, base: v.Value, name: str, handler: str, arguments: tuple[p.Expression, ...]) -> v.Value:
    """What calls a function with the elements of a list, reads a field of each, or returns them."""
    inner = v.element(base)
    result: v.Value = None
    for argument in arguments:
        if type(argument) is p.Function:
            given = (None, inner) if handler == "fold" else (inner, inner) if handler == "sort" else (inner,)
            result = walk.function(argument, given)
        else:
            walk.value(argument)
            if name in _BY_FIELD and isinstance(inner, v.Data):
                result = reads.field_by_name(walk, inner, argument)
    if handler == "map":
        return v.Results((), result)
    return base if handler == "same" else inner if handler == "one" else None


def _list_function(walk: Walk, node: p.FunctionCall, *, name: str) -> v.Value:
    """`list.map(items, …)` and the others."""
    items = walk.value(node.arguments[0]) if node.arguments else None
    return _over_list(walk, items, name, _LIST_FUNCTIONS[name], node.arguments[1:])


# Functions of the library that call others


def _protected(walk: Walk, node: p.FunctionCall) -> v.Value:
    """pcall and xpcall: what goes wrong inside is caught."""
    first = node.arguments[0] if node.arguments else None
    walk.lenient += 1
    values = [walk.value(argument) for argument in node.arguments]
    if values and isinstance(values[0], v.ToolValue) and node.exact:
        _arguments(walk, values[0], node.at, node.arguments[1:])
    path = tool_path(walk, first) if type(first) is p.Field else None
    if path is not None and values[0] is None:
        walk.error(first.at, *walk.view.unknown(".".join(path)))  # type: ignore[union-attr]  # a Field
    walk.lenient -= 1
    if type(first) is p.FunctionCall and isinstance(walk.quiet(first.function), v.ToolValue):
        arguments = ", ".join(map(walk.text, first.arguments)) or "{}"
        walk.fact(first.at, "called_too_early", function="pcall", tool=walk.text(first.function), arguments=arguments)
    return None


def _together(walk: Walk, node: p.FunctionCall, *, settle: bool) -> v.Value:
    results: list[v.Value] = []
    items, is_written = node.arguments, False
    walk.lenient += settle
    match node.arguments:
        case (p.Record(entries=entries),):
            items, is_written = tuple(item for _, item in entries), True
        case (_, _, *_) if node.exact:
            hint = "write: parallel{function() … end, function() … end}"
            walk.error(node.at, "parallel takes one list of functions", hint)
    for item in items:
        value = walk.value(item)
        if type(item) is p.FunctionCall and isinstance(walk.quiet(item.function), v.ToolValue):
            form = walk.words.form("closure", value=walk.text(item))
            walk.error(item.at, "parallel expects functions: here the tool is called before it", f"write: {form}")
        results.append(value.returns if isinstance(value, v.ScriptFunction) else None)
    walk.lenient -= settle
    return v.Results(() if settle or not is_written else tuple(results), None)


def _parallel_map(walk: Walk, node: p.FunctionCall) -> v.Value:
    arguments = node.arguments
    items = walk.value(arguments[0]) if arguments else None
    options = arguments[2] if len(arguments) > 2 else None
    settle = options is not None and not (
        type(options) is p.Record and options.exact and all(name != "settle" for name, _ in options.entries)
    )
    each: v.Value = None
    walk.lenient += settle
    if len(arguments) > 1 and type(arguments[1]) is p.Function:
        each = walk.function(arguments[1], (v.element(items), v.Scalar("number", "it is the position")))
    elif len(arguments) > 1:
        function = walk.value(arguments[1])
        each = function.returns if isinstance(function, v.ScriptFunction) else None
        if isinstance(function, v.ToolValue):
            each = walk.view.result(function.tool)
    if options is not None:
        walk.value(options)
    walk.lenient -= settle
    return v.Results((), None if settle else each)


def _pages(walk: Walk, node: p.FunctionCall) -> v.Value:
    """pages(tool, arguments, wish): the tool is given, not called."""
    first = node.arguments[0] if node.arguments else None
    wish = node.arguments[2] if len(node.arguments) > 2 else None
    values = [walk.value(argument) for argument in node.arguments if argument is not wish]
    tool = values[0] if values else None
    if walk.tools_are_functions and type(first) is p.Constant and isinstance(first.value, str):
        tool = walk.view.named(first.value)
    item = reads.paged_item(walk.view.result(tool.tool)) if isinstance(tool, v.ToolValue) else None
    if type(wish) is p.Function:
        walk.function(wish, (item, v.Scalar("number", "it is the position")))
    elif wish is not None:
        walk.value(wish)
    if isinstance(tool, v.ToolValue) and node.exact:
        _arguments(walk, tool, node.at, node.arguments[1:2])
    return v.Results((), item)


def _sort(walk: Walk, node: p.FunctionCall) -> v.Value:
    arguments = node.arguments
    items = slips.used(walk, arguments[0]) if arguments else None
    for argument in arguments[1:]:
        if type(argument) is p.Function:
            inner = v.element(items)
            walk.function(argument, (inner, inner))
            slips.comparator(walk, argument)
        else:
            walk.value(argument)
            slips.sort_key(walk, argument)
    slips.library_call(walk, "table.sort", node, [items])
    return None


def _probe(walk: Walk, node: p.FunctionCall) -> v.Value:
    """type: asking what a value is."""
    walk.lenient += 1
    for argument in node.arguments:
        walk.value(argument)
        walk.probe(argument)
    walk.lenient -= 1
    return v.STRING


_LIST_FUNCTIONS = {
    **dict.fromkeys(("filter", "sort_by", "unique", "take"), "same"),
    **dict.fromkeys(("min_by", "max_by"), "one"),
    **dict.fromkeys(("group_by", "count_by", "sum", "join"), "each"),
    "map": "map",
}
_BY_FIELD = frozenset({*_LIST_FUNCTIONS, "order_by"} - {"take", "join"})
"""Functions of lists that take a field by its name."""

_LIBRARY: dict[str, Callable[[Walk, p.FunctionCall], v.Value]] = {
    "pcall": _protected,
    "xpcall": _protected,
    "parallel": partial(_together, settle=False),
    "parallel.settle": partial(_together, settle=True),
    "parallel_settle": partial(_together, settle=True),
    "parallel.map": _parallel_map,
    "pages": _pages,
    **{f"list.{name}": partial(_list_function, name=name) for name in _LIST_FUNCTIONS},
    "table.sort": _sort,
    "type": _probe,
    "type_of": _probe,
}
_RETURNS = {
    **dict.fromkeys(("tostring", "json.encode", "json.stringify", "table.concat", "os.date"), v.STRING),
    **dict.fromkeys(
        (f"string.{name}" for name in ("format", "upper", "lower", "sub", "rep", "reverse", "gsub")), v.STRING
    ),
    **dict.fromkeys(("string.len", "os.time", "os.clock", "rawlen", "len"), v.NUMBER),
    **dict.fromkeys((f"math.{name}" for name in ("floor", "ceil", "abs", "max", "min", "sqrt", "random")), v.NUMBER),
}
