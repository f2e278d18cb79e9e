"""Lua's entry in the registry of languages."""

from __future__ import annotations

from collections.abc import Callable, Collection

from moonbox.languages.language import RESERVED_WORDS, Language, Lexis, on_first_use
from moonbox.languages.tables import text

_FEATURES = {"coroutines": ("coroutine",), "metatables": ("setmetatable", "getmetatable")}


def _libraries(features: Collection[str]) -> dict[str, list[str]]:
    """The members of each library, from the engine's own list."""
    from lupa import lua54

    allowed = lua54.LuaRuntime().execute(text("lua/prelude/allowed.lua"))
    members = {str(table): [str(name) for name in names.values()] for table, names in allowed.libraries.items()}
    if "coroutines" in features:
        members["coroutine"] = [str(name) for name in allowed.features.coroutines.values()]
    return members


def _completeness() -> Callable[[str], bool]:
    from moonbox.languages.lua.syntax.listing import Listing

    def is_complete(text: str) -> bool:
        listing = Listing(text)
        failures = [parsed and parsed.failure for parsed in (listing.parsed, listing.parsed_as_value)]
        # A string in quotes ends with its line: the next line would not be part of it.
        ends = (each.token.kind == "eof" or each.text.startswith("unfinished long") for each in failures if each)
        return None in failures or not any(ends)

    return is_complete


LUA = Language(
    name="lua",
    suffix=".lua",
    comment="--",
    lexer="lua",
    lexis=Lexis(
        r"""(?P<begin> (?:--)?\[=*\[) | (?P<comment> --[^\n]*+)
        | (?P<string> "(?:[^"\\\n]|\\z\s*+|\\.)*+"? | '(?:[^'\\\n]|\\z\s*+|\\.)*+'? | `[^`]*+`?)""",
        word_blocks=True,
    ),
    first_index=1,
    nothing="nil",
    explain=on_first_use("lua.explain.compose", "explain"),
    completeness=_completeness,
    keywords=RESERVED_WORDS,
    parameter_aliases=frozenset({"lua", "lua_code"}),
    features=_FEATURES,
    libraries=_libraries,
    program=on_first_use("lua.syntax.listing", "lua_program"),
    vocabulary=on_first_use("lua.vocabulary", "lua_vocabulary"),
)
