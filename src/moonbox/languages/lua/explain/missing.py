"""Hints for values that are missing: nil and null where something was needed."""

from __future__ import annotations

from moonbox.languages.facts import FACTS, Fact
from moonbox.languages.lua.explain.names import unknown_field, unknown_global
from moonbox.languages.lua.explain.values import RuntimeFailure, ScriptValue, calls_of, fields_of
from moonbox.languages.lua.vocabulary import equivalents, lua_vocabulary

__all__ = ["given_to_library", "is_assigned", "nil_name", "nil_parent", "null_parent", "pcall_result"]


def nil_name(failure: RuntimeFailure) -> str | None:
    """Something named that is nil: unknown globals, tools, wrong ways to a length or to an element."""
    complaint, value = failure.complaint, failure.value
    assert complaint is not None
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
        assert failure.complaint is not None
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
    assert complaint is not None
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
    assert complaint is not None
    for function in ("ipairs", "unpack"):
        calls = calls_of(failure.listing, failure.line, function)
        arguments = calls[0].arguments() if len(calls) == 1 else []
        if arguments and arguments[0] not in ("…", "nil", "null"):
            what = "nil" if complaint.type == "nil" else f"a {complaint.type}"
            return f"{calls[0].text} needs a list, but {arguments[0]} is {what}"
    return None


def null_parent(failure: RuntimeFailure) -> str | None:
    """`x.y` where `x` is json.null; the message names `y`."""
    complaint = failure.complaint
    assert complaint is not None
    receivers = {value.receiver for value in fields_of(failure.listing, failure.line, complaint.name)} - {"…", "null"}
    if len(receivers) != 1:
        return "json.null has no fields: it is only for sending a null"
    what = receivers.pop()
    return f"{what} is json.null, which has no fields: it is only for sending a null"


def pcall_result(failure: RuntimeFailure) -> str | None:
    """`local result = pcall(f)`, whose first value only says whether it went well."""
    complaint = failure.complaint
    assert complaint is not None
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
