"""Chains: properties, indexes and methods, read and written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages.rhai.analysis.builtins import PURE, STRING_LIBRARY
from moonbox.languages.rhai.analysis.types import SCALARS
from moonbox.languages.rhai.emit.base import Operand
from moonbox.languages.rhai.emit.calls import CallEmitter
from moonbox.languages.rhai.emit.function import MAX_ARGUMENTS
from moonbox.languages.rhai.emit.text import number, quote
from moonbox.languages.rhai.syntax.checks import is_literal
from moonbox.languages.rhai.syntax.nodes import Assign, Chain, Literal, Step, This, Variable, start_of
from moonbox.languages.rhai.syntax.state import fail

if TYPE_CHECKING:
    from moonbox.languages.rhai.syntax.nodes import Expr

__all__ = ["ChainEmitter"]


class _Walk:
    """Where a chain has come to: the object, and the way back to its root."""

    __slots__ = ("kind", "obj", "path", "root", "writable")

    def __init__(self, root: Expr, obj: str, kind: str, writable: bool) -> None:
        self.root, self.obj, self.kind, self.writable = root, obj, kind, writable
        self.path: list[str] = []  # container and key of each step, the innermost first


def _may_change(step: Step) -> bool:
    return step.kind == "method" and step.name not in PURE


class ChainEmitter(CallEmitter):
    """Reading and assigning through chains."""

    def chain(self, expr: Chain, *, wanted: bool = True) -> Operand:
        """The value of a chain; with `wanted` False only its effects matter."""
        dest = self.fn.temp()
        mark = self.fn.top
        args = self._chain_arguments(expr.steps)
        walk = self._root(expr)
        end = self.label("O") if any(step.optional for step in expr.steps) else None
        if end is not None:
            self.emit("do")
        last = len(expr.steps) - 1
        for at, step in enumerate(expr.steps):
            if step.optional:
                self.emit(f"if {walk.obj}==U then {dest}=U goto {end} end")
                self.fn.cut()
            self._step(walk, step, args[at], dest if at == last else self.fn.temp(), wanted or at < last)
        if end is not None:
            self.fn.cut()
            self.emit(f"::{end}:: end")
            self.fn.cut()
        self.fn.top = mark
        owned = expr.steps[-1].kind == "method"
        return Operand(dest, self.type(expr), owned=owned)

    def _chain_arguments(self, steps: list[Step]) -> list[list[Operand]]:
        """Arguments and indexes come before the root, all of them."""
        for step in steps:
            if len(step.args) > MAX_ARGUMENTS:
                fail(f"Too many arguments: a function takes at most {MAX_ARGUMENTS}", step.pos)
        if len(steps) == 1:
            step = steps[0]
            if not step.args:
                return [[]]
            if step.kind == "index" and is_literal(step.args[0]):
                return [[self.untold(step.args[0])]]
        writes = self.scopes.last_writes([arg for step in steps for arg in step.args])
        out: list[list[Operand]] = []
        at = 0
        for step in steps:
            self.tick(step.pos)
            found = []
            for arg in step.args:
                operand = self.value(arg) if step.kind == "method" else self.expr(arg)
                found.append(self.held(operand, at, writes))
                at += 1
            out.append(found)
        return out

    def _root(self, expr: Chain) -> _Walk:
        root = expr.root
        writable = isinstance(root, This)
        if isinstance(root, Variable) and not root.path:
            var = self.scopes.variable(root)
            writable = var is None or not var.const
        operand = self.expr(root)
        if not isinstance(root, Variable | This) and any(_may_change(step) for step in expr.steps):
            operand = self.own(operand)
        text = operand.text if isinstance(root, Variable | This) else f"({operand.text})"
        return _Walk(root, text, operand.type, writable)

    def _step(self, walk: _Walk, step: Step, args: list[Operand], into: str, wanted: bool) -> None:
        match step.kind:
            case "property":
                self.tick(step.pos)
                self._property(walk, step, into)
                walk.path[:0] = [walk.obj, quote(step.name)]
            case "index":
                self.tick(None)
                self._index(walk, step, args[0], into)
                walk.path[:0] = [walk.obj, args[0].text]
            case _:
                self.tick(step.pos)
                self._method(walk, step, args, into, wanted)
                walk.path, walk.writable, walk.root = [], False, Literal(None, None)
        walk.obj, walk.kind = into, "any"

    def _property(self, walk: _Walk, step: Step, into: str) -> None:
        obj = walk.obj
        if step.name == "len" and walk.kind == "arr":
            self.emit(f"{into}=#{obj}")
            return
        slow = self.call("prop", obj, quote(step.name), self.at(step.pos))
        if step.name in STRING_LIBRARY:
            self.emit(f"{into}={slow}")
        else:
            self.emit(f"{into}={obj}[{quote(step.name)}] if {into}==nil then {into}={slow} end")

    def _index(self, walk: _Walk, step: Step, key: Operand, into: str) -> None:
        obj = walk.obj
        slow = self.call("idx", obj, key.text, self.at(step.pos), self.at(step.op_pos))
        fast = self._slot(obj, key, step.args[0])
        self.emit(f"{into}={fast} if {into}==nil then {into}={slow} end" if fast else f"{into}={slow}")

    def _slot(self, obj: str, key: Operand, index: Expr) -> str | None:
        """The Lua text of an element, where the kind of index is known."""
        if key.literal is not None:
            return f"{obj}[{number(key.literal + 1)}]" if key.literal >= 0 else None
        if key.type == "int":
            return f"{obj}[{key.text}+1]"
        if isinstance(index, Literal) and type(index.value) is str and index.value not in STRING_LIBRARY:
            return f"{obj}[{key.text}]"
        return None

    def _method(self, walk: _Walk, step: Step, args: list[Operand], into: str, wanted: bool) -> None:
        if walk.kind == "arr" and (step.name, len(args)) not in self.scopes.methods:
            if step.name == "len" and not args:
                self.emit(f"{into}=#{walk.obj}")
                return
            if step.name == "push" and len(args) == 1 and walk.writable:
                self._push(walk, step, args[0], into, wanted)
                return
        if step.name == "is_shared" and not args:
            shared = isinstance(walk.root, Variable) and not walk.path and self.scopes.is_shared(walk.root)
            self.emit(f"{into}={'true' if shared else 'false'}")
            return
        if step.name == "type_of" and not args:
            self.emit(f"{into}={self.call('type_of', walk.obj)}")
            return
        called = self._called(walk, step, args)
        own = (step.name, len(args)) in self.scopes.methods
        if walk.writable and (own or step.name not in PURE):
            changed = self.fn.temp()
            self.emit(f"{into},{changed}={called}")
            self._write_back(walk, changed, step)
        else:
            self.emit(f"{into}={called}")
        self.fn.cut()

    def _called(self, walk: _Walk, step: Step, args: list[Operand]) -> str:
        texts = [walk.obj, *(arg.text for arg in args)]
        start = ["K", "d", self.at(step.pos)]
        if step.name in ("call", "curry"):
            return self.call(f"{step.name}_method", *start, *texts)
        names = [quote(step.name), quote(self.key(step.name, len(args)))]
        return f"{self._method_helper(walk)}({','.join([*start, *names, *texts])})"

    def _method_helper(self, walk: _Walk) -> str:
        root = walk.root
        if isinstance(root, Variable) and not root.path:
            var = self.scopes.variable(root)
            if var is not None and var.const:
                return self.use("cmethod")
            if var is None and not self._in_function():
                cell = self.state_cell(root.name)
                return f"({cell}[2] and {self.use('cmethod')} or {self.use('method')})"
        return self.use("method")

    def _in_function(self) -> bool:
        unit = self.unit
        while unit.is_closure and unit.parent is not None:
            unit = unit.parent
        return unit is not self.scopes.main

    def _push(self, walk: _Walk, step: Step, item: Operand, into: str, wanted: bool) -> None:
        if item.type in SCALARS:
            size = self.fn.temp()
            slow = self.call("push", walk.obj, item.text, self.at(step.pos))
            self.emit(f"{size}=#{walk.obj}+1 if {size}>R.max_array then {slow} end {walk.obj}[{size}]={item.text}")
        else:
            self.emit(self.call("push", walk.obj, item.text, self.at(step.pos)))
        if wanted:
            self.emit(f"{into}=U")

    def _write_back(self, walk: _Walk, changed: str, step: Step) -> None:
        """What was changed by value goes back into what holds it, up to the root."""
        back = self.write(walk.root, changed) if isinstance(walk.root, Variable | This) else ""
        if walk.path:
            up = self.call("back", changed, self.at(step.op_pos), *walk.path)
            self.emit(f"if {changed}~=nil then {changed}={up} if {changed}~=nil then {back} end end")
        elif back:
            self.emit(f"if {changed}~=nil then {back} end")

    # Assignment

    def assign_chain(self, stmt: Assign, target: Chain) -> None:
        mark = self.fn.top
        later = [arg for step in target.steps for arg in step.args]
        value = self.held(self.value(stmt.value), -1, self.scopes.last_writes(later))
        args = self._chain_arguments(target.steps)
        walk = self._root(target)
        self._check_constant(target)
        end = self.label("O") if any(step.optional for step in target.steps) else None
        if end is not None:
            self.emit("do")
        for at, step in enumerate(target.steps):
            if step.optional:
                self.emit(f"if {walk.obj}==U then goto {end} end")
                self.fn.cut()
            if at < len(target.steps) - 1:
                self._step(walk, step, args[at], self.fn.temp(), True)
        self._store(walk, target.steps[-1], args[-1], value, stmt)
        if end is not None:
            self.fn.cut()
            self.emit(f"::{end}:: end")
            self.fn.cut()
        self.fn.top = mark

    def _check_constant(self, target: Chain) -> None:
        root = target.root
        if not isinstance(root, Variable) or root.path:
            return
        var = self.scopes.variable(root)
        raises = self.call("constant", quote(root.name), self.at(start_of(root)))
        if var is not None and var.const:
            self.emit(raises)
        elif var is None and not self._in_function():
            self.emit(f"if {self.state_cell(root.name)}[2] then {raises} end")

    def _store(self, walk: _Walk, step: Step, args: list[Operand], value: Operand, stmt: Assign) -> None:
        self.tick(step.pos)
        changed = self.fn.temp()
        obj, at_key, at_op, at_eq = walk.obj, self.at(step.pos), self.at(step.op_pos), self.at(stmt.op_pos)
        is_property = step.kind == "property"
        key = quote(step.name) if is_property else args[0].text
        if is_property:
            slot = f"{obj}[{key}]" if step.name not in STRING_LIBRARY else None
        else:
            slot = self._slot(obj, args[0], step.args[0])
        kind = "true" if is_property else "false"
        if stmt.op:
            slow = self.call("op_store", obj, key, quote(stmt.op), value.text, kind, at_key, at_op, at_eq)
            self._op_store(slot, slow, changed, value, stmt)
        else:
            slow = self.call("store", obj, key, value.text, kind, at_key, at_op, at_eq)
            if slot is not None and value.type in SCALARS:
                self.emit(f"if {slot}~=nil then {slot}={value.text} {changed}=nil else {changed}={slow} end")
            else:
                self.emit(f"{changed}={slow}")
        self._write_back(walk, changed, step)

    def _op_store(self, slot: str | None, slow: str, changed: str, value: Operand, stmt: Assign) -> None:
        if slot is None or stmt.op not in ("+", "-", "*"):
            self.emit(f"{changed}={slow}")
            return
        old, new = self.fn.temp(), self.fn.temp()
        self.emit(f"{old}={slot} if {old}==nil then {changed}={slow} else {changed}=nil")
        self.arithmetic(stmt.op, new, Operand(old, owned=False), value, stmt.op_pos, assign=True)
        self.emit(f"{slot}={new} end")
