"""Loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages.rhai.analysis.types import SCALARS
from moonbox.languages.rhai.emit.expressions import ExpressionEmitter
from moonbox.languages.rhai.emit.function import MAX_WITH_LOOPS
from moonbox.languages.rhai.syntax.nodes import Block, Break, Do, For, Literal, Range, Variable, While
from moonbox.languages.rhai.syntax.state import fail

if TYPE_CHECKING:
    from moonbox.languages.rhai.analysis.variables import Var
    from moonbox.languages.rhai.emit.base import Loop

__all__ = ["LoopEmitter"]

_LOOP_LOCALS = 4  # that a numeric for takes for itself


class LoopEmitter(ExpressionEmitter):
    """while, loop, do and for, with break and continue."""

    def loop(self, stmt: While | Do | For, dest: str | None) -> None:
        if dest is not None:
            self.emit(f"{dest}=U")
        loop = self.enter_loop(dest)
        before = self.fn.locals, self.variables
        self.emit("do")
        match stmt:
            case While():
                self._while(stmt, loop)
            case Do():
                self._do(stmt, loop)
            case For():
                self._for(stmt, loop)
        self.emit("end")
        self.fn.locals, self.variables = before
        self.loops.pop()
        self.fn.cut()

    def jump(self, stmt: Break) -> None:
        loop = self.loops[-1]
        if stmt.value is not None:
            value = self.value(stmt.value).text
            if loop.dest is not None:
                self.emit(f"{loop.dest}={value}")
        if loop.fn is not self.fn:
            self.emit(f"do return {3 if stmt.is_continue else 2} end")
        elif stmt.is_continue:
            loop.continued = True
            self.emit(f"goto {loop.label}")
        else:
            self.emit("break")

    def _body(self, block: Block, loop: Loop) -> None:
        """The body of a loop; `continue` goes to its end."""
        if not block.body:
            self.tick(block.pos)
        self.block(block, None)
        self.fn.finish_ticks()
        if loop.continued:
            self.emit(f"::{loop.label}::")

    def _while(self, stmt: While, loop: Loop) -> None:
        self.emit("while true do")
        self.fn.cut()
        if stmt.condition is not None:
            mark = self.fn.top
            self.emit(f"if not ({self.condition(stmt.condition)}) then break end")
            self.fn.cut()
            self.fn.top = mark
        if stmt.body.body or stmt.condition is None:
            self._body(stmt.body, loop)
        self.fn.finish_ticks()
        self.emit("end")

    def _do(self, stmt: Do, loop: Loop) -> None:
        # `continue` starts the body again without a look at the condition, as the reference does.
        again = self.label("A")
        self.emit("while true do")
        self.emit("do")
        self.fn.cut()
        if stmt.body.body:
            loop.label = again
            self.block(stmt.body, None)
            self.fn.cut()
        mark = self.fn.top
        condition = self.condition(stmt.condition)
        self.emit(f"if {condition} then break end" if stmt.until else f"if not ({condition}) then break end")
        self.fn.top = mark
        self.fn.finish_ticks()
        self.emit(f"end ::{again}::" if loop.continued else "end")
        self.emit("end")

    def _for(self, stmt: For, loop: Loop) -> None:
        declared = self.scopes.declared(stmt)
        if self.limits.max_variables is not None:
            if self.variables > self.limits.max_variables - len(declared):
                self.emit(self.call("too_many_variables", self.at(stmt.name_pos)))
            self.variables += len(declared)
        self.fn.locals += _LOOP_LOCALS
        if self.fn.locals > MAX_WITH_LOOPS:
            fail("Too many loops within each other", stmt.pos)
        var = declared[0]
        counter = declared[1] if len(declared) > 1 else None
        count = self.label("n")
        if isinstance(stmt.items, Range):
            low, high = self._range_ends(stmt.items)
            start, item = f"for {count}={low},{high} do", count
            index = f"{count}-{low}"
        else:
            items, size = self._items(stmt)
            start, item = f"for {count}=1,{size} do", f"{items}[{count}]"
            index = f"{count}-1"
        for each in declared:  # one variable for all rounds, as closures see it
            if each.captured:
                self.define(each, "nil")
        plain = isinstance(stmt.items, Range) and not var.captured and len(var.values) == 1
        if plain and self.place(var):
            start = start.replace(f"{count}=", f"{var.lua}=", 1)
            index = index.replace(count, var.lua)
        else:
            plain = False
        self.emit(start)
        if not plain:
            self._round(var, item)
        if var.borrowed and (var.changed or var.captured) and var.type not in SCALARS:
            self.emit(f"{var.lua}={self.call('copy', var.lua)}")
        if counter is not None:
            self._round(counter, index)
        self.fn.cut()
        self._body(stmt.body, loop)
        self.emit("end")

    def _round(self, var: Var, value: str) -> None:
        if var.captured:
            self.emit(f"{var.lua}={value}")
        else:
            self.define(var, value)

    def _range_ends(self, items: Range) -> tuple[str, str]:
        self.tick(items.pos)
        low, high = self.fn.temp(), self.fn.temp()
        if isinstance(items.left, Literal) and isinstance(items.right, Literal):
            left, right = self.literal(items.left.value), self.literal(items.right.value)
        else:
            left, right = self.pair(items.left, items.right)
        inclusive = "true" if items.inclusive else "false"
        self.emit(f"{low},{high}={self.call('ends', left.text, right.text, inclusive, self.at(items.pos))}")
        return low, high

    def _items(self, stmt: For) -> tuple[str, str]:
        items, size = self.fn.temp(), self.fn.temp()
        operand = self.expr(stmt.items)
        text = operand.text
        if not operand.owned and operand.type not in SCALARS and self._may_change(stmt):
            text = self.call("copy", text)
        self.emit(f"{items},{size}={self.call('iterate', text, self.at(stmt.items.pos))}")
        return items, size

    def _may_change(self, stmt: For) -> bool:
        """Whether the body can change what the loop goes through."""
        if not isinstance(stmt.items, Variable):
            return True
        var = self.scopes.variable(stmt.items)
        if var is None or var.captured:
            return True
        return var in self.scopes.body_effects(stmt)
