"""What the check asks of a Python script, read by Python's own parser in a process of its own, see worker/chores.py.

The script is never run here. What depends on the tools is judged by the host, which gets a bounded list of it.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Callable
from typing import Any

from moonbox.languages.python.rewriting import dotted, parsed, symbols

_MOST = 5000  # of what is read
_LONGEST = 200  # characters of a name
_CALLS_BACK = frozenset({"map", "filter", "sorted", "min", "max", "functools.reduce", "reduce"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LIST = "out = [], then out.append(x) instead of yield x, and return out; (f(x) for x in xs) works"
# Monty refuses other forms that it lacks before anything runs; these have advice.
_NO_FORM: dict[type, tuple[str, str]] = {
    ast.Yield: ("scripts cannot have generators (yield)", f"make a list: {_LIST}"),
    ast.YieldFrom: ("scripts cannot have generators (yield from)", "make a list: out.extend(items), and return out"),
}
_SYSTEM = frozenset({"os", "sys"})
UNKNOWN = {"...": 1}
"""An argument that only the run knows."""


def facts(source: str) -> dict[str, Any] | None:
    """What was read; None of a text that Python's parser refuses, and of one that is too deep.

    `uses` are [what, line, column, whether errors are caught there, …], in the order of the script, where `what` is:
    "finding" with a message and a hint, "name", "module" and "system" (a member of `os` or `sys`) with the name, "back"
    with the name of what sorted or its like calls, "call" with the name, the arguments and the keywords.
    """
    tree = parsed(source)
    if tree is None:
        return None
    try:
        reader = _Reader(tree, source)
        reader.visit(tree)
    except RecursionError:
        return None
    return {"bound": sorted(reader.bound), "dynamic": reader.is_dynamic, "open": reader.is_open, "uses": reader.uses}


CHORES: dict[str, Callable[..., Any]] = {"facts": lambda _, source: facts(source)}


class _Reader(ast.NodeVisitor):
    def __init__(self, tree: ast.Module, source: str) -> None:
        self.uses: list[tuple[Any, ...]] = []
        found = [symbol for _, symbol in symbols(source)]
        self.bound = set(map(symtable.Symbol.get_name, filter(_is_bound, found)))
        self.is_dynamic = any(isinstance(node, ast.Name) and node.id in ("exec", "eval") for node in ast.walk(tree))
        self.is_open = self.is_dynamic or not found  # none where Monty will refuse the script
        self._lines = source.splitlines()
        self._guarded = _guarded(tree)
        self._caught = 0
        imports = (alias for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names)
        self._imported = {alias.name for alias in imports if alias.asname is None}

    def _add(self, what: str, node: ast.expr | ast.stmt, *more: Any) -> None:
        if len(self.uses) < _MOST:
            line = self._lines[node.lineno - 1] if node.lineno <= len(self._lines) else ""
            column = len(line.encode()[: node.col_offset].decode("utf-8", "ignore")) + 1
            self.uses.append((what, node.lineno, column, bool(self._caught), *more))

    def generic_visit(self, node: ast.AST) -> None:
        form = _NO_FORM.get(type(node))
        if form is not None and isinstance(node, (ast.expr, ast.stmt)):
            self._add("finding", node, *form)
        super().generic_visit(node)

    def visit_Try(self, node: ast.Try) -> None:
        self._caught += bool(node.handlers)
        for statement in node.body:
            self.visit(statement)
        self._caught -= bool(node.handlers)
        for part in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(part)

    def visit(self, node: ast.AST) -> None:
        is_guarded = node in self._guarded
        self._caught += is_guarded
        super().visit(node)
        self._caught -= is_guarded

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add("module", node, alias.name[:_LONGEST])

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if not node.level:
            self._add("module", node, (node.module or "")[:_LONGEST])
            if node.names[0].name == "*":
                hint = f"name what is needed: from {node.module} import …"
                self._add("finding", node, "scripts cannot import *", hint)

    def visit_Delete(self, node: ast.Delete) -> None:
        if any(isinstance(target, ast.Attribute) for target in node.targets):
            self._add("finding", node, "scripts cannot delete attributes", "set it to None")
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if node.bases or node.keywords:
            is_error = any(dotted(base).endswith(("Error", "Exception")) for base in node.bases)
            hint = 'raise ValueError("…")' if is_error else f"write: class {node.name}: with all methods in it"
            self._add("finding", node, "classes cannot inherit here", hint)
        for member in node.body:
            if isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)) and member.decorator_list:
                what = ast.unparse(member.decorator_list[0])[:40]
                self._add(
                    "finding", member, f"methods cannot have decorators (@{what})", "use a plain method or a function"
                )
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and self._is_unset(node.id):
            self._add("name", node, node.id[:_LONGEST])

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name) and node.value.id in _SYSTEM and node.value.id in self._imported:
            self._add("system", node, f"{node.value.id}.{node.attr}"[:_LONGEST])
        self.generic_visit(node)

    def _is_unset(self, name: str) -> bool:
        return name not in self.bound and not name.startswith("__")  # which has another name in a class

    def visit_Call(self, node: ast.Call) -> None:
        name = dotted(node.func)
        if name:
            words = [(word.arg, _literal(word.value)) for word in node.keywords]
            is_open = any(isinstance(argument, (ast.Starred, ast.Dict)) for argument in node.args)
            args = None if is_open else [_literal(argument) for argument in node.args]
            self._add("call", node, name[:_LONGEST], args, words)
        for function in (*node.args[:1], *(word.value for word in node.keywords if word.arg == "key")):
            if name in _CALLS_BACK or (isinstance(node.func, ast.Attribute) and node.func.attr == "sort"):
                self._calls_back(function)
        if not name or not self._is_unset(name.partition(".")[0]):
            self.visit(node.func)
        for argument in (*node.args, *(word.value for word in node.keywords)):
            self.visit(argument)

    def _calls_back(self, function: ast.expr) -> None:
        inner = [function]
        if isinstance(function, ast.Lambda):
            inner = [call.func for call in ast.walk(function.body) if isinstance(call, ast.Call)]
        for called in inner:
            if dotted(called):
                self._add("back", called, dotted(called)[:_LONGEST])


def _literal(node: ast.expr, depth: int = 0) -> Any:
    """A written value as data; UNKNOWN where only the run knows it."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, (str, int, float, type(None))) else UNKNOWN
    if depth > 12:
        return UNKNOWN
    if isinstance(node, ast.List):
        return [_literal(item, depth + 1) for item in node.elts]
    if isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys):
        pairs = zip(node.keys, node.values, strict=True)
        return {key.value: _literal(value, depth + 1) for key, value in pairs if isinstance(key, ast.Constant)}
    return UNKNOWN


def _guarded(tree: ast.Module) -> set[ast.AST]:
    """Functions that are called where the script catches errors, directly or by others of them."""
    functions: dict[str, ast.AST] = {}
    pending: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            functions[node.name] = node
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            functions[node.targets[0].id] = node.value
        elif isinstance(node, ast.Try) and node.handlers:
            pending += node.body
    found: set[ast.AST] = set()
    for outer in pending:
        names = [functions.get(node.id) for node in ast.walk(outer) if isinstance(node, ast.Name)]
        new = {function for function in names if isinstance(function, _FUNCTIONS)} - found
        found |= new
        pending += new
    return found


def _is_bound(symbol: symtable.Symbol) -> bool:
    """Whether the script sets the name somewhere. `import tools` changes nothing."""
    return (
        symbol.is_assigned()
        or symbol.is_parameter()
        or symbol.is_declared_global()
        or (symbol.is_imported() and symbol.get_name() != "tools")
    )
