"""Whether a script that is being typed is complete: the language's own parser decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["checker"]


def checker(language: str) -> Callable[[str], bool]:
    """A function that says False where more lines can still make a script of the text."""
    return _lua_checker() if language == "lua" else _guest_checker(language)


def _lua_checker() -> Callable[[str], bool]:
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


def _guest_checker(name: str) -> Callable[[str], bool]:
    """For a language with a compiler of its own: it says where it stopped."""
    from moonbox.languages.registry import BadSyntax, language

    make = language(name).translator
    assert make is not None
    translator = make()

    def is_complete(text: str) -> bool:
        try:
            translator.translate(text)
        except BadSyntax as problem:
            lines = text.rstrip().split("\n")
            at_end = (problem.line or 1, problem.column or 1) > (len(lines), len(lines[-1]))
            return not at_end or "string" in problem.message
        return True

    return is_complete
