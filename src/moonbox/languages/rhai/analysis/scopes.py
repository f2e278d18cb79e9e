"""Scopes: which variable each name means, who captures it, who changes it."""

from __future__ import annotations

from moonbox.languages.rhai.analysis.builtins import CHANGING, PURE
from moonbox.languages.rhai.analysis.variables import Unit, Var
from moonbox.languages.rhai.syntax.nodes import (
    Array,
    Assign,
    Binary,
    Block,
    BlockExpr,
    Break,
    Call,
    Chain,
    Closure,
    Do,
    Expr,
    ExprStmt,
    For,
    Function,
    If,
    Import,
    Interpolated,
    Let,
    Logic,
    Map,
    Range,
    Return,
    Script,
    Stmt,
    Switch,
    This,
    Throw,
    Try,
    Unary,
    Variable,
    While,
)

__all__ = ["CALLS", "Scopes"]


CALLS = "calls"
"""Among the effects of an expression: it calls something that may change captured variables."""
Effects = frozenset["Var | str"]
_NONE: Effects = frozenset()


class Scopes:
    """The analysis of one script."""

    def __init__(self, script: Script) -> None:
        self.names = {function.name for function in script.functions}
        self.functions = {(each.name, len(each.params)) for each in script.functions if each.this_type is None}
        self.methods = {(each.name, len(each.params)) for each in script.functions}
        self.top_names: set[str] = set()
        self.vars: list[Var] = []
        self._of_name: dict[int, Var | None] = {}
        self._declared: dict[int, list[Var]] = {}
        self._units: dict[int, Unit] = {}
        self._effects: dict[int, Effects] = {}
        self._order: dict[int, int] = {}
        self._clock = 0
        self._stack: list[dict[str, Var]] = []
        self._private: list[Var] = []  # those that no function running in this scope can have touched
        self.main = Unit()
        self._unit = self.main
        self._body(script.body, top=True)
        for function in script.functions:
            self._function(function)

    def variable(self, node: Variable) -> Var | None:
        """The variable that a name means; None where only the run can tell."""
        return self._of_name[id(node)]

    def declared(self, node: Let | For | Try | Closure | Function) -> list[Var]:
        """The variables that a node brings in."""
        return self._declared[id(node)]

    def unit(self, node: Closure | Function) -> Unit:
        return self._units[id(node)]

    def effects(self, node: Expr) -> Effects:
        """The variables that evaluating it may write, and CALLS if it calls anything."""
        return self._effects.get(id(node), _NONE)

    def last_writes(self, nodes: list[Expr]) -> dict[Var | str, int]:
        """The last of the expressions that may write each variable, by number, and the last that calls anything."""
        return {each: at for at, node in enumerate(nodes) for each in self.effects(node)}

    def body_effects(self, node: For) -> Effects:
        """The same of a loop's body."""
        return self._effects.get(id(node), _NONE)

    def is_shared(self, node: Variable) -> bool:
        """Whether a closure already holds the variable when this name is evaluated, as far as the text tells."""
        var = self._of_name[id(node)]
        return var is not None and var.shared_from is not None and var.shared_from < self._order[id(node)]

    # Declarations

    def _function(self, function: Function) -> None:
        unit = Unit()
        self._enter(function, unit, function.params)
        self._body(function.body.body)
        self._leave()

    def _enter(self, node: Function | Closure, unit: Unit, params: list[str]) -> None:
        self._units[id(node)] = unit
        self._unit = unit
        unit.params = [self._new(name, borrowed=True, values=["any"]) for name in params]
        self._declared[id(node)] = unit.params
        self._push(unit.params)

    def _leave(self) -> None:
        self._stack.pop()
        self._unit = self._unit.parent or self.main

    def _push(self, declared: list[Var]) -> None:
        self._stack.append({var.name: var for var in declared})
        self._private += declared

    def _new(self, name: str, *, values: list[Expr | str], const: bool = False, borrowed: bool = False) -> Var:
        var = Var(name, self._unit, const=const, borrowed=borrowed, values=values)
        self.vars.append(var)
        return var

    def _find(self, name: str) -> Var | None:
        for frame in reversed(self._stack):
            var = frame.get(name)
            if var is not None:
                return var if self._reachable(var) else None
        return None

    def _reachable(self, var: Var) -> bool:
        unit: Unit | None = self._unit
        while unit is not None and unit is not var.unit:
            unit = unit.parent if unit.is_closure else None
        return unit is not None

    # Statements

    def _body(self, body: list[Stmt], *, top: bool = False) -> Effects:
        self._push([])
        effects: set[Var | str] = set()
        for stmt in body:
            effects |= self._statement(stmt, top)
        self._stack.pop()
        return frozenset(effects)

    def _statement(self, stmt: Stmt, top: bool = False) -> Effects:
        match stmt:
            case Let():
                return self._let(stmt, top)
            case Assign():
                return self._assign(stmt)
            case ExprStmt():
                return self._expr(stmt.expr)
            case Block():
                return self._body(stmt.body)
            case If():
                effects = self._expr(stmt.condition) | self._body(stmt.then.body)
                return effects | (self._body(stmt.other.body) if stmt.other else _NONE)
            case Switch():
                return self._switch(stmt)
            case While():
                effects = self._expr(stmt.condition) if stmt.condition is not None else _NONE
                return effects | self._body(stmt.body.body)
            case Do():
                return self._body(stmt.body.body) | self._expr(stmt.condition)
            case For():
                return self._for(stmt)
            case Break() | Return() | Throw():
                return self._expr(stmt.value) if stmt.value is not None else _NONE
            case Try():
                return self._try(stmt)
            case Import():
                return self._expr(stmt.path) | {CALLS}
        return _NONE

    def _switch(self, stmt: Switch) -> Effects:
        effects = set(self._expr(stmt.value))
        for case in stmt.cases:
            for value in case.values:
                self._expr(value)
            if case.guard is not None:
                effects |= self._expr(case.guard)
            effects |= self._expr(case.body)
        return frozenset(effects)

    def _let(self, stmt: Let, top: bool) -> Effects:
        effects = self._expr(stmt.value) if stmt.value is not None else _NONE
        value: Expr | str = stmt.value if stmt.value is not None else "unit"
        old = self._stack[-1].get(stmt.name)
        var = self._new(stmt.name, const=stmt.const, values=[value])
        var.top = top
        var.replaces = old
        if top:
            self.top_names.add(stmt.name)
        self._declared[id(stmt)] = [var]
        self._stack[-1][var.name] = var
        self._private.append(var)
        return effects

    def _for(self, stmt: For) -> Effects:
        effects = self._expr(stmt.items)
        kind = "int" if isinstance(stmt.items, Range) else "any"
        var = self._new(stmt.name, borrowed=kind == "any", values=[kind])
        declared = [var]
        if stmt.counter is not None:
            declared.append(self._new(stmt.counter, values=["int"]))
        self._declared[id(stmt)] = declared
        self._push(declared[::-1])
        inside = self._body(stmt.body.body)
        self._effects[id(stmt)] = inside
        self._stack.pop()
        return effects | inside

    def _try(self, stmt: Try) -> Effects:
        effects = self._body(stmt.body.body)
        declared = [self._new(stmt.name, values=["any"])] if stmt.name is not None else []
        self._declared[id(stmt)] = declared
        self._push(declared)
        effects |= self._body(stmt.handler.body)
        self._stack.pop()
        return effects | {CALLS}

    def _assign(self, stmt: Assign) -> Effects:
        effects = self._expr(stmt.value)
        target = stmt.target
        match target:
            case Variable():
                effects |= self._expr(target)
                var = self._of_name[id(target)]
                if var is None:
                    return effects
                if stmt.op:
                    var.changed = True
                    var.values.append(Binary("=" + stmt.op, target, stmt.value, stmt.op_pos))
                else:
                    var.values.append(stmt.value)
                return effects | {var}
            case This():
                self._unit.changes_this = True
            case Chain():
                effects |= self._expr(target)
                return effects | self._changed(target.root, keeps_type=True)
        return effects

    def _changed(self, root: Expr, *, keeps_type: bool) -> Effects:
        if isinstance(root, This):
            self._unit.changes_this = True
        if isinstance(root, Variable):
            var = self._of_name[id(root)]
            if var is not None:
                var.changed = True
                if not keeps_type:
                    var.values.append("any")
                return frozenset((var,))
        return _NONE

    # Expressions

    def _expr(self, expr: Expr) -> Effects:
        effects = self._visit(expr)
        if effects:
            self._effects[id(expr)] = effects
        return effects

    def _all(self, items: list[Expr]) -> Effects:
        effects: set[Var | str] = set()
        for item in items:
            effects |= self._expr(item)
        return frozenset(effects)

    def _visit(self, expr: Expr) -> Effects:
        match expr:
            case Variable():
                self._name(expr)
            case Interpolated(parts=items) | Array(items=items) | Logic(items=items):
                return self._all(items)
            case Map():
                return self._all([item for _, item in expr.items])
            case Unary():
                return self._expr(expr.operand)
            case Binary() | Range():
                return self._expr(expr.left) | self._expr(expr.right)
            case BlockExpr():
                return self._body(expr.block.body)
            case Call():
                return self._call(expr)
            case Chain():
                return self._chain(expr)
            case Closure():
                self._closure(expr)
        return _NONE

    def _name(self, node: Variable) -> None:
        self._clock += 1
        self._order[id(node)] = self._clock
        var = None if node.path else self._find(node.name)
        self._of_name[id(node)] = var
        if node.path or (var is None and node.name in self.names):
            return
        unit: Unit | None = self._unit
        while unit is not None and unit.is_closure and (var is None or var.unit is not unit):
            unit.free.setdefault(node.name, node.pos)
            if var is not None:
                unit.captured.add(var)
                var.captured = True
            unit = unit.parent

    def _call(self, expr: Call) -> Effects:
        effects = self._all(expr.args) | {CALLS}
        own = (expr.name, len(expr.args)) in self.functions
        if expr.args and not own and not expr.path and not expr.in_scope and expr.name not in PURE:
            effects |= self._changed(expr.args[0], keeps_type=expr.name in CHANGING)
        if expr.in_scope:
            self._escape_all()
        return effects

    def _chain(self, expr: Chain) -> Effects:
        effects = self._expr(expr.root)
        for step in expr.steps:
            effects |= self._all(step.args)
            if step.kind == "method":
                effects |= {CALLS}
                own = (step.name, len(step.args)) in self.methods
                if own or step.name not in PURE:
                    effects |= self._changed(expr.root, keeps_type=not own and step.name in CHANGING)
        return effects

    def _closure(self, closure: Closure) -> None:
        unit = Unit(self._unit, is_closure=True)
        self._enter(closure, unit, closure.params)
        self._statement(closure.body)
        self._leave()
        self._clock += 1
        for var in unit.captured:
            if var.shared_from is None:
                var.shared_from = self._clock

    def _escape_all(self) -> None:
        """A function that runs in this scope may read and write every variable in it."""
        for var in self._private:
            var.changed = True
            var.values.append("any")
        self._private = []
