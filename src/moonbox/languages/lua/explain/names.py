"""Hints for what is missing: unknown globals, members of libraries, tools and methods; values that are nil or null."""

from __future__ import annotations

import re
from itertools import islice

from moonbox.languages import program as p
from moonbox.languages.facts import FACTS, Fact, nearest_tools, unknown_tool
from moonbox.languages.lua.explain.slips import corrected, with_line
from moonbox.languages.lua.explain.values import RuntimeFailure, ScriptValue, declarations, declared_names, last_name
from moonbox.languages.lua.vocabulary import BASE, LIBRARIES, equivalents, fill_form, lua_vocabulary, tool_name
from moonbox.suggest import did_you_mean, nearest

_FEW = 12


def unknown_global(failure: RuntimeFailure, value: ScriptValue) -> str | None:
    """A global that is nil where its value was needed."""
    foreign = (
        _try_block(value) or _prefixed_string(value) or _foreign_call(failure, value)
        if value.call is not None
        else _foreign_table(value)
    )
    return _scoped(failure, value) or foreign or _tool_name(failure, value) or _nearest_name(failure, value)


def unknown_field(failure: RuntimeFailure, value: ScriptValue) -> str | None:
    """A field that is nil where a function (or a table) was needed."""
    if value.root == "tools" and failure.declared_at("tools") is None:
        return unknown_tool(_tool_path(value), failure.tools, tool_name, lua_vocabulary().form("search"))
    called, library = value.call is not None, _library(value)
    hidden_at = failure.declared_at(library) if library else None
    if library and hidden_at is None:
        return _unknown_member(value, library) if called else None
    # "list" is a usual name for a list of the script's own.
    advice = _method(value) if called and library in ("", "list") else None
    if library and advice is None:
        return f"the local '{library}' of line {hidden_at} hides the library of that name: rename it"
    return advice


def unknown_method(failure: RuntimeFailure, value: ScriptValue) -> str | None:
    """A method that is nil."""
    library = _library(value)
    return _unknown_member(value, library) if library and failure.declared_at(library) is None else _method(value)


def _library(value: ScriptValue) -> str:
    """The library's name, if the value is a member of one."""
    owner = value.node.value if isinstance(value.node, p.Field | p.Method) else None
    return owner.name if type(owner) is p.Name and owner.name in LIBRARIES else ""


def _scoped(failure: RuntimeFailure, value: ScriptValue) -> str | None:
    """A name that is declared, but elsewhere: further down, in another block, in an earlier run."""
    listing, line, name = failure.listing, failure.line or 0, value.name
    for node in listing.all(p.Define):
        defined, _ = listing.place(node.at)
        if p.path(node.target) == [name] and defined > line:
            return f"{name} is defined on line {defined}, after this line runs: move its definition up"
    around = [node for node in listing.around(value.node) if type(node) is p.Function]
    for declared, statement in islice(declarations(listing, name), _FEW):
        if isinstance(statement, p.Declare) and any(function in around for function in statement.values):
            return f"{name} is not visible yet inside its own function; write: local function {name}(…) … end"
        if isinstance(statement, p.Function):
            return f"{name} is a parameter of the function on line {declared} and exists only inside it"
        if declared < line:
            return f"the local {name} of line {declared} exists only inside its block: declare it before the block"
    if any(next(declarations(earlier, name), None) for earlier in failure.earlier):
        return f"{name} was a local of an earlier run, and locals do not persist: assign it there without local"
    return None


def _try_block(value: ScriptValue) -> str | None:
    """`try { f() } catch (e) { }`, which Lua reads as a call of `try` with a table."""
    calls = (node for node in value.listing.around(value.node) if type(node) is p.FunctionCall)
    is_inside = any(p.path(call.function) in (["try"], ["finally"]) for call in calls)
    return equivalents().statements["try"] if is_inside else None


def _prefixed_string(value: ScriptValue) -> str | None:
    """`f"hello {name}"`."""
    match value.call:
        case p.FunctionCall(arguments=(p.Constant(value=str(text)),)) if value.name in ("f", "rf", "fr"):
            return with_line(FACTS["f_string"], concatenated(text))
    return None


_INSERTED = re.compile(r"\{([^{}]{1,80})\}")


