"""The languages that scripts can be written in. A further one is one more folder and one more entry here.

Lua runs as it is. A guest language has a compiler to Lua, which runs in the host, and a runtime in Lua, which runs in
the worker under the same limits: a chunk that returns `function(host) … return R end`, where R has `new_state()`,
`run(state, chunk)`, `operations(state)`, `export(value)`, `import(value)`, `type_of(value)`, and raises tables with
`kind`, `message`, `text`, `line`, `position`, `trace` and `hint`. What `host` offers is in lua/prelude/guest.lua.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from moonbox.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LANGUAGES", "BadSyntax", "Language", "Translator", "language"]


class BadSyntax(Exception):
    """A script that does not compile, in its own language's words."""

    def __init__(self, message: str, line: int | None, column: int | None, hint: str | None) -> None:
        self.message, self.line, self.column, self.hint = message, line, column, hint
        super().__init__(message)


class Translator(Protocol):
    """Compiles scripts of one language to Lua; one for each Sandbox, so that it may remember."""

    def translate(self, source: str) -> str:
        """The Lua chunk; raises BadSyntax, and nothing else."""


@dataclass(frozen=True, slots=True)
class Language:
    """One language."""

    name: str
    suffix: str
    first_index: int
    """The number that it gives an array's first element."""
    translator: Callable[[], Translator] | None = None
    """None for Lua itself."""
    runtime: Callable[[], str] | None = None


def _rhai_translator() -> Translator:
    from moonbox.languages.rhai.guest import RhaiTranslator

    return RhaiTranslator()


def _rhai_runtime() -> str:
    from moonbox.languages.rhai.source import runtime_source

    return runtime_source()


LANGUAGES = {
    "lua": Language("lua", ".lua", 1),
    "rhai": Language("rhai", ".rhai", 0, _rhai_translator, _rhai_runtime),
}


def language(name: str) -> Language:
    if name not in LANGUAGES:
        raise UsageError(f"unknown language {name!r}; choose one of: {', '.join(LANGUAGES)}")
    return LANGUAGES[name]
