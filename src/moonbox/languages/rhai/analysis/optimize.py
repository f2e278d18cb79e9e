"""The optimizer: drops and simplifies what the reference does, since that shows in results and operation counts."""

from __future__ import annotations

import copy

from moonbox.languages.rhai.analysis.fold import Folder
from moonbox.languages.rhai.analysis.purity import (
    depends_on_block,
    is_pure,
    is_pure_inside,
    returns_value,
    stmt_is_pure,
)
from moonbox.languages.rhai.syntax.nodes import (
    Assign,
    Binary,
    Block,
    BlockExpr,
    Break,
    Char,
    Closure,
    Do,
    Expr,
    ExprStmt,
    For,
    Function,
    If,
    Import,
    Let,
    Literal,
    Noop,
    Return,
    Script,
    Stmt,
    Switch,
    Throw,
    Try,
    Variable,
    While,
)
from moonbox.languages.rhai.syntax.operands import as_block

__all__ = ["optimize"]

_WITH_ASSIGNMENT = frozenset(("+", "-", "*", "/", "<<", ">>", "%", "**", "&", "|", "^"))
_PROPAGATED = (bool, int, float, str, Char, type(None))
_LONGEST = 64  # characters of a string that is put wherever its constant is used


def optimize(script: Script) -> None:
    """Simplify a script in place."""
    originals = {(each.name, len(each.params)): each for each in script.functions} if script.runs_in_scope else {}
    originals = copy.deepcopy(originals)
    for function in script.functions:
        _Optimizer(originals).whole(function.body, function.params)
    body = Block(script.body, None)
    _Optimizer(originals).whole(body, [])
    script.body = body.body


class _Optimizer:
    def __init__(self, functions: dict[tuple[str, int], Function]) -> None:
        self._folder = Folder(lambda block: self._body(block, True), self._closure, functions)

    def whole(self, block: Block, params: list[str]) -> None:
        self._names(params)
        self._statements(block, preserve=True, inside=False, reduce_return=True)

    def _names(self, names: list[str]) -> None:
        for name in names:
            self._folder.constants.push(name, None)

    def _closure(self, closure: Closure) -> None:
        before = len(self._folder.constants)
        self._names(closure.params)
        block = as_block(closure.body)
        self._statements(block, preserve=True, inside=False, reduce_return=True)
        closure.body = block
        self._folder.constants.cut(before)

    def _body(self, block: Block, preserve: bool) -> None:
        self._statements(block, preserve=preserve, inside=True, reduce_return=False)

    def _expr(self, expr: Expr) -> Expr:
        return self._folder.fold(expr)

    def _statements(self, block: Block, *, preserve: bool, inside: bool, reduce_return: bool) -> None:
        pure = is_pure_inside if inside else stmt_is_pure
        before = len(self._folder.constants)
        body = _until_jump(_flattened(block.body))
        done: list[Stmt] = []
        for at, stmt in enumerate(body):
            done.append(self._statement(stmt, preserve and at == len(body) - 1))
        self._folder.constants.cut(before)
        body = _until_jump(_flattened(done))
        body = _without_pure(body, pure, preserve)
        block.body = _trimmed(body, pure, preserve, reduce_return)

    def _statement(self, stmt: Stmt, preserve: bool) -> Stmt:
        match stmt:
            case Let():
                self._let(stmt)
            case ExprStmt():
                stmt.expr = self._expr(stmt.expr)
                if isinstance(stmt.expr, BlockExpr):
                    return self._promoted(stmt.expr.block)
            case Assign():
                self._assign(stmt)
            case Block():
                self._body(stmt, preserve)
                return self._promoted(stmt)
            case If():
                return self._if(stmt, preserve)
            case Switch():
                self._switch(stmt)
            case While():
                return self._while(stmt)
            case Do():
                stmt.condition = self._expr(stmt.condition)
                self._body(stmt.body, False)
            case For():
                self._for(stmt)
            case Try():
                return self._try(stmt)
            case Return() | Throw() | Break():
                if stmt.value is not None:
                    stmt.value = self._expr(stmt.value)
            case Import():
                stmt.path = self._expr(stmt.path)
        return stmt

    def _promoted(self, block: Block) -> Stmt:
        if not block.body:
            return Noop(block.pos)
        if len(block.body) == 1 and not depends_on_block(block.body[0]):
            return block.body[0]
        return block

    def _let(self, stmt: Let) -> None:
        value: Literal | None = None
        if stmt.value is not None:
            stmt.value = self._expr(stmt.value)
            if stmt.const and isinstance(stmt.value, Literal) and _is_propagated(stmt.value.value):
                value = stmt.value
        self._folder.constants.push(stmt.name, value)

    def _assign(self, stmt: Assign) -> None:
        target, value = stmt.target, stmt.value
        if (
            stmt.op == ""
            and isinstance(target, Variable)
            and isinstance(value, Binary)
            and value.op in _WITH_ASSIGNMENT
            and isinstance(value.left, Variable)
            and not value.left.path
            and value.left.name == target.name
        ):
            stmt.op, stmt.op_pos, stmt.value = value.op, value.pos, value.right
        if not isinstance(target, Variable):
            stmt.target = self._expr(target)
        stmt.value = self._expr(stmt.value)

    def _if(self, stmt: If, preserve: bool) -> Stmt:
        stmt.condition = self._expr(stmt.condition)
        condition = stmt.condition.value if isinstance(stmt.condition, Literal) else None
        if type(condition) is bool:
            chosen = stmt.then if condition else stmt.other
            if chosen is None:
                return Noop(stmt.condition.pos)
            self._body(chosen, preserve)
            return self._promoted(chosen)
        self._body(stmt.then, preserve)
        if stmt.other is not None:
            self._body(stmt.other, preserve)
            if not stmt.other.body:
                stmt.other = None
        if not stmt.then.body and stmt.other is None:
            rest = [ExprStmt(stmt.condition)]
            return Block([*rest, Noop(stmt.pos)], stmt.pos) if preserve else rest[0]
        return stmt

    def _switch(self, stmt: Switch) -> None:
        stmt.value = self._expr(stmt.value)
        for case in stmt.cases:
            if case.guard is not None:
                case.guard = self._expr(case.guard)
            case.body = self._expr(case.body)

    def _while(self, stmt: While) -> Stmt:
        if stmt.condition is not None:
            stmt.condition = self._expr(stmt.condition)
            if isinstance(stmt.condition, Literal):
                if stmt.condition.value is False:
                    return Noop(stmt.condition.pos)
                if stmt.condition.value is True:
                    stmt.condition = None
        self._body(stmt.body, False)
        return stmt

    def _for(self, stmt: For) -> None:
        stmt.items = self._expr(stmt.items)
        before = len(self._folder.constants)
        self._names([stmt.name] + ([stmt.counter] if stmt.counter else []))
        self._body(stmt.body, False)
        self._folder.constants.cut(before)

    def _try(self, stmt: Try) -> Stmt:
        if all(stmt_is_pure(each) for each in stmt.body.body):
            self._body(stmt.body, False)
            return self._promoted(stmt.body)
        self._body(stmt.body, False)
        before = len(self._folder.constants)
        self._names([stmt.name] if stmt.name else [])
        self._body(stmt.handler, False)
        self._folder.constants.cut(before)
        return stmt


