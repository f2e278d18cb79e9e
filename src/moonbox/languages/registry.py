"""The languages that scripts can be written in. A further one is one more folder and one more entry here.

Lua runs as it is. A guest language has a compiler to Lua, which runs in the host, and a runtime in Lua, which runs in
the worker under the same limits: a chunk that returns `function(host) … return R end`, where R has `new_state()`,
`run(state, chunk)`, `operations(state)`, `export(value)`, `import(value)`, `type_of(value)`, and raises tables with
`kind`, `message`, `text`, `line`, `position`, `trace` and `hint`. What `host` offers is in lua/prelude/guest.lua.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from moonbox.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from moonbox.errors import ScriptError
    from moonbox.limits import Limits

__all__ = ["LANGUAGES", "BadSyntax", "EngineError", "Language", "Translator", "language"]


@dataclass(frozen=True, slots=True)
class EngineError:
    """What an engine (or a translator) reports of a run that failed."""

    kind: str
    """ "syntax", "runtime", "tool" or "stop"."""
    message: str = ""
    """In the engine's own words; Lua puts the chunk and line in front: `script:3: attempt to …`."""
    limit: str = ""
    """Of a stop: "time", "calls", "cancelled", "operations", "memory", "output", "string", "array", "depth" or ""."""
    frames: tuple[tuple[str, int, str], ...] = ()
    """(chunk, line, function), innermost first."""
    data: Any = None
    """The fields of a tool's error; of a table that the script raised, its data."""
    names: Collection[str] = ()
    """Globals that exist, where the message speaks of a nil value."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What else the language's own runtime reported, such as `line`, `column` and `hint`."""

    @classmethod
    def from_report(
        cls,
        kind: str,
        message: str,
        *,
        limit: str = "",
        frames: tuple[tuple[str, int, str], ...] = (),
        extra: Mapping[str, Any] | None = None,
    ) -> EngineError:
        """The error in a worker's report, whose `extra` is untrusted JSON."""
        extra = extra or {}
        data, names = extra.get("data"), extra.get("names")
        return cls(
            kind=kind,
            message=message,
            limit=limit,
            frames=frames,
            data=data[0] if isinstance(data, list) and data else None,
            names=tuple(str(name) for name in names) if isinstance(names, list) else (),
            extra=extra,
        )


class BadSyntax(Exception):
    """A script that does not compile, in its own language's words."""

    def __init__(self, message: str, line: int | None, column: int | None, hint: str | None) -> None:
        self.message, self.line, self.column, self.hint = message, line, column, hint
        super().__init__(message)

    @property
    def error(self) -> EngineError:
        """The same as what an engine reports."""
        where = {"line": self.line, "column": self.column, "hint": self.hint}
        return EngineError("syntax", self.message, extra=where)


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
    features: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Optional parts of the language, and the globals that each opens."""

    def explain(
        self, error: EngineError, *, sources: Mapping[str, str], tools: Collection[str], limits: Limits
    ) -> ScriptError:
        """What went wrong, where, and what to write instead.

        `sources` maps the chunks of a Repl's runs (`script`, `script#2`, …) to their text, as far as they are kept; the
        run that failed is the last of them. `tools` are the paths of the tools that the script can call.
        """
        if self.translator is not None and error.extra:
            from moonbox.languages.guest_errors import explain_guest

            return explain_guest(error, ([*sources.values()] or [""])[-1])
        from moonbox.languages.lua.explain import Ending, explain

        reported = Ending(error.kind, error.message, error.limit, error.frames, error.data, error.names)
        return explain(reported, sources=sources, tools=tools, limits=limits)


def _rhai_translator() -> Translator:
    from moonbox.languages.rhai.guest import RhaiTranslator

    return RhaiTranslator()


def _rhai_runtime() -> str:
    from moonbox.languages.rhai.source import runtime_source

    return runtime_source()


LANGUAGES = {
    "lua": Language(
        "lua", ".lua", 1, features={"coroutines": ("coroutine",), "metatables": ("setmetatable", "getmetatable")}
    ),
    "rhai": Language("rhai", ".rhai", 0, _rhai_translator, _rhai_runtime),
}


def language(name: str) -> Language:
    if name not in LANGUAGES:
        raise UsageError(f"unknown language {name!r}; choose one of: {', '.join(LANGUAGES)}")
    return LANGUAGES[name]
