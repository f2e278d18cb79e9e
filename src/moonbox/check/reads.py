"""Reading: fields, elements and lengths of what is known, and loops over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.check import values as v
from moonbox.failures import PROBES
from moonbox.languages import program as p
from moonbox.languages.facts import LENGTHS
from moonbox.schema.type_reader import type_text
from moonbox.suggest import nearest

if TYPE_CHECKING:
    from moonbox.check.walk import Walk

_MOST_LISTED = 20
_CALLABLE = frozenset({"docs", "tools"})  # what they hold is not known by name


def field(walk: Walk, node: p.Field, *, arguments: tuple[p.Expression, ...] | None = None) -> v.Value:
    """What `value.name` is; with `arguments`, what is called with them."""
    base = walk.name(node.value, indexed=True) if type(node.value) is p.Name else walk.value(node.value)
    if base is None:
        return None
    if isinstance(base, v.Data):
        return _field_of(walk, base, node)
    if isinstance(base, v.Library):
        return _member_of(walk, base.name, node, arguments)
    match base:
        case v.ToolSpace():
            return walk.view.member(base, node.name)
        case v.ToolValue():
            fact = walk.words.fact("not_called", tool=base.name)
            problem = f"{fact.message}: it has no field '{node.name}'"
            walk.error(node.key, problem, f"{fact.hint}.{node.name}")
        case v.Scalar() if base.kind == "number" and base.what:
            walk.error(node.key, f"'{walk.text(node.value)}' is a number: it has no field '{node.name}'", base.what)
        case v.Made(record) if node.name in LENGTHS and node.name not in walk.outline.fields:
            if all(name != node.name for name, _ in record.entries) and node.name not in walk.words.any_methods:
                walk.note(node.key, f"'{walk.text(node.value)}' has no field '{node.name}'", _length_form(walk, node))
    return None


def _member_of(walk: Walk, library: str, node: p.Field, arguments: tuple[p.Expression, ...] | None) -> v.Value:
    members = walk.words.libraries.get(library)
    if members is not None and node.name in members:
        return v.Library(f"{library}.{node.name}")
    if arguments is not None and members is not None and library not in _CALLABLE:
        hint = walk.words.member_advice(library, node.name, tuple(map(walk.text, arguments)))
        walk.error(node.key, f"there is no function {library}.{node.name}", hint)
    return None


def _field_of(walk: Walk, base: v.Data, node: p.Field) -> v.Value:
    facts = base.facts
    name, kinds = node.name, facts.kinds
    if name in walk.outline.fields:
        return None  # the script itself puts something there
    if name in facts.properties:
        return base.part(facts.properties[name])
    if name in PROBES:
        return None  # it looks for a failure that came as data
    if kinds is None:
        return None
    if kinds == v.OBJECT:
        if facts.listed:  # a tool may return more than it declares, an object of a subclass for example
            message, hint = _unknown_field(base, facts, name)
            if facts.closed and not base.learned:
                walk.error(node.key, message, hint, field=name)
            else:
                walk.note(node.key, message, hint, field=name)
            return None
        return base.part(facts.rest)
    if kinds == v.LIST:
        if name not in walk.words.any_methods:
            _list_field(walk, base, node)
    elif kinds == v.TEXT:
        if name not in walk.words.string_methods:
            decoded = walk.words.form("decode", value=walk.text(node.value))
            hint = _length_form(walk, node) if name in LENGTHS else f"it is text; if that is JSON, write: {decoded}"
            walk.about_result(base, node.value, node.key, f"is a string: it has no field '{name}'", hint)
    elif kinds <= {"integer", "number", "boolean"}:
        kind = "truth value" if kinds == v.TRUTH else "number"
        walk.about_result(base, node.value, node.key, f"is a {kind}: it has no field '{name}'")
    return None


def field_by_name(walk: Walk, base: v.Data, node: p.Expression) -> v.Value:
    """The field whose name a function of lists is given; "-name" sorts by it in descending order."""
    if base.facts.kinds != v.OBJECT or type(node) is not p.Constant or not isinstance(node.value, str):
        return None
    name = node.value.removeprefix("-")
    if walk.words.any_methods and (name in walk.words.any_methods or not walk.is_unset(name)):
        return None  # a function by its name
    return _field_of(walk, base, p.Field(node.at, node, name, node.at))


def paged_item(result: v.Data | None) -> v.Value:
    """What the items of a paged result are: of the list, or of the only list that it holds."""
    if result is None or result.facts.kinds != v.OBJECT:
        return v.element(result)
    lists = result.lists
    return v.element(result.part(result.facts.properties[lists[0]])) if len(lists) == 1 else None


def _unknown_field(base: v.Data, facts: v.Facts, name: str) -> tuple[str, str | None]:
    names = list(facts.properties)
    close = nearest(name, names, parts=True)
    more = ", …" if len(names) > _MOST_LISTED else ""
    listed = f"the fields are: {', '.join(names[:_MOST_LISTED])}{more}"
    seen = "was never seen in" if base.learned else "is not in"
    message = f"the field '{name}' {seen} the result of {base.tool}"
    return message, f"did you mean '{close[0]}'? {listed}" if close else listed


def _list_field(walk: Walk, base: v.Data, node: p.Field) -> None:
    name, text = node.name, walk.text(node.value)
    if name in LENGTHS:
        hint = _length_form(walk, node)
    else:
        inner = v.element(base)
        has = isinstance(inner, v.Data) and name in inner.facts.properties
        form = walk.words.form("element", value=text if text != "…" else "list")
        hint = f"its elements have it: {form}.{name}, or loop over it" if has else f"an element is {form}; loop over it"
    walk.about_result(base, node.value, node.key, f"is a list: it has no field '{name}'", hint)


def _length_form(walk: Walk, node: p.Field) -> str:
    text = walk.text(node.value)
    return f"write: {walk.words.form('length', value=text if text != '…' else 'x')}"


def item(walk: Walk, node: p.Index) -> v.Value:
    """What `value[key]` is."""
    base = walk.value(node.value)
    walk.value(node.key)
    index = node.key.value if type(node.key) is p.Constant and type(node.key.value) is int else None
    first = walk.language.first_index
    if isinstance(base, v.Data):
        facts = base.facts
        if index is not None and facts.kinds == v.OBJECT and facts.listed:
            problem = f"is an object, not a list: [{index}] is not in it"
            walk.about_result(base, node.value, node.at, problem, lists_within(base))
            return None
        if facts.kinds != v.LIST:
            return None
    if v.is_list(base) and index is not None and first == 1 and index <= 0:
        text = walk.text(node.value)
        fact = walk.words.fact("first_element" if index == 0 else "last_element", value=text)
        walk.about(base, node.value, node.at, f"{fact.message}: {text}[{index}] is nil", fact.hint)
        return None
    return v.element(base, None if index is None else index - first)


def length(walk: Walk, node: p.Length) -> v.Value:
    """What `#value` is, and whether it means anything."""
    base = walk.value(node.value)
    if isinstance(base, v.Data):
        if base.facts.kinds == v.OBJECT:
            problem = "is an object, not a list: # does not count it"
            walk.about_result(base, node.value, node.at, problem, lists_within(base))
    elif isinstance(base, v.Made) and _has_only_fields(base.record):
        walk.note(
            node.at,
            "# counts list elements: of a table with named fields it gives 0",
            "count in a loop: for _ in pairs(t) do n = n + 1 end",
        )
    return v.NUMBER


def described(walk: Walk, base: v.Data, node: p.Expression) -> str:
    """How messages call a part of a result."""
    text = walk.text(node)
    whole = base.node is base.node.root
    if text == "…" or (whole and type(node) is p.FunctionCall):
        return f"the result of {base.tool}"
    return f"'{text}' ({'the result' if whole else 'from the result'} of {base.tool})"


def lists_within(base: v.Data) -> str | None:
    """Where the lists are that an object holds, or what it holds instead."""
    if len(base.lists) == 1:
        return f"its list is the field '{base.lists[0]}'"
    shape = type_text(base.node, nested=1)
    names = ", ".join(list(base.facts.properties)[:_MOST_LISTED])
    return f"it is {shape}" if len(shape) <= 300 else f"its fields are: {names}"


def iteration(walk: Walk, node: p.Each) -> tuple[v.Value, ...]:
    """What the variables of a loop are."""
    source = node.values[0] if node.values else None
    for value in node.values[1:]:
        walk.value(value)
    if source is None:
        return ()
    if type(source) is p.FunctionCall and type(source.function) is p.Name and len(source.arguments) == 1:
        name, argument = source.function.name, source.arguments[0]
        if name == "ipairs" or name == "pairs":
            function = walk.name(source.function)
            if isinstance(function, v.Library) and function.name == name:
                return _pairs(walk, node, name, argument)
    looped = walk.value(source)
    if walk.language.runtime is not None:
        return _elements(walk, node, source, looped)
    _check_loop(walk, node, source, looped)
    return ()


def _check_loop(walk: Walk, node: p.Each, source: p.Expression, value: v.Value) -> None:
    """A loop over something without ipairs or pairs."""
    kinds = v.kinds_of(value)
    if isinstance(value, v.Made) or (isinstance(value, v.Data | v.Results) and kinds and kinds <= v.TABLES):
        function = "pairs" if kinds == v.OBJECT else "ipairs"
        names = ", ".join(node.names if len(node.names) > 1 else ("_", *node.names))
        fact = walk.words.fact("loop", names=names, function=function, value=walk.text(source))
        walk.about(value, source, source.at, fact.message, fact.hint)


def _pairs(walk: Walk, node: p.Each, name: str, argument: p.Expression) -> tuple[v.Value, ...]:
    value = walk.value(argument)
    is_ipairs, kinds = name == "ipairs", v.kinds_of(value)
    if isinstance(value, v.Data):
        if kinds and not kinds & v.TABLES:
            walk.about_result(value, argument, argument.at, f"is not a table: {name} cannot go over it")
            return ()
        if kinds == v.OBJECT:
            return _object_pairs(walk, value, argument, is_ipairs=is_ipairs)
    elif isinstance(value, v.ToolValue):
        walk.fact(argument.at, "not_called", tool=value.name)
        return ()
    elif isinstance(value, v.Mapped):
        if is_ipairs:
            problem = f"{walk.text(argument)} is filled under keys that are text: ipairs finds nothing in it"
            walk.note(argument.at, problem, "use pairs")
        return None, value.each
    elif is_ipairs and type(argument) is p.Record and _has_only_fields(argument):
        problem = "ipairs goes over list elements: in a table with named fields it finds nothing"
        walk.note(argument.at, problem, "use pairs")
    key: v.Value = None
    if is_ipairs or (kinds == v.LIST and not isinstance(value, v.Made)):
        alone = f"ipairs gives the position first: write for _, {node.names[0]} in {name}(…) do"
        key = v.Scalar("number", alone if len(node.names) == 1 else f"'{node.names[0]}' is the position")
    return key, v.element(value)


def _object_pairs(walk: Walk, value: v.Data, argument: p.Expression, *, is_ipairs: bool) -> tuple[v.Value, ...]:
    facts = value.facts
    if is_ipairs:
        hint = lists_within(value) if value.lists or facts.listed else "use pairs for its fields"
        problem = "is an object, not a list: ipairs finds nothing in it"
        walk.about_result(value, argument, argument.at, problem, hint)
    return None, value.part(facts.rest) if not facts.properties else None


def _has_only_fields(record: p.Record) -> bool:
    return bool(record.entries) and record.exact and all(name for name, _ in record.entries)


def _elements(walk: Walk, node: p.Each, source: p.Expression, value: v.Value) -> tuple[v.Value, ...]:
    """`for x in list`, in languages that loop over lists directly."""
    kinds = v.kinds_of(value)
    if isinstance(value, v.Data) and kinds and "array" not in kinds and "string" not in kinds:
        hint = lists_within(value) if kinds == v.OBJECT else None
        if kinds == v.OBJECT and not value.facts.properties:
            hint = "write: " + walk.words.form("keys", value=walk.text(source))
        walk.about_result(value, source, source.at, "is not a list: a loop cannot go over it", hint)
    elif isinstance(value, v.Scalar) and value.kind in ("number", "boolean"):
        walk.error(source.at, "a loop cannot go over a number", "write a range: 0..n")
    return v.element(value), v.Scalar("number", f"'{node.names[-1]}' is the position")
