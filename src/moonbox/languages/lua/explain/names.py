"""Hints for names that nothing is known by: globals, members of libraries, tools, methods."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from moonbox.languages.lua.explain.case import declared
from moonbox.languages.lua.explain.foreign import ABSENT, CONSTANTS, FUNCTIONS, MODULES
from moonbox.languages.lua.explain.forms import filled
from moonbox.languages.lua.explain.known import BASE, LIBRARIES, library_of
from moonbox.languages.lua.explain.loops import lua_loop
from moonbox.languages.lua.explain.members import MEMBERS, METHODS
from moonbox.languages.lua.explain.slips.literals import concatenated
from moonbox.suggest import did_you_mean, nearest

if TYPE_CHECKING:
    from moonbox.languages.lua.explain.case import Case
    from moonbox.languages.lua.explain.lexer import Token
    from moonbox.languages.lua.explain.site import Site

__all__ = ["unknown_field", "unknown_global", "unknown_method"]

_FEW = 12


def unknown_global(case: Case, name: str, *, called: bool) -> str | None:
    """A global that is nil where its value was needed."""
    return (
        _scoped(case, name)
        or (_prefixed_string(case, name) if called else None)
        or (_foreign_call(case, name) if called else _foreign_table(case, name))
        or _constant(name)
        or _tool_name(case, name, called=called)
        or _member_name(name, called=called)
        or _nearest_name(case, name, called=called)
    )


def unknown_field(case: Case, *, called: bool) -> str | None:
    """A field that is nil where a function (or a table) was needed."""
    site = case.site
    if site is None:
        return None
    root, path = site.root, site.path
    name = site.token.text
    if root == "tools" and not case.is_local("tools"):
        return _unknown_tool(case, site)
    if root in LIBRARIES and len(path) == 2:
        hiding = next(case.declarations(root), None) or case.parameter(root)
        if hiding is not None:
            return f"the local '{root}' of line {hiding.line} hides the library of that name: give it another name"
        return _unknown_member(site, root, name) if called else None
    if called and site.index > site.start:
        return _method(case, site)
    return None


def unknown_method(case: Case) -> str | None:
    """A method that is nil."""
    site = case.site
    if site is None:
        return None
    if site.root in LIBRARIES and site.index == site.start + 2 and not case.is_local(site.root):
        return _unknown_member(site, site.root, site.token.text)
    return _method(case, site)


def _scoped(case: Case, name: str) -> str | None:
    """A name that is declared, but elsewhere: further down, in another block, in an earlier run."""
    line = case.line or 0
    reading = case.listing.reading
    tokens = case.listing.tokens
    for index in reading.functions if reading else ():
        plain = tokens[index - 1].text == "function"
        if tokens[index].text == name and plain and tokens[index].line > line:
            return f"{name} is defined on line {tokens[index].line}, after this line runs: move its definition up"
    for token in islice(case.declarations(name), _FEW):
        if _is_inside_itself(case, token):
            return f"{name} is not known yet inside its own function; write: local function {name}(…) … end"
        if token.line > line:
            return f"{name} is declared on line {token.line}, after this line: move its declaration up"
        if token.line < line:
            return f"the local {name} of line {token.line} ends with its block: declare it before that block begins"
    if (parameter := case.parameter(name)) is not None:
        return f"{name} is known only inside the function of line {parameter.line}, whose parameter it is"
    for listing in case.earlier:
        if next(declared(listing, name), None) is not None:
            return f"{name} was a local of an earlier run, and locals end with their run: set it there without local"
    return None


def _is_inside_itself(case: Case, name: Token) -> bool:
    """`local f = function(n) return f(n - 1) end`."""
    reading, tokens = case.listing.reading, case.listing.tokens
    opener = tokens.index(name) + 2
    if [token.text for token in tokens[opener - 1 : opener + 1]] != ["=", "function"]:
        return False
    closing = next((close for begin, close in reading.pairs if begin == opener), None) if reading else None
    return closing is not None and name.line <= (case.line or 0) <= tokens[closing].line


def _prefixed_string(case: Case, name: str) -> str | None:
    """`f"hello {name}"`."""
    site = case.site
    if name not in ("f", "r", "b", "rf", "fr") or site is None or site.following().kind != "string":
        return None
    literal = site.following()
    if literal.start != site.token.end:
        return None
    if "f" not in name:
        return "strings have no prefix letters in Lua: leave it out"
    written = concatenated(literal.text[1:-1])
    return f"Lua has no f-strings; join the parts with ..{f'; write: {written}' if written else ''}"


def _foreign_call(case: Case, name: str) -> str | None:
    if name in ABSENT:
        return ABSENT[name]
    counts = name == "range" or (name == "len" and any(word.text == "range" for word in case.line_words()))
    if counts and (loop := _loop(case)):
        return f"Lua counts in the loop's header; write: {loop}"
    if name == "enumerate" and (loop := _loop(case)):
        return f"ipairs gives index and value; write: {loop}"
    if name in ("max", "min") and case.site is not None:
        arguments = case.site.arguments()
        inner = ", ".join(arguments) if len(arguments) > 1 else f"table.unpack({arguments[0]})" if arguments else "…"
        return f"{name} belongs to a library; write: math.{name}({inner})"
    form = FUNCTIONS.get(name)
    if form is None and _behind_new(case):
        form = MODULES.get(name, {"": "call the function that makes the value"})[""]
        return f"Lua has no new; {filled(form)}"
    if form is None or case.tools.called(name):
        return None
    return f"Lua has no {name}; {filled(form, case.site.arguments() if case.site else ())}"


def _behind_new(case: Case) -> bool:
    """`local d = new Date()`, which Lua reads as two statements."""
    site = case.site
    return site is not None and site.start > 0 and case.listing.tokens[site.start - 1].text == "new"


def _loop(case: Case) -> str | None:
    """The loop header of the line, as Lua writes it."""
    listing, line = case.listing, case.line
    if line is None or not listing.whole:
        return None
    span = listing.span(line)
    keyword = next((index for index in span if listing.tokens[index].text == "for"), None)
    stop = next((index for index in span if listing.tokens[index].text == "do"), None)
    return lua_loop(listing, keyword, stop) if keyword is not None and stop is not None and stop > keyword else None


def _foreign_table(case: Case, name: str) -> str | None:
    if name in ABSENT:
        return ABSENT[name]
    forms = MODULES.get(name)
    if forms is None:
        return None
    site = case.site
    if site is None or site.following().text != ".":
        return f"there is no {name} here; {filled(forms[''])}"
    member = case.listing.tokens[site.stop + 1].text
    call = type(site)(case.listing, site.start, site.stop + 1, site.stop + 2)
    if name == "Math" and member not in forms and member.lower() in LIBRARIES["math"]:
        return f"the library is called math; write: math.{member.lower()}({', '.join(call.arguments()) or '…'})"
    return f"there is no {name} here; {filled(forms.get(member, forms['']), call.arguments())}"


def _constant(name: str) -> str | None:
    return f"Lua writes {CONSTANTS[name]}, not {name}" if name in CONSTANTS else None


def _tool_name(case: Case, name: str, *, called: bool) -> str | None:
    """`get_weather{…}` and `github.create_issue{…}` without `tools.` in front."""
    found = case.tools.called(name) if called else case.tools.within(name)
    if not found:
        return None
    written = case.tools.written(found[0]) + "{…}" if called else f"tools.{name}.…"
    return f"tools are called through tools; write: {written}"


def _member_name(name: str, *, called: bool) -> str | None:
    """`insert(t, x)` for `table.insert(t, x)`."""
    library = library_of(name)
    return f"{name} belongs to a library; write: {library}.{name}" if library and called else None


def _nearest_name(case: Case, name: str, *, called: bool) -> str | None:
    reading = case.listing.reading
    locals_ = {case.listing.tokens[index].text for index in reading.locals} if reading else set[str]()
    found = nearest(name, {*case.names, *locals_, *(BASE if case.names else ())} - {name, "_G", "_VERSION"}, count=2)
    if found:
        return did_you_mean(found)
    close = case.tools.nearest(name) if called and len(name) > 3 else []
    return did_you_mean([case.tools.written(path) for path in close])


def _unknown_tool(case: Case, site: Site) -> str | None:
    """`tools.creat_issue{}`, `tools.githb.create_issue{}`."""
    path = _full_path(site)
    if not path:
        return 'no tool has that name; docs.search("words") finds tools'
    tools = case.tools
    if not len(tools):
        return "there are no tools here"
    close = tools.nearest(path)
    if close:
        return did_you_mean([tools.written(found) for found in close])
    everything = tools.some(_FEW)
    if everything:
        return f"the tools are: {', '.join(map(tools.written, everything))}"
    return 'no tool has that name; docs.search("words") finds tools'


def _full_path(site: Site) -> str:
    """The whole dotted name that follows `tools.`, also behind the part that is nil."""
    tokens = site.listing.tokens
    stop = site.stop
    while tokens[stop].text == "." and tokens[stop + 1].kind == "name":
        stop += 2
    path = type(site)(site.listing, site.start, site.index, stop).path[1:]
    if path:
        return ".".join(path)
    return site.token.text[1:-1] if site.token.kind == "string" else ""


def _unknown_member(site: Site, library: str, name: str) -> str | None:
    forms = MEMBERS.get(library, {})
    form = forms.get(name) or forms.get("")
    if form is not None:
        return f"there is no {library}.{name}; {filled(form, site.arguments())}"
    found = nearest(name, LIBRARIES[library], count=2)
    if found:
        return did_you_mean([f"{library}.{member}" for member in found])
    elsewhere = library_of(name)
    return f"did you mean {elsewhere}.{name}?" if elsewhere else None


def _method(case: Case, site: Site) -> str | None:
    """`list.push(x)`, `text:split(",")`: methods of other languages."""
    form = METHODS.get(site.token.text)
    if form is None or site.receiver == "…":
        return None
    arguments = site.arguments()
    if arguments and arguments[0] == site.receiver and site.listing.tokens[site.index - 1].text == ".":
        arguments = arguments[1:]
    if "{0}" in form and not arguments:
        return None
    return f"there is no method {site.token.text}; {filled(form, arguments, site.receiver)}"