def concatenated(text: str) -> str | None:
    """A text with `{holes}` as Lua joins it; None when there is nothing to join or a hole is not a plain name."""
    if '"' in text or "\\" in text or len(text) > 200:
        return None
    pieces = _INSERTED.split(text)
    if len(pieces) == 1 or not all(re.fullmatch(r" *[A-Za-z_][\w.\[\]]* *", hole) for hole in pieces[1::2]):
        return None
    parts = [piece.strip() if place % 2 else f'"{piece}"' for place, piece in enumerate(pieces) if piece]
    return " .. ".join(parts)


def _foreign_call(failure: RuntimeFailure, value: ScriptValue) -> str | None:
    name = value.name
    counts = name == "range" or (name == "len" and failure.calls_of("range"))
    if counts and (loop := loop_of(failure)):
        return f"Lua counts in the loop's header; write: {loop}"
    if name == "enumerate" and (loop := loop_of(failure)):
        return f"ipairs gives index and value; write: {loop}"
    if value.word_before == "new" and name not in equivalents().functions:  # `new Date()`, read as two statements
        form = equivalents().modules.get(name, {"": "call the function that creates the value"})[""]
        return f"Lua has no new; {fill_form(form)}"
    if name not in equivalents().absent and _tools_called(failure, name):
        return None
    return lua_vocabulary().advice(name, True, tuple(value.arguments()))


def _tools_called(failure: RuntimeFailure, name: str) -> list[str]:
    """Paths of tools whose last part is that name."""
    return sorted(path for path in failure.tools if path.rpartition(".")[2] == name)


def loop_of(failure: RuntimeFailure) -> str | None:
    """The loop header of the line, as Lua writes it."""
    text = failure.listing.line(failure.line)
    header = re.search(r"\bfor\b.*?\bdo\b", text or "")
    return corrected(header[0]) if header else None


def _foreign_table(value: ScriptValue) -> str | None:
    name, member = value.name, value.part
    forms = equivalents().modules.get(name)
    if forms is None or member is None or type(member.node) is not p.Field:
        return lua_vocabulary().advice(name, False, ())
    function, arguments = member.name, member.arguments()
    if name == "Math" and function not in forms and function.lower() in LIBRARIES["math"]:
        return f"the library is called math; write: math.{function.lower()}({', '.join(arguments) or '…'})"
    return f"there is no {name} here; {fill_form(forms.get(function, forms['']), arguments)}"


def foreign_constant(failure: RuntimeFailure, name: str) -> str | None:
    """`True`, `None` and the like, which a script reads without having defined them."""
    if name not in equivalents().constants:
        return None
    written = corrected(failure.listing.line(failure.line))
    fact = lua_vocabulary().fact("alternative_constant", language="Lua", word=equivalents().constants[name], name=name)
    return with_line(fact.message, written)


def _tool_name(failure: RuntimeFailure, value: ScriptValue) -> str | None:
    """`get_weather{…}` and `github.create_issue{…}` without `tools.` in front."""
    within = sorted(path for path in failure.tools if path.startswith(f"{value.name}."))
    paths = within if value.call is None else _tools_called(failure, value.name)
    return str(lua_vocabulary().fact("tool_name", name=value.name, tool=tool_name(paths[0]))) if paths else None


def _nearest_name(failure: RuntimeFailure, value: ScriptValue) -> str | None:
    name = value.name
    locals_ = {local for node in failure.listing.nodes for local in declared_names(node)}
    known = {*failure.names, *locals_, *(BASE if failure.names else ())} - {name, "_G", "_VERSION"}
    tools = nearest_tools(name, failure.tools) if value.call is not None and len(name) > 3 else []
    return did_you_mean(nearest(name, known, count=2) or list(map(tool_name, tools)))


def _tool_path(value: ScriptValue) -> str:
    """The whole dotted name that follows `tools.`, also behind the part that is nil: `tools.githb.create_issue`."""
    while (part := value.part) is not None and type(part.node) is p.Field:
        value = part
    return ".".join(p.path(value.node)[1:])


def _unknown_member(value: ScriptValue, library: str) -> str | None:
    advice = lua_vocabulary().member_advice(library, value.name, tuple(value.arguments()))
    is_name = advice is None or advice.startswith("did you mean")
    return advice if is_name else f"there is no {library}.{value.name}; {advice}"


def _method(value: ScriptValue) -> str | None:
    """`list.push(x)`, `text:split(",")`: methods of other languages."""
    if value.receiver == "…":
        return None
    advice = lua_vocabulary().method_advice(value.name, value.receiver, tuple(value.arguments()))
    return f"there is no method {value.name}; {advice}" if advice else None


