"""The look at a Python script before it runs: what Monty lacks, names that nothing sets, and calls that cannot work.

The script is read by Python's own parser and never run here. What is certain to fail is an error; where the script
catches errors, it is a note.
"""

from __future__ import annotations

import ast
import builtins
import symtable
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from moonbox.findings import Finding
from moonbox.languages.facts import by_word
from moonbox.languages.program import Vocabulary
from moonbox.languages.python.language import PYTHON
from moonbox.languages.python.rewriting import dotted, parameter, parsed, symbols
from moonbox.suggest import did_you_mean, nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_MOST_FINDINGS = 20
_OURS = (
    "ToolError failure parallel_map parallel_settle pages sort_by group_by count_by sum_by min_by max_by "
    "unique take asyncio json docs tools"
)
_CALLS_BACK = frozenset({"map", "filter", "sorted", "min", "max", "functools.reduce", "reduce"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_ASYNCIO = frozenset({"run", "gather", "sleep"})
_LIST = "out = [], then out.append(x) instead of yield x, and return out"
_TOGETHER = "parallel_map(f, items), or await asyncio.gather(a(id=1), b(id=2))"
# Monty refuses other forms that it lacks before anything runs; these have advice.
_NO_FORM: dict[type, tuple[str, str]] = {
    ast.Yield: ("scripts cannot have generators (yield)", f"make a list: {_LIST}"),
    ast.YieldFrom: ("scripts cannot have generators (yield from)", "make a list: out.extend(items), and return out"),
}


class Modules(Struct, frozen=True):
    """What `modules.toml` holds."""

    there: str
    ours: str
    builtins_missing: str
    instead: Mapping[str, str]
    builtins: Mapping[str, str]
    advice: Mapping[str, str]
    """Patterns of error messages, and the hint for each; `{0}` is the first group."""


@cache
def modules() -> Modules:
    tables = tomllib.loads(Path(__file__).with_name("modules.toml").read_text(encoding="utf-8"))
    words = {name: by_word(tables[name]) for name in ("instead", "builtins")}
    return Modules(**{**tables, **words})


@cache
def vocabulary() -> Vocabulary:
    """The few words that messages about tools need."""
    return Vocabulary(globals=frozenset(_OURS.split()), forms={"search": 'docs.search("words")'})


@cache
def _builtins() -> frozenset[str]:
    missing = set(modules().builtins_missing.split())
    return frozenset({name for name in dir(builtins) if name not in missing} | {"__name__", "__file__", "_"})


def look(
    source: str, view: Any, names: Collection[str], open_names: bool
) -> tuple[tuple[Finding, ...], frozenset[str] | None]:
    """The findings in the order of their lines, and the globals that the script sets."""
    tree = parsed(source)
    if tree is None:
        return (), None
    walk = _Look(tree, source, view, names, open_names)
    walk.visit(tree)
    found = sorted(walk.findings.values(), key=lambda finding: (finding.line, finding.column or 0))
    return tuple(found[:_MOST_FINDINGS]), None if walk.is_dynamic else frozenset(walk.bound)


class _Look(ast.NodeVisitor):
    def __init__(self, tree: ast.Module, source: str, view: Any, names: Collection[str], open_names: bool) -> None:
        self.findings: dict[tuple[int, str], Finding] = {}
        found = [symbol for _, symbol in symbols(source)]
        self.bound = set(map(symtable.Symbol.get_name, filter(_is_bound, found)))
        self.is_dynamic = any(isinstance(node, ast.Name) and node.id in ("exec", "eval") for node in ast.walk(tree))
        self._view = view
        self._lines = source.splitlines()
        self._known = {*_builtins(), *_OURS.split(), *names}
        self._open = open_names or self.is_dynamic or not found  # none where Monty will refuse the script
        self._guarded = _guarded(tree)
        self._caught = 0

    def _error(self, node: ast.expr | ast.stmt, message: str, hint: str | None = None, **more: str) -> None:
        severity = "note" if self._caught else "error"
        self._report(severity, node, message, hint, **more)

    def _report(self, severity: Any, node: ast.expr | ast.stmt, message: str, hint: str | None, **more: str) -> None:
        line = self._lines[node.lineno - 1] if node.lineno <= len(self._lines) else ""
        column = len(line.encode()[: node.col_offset].decode("utf-8", "ignore")) + 1
        finding = Finding(severity, message, node.lineno, column, hint, more.get("code"), more.get("tool"))
        self.findings.setdefault((node.lineno, message), finding)

    # What Monty lacks

    def generic_visit(self, node: ast.AST) -> None:
        form = _NO_FORM.get(type(node))
        if form is not None and isinstance(node, (ast.expr, ast.stmt)):
            self._error(node, *form)
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
            self._module(node, alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if not node.level and self._module(node, module) and node.names[0].name == "*":
            self._error(node, "scripts cannot import *", f"name what is needed: from {module} import …")

    def _module(self, node: ast.stmt, name: str) -> bool:
        known = modules()
        if name in known.there.split() or name in known.ours.split() or name in self._view.root.members:
            return True
        hint = known.instead.get(name.partition(".")[0])
        there = " ".join(sorted({*known.there.split(), *known.ours.split()} - {"__future__"}))
        self._error(node, f"there is no module '{name}'", hint or f"the modules are: {there}")
        return False

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if node.bases or node.keywords:
            is_error = any(dotted(base).endswith(("Error", "Exception")) for base in node.bases)
            hint = 'raise ValueError("…")' if is_error else f"write: class {node.name}: with all methods in it"
            self._error(node, "classes cannot inherit here", hint)
        for member in node.body:
            if isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)) and member.decorator_list:
                what = ast.unparse(member.decorator_list[0])[:40]
                self._error(member, f"methods cannot have decorators (@{what})", "use a plain method or a function")
        self.generic_visit(node)

    # Names

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and self._is_unset(node.id):
            hint = modules().builtins.get(node.id) or did_you_mean(self._nearest(node.id))
            self._report("note", node, f"'{node.id}' is not set anywhere: reading it is an error", hint)

    def _is_unset(self, name: str) -> bool:
        is_private = name.startswith("__")  # in a class it has another name
        is_known = name in self.bound or name in self._known or name in self._view.root.members
        return not (is_known or self._open or is_private)

    def _nearest(self, name: str) -> list[str]:
        known = {*self.bound, *self._known, *self._view.root.members}
        return [f"'{each}'" for each in nearest(name, known, parts=True, count=2)]

    # Calls

    def visit_Call(self, node: ast.Call) -> None:
        name = dotted(node.func)
        if name:
            self._called(node, name)
        for function in (*node.args[:1], *(word.value for word in node.keywords if word.arg == "key")):
            if name in _CALLS_BACK or (isinstance(node.func, ast.Attribute) and node.func.attr == "sort"):
                self._calls_back(function)
        if not name or not self._is_unset(name.partition(".")[0]):
            self.visit(node.func)
        for argument in (*node.args, *(word.value for word in node.keywords)):
            self.visit(argument)

    def _calls_back(self, function: ast.expr) -> None:
        inner = [function] if self._tool(dotted(function)) is not None else []
        if isinstance(function, ast.Lambda):
            inner += [call.func for call in ast.walk(function.body) if isinstance(call, ast.Call)]
        for called in inner:
            if self._tool(dotted(called)) is not None:
                form = f"[{dotted(called)}(…) for x in items]"
                problem = "a tool cannot be called inside map, filter, sorted, min or max"
                self._error(called, problem, f"call it first, in a list comprehension: {form}")

    def _called(self, node: ast.Call, name: str) -> None:
        root, _, rest = name.partition(".")
        if root == "asyncio" and rest and rest not in _ASYNCIO:
            self._error(node, f"there is no {name}", f"use {_TOGETHER}")
        elif name in ("asyncio.gather", "gather") and any(word.arg == "return_exceptions" for word in node.keywords):
            settle = 'use parallel_settle(f, items), which gives {"ok", "value", "error"} each'
            self._error(node, "asyncio.gather has no return_exceptions here", settle)
        elif name in ("time.sleep", "asyncio.sleep"):
            self._error(node, "scripts cannot sleep", modules().instead["time_sleep"])
        tool = self._tool(name)
        if tool is not None:
            self._arguments(node, tool)
        elif root == "tools" and rest and "tools" not in self.bound:
            self._error(node, *self._view.unknown(rest), code="unknown_tool", tool=rest)
        elif self._is_unset(root):
            known = modules()
            hint = known.builtins.get(root) or did_you_mean(self._nearest(root))
            hint = f"write: import {root}" if rest and root in f"{known.there} {known.ours}".split() else hint
            self._error(node, f"unknown function '{name}'", hint, code="unknown_tool", tool=name)

    def _tool(self, name: str) -> Any:
        """The tool of a dotted name; None where it is something else."""
        path = name.split(".")
        is_hidden = path[0] in PYTHON.texts.taken.split() and path[0] != "tools"
        if not name or path[0] in self.bound or is_hidden:
            return None
        path = path[1:] if path[0] == "tools" else path
        at: Any = self._view.root.members
        for part in path:
            at = at.get(part) if isinstance(at, dict) else None
        return None if at is None or isinstance(at, dict) else at

    def _arguments(self, node: ast.Call, tool: Any) -> None:
        names = tool.document.positional_order()
        given: dict[Any, Any] = {}
        for index, argument in enumerate(node.args):
            if isinstance(argument, ast.Starred) or index >= len(names) or isinstance(argument, ast.Dict):
                return  # what the run makes of it is not known here
            given[names[index]] = _literal(argument)
        for word in node.keywords:
            if word.arg is None:
                given[...] = ...
            else:
                given[parameter(word.arg, names)] = _literal(word.value)
        error = self._view.problem_with(tool, [given])
        if error is not None:
            self._error(node, error.message, code=error.code, tool=tool.path)


def _literal(node: ast.expr, depth: int = 0) -> Any:
    """A written value as data; `...` where only the run knows it."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, (str, int, float, type(None))) else ...
    if depth > 12:
        return ...
    if isinstance(node, ast.List):
        return [_literal(item, depth + 1) for item in node.elts]
    if isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys):
        pairs = zip(node.keys, node.values, strict=True)
        return {key.value: _literal(value, depth + 1) for key, value in pairs if isinstance(key, ast.Constant)}
    return ...


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
