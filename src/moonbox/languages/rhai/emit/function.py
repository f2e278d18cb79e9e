"""One Lua function being written: its lines, temporaries, locals and operation counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages.rhai.emit.text import place_text
from moonbox.languages.rhai.syntax.state import fail

if TYPE_CHECKING:
    from moonbox.languages.rhai.syntax.tokens import Pos

__all__ = ["MAX_ARGUMENTS", "MAX_LOCALS", "MAX_STATES", "MAX_UPVALUES", "MAX_WITH_LOOPS", "LuaFunction"]

# Lua allows 200 locals, 255 registers and 255 upvalues in a function. These leave room for what is written around them.
MAX_TEMPORARIES = 50
MAX_LOCALS = 90
MAX_WITH_LOOPS = 110
MAX_STATES = 20
MAX_ARGUMENTS = 50
MAX_UPVALUES = 150


class LuaFunction:
    """Collects the text of one function."""

    def __init__(self, number: int, parent: LuaFunction | None) -> None:
        self.number, self.parent = number, parent
        self.lines: list[str] = []
        self.top = 0
        self.locals = 0
        self.spilled = 0
        self.outside: set[str] = set()
        self.in_try = False
        self.here: Pos | None = None
        self._most = 0
        self._ticks: list[Pos | None] = []
        self._tick_line = -1

    def emit(self, line: str) -> None:
        self.lines.append(line)

    def temp(self) -> str:
        """A fresh temporary. It is given back by setting `top` to what it was before."""
        self.top += 1
        if self.top > MAX_TEMPORARIES:
            fail("Expression exceeds maximum complexity", self.here, "split the expression over several statements")
        self._most = max(self._most, self.top)
        return f"t{self.number}_{self.top}"

    def spill(self) -> str:
        """A place for a variable that finds no room among the locals."""
        self.spilled += 1
        return f"X{self.number}[{self.spilled}]"

    def tick(self, pos: Pos | None) -> None:
        """Count one operation in the current basic block."""
        if self._tick_line < 0:
            self.cut()
        self._ticks.append(pos)
        self.here = pos or self.here

    def cut(self) -> None:
        """A new basic block starts here."""
        self.finish_ticks()
        self._tick_line = len(self.lines)
        self.lines.append("")

    def finish_ticks(self) -> None:
        count = len(self._ticks)
        if count:
            places = " ".join(place_text(pos) for pos in self._ticks)
            self.lines[self._tick_line] = f'c=K[1]-{count} K[1]=c if c<0 then over(K,{count},"{places}")end'
        self._ticks = []
        self._tick_line = -1

    def text(self) -> list[str]:
        """The body: declarations first."""
        self.finish_ticks()
        names = ["c", *(f"t{self.number}_{n}" for n in range(1, self._most + 1))]
        head = ["local " + ",".join(names)]
        if self.spilled:
            head.append(f"local X{self.number}={{}}")
        return head + [line for line in self.lines if line]
