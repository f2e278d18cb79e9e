"""Hints for what is missing: unknown globals, members of libraries, tools and methods; values that are nil or null."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from moonbox.languages.facts import FACTS, Fact, nearest_tools, unknown_tool
from moonbox.languages.lua.explain.slips import corrected, with_line
from moonbox.languages.lua.explain.values import RuntimeFailure, ScriptValue, declared
from moonbox.languages.lua.vocabulary import (
    BASE,
    LIBRARIES,
    equivalents,
    fill_form,
    library_of,
    lua_vocabulary,
    tool_name,
)
from moonbox.suggest import did_you_mean, nearest

if TYPE_CHECKING:
    from moonbox.languages.lua.syntax.lexer import Token

_FEW = 12
_UNDEFINED = re.compile(r"'(\w{1,40})' is not defined")


def unknown_global(failure: RuntimeFailure, name: str, *, called: bool) -> str | None:
    """A global that is nil where its value was needed."""
    return (
        _scoped(failure, name)
        or _try_block(failure, called=called)
        or (_prefixed_string(failure, name) if called else None)
        or (_foreign_call(failure, name) if called else _foreign_table(failure, name))
        or _tool_name(failure, name, called=called)
        or _member_name(name, called=called)
        or _nearest_name(failure, name, called=called)
    )


def unknown_field(failure: RuntimeFailure, *, called: bool) -> str | None:
    """A field that is nil where a function (or a table) was needed."""
    value = failure.value
    if value is None:
        return None
    root, path = value.root, value.path
    name = value.token.text
    if root == "tools" and not value.is_of_result and not failure.is_local("tools"):
        return unknown_tool(_full_path(value), failure.tools, tool_name, lua_vocabulary().form("search"))
    if root in LIBRARIES and len(path) == 2:
        hiding = next(failure.declarations(root), None) or failure.parameter(root)
        if hiding is not None:
            if root == "list" and called and (advice := _method(failure, value)) is not None:
                return advice  # a usual name for a list of the script's own
            return f"the local '{root}' of line {hiding.line} hides the library of that name: rename it"
        return _unknown_member(value, root, name) if called else None
    if called and value.index > value.start:
        return _method(failure, value)
    return None


def unknown_method(failure: RuntimeFailure) -> str | None:
    """A method that is nil."""
    value = failure.value
    if value is None:
        return None
    if value.root in LIBRARIES and value.index == value.start + 2 and not failure.is_local(value.root):
        return _unknown_member(value, value.root, value.token.text)
    return _method(failure, value)


def _scoped(failure: RuntimeFailure, name: str) -> str | None:
    """A name that is declared, but elsewhere: further down, in another block, in an earlier run."""
    line = failure.line or 0
    parsed = failure.listing.parsed
    tokens = failure.listing.tokens
    for index in parsed.functions if parsed else ():
        plain = tokens[index - 1].text == "function"
        if tokens[index].text == name and plain and tokens[index].line > line:
            return f"{name} is defined on line {tokens[index].line}, after this line runs: move its definition up"
    for token in islice(failure.declarations(name), _FEW):
        if _is_inside_itself(failure, token):
            return f"{name} is not visible yet inside its own function; write: local function {name}(…) … end"
        if token.line > line:
            return f"{name} is declared on line {token.line}, after this line: move its declaration up"
        if token.line < line:
            return f"the local {name} of line {token.line} exists only inside its block: declare it before the block"
    if (parameter := failure.parameter(name)) is not None:
        return f"{name} is a parameter of the function on line {parameter.line} and exists only inside it"
    for listing in failure.earlier:
        if next(declared(listing, name), None) is not None:
            return f"{name} was a local of an earlier run, and locals do not persist: assign it there without local"
    return None


def _is_inside_itself(failure: RuntimeFailure, name: Token) -> bool:
    """`local f = function(n) return f(n - 1) end`."""
    parsed, tokens = failure.listing.parsed, failure.listing.tokens
    opener = tokens.index(name) + 2
    if [token.text for token in tokens[opener - 1 : opener + 1]] != ["=", "function"]:
        return False
    closing = next((close for begin, close in parsed.pairs if begin == opener), None) if parsed else None
    return closing is not None and name.line <= (failure.line or 0) <= tokens[closing].line


def _try_block(failure: RuntimeFailure, *, called: bool) -> str | None:
    """`try { f() } catch (e) { }`, which Lua reads as a call of `try` with a table."""
    value = failure.value
    if not called or value is None:
        return None
    tokens, listing = failure.listing.tokens, failure.listing
    for index in range(max(0, value.start - 200), value.start):
        if tokens[index].text in ("try", "finally") and tokens[index + 1].text == "{":
            close = listing.closing(index + 1)
            if close is not None and close > value.start:
                return equivalents().statements["try"]
    return None


def _prefixed_string(failure: RuntimeFailure, name: str) -> str | None:
    """`f"hello {name}"`."""
    value = failure.value
    if name not in ("f", "r", "b", "rf", "fr") or value is None or value.following().kind != "string":
        return None
    literal = value.following()
    if literal.start != value.token.end:
        return None
    if "f" not in name:
        return "strings have no prefix letters in Lua: remove it"
    written = concatenated(literal.text[1:-1])
    return with_line(FACTS["f_string"], written)


_INSERTED = re.compile(r"\{([^{}]{1,80})\}")


def concatenated(text: str) -> str | None:
    """A text with `{holes}` as Lua joins it; None when there is nothing to join or it cannot be told."""
    if '"' in text or "\\" in text or len(text) > 200:
        return None
    pieces = _INSERTED.split(text)
    if len(pieces) == 1 or not all(re.fullmatch(r" *[A-Za-z_][\w.\[\]]* *", hole) for hole in pieces[1::2]):
        return None
    parts = [piece.strip() if place % 2 else f'"{piece}"' for place, piece in enumerate(pieces) if piece]
    return " .. ".join(parts)


def _foreign_call(failure: RuntimeFailure, name: str) -> str | None:
    counts = name == "range" or (name == "len" and any(word.text == "range" for word in failure.line_words()))
    if counts and (loop := loop_of(failure)):
        return f"Lua counts in the loop's header; write: {loop}"
    if name == "enumerate" and (loop := loop_of(failure)):
        return f"ipairs gives index and value; write: {loop}"
    if _behind_new(failure) and name not in equivalents().functions:
        form = equivalents().modules.get(name, {"": "call the function that creates the value"})[""]
        return f"Lua has no new; {fill_form(form)}"
    if name not in equivalents().absent and _tools_called(failure, name):
        return None
    return lua_vocabulary().advice(name, True, tuple(failure.value.arguments() if failure.value else ()))


def _tools_called(failure: RuntimeFailure, name: str) -> list[str]:
    """Paths of tools whose last part is that name."""
    return sorted(path for path in failure.tools if path.rpartition(".")[2] == name)


def _behind_new(failure: RuntimeFailure) -> bool:
    """`local d = new Date()`, which Lua reads as two statements."""
    value = failure.value
    return value is not None and value.start > 0 and failure.listing.tokens[value.start - 1].text == "new"


def loop_of(failure: RuntimeFailure) -> str | None:
    """The loop header of the line, as Lua writes it."""
    text = failure.listing.line(failure.line) if failure.line is not None else None
    header = re.search(r"\bfor\b.*?\bdo\b", text or "")
    return corrected(header[0]) if header else None


def _foreign_table(failure: RuntimeFailure, name: str) -> str | None:
    forms, value = equivalents().modules.get(name), failure.value
    if forms is None or value is None or value.following().text != ".":
        return lua_vocabulary().advice(name, False, ())
    member = failure.listing.tokens[value.stop + 1].text
    call = type(value)(failure.listing, value.start, value.stop + 1, value.stop + 2)
    if name == "Math" and member not in forms and member.lower() in LIBRARIES["math"]:
        return f"the library is called math; write: math.{member.lower()}({', '.join(call.arguments()) or '…'})"
    return f"there is no {name} here; {fill_form(forms.get(member, forms['']), call.arguments())}"


def foreign_constant(failure: RuntimeFailure) -> str | None:
    """`True`, `None` and the like, which a script reads without having defined them."""
    match = _UNDEFINED.fullmatch(failure.message)
    if match is None or match[1] not in equivalents().constants:
        return None
    written = corrected(failure.listing.line(failure.line)) if failure.line is not None else None
    texts = {"language": "Lua", "word": equivalents().constants[match[1]], "name": match[1]}
    return with_line(lua_vocabulary().fact("alternative_constant", **texts).message, written)


def _tool_name(failure: RuntimeFailure, name: str, *, called: bool) -> str | None:
    """`get_weather{…}` and `github.create_issue{…}` without `tools.` in front."""
    within = sorted(path for path in failure.tools if path.startswith(f"{name}."))
    paths = _tools_called(failure, name) if called else within
    return str(lua_vocabulary().fact("tool_name", name=name, tool=tool_name(paths[0]))) if paths else None


def _member_name(name: str, *, called: bool) -> str | None:
    """`format(x)` for `string.format(x)`."""
    library = library_of(name)
    if library is None or not called:
        return None
    return str(lua_vocabulary().fact("library_member", name=name, library=library, arguments="…"))


def _nearest_name(failure: RuntimeFailure, name: str, *, called: bool) -> str | None:
    parsed = failure.listing.parsed
    locals_ = {failure.listing.tokens[index].text for index in parsed.locals} if parsed else set[str]()
    close_names = nearest(
        name, {*failure.names, *locals_, *(BASE if failure.names else ())} - {name, "_G", "_VERSION"}, count=2
    )
    if close_names:
        return did_you_mean(close_names)
    close = nearest_tools(name, failure.tools) if called and len(name) > 3 else []
    return did_you_mean(list(map(tool_name, close)))


def _full_path(value: ScriptValue) -> str:
    """The whole dotted name that follows `tools.`, also behind the part that is nil: `tools.githb.create_issue`."""
    tokens = value.listing.tokens
    stop = value.stop
    while tokens[stop].text == "." and tokens[stop + 1].kind == "name":
        stop += 2
    path = type(value)(value.listing, value.start, value.index, stop).path[1:]
    if path:
        return ".".join(path)
    return value.token.text[1:-1] if value.token.kind == "string" else ""


def _unknown_member(value: ScriptValue, library: str, name: str) -> str | None:
    advice = lua_vocabulary().member_advice(library, name, tuple(value.arguments()))
    return advice if advice is None or advice.startswith("did you mean") else f"there is no {library}.{name}; {advice}"


def _method(failure: RuntimeFailure, value: ScriptValue) -> str | None:
    """`list.push(x)`, `text:split(",")`: methods of other languages."""
    if value.receiver == "…":
        return None
    arguments = value.arguments()
    if arguments and arguments[0] == value.receiver and value.listing.tokens[value.index - 1].text == ".":
        arguments = arguments[1:]
    advice = lua_vocabulary().method_advice(value.token.text, value.receiver, tuple(arguments))
    return f"there is no method {value.token.text}; {advice}" if advice else None


# Values that are nil or null


def nil_name(failure: RuntimeFailure) -> str | None:
    """Something named that is nil: unknown globals, tools, wrong ways to a length or to an element."""
    complaint, value = failure.complaint, failure.value
    if complaint.type != "nil":
        return None
    if complaint.role == "global":
        return _comment_word(failure) or unknown_global(failure, complaint.name, called=False)
    if complaint.role in ("local", "upvalue"):
        return _uninitialised(failure, complaint.name)
    if complaint.role != "field" or value is None:
        return None
    if value.token.text in ("length", "len", "Length") and value.index > value.start:
        return f"write: {lua_vocabulary().form('length', value=value.receiver)}"
    if complaint.action == "index" and (hint := unknown_field(failure, called=False)):
        return hint
    return _zero_based(value)


def _comment_word(failure: RuntimeFailure) -> str | None:
    """`x = 1 // comment`, read as a division."""
    value = failure.value
    if value is None or value.start == 0 or value.listing.tokens[value.start - 1].text != "//":
        return None
    return "comments begin with -- in Lua; // divides"


def _uninitialised(failure: RuntimeFailure, name: str) -> str | None:
    """A local that was declared without a value, or with a word that is none."""
    tokens = failure.listing.tokens
    declarations = list(failure.declarations(name))
    if len(declarations) != 1:
        return None
    index = tokens.index(declarations[0])
    following = tokens[index + 1 : index + 3]
    if [token.text for token in following] == ["=", "await"]:
        return equivalents().statements["await"]
    alone = tokens[index - 1].text == "local" and following[0].text not in ("=", ",", "<")
    if alone and not _is_assigned_again(failure, index, name):
        value = {"perform arithmetic on": "0", "concatenate": '""', "index": "{}", "get length of": "{}"}.get(
            failure.complaint.action
        )
        return (
            f"{name} is declared without a value on line {declarations[0].line}; write: local {name} = {value}"
            if value
            else None
        )
    return None


def _is_assigned_again(failure: RuntimeFailure, declared: int, name: str) -> bool:
    """Whether it gets a value elsewhere that does not need its own: `n = n + 1` gives it none."""
    tokens = failure.listing.tokens
    for index, token in enumerate(tokens[:-1]):
        if token.text != name or token.kind != "name" or tokens[index + 1].text not in ("=", ",") or index == declared:
            continue
        own = any(word.text == name for word in tokens[index + 1 : failure.listing.span(token.line).stop])
        if not own:
            return True
    return False


def _zero_based(value: ScriptValue) -> str | None:
    """`list[0]`, and `list[i]` in a loop that counts from 0."""
    tokens = value.listing.tokens
    if value.index == value.start or tokens[value.index - 1].text != "[":
        return None
    if [token.text for token in tokens[value.index : value.stop]] == ["-", "1", "]"]:
        return str(lua_vocabulary().fact("last_element", value=value.receiver))
    if value.stop != value.index + 2:
        return None
    key = value.token.text
    if key == "0":
        return str(lua_vocabulary().fact("first_element", value=value.receiver))
    for index in range(value.index - 1, 2, -1):
        words = [token.text for token in tokens[index - 3 : index + 2]]
        if words[:4] == ["for", key, "=", "0"] and words[4] == ",":
            return str(Fact(FACTS["first_element"], f"for {key} = 1, #{value.receiver} do"))
    return None


def nil_parent(failure: RuntimeFailure) -> str | None:
    """`a.b.c` where `a.b` is nil."""
    complaint, value = failure.complaint, failure.value
    if not complaint.role:
        return given_to_library(failure)
    if complaint.role != "field" or value is None or value.text == "…":
        return None
    if is_assigned(failure):
        return f"{value.text} is nil; make it a table first: {value.text} = {{}}"
    return f"{value.text} is nil; check it before using its fields: if {value.text} then … end"


def given_to_library(failure: RuntimeFailure) -> str | None:
    """ipairs(nil) and table.unpack(nil), which Lua reports without naming them."""
    complaint = failure.complaint
    for function in ("ipairs", "unpack"):
        calls = failure.calls_of(function)
        arguments = calls[0].arguments() if len(calls) == 1 else []
        if arguments and arguments[0] not in ("…", "nil", "null"):
            what = "nil" if complaint.type == "nil" else f"a {complaint.type}"
            return f"{calls[0].text} needs a list, but {arguments[0]} is {what}"
    return None


def null_parent(failure: RuntimeFailure) -> str | None:
    """`x.y` where `x` is json.null; the message names `y`."""
    complaint = failure.complaint
    receivers = {value.receiver for value in failure.fields_of(complaint.name)} - {"…", "null"}
    if len(receivers) != 1:
        return "json.null has no fields: it is only for sending a null"
    what = receivers.pop()
    return f"{what} is json.null, which has no fields: it is only for sending a null"


def pcall_result(failure: RuntimeFailure) -> str | None:
    """`local result = pcall(f)`, whose first value only says whether it went well."""
    complaint = failure.complaint
    tokens = failure.listing.tokens
    for index, token in enumerate(tokens[:-2]):
        named = token.text == complaint.name and token.kind == "name"
        if named and tokens[index + 1].text == "=" and tokens[index + 2].text in ("pcall", "xpcall"):
            written = f"local ok, {complaint.name} = {tokens[index + 2].text}(…)"
            return f"the first result of pcall is true or false; write: {written}"
    return None


def is_assigned(failure: RuntimeFailure) -> bool:
    """Whether the line assigns to a field of the value."""
    value = failure.value
    if value is None:
        return False
    tokens = value.listing.tokens
    stop = value.stop + 2
    if tokens[value.stop].text == "[":
        close = value.listing.closing(value.stop)
        stop = close + 1 if close is not None else stop
    return tokens[min(stop, len(tokens) - 1)].text == "="
