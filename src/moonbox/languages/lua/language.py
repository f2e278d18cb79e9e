"""Lua's entry in the registry of languages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages.language import RESERVED_WORDS, Language, Lexis, on_first_use

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_FEATURES = {"coroutines": ("coroutine",), "metatables": ("setmetatable", "getmetatable")}


def _libraries(features: Collection[str]) -> dict[str, list[str]]:
    """The members of each library, from the engine's own list."""
    from lupa import lua54

    allowed = lua54.LuaRuntime().execute((LUA.folder / "prelude" / "allowed.lua").read_text("utf-8"))
    members = {str(table): [str(name) for name in names.values()] for table, names in allowed.libraries.items()}
    if "coroutines" in features:
        members["coroutine"] = [str(name) for name in allowed.features.coroutines.values()]
    return members


def _completeness() -> Callable[[str], bool]:
    """Lua's own parser decides."""
    from lupa import lua54

    runtime = lua54.LuaRuntime(register_eval=False, register_builtins=False, encoding="utf-8")
    # Compiles and never runs what it compiles; the text is what the person at the prompt has typed.
    problem_with = runtime.execute(
        "local load, select = load, select return function(text) return (select(2, load(text, '=script', 't', {}))) end"
    )

    def is_complete(text: str) -> bool:
        try:
            problems = [problem_with(text), problem_with(f"return {text}")]
        except (UnicodeEncodeError, lua54.LuaError):
            return True  # whatever it is, more lines will not help
        return None in problems or not any(map(_wants_more, problems))

    return is_complete


def _wants_more(problem: str) -> bool:
    # A string in quotes ends with its line: the next line would not be part of it.
    return problem.endswith("<eof>") and "unfinished string" not in problem


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
    module_file=__file__,
    explain=on_first_use("lua.explain.compose", "explain"),
    completeness=_completeness,
    keywords=RESERVED_WORDS,
    parameter_aliases=frozenset({"lua", "lua_code"}),
    features=_FEATURES,
    libraries=_libraries,
    program=on_first_use("lua.syntax.listing", "lua_program"),
    vocabulary=on_first_use("lua.vocabulary", "lua_vocabulary"),
)