def _flattened(body: list[Stmt]) -> list[Stmt]:
    flat: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Block) and not any(depends_on_block(each) for each in stmt.body):
            flat += stmt.body or [Noop(stmt.pos)]
        else:
            flat.append(stmt)
    return flat


def _until_jump(body: list[Stmt]) -> list[Stmt]:
    for at, stmt in enumerate(body):
        if isinstance(stmt, Return | Throw | Break):
            return body[: at + 1]
    return body


def _without_pure(body: list[Stmt], pure: object, preserve: bool) -> list[Stmt]:
    """The statements without those that do nothing; variables that nobody may use any more count among them."""
    judge = is_pure_inside if pure is is_pure_inside else stmt_is_pure
    last = max((at for at, stmt in enumerate(body) if not judge(stmt)), default=0)
    kept: list[Stmt] = []
    for at, stmt in enumerate(body):
        final = preserve and at == len(body) - 1
        if not final and (
            (at >= last and judge(stmt))
            or (isinstance(stmt, ExprStmt) and isinstance(stmt.expr, Variable))
            or stmt_is_pure(stmt)
        ):
            continue
        kept.append(stmt)
    return kept


def _trimmed(body: list[Stmt], pure: object, preserve: bool, reduce_return: bool) -> list[Stmt]:
    judge = is_pure_inside if pure is is_pure_inside else stmt_is_pure
    body = list(body)
    while body:
        last = body[-1]
        if preserve:
            if reduce_return and isinstance(last, Return):
                if last.value is not None:
                    body[-1] = ExprStmt(last.value)
                elif len(body) == 1 or not returns_value(body[-2]):
                    body.pop()
                else:
                    body[-1] = Noop(last.pos)
            elif len(body) == 1:
                if returns_value(last) or not judge(last):
                    break
                body.pop()
            elif isinstance(last, Noop) and returns_value(body[-2]):
                break
            elif not returns_value(last) and judge(last):
                if returns_value(body[-2]):
                    body[-1] = Noop(last.pos)
                else:
                    body.pop()
            else:
                break
        elif judge(last) or (
            reduce_return and isinstance(last, Return) and (last.value is None or is_pure(last.value))
        ):
            body.pop()
        else:
            break
    return body


def _is_propagated(value: object) -> bool:
    return type(value) in _PROPAGATED and not (isinstance(value, str) and len(value) > _LONGEST)
