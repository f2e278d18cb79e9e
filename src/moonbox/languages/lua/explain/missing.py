"""Hints for values that are missing: nil and null where something was needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages.lua.explain.foreign import LENGTHS
from moonbox.languages.lua.explain.names import unknown_field, unknown_global
from moonbox.languages.lua.explain.site import calls_of, fields_of

if TYPE_CHECKING:
    from moonbox.languages.lua.explain.case import Case
    from moonbox.languages.lua.explain.site import Site

__all__ = ["given_to_library", "is_assigned", "nil_name", "nil_parent", "null_parent", "pcall_result"]


def nil_name(case: Case) -> str | None:
    """Something named that is nil: unknown globals, tools, wrong ways to a length or to an element."""
    complaint, site = case.complaint, case.site
    assert complaint is not None
    if complaint.type != "nil":
        return None
    if complaint.role == "global":
        return _comment_word(case) or unknown_global(case, complaint.name, called=False)
    if complaint.role in ("local", "upvalue"):
        return _uninitialised(case, complaint.name)
    if complaint.role != "field" or site is None:
        return None
    if site.token.text in LENGTHS and site.index > site.start:
        return f"the length of a list or text is #{site.receiver}, not {site.text}"
    if complaint.action == "index" and (found := unknown_field(case, called=False)):
        return found
    return _zero_based(case, site) or _character(case, site)


def _comment_word(case: Case) -> str | None:
    """`x = 1 // comment`, read as a division."""
    site = case.site
    if site is None or site.start == 0 or site.listing.tokens[site.start - 1].text != "//":
        return None
    return "comments begin with -- in Lua; // divides"


def _uninitialised(case: Case, name: str) -> str | None:
    """A local that was declared without a value, or with a word that is none."""
    tokens = case.listing.tokens
    declarations = list(case.declarations(name))
    if len(declarations) != 1:
        return None
    index = tokens.index(declarations[0])
    following = tokens[index + 1 : index + 3]
    if [token.text for token in following] == ["=", "await"]:
        return "calls wait for their result by themselves: leave out await"
    alone = tokens[index - 1].text == "local" and following[0].text not in ("=", ",", "<")
    if alone and not _is_assigned_again(case, index, name):
        assert case.complaint is not None
        value = {"perform arithmetic on": "0", "concatenate": '""', "index": "{}", "get length of": "{}"}.get(
            case.complaint.action
        )
        return (
            f"{name} is declared without a value on line {declarations[0].line}; write: local {name} = {value}"
            if value
            else None
        )
    return None


def _is_assigned_again(case: Case, declared: int, name: str) -> bool:
    """Whether it gets a value elsewhere that does not need its own: `n = n + 1` gives it none."""
    tokens = case.listing.tokens
    for index, token in enumerate(tokens[:-1]):
        if token.text != name or token.kind != "name" or tokens[index + 1].text not in ("=", ",") or index == declared:
            continue
        own = any(word.text == name for word in tokens[index + 1 : case.listing.span(token.line).stop])
        if not own:
            return True
    return False


def _zero_based(case: Case, site: Site) -> str | None:
    """`list[0]`, and `list[i]` in a loop that counts from 0."""
    tokens = site.listing.tokens
    if site.index == site.start or tokens[site.index - 1].text != "[":
        return None
    if [token.text for token in tokens[site.index : site.stop]] == ["-", "1", "]"]:
        return f"indexes do not count from the end; write: {site.receiver}[#{site.receiver}]"
    if site.stop != site.index + 2:
        return None
    key = site.token.text
    if key == "0":
        return f"lists begin at 1; write: {site.receiver}[1]"
    for index in range(site.index - 1, 2, -1):
        words = [token.text for token in tokens[index - 3 : index + 2]]
        if words[:4] == ["for", key, "=", "0"] and words[4] == ",":
            return f"lists begin at 1; write: for {key} = 1, #{site.receiver} do"
    return None


def _character(case: Case, site: Site) -> str | None:
    """`text[1]`."""
    declarations = list(case.declarations(site.receiver))
    if len(declarations) != 1 or site.listing.tokens[site.index - 1].text != "[":
        return None
    tokens = site.listing.tokens
    index = tokens.index(declarations[0])
    text = (
        tokens[index + 1].text == "="
        and tokens[index + 2].kind == "string"
        and tokens[index + 3].text not in ("..", ":", ".")
    )
    if not text or _is_assigned_again(case, index, site.receiver):
        return None
    key = site.token.text if site.stop == site.index + 2 else "i"
    return f"characters of a text are not indexed; write: {site.receiver}:sub({key}, {key})"


def nil_parent(case: Case) -> str | None:
    """`a.b.c` where `a.b` is nil."""
    complaint, site = case.complaint, case.site
    assert complaint is not None
    if not complaint.role:
        return given_to_library(case)
    if complaint.role != "field" or site is None or site.text == "…":
        return None
    if is_assigned(case):
        return f"{site.text} is nil; make it a table first: {site.text} = {{}}"
    return f"{site.text} is nil; test it before its fields are used: if {site.text} then … end"


def given_to_library(case: Case) -> str | None:
    """ipairs(nil) and table.unpack(nil), which Lua reports without naming them."""
    complaint = case.complaint
    assert complaint is not None
    for function in ("ipairs", "unpack"):
        calls = calls_of(case.listing, case.line, function)
        arguments = calls[0].arguments() if len(calls) == 1 else []
        if arguments and arguments[0] not in ("…", "nil", "null"):
            what = "nil" if complaint.type == "nil" else f"a {complaint.type}"
            return f"{calls[0].text} needs a list, but {arguments[0]} is {what}"
    return None


def null_parent(case: Case) -> str | None:
    """`x.y` where `x` is null; the message names `y`."""
    complaint = case.complaint
    assert complaint is not None
    found = {site.receiver for site in fields_of(case.listing, case.line, complaint.name)} - {"…", "null"}
    if len(found) != 1:
        return "a JSON null is the value null here, which has no fields: test for it with ~= null"
    what = found.pop()
    return f"{what} is JSON's null, which has no fields; test it first: if {what} ~= null then … end"


def pcall_result(case: Case) -> str | None:
    """`local result = pcall(f)`, whose first value only says whether it went well."""
    complaint = case.complaint
    assert complaint is not None
    tokens = case.listing.tokens
    for index, token in enumerate(tokens[:-2]):
        named = token.text == complaint.name and token.kind == "name"
        if named and tokens[index + 1].text == "=" and tokens[index + 2].text in ("pcall", "xpcall"):
            written = f"local ok, {complaint.name} = {tokens[index + 2].text}(…)"
            return f"pcall returns first whether it went well; write: {written}"
    return None


def is_assigned(case: Case) -> bool:
    """Whether the line assigns to a field of the value."""
    site = case.site
    if site is None:
        return False
    tokens = site.listing.tokens
    stop = site.stop + 2
    if tokens[site.stop].text == "[":
        close = site.listing.closing(site.stop)
        stop = close + 1 if close is not None else stop
    return tokens[min(stop, len(tokens) - 1)].text == "="
