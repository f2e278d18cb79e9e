"""The compiler: Rhai text in, a Lua chunk out, the last few of them remembered."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from moonbox.languages.rhai.analysis.optimize import optimize
from moonbox.languages.rhai.emit.chunk import write_chunk
from moonbox.languages.rhai.errors import RhaiSyntaxError
from moonbox.languages.rhai.syntax.parser import parse
from moonbox.languages.rhai.syntax.state import ParseLimits

__all__ = ["Compiled", "Compiler", "compile"]

MAX_SOURCE = 250_000
MAX_LUA = 16_000_000
_TOO_DEEP = "Expression exceeds maximum complexity"


@dataclass(frozen=True, slots=True)
class Compiled:
    """A script as Lua. Positions are in the text itself, as numbers that only the runtime reads."""

    lua: str


def compile(source: str, limits: ParseLimits | None = None) -> Compiled:
    """Compile a script; raises RhaiSyntaxError, and nothing else, whatever the text."""
    if len(source) > MAX_SOURCE:
        raise RhaiSyntaxError(f"the script is longer than {MAX_SOURCE:,} characters", None, None)
    limits = limits or ParseLimits()
    try:
        script = parse(source, limits)
        optimize(script)
        lua = write_chunk(script, limits)
    except RecursionError:
        raise RhaiSyntaxError(_TOO_DEEP, None, None, "split the expression over several statements") from None
    if len(lua) > MAX_LUA:
        raise RhaiSyntaxError("the script is too large once compiled", None, None)
    return Compiled(lua)


class Compiler:
    """Compiles scripts and keeps the results of the most recent ones."""

    def __init__(
        self, limits: ParseLimits | None = None, *, remember: int = 64, remember_size: int = 4_000_000
    ) -> None:
        self._limits = limits or ParseLimits()
        self._remember, self._remember_size = remember, remember_size
        self._kept: OrderedDict[str, Compiled] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def compile(self, source: str) -> Compiled:
        """The compiled script, from memory if it was compiled lately."""
        with self._lock:
            found = self._kept.get(source)
            if found is not None:
                self._kept.move_to_end(source)
                return found
        compiled = compile(source, self._limits)
        with self._lock:
            if source not in self._kept:
                self._kept[source] = compiled
                self._size += len(source) + len(compiled.lua)
            while self._kept and (len(self._kept) > self._remember or self._size > self._remember_size):
                old, dropped = self._kept.popitem(last=False)
                self._size -= len(old) + len(dropped.lua)
        return compiled
