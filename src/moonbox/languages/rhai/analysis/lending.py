"""Lending: which functions may return something that a variable still holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.languages.rhai.analysis.types import SCALARS
from moonbox.languages.rhai.syntax.nodes import (
    Assign,
    Block,
    BlockExpr,
    Break,
    Call,
    Chain,
    Do,
    Expr,
    ExprStmt,
    For,
    Function,
    If,
    Let,
    Logic,
    Return,
    Stmt,
    Switch,
    This,
    Throw,
    Try,
    Variable,
    While,
)

if TYPE_CHECKING:
    from moonbox.languages.rhai.analysis.scopes import Scopes
    from moonbox.languages.rhai.syntax.nodes import Script

__all__ = ["lenders"]

_Key = tuple[str, int]


def lenders(script: Script, scopes: Scopes) -> set[_Key]:
    """Functions whose result may be part of an argument: whoever keeps such a result copies it."""
    found: set[_Key] = set()
    passed_on: dict[_Key, list[_Key]] = {}
    fresh: list[_Key] = []
    for function in script.functions:
        key = _key(function)
        for expr in _results(function.body):
            if isinstance(expr, Call):
                passed_on.setdefault((expr.name, len(expr.args)), []).append(key)
            elif _lends(expr, scopes):
                fresh.append(key)
    while fresh:
        key = fresh.pop()
        if key not in found:
            found.add(key)
            fresh += passed_on.get(key, ())
    return found


def _key(function: Function) -> _Key:
    return function.name, len(function.params)


def _lends(expr: Expr, scopes: Scopes) -> bool:
    match expr:
        case Variable():
            var = scopes.variable(expr) if not expr.path else None
            return var is None or (var.type not in SCALARS and (var.borrowed or var.captured))
        case Chain():
            return expr.steps[-1].kind != "method"
        case This() | BlockExpr():
            return True
        case Logic():
            return expr.op == "??"
    return False


def _results(block: Block) -> list[Expr]:
    """The expressions whose values a function returns as they are."""
    found: list[Expr] = []
    _returned(block.body, found)
    _tail(block.body, found)
    return found


def _tail(body: list[Stmt], found: list[Expr]) -> None:
    last = body[-1] if body else None
    if isinstance(last, ExprStmt):
        found.append(last.expr)
    elif isinstance(last, If):
        _tail(last.then.body, found)
        _tail(last.other.body if last.other else [], found)


def _returned(body: list[Stmt], found: list[Expr]) -> None:
    for stmt in body:
        match stmt:
            case Return():
                if stmt.value is not None:
                    found.append(stmt.value)
            case Block():
                _returned(stmt.body, found)
            case If():
                _returned(stmt.then.body, found)
                _returned(stmt.other.body if stmt.other else [], found)
            case While() | Do() | For():
                _returned(stmt.body.body, found)
            case Try():
                _returned(stmt.body.body + stmt.handler.body, found)
            case Switch():
                for case in stmt.cases:
                    _inside(case.body, found)
            case Let() | Assign() | Break() | Throw():
                if stmt.value is not None:
                    _inside(stmt.value, found)
            case ExprStmt():
                _inside(stmt.expr, found)


def _inside(expr: Expr, found: list[Expr]) -> None:
    """A return may hide in a block within an expression: then the worst is assumed."""
    if isinstance(expr, BlockExpr):
        _returned(expr.block.body, found)
    elif isinstance(expr, Logic) and expr.op == "??":
        for item in expr.items:
            _inside(item, found)
