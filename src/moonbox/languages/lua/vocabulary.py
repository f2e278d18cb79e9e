"""The words of Lua as scripts find them here, and what to write for those of other languages."""

from __future__ import annotations

from functools import cache

from moonbox.languages.lua.explain.environment import BASE, LIBRARIES, equivalents, fill_form
from moonbox.languages.program import Vocabulary
from moonbox.suggest import did_you_mean, nearest

__all__ = ["lua_vocabulary"]


@cache
def lua_vocabulary() -> Vocabulary:
    """The words of Lua as scripts find them here."""
    return Vocabulary(
        globals=BASE | LIBRARIES.keys() | {"_G", "_ENV", "_VERSION", "null"},
        libraries=LIBRARIES,
        constant=lambda name: equivalents().constants.get(name),  # read when a script uses such a word
        advice=_advice,
        method_advice=_method_advice,
        member_advice=_member_advice,
        string_methods=LIBRARIES["string"],
        no_value=frozenset({"table.sort", "table.insert"}),
        forms={
            "call": "{}{…}",
            "search": 'docs.search("words")',
            "closure": "function() return {} end",
            "length": "#{}",
            "element": "{}[1]",
            "number": "tonumber({})",
            "assign": "{} = …, without local",
        },
    )


_BARE = {
    **dict.fromkeys(("insert", "concat", "remove", "sort"), "table"),
    **dict.fromkeys(("floor", "ceil", "abs", "sqrt"), "math"),
    **dict.fromkeys(("gsub", "gmatch"), "string"),
}
"""Functions of libraries that scripts call as if they were global."""


def _advice(name: str, called: bool, arguments: tuple[str, ...]) -> str | None:
    words = equivalents()
    if name in words.absent:
        return words.absent[name]
    if called and name in ("max", "min"):
        return f"{name} belongs to a library; write: math.{name}({', '.join(arguments) or '…'})"
    if called and arguments and (library := _BARE.get(name)) is not None:
        return f"{name} belongs to a library; write: {library}.{name}({', '.join(arguments)})"
    if called and name in words.functions:
        return f"Lua has no {name}; {fill_form(words.functions[name], arguments)}"
    if not called and name in words.modules:
        return f"there is no {name} here; {fill_form(words.modules[name][''])}"
    return None


def _method_advice(name: str, receiver: str, arguments: tuple[str, ...]) -> str | None:
    form = equivalents().methods.get(name)
    if form is None or ("{0}" in form and not arguments):
        return None
    return fill_form(form, arguments, receiver)


def _member_advice(library: str, name: str, arguments: tuple[str, ...]) -> str | None:
    forms = equivalents().members.get(library, {})
    form = forms.get(name) or forms.get("")
    if form is not None:
        return fill_form(form, arguments)
    close = nearest(name, LIBRARIES[library])
    return did_you_mean([f"{library}.{member}" for member in close])
