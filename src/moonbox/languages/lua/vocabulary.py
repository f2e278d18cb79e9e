"""The words of Lua as scripts find them, and what to write for those of other languages (explain/equivalents.toml)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from moonbox.languages.facts import by_word
from moonbox.languages.language import is_identifier
from moonbox.languages.program import Vocabulary
from moonbox.languages.tables import table
from moonbox.suggest import did_you_mean, nearest

_BASE = (
    "assert error ipairs next pairs pcall print rawequal rawget rawlen rawset select tonumber tostring type xpcall "
    "array pages parallel docs tools"
)
BASE = frozenset(_BASE.split())
"""Names that every script finds, beside the libraries."""
_MEMBERS = {
    "string": "byte char find format gmatch gsub len lower match pack packsize rep reverse sub unpack upper",
    "table": "concat insert move pack remove sort unpack",
    "math": (
        "abs acos asin atan ceil cos deg exp floor fmod huge log max maxinteger min mininteger modf pi rad random "
        "randomseed sin sqrt tan tointeger type ult"
    ),
    "utf8": "char charpattern codepoint codes len offset",
    "os": "clock date difftime time",
    "json": "decode encode null parse stringify",
    "parallel": "map settle",
    "list": ("map filter sort_by group_by count_by sum min_by max_by unique take keys values entries round join"),
}
LIBRARIES: dict[str, frozenset[str]] = {name: frozenset(members.split()) for name, members in _MEMBERS.items()}
"""Libraries and their members."""


def library_of(member: str) -> str | None:
    """The one library that has a member of that name; None when there is none or more than one."""
    libraries = [name for name, members in LIBRARIES.items() if member in members and name != "parallel"]
    return libraries[0] if len(libraries) == 1 else None


class Equivalents(NamedTuple):
    """What other languages have and Lua has not, each with its Lua form; see equivalents.toml."""

    functions: dict[str, str]
    absent: dict[str, str]
    constants: dict[str, str]
    methods: dict[str, str]
    members: dict[str, dict[str, str]]
    modules: dict[str, dict[str, str]]
    statements: dict[str, str]
    messages: list[tuple[str, str]]


@cache
def equivalents() -> Equivalents:
    return Equivalents(**by_word(table("lua/explain/equivalents.toml")))


def message_hint(message: str) -> str | None:
    """The hint for a message of Lua that needs no look at the script; None for one that the table leaves alone."""
    for pattern, hint in equivalents().messages:
        if match := re.match(pattern, message):
            return match.expand(hint) or None
    return None


def fill_form(form: str, arguments: Sequence[str] = (), receiver: str = "") -> str:
    """A form with the script's own text in it, or with x, y and z where that is not known."""
    given = list(arguments) if "…" not in arguments else []
    texts = [*given, *("x", "y", "z")[len(given) :]]

    def fill(hole: re.Match[str]) -> str:
        before, behind = hole.string[: hole.start()], hole.string[hole.end() :]
        called = behind.startswith((":", "["))
        match hole["name"]:
            case "*":
                return ", ".join(given) if given else "…"
            case "set":
                return _separated(given[-1] if given else "")
            case "self":
                literal = called and re.fullmatch(_LITERAL, receiver) is not None
                return f"({receiver})" if literal else receiver or "x"
            case "plain0" | "plain1" as name:
                return _as_pattern(texts[int(name[-1])])
            case number:
                alone = before.endswith(("(", " ")) and behind.startswith((")", ","))
                text = texts[int(number)]
                return text if alone else _operand(text, called=called)

    return re.sub(_HOLE, fill, form)


def _operand(text: str, *, called: bool) -> str:
    """The text so that an operator or a method may stand beside it."""
    plain = re.fullmatch(_LITERAL, text) is not None and not called
    return text if plain or re.fullmatch(_SIMPLE, text) else f"({text})"


def _as_pattern(text: str) -> str:
    """The pattern that finds that text and nothing else."""
    if re.fullmatch(_QUOTED, text):
        return re.sub(_MAGIC, r"%\g<0>", text)
    return f'({_operand(text, called=True)}:gsub("%p", "%%%0"))'


def _separated(literal: str) -> str:
    """The pattern of a part between separators."""
    separator = literal[1:-1] if len(literal) == 3 and literal[0] in "'\"" else ","
    return f"[^{'%' if separator in '^]%-' else ''}{separator}]+"


# Compiled when they are first used, for an error.
_HOLE = r"\{(?P<name>[012*]|self|set|plain[01])\}"
_MAGIC = r"[\^$()%.\[\]*+?-]"
_QUOTED = r"\"[^\"]*\"|'[^']*'"
_SIMPLE = r"[A-Za-z_][\w.]*(?:\[[\w.]+\]|\([\w., ]*\))?"
_LITERAL = r"[0-9.]+|\"[^\"]*\"|'[^']*'|\{[^{}]*\}"


def tool_name(path: str) -> str:
    """How a script names the tool with that path."""
    return f"tools.{path}" if all(map(is_identifier, path.split("."))) else f'tools["{path}"]'


@cache
def lua_vocabulary() -> Vocabulary:
    """The words of Lua as scripts find them here."""
    return Vocabulary(
        language="lua",
        globals=BASE | LIBRARIES.keys() | {"_G", "_ENV", "_VERSION", "null"},
        libraries=LIBRARIES,
        constant=lambda name: equivalents().constants.get(name),  # read when a script uses such a word
        advice=_advice,
        method_advice=_method_advice,
        member_advice=_member_advice,
        string_methods=LIBRARIES["string"],
        no_value={"table.sort": "sorts", "table.insert": "changes"},
    )


_BARE = {
    **dict.fromkeys(("insert", "concat", "remove", "sort"), "table"),
    **dict.fromkeys(("floor", "ceil", "abs", "sqrt", "max", "min"), "math"),
    **dict.fromkeys(("gsub", "gmatch"), "string"),
}
"""Functions of libraries that scripts call as if they were global."""


def _advice(name: str, called: bool, arguments: tuple[str, ...]) -> str | None:
    words = equivalents()
    if name in words.absent:
        return words.absent[name]
    if called and name in _BARE and (arguments or name in ("max", "min")):
        given = arguments
        if name in ("max", "min") and len(arguments) == 1:
            given = (f"table.unpack({arguments[0]})",)
        texts = {"library": _BARE[name], "name": name, "arguments": ", ".join(given) or "…"}
        return str(lua_vocabulary().fact("library_member", **texts))
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
    close = [f"{library}.{member}" for member in nearest(name, LIBRARIES[library], count=2)]
    elsewhere = library_of(name)
    return did_you_mean(close or ([f"{elsewhere}.{name}"] if elsewhere else []))
