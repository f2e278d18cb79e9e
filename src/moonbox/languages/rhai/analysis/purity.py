"""What has no side effects, in the reference's sense of it."""

from __future__ import annotations

from moonbox.languages.rhai.syntax.checks import is_constant
from moonbox.languages.rhai.syntax.nodes import (
    Array,
    Block,
    BlockExpr,
    Call,
    Do,
    Export,
    Expr,
    ExprStmt,
    For,
    If,
    Import,
    Interpolated,
    Let,
    Literal,
    Logic,
    Map,
    Noop,
    Range,
    Stmt,
    Switch,
    Try,
    While,
)

__all__ = ["depends_on_block", "is_pure", "is_pure_inside", "returns_value", "stmt_is_pure"]


def is_pure(expr: Expr) -> bool:
    """Whether evaluating it does nothing but give a value; reading a variable may fail, so it is not."""
    match expr:
        case Interpolated(parts=items) | Array(items=items) | Logic(items=items):
            return all(is_pure(item) for item in items)
        case Map():
            return all(is_pure(item) for _, item in expr.items)
        case BlockExpr():
            return all(stmt_is_pure(stmt) for stmt in expr.block.body)
        case Range():
            return isinstance(expr.left, Literal) and isinstance(expr.right, Literal)
    return is_constant(expr)


def stmt_is_pure(stmt: Stmt) -> bool:
    match stmt:
        case Noop():
            return True
        case ExprStmt():
            return is_pure(stmt.expr)
        case If():
            branches = stmt.then.body + (stmt.other.body if stmt.other else [])
            return is_pure(stmt.condition) and all(stmt_is_pure(each) for each in branches)
        case Switch():
            arms = all((case.guard is None or is_pure(case.guard)) and is_pure(case.body) for case in stmt.cases)
            return is_pure(stmt.value) and arms and any(not case.values for case in stmt.cases)
        case While():
            return isinstance(stmt.condition, Literal) and stmt.condition.value is False
        case Do():
            once = isinstance(stmt.condition, Literal) and stmt.condition.value is stmt.until
            return once and all(stmt_is_pure(each) for each in stmt.body.body)
        case For():
            return is_pure(stmt.items) and all(stmt_is_pure(each) for each in stmt.body.body)
        case Block():
            return all(stmt_is_pure(each) for each in stmt.body)
        case Try():
            return all(stmt_is_pure(each) for each in stmt.body.body + stmt.handler.body)
    return False


def is_pure_inside(stmt: Stmt) -> bool:
    """Whether its effects end with the block that holds it."""
    match stmt:
        case Let():
            return stmt.value is None or is_pure(stmt.value)
        case ExprStmt(expr=BlockExpr() as inner):
            return all(is_pure_inside(each) for each in inner.block.body)
        case Import():
            return is_pure(stmt.path)
        case Export():
            return True
    return stmt_is_pure(stmt)


def depends_on_block(stmt: Stmt) -> bool:
    """Whether it means something else outside the block that holds it."""
    match stmt:
        case Let() | Import() | Export():
            return True
        case ExprStmt(expr=BlockExpr() as inner):
            return all(depends_on_block(each) for each in inner.block.body)
        case ExprStmt(expr=Call() as call):
            return call.name == "eval" and not call.path
    return False


def returns_value(stmt: Stmt) -> bool:
    return isinstance(stmt, If | Switch | Block | ExprStmt)