def nil_name(failure: RuntimeFailure, value: ScriptValue) -> str | None:
    """Something named that is nil: unknown globals, tools, wrong ways to a length or to an element."""
    match failure.complaint.role:
        case "global" if value.word_before == "//":  # `x = 1 // comment`, read as a division
            return "comments begin with -- in Lua; // divides"
        case "global":
            return unknown_global(failure, value)
        case "local" | "upvalue":
            return _uninitialised(failure, value.name)
        case "field" if value.name in ("length", "len", "Length"):
            return f"write: {lua_vocabulary().form('length', value=value.receiver)}"
        case "field":
            is_indexed = failure.complaint.action == "index"
            return (unknown_field(failure, value) if is_indexed else None) or _zero_based(value)
    return None


def _uninitialised(failure: RuntimeFailure, name: str) -> str | None:
    """A local that was declared without a value, or with `await`, which Lua reads as a name."""
    first = _FIRST_VALUES.get(failure.complaint.action)
    match list(declarations(failure.listing, name)):
        case [(_, p.Declare(values=(p.Name(name="await"), *_)))]:
            return equivalents().statements["await"]
        case [(line, p.Declare(names=(_,), values=()))] if first and not _is_assigned(failure, name):
            return f"{name} is declared without a value on line {line}; write: local {name} = {first}"
    return None


_FIRST_VALUES = {"perform arithmetic on": "0", "concatenate": '""', "index": "{}", "get length of": "{}"}


def _is_assigned(failure: RuntimeFailure, name: str) -> bool:
    """Whether it gets a value elsewhere that does not need its own: neither `n = n + 1` nor `n.x = 1` gives it one."""

    def reads(value: p.Node) -> bool:
        return any(type(node) is p.Name and node.name == name for node in p.inside(value))

    assignments = (node for node in failure.listing.all(p.Assign) if [name] in map(p.path, node.targets))
    return any(not any(map(reads, node.values)) for node in assignments)


def _zero_based(value: ScriptValue) -> str | None:
    """`list[0]`, and `list[i]` in a loop that counts from 0."""
    match value.node:
        case p.Index(key=p.Constant(value=0 | -1 as index)):
            which = "last_element" if index else "first_element"
            return str(lua_vocabulary().fact(which, value=value.receiver))
        case p.Index(key=p.Name(name=name)):
            loops = (node for node in value.listing.around(value.node) if isinstance(node, p.Count))
            match [loop.bounds[0] for loop in loops if loop.name == name]:
                case [p.Constant(value=0), *_]:
                    return str(Fact(FACTS["first_element"], f"for {name} = 1, #{value.receiver} do"))
    return None


def nil_parent(value: ScriptValue) -> str | None:
    """`a.b.c` where `a.b` is nil."""
    if type(value.node) is p.Name or value.text == "…":
        return None
    if value.part is not None and value.part.is_assigned:
        return f"{value.text} is nil; make it a table first: {value.text} = {{}}"
    return f"{value.text} is nil; check it before using its fields: if {value.text} then … end"


def given_to_library(failure: RuntimeFailure) -> str | None:
    """ipairs(nil) and table.unpack(nil), which Lua reports without naming them."""
    for function in ("ipairs", "unpack"):
        call = failure.call_of(function)
        arguments = call.arguments() if call is not None else []
        if call is not None and arguments and arguments[0] not in ("…", "nil", "null"):
            what = "nil" if failure.complaint.type == "nil" else f"a {failure.complaint.type}"
            return f"{call.text} needs a list, but {arguments[0]} is {what}"
    return None


def null_parent(failure: RuntimeFailure) -> str:
    """`x.y` where `x` is json.null; the message names `y`."""
    receivers = {value.receiver for value in failure.fields_of(failure.complaint.name)} - {"…", "null"}
    what = f"{receivers.pop()} is json.null, which" if len(receivers) == 1 else "json.null"
    return f"{what} has no fields: it is only for sending a null"


def pcall_result(failure: RuntimeFailure) -> str | None:
    """`local result = pcall(f)`, whose first value only says whether it went well."""
    name = failure.complaint.name
    for call in failure.listing.all(p.FunctionCall):
        function = last_name(call)
        match next(failure.listing.around(call)):
            case p.Declare(names=(result,)) | p.Assign(targets=(p.Name(name=result),)) if result == name:
                if function in ("pcall", "xpcall"):
                    return f"the first result of pcall is true or false; write: local ok, {name} = {function}(…)"
    return None
