"""Whether a script that is being typed is complete: the language's own parser decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["checker"]


def checker(language: str) -> Callable[[str], bool]:
    """A function that says False where more lines can still make a script of the text."""
    return _lua_checker() if language == "lua" else _always


def _lua_checker() -> Callable[[str], bool]:
    from lupa import lua54

    runtime = lua54.LuaRuntime(register_eval=False, register_builtins=False, encoding="utf-8")
    # Compiles and never runs what it compiles; the text is what the person at the prompt has typed.
    problem_with = runtime.execute(
        "local load, select = load, select return function(text) return (select(2, load(text, '=script', 't', {}))) end"
    )

    def is_complete(text: str) -> bool:
        try:
            problem = problem_with(text)
            if problem is None or problem_with(f"return {text}") is None:
                return True
        except (UnicodeEncodeError, lua54.LuaError):
            return True  # whatever it is, more lines will not help
        return not str(problem).endswith("<eof>")

    return is_complete


def _always(text: str) -> bool:
    return True
