"""What Monty lacks and a script's syntax tree can supply: the tree is changed before the script is run.

- modules that Monty does not have are ours (`import statistics`, see prelude/);
- `del`, methods as values (`key=d.get`) and `next(x for x in …)` become what Monty runs;
- `except ToolError` and the fields of a caught error know the failures of tools;
- views and ranges that are written as an argument of a tool become lists;
- functions for `parallel_map` become coroutines, so that their calls are made together;
- a variable of a comprehension that has the name of a builtin gets another name, since Monty takes the builtin;
- lines.py keeps the lines of errors that leave a `try`.

What a name holds is asked when the script runs (prelude/functions.monty), never guessed. A text that Python's own
parser refuses is left alone: Monty says what is wrong with it.
"""

from __future__ import annotations

import ast
import builtins
import symtable
import warnings
from collections import Counter, deque
from copy import deepcopy
from datetime import date, datetime, time, timedelta

from moonbox.languages.python.lines import CAUGHT, UNBOUND, Rewritten, call, guarded, name, placed

TYPE_CHECKING = False  # see worker/protocol.py: a worker starts without `typing`
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from typing import Any

_VIEWS = frozenset({"keys", "values", "items"})
_OF_FAILURES = frozenset({"code", "message", "tool", "retryable", "data"})
_PARALLEL = frozenset({"parallel_map", "parallel_settle"})
_GATHERS = frozenset({"asyncio.gather", "gather"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_VALUES = (ast.Constant, ast.Compare, ast.JoinedStr)  # a text that one of them gives is a text
_TYPES = (str, bytes, int, float, list, tuple, dict, set, frozenset, Counter, deque, date, datetime, time, timedelta)
METHODS = {kind.__name__: frozenset(each for each in dir(kind) if not each.startswith("_")) for kind in _TYPES}
"""The methods of each type, which Monty calls but does not give as values."""
OF_CLASSES = {
    kind.__name__: frozenset(
        each
        for each in METHODS[kind.__name__]
        if isinstance(vars(kind).get(each), staticmethod) or getattr(getattr(kind, each), "__self__", None) is kind
    )
    for kind in _TYPES
}
"""Those of them that belong to the type itself."""
_ANY_METHOD = frozenset().union(*METHODS.values())
_NONE: frozenset[str] = frozenset()
TWIN = "_c_"
"""Before the name of a coroutine that does what a function of the script does."""
_BUILTINS = frozenset(vars(builtins))
_VARIABLE = "_v_"
"""Before the name of a comprehension's variable that would be taken for a builtin."""
MOST_CHARACTERS = 200_000
"""Longer scripts are not rewritten."""


def rewrite(
    source: str, is_tool: Callable[[str], bool], modules: Collection[str], number: int, taken: Collection[str] = ()
) -> Rewritten:
    """The script as Monty runs it; `modules` are those that we supply, `taken` are globals of earlier scripts."""
    tree = parsed(source)
    if tree is None:
        return Rewritten(source)
    try:
        return _rewritten(source, tree, is_tool, modules, number, taken)
    except (RecursionError, MemoryError, ValueError, SyntaxError):
        return Rewritten(source)


def _rewritten(
    source: str,
    tree: ast.Module,
    is_tool: Callable[[str], bool],
    modules: Collection[str],
    number: int,
    taken: Collection[str],
) -> Rewritten:
    nodes = list(ast.walk(tree))
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}

    def is_called(written: str) -> bool:
        return written not in own and is_tool(written)

    done = Rewritten(source)
    done.value_line = tree.body[-1].lineno if tree.body else 0
    done.has_tools = any(is_called(dotted(each.func)) for each in _calls(tree))
    tries = [node.body for node in nodes if isinstance(node, ast.Try) and node.handlers]
    done.caught = {line for body in tries for line in range(body[0].lineno, (body[-1].end_lineno or 0) + 1)}
    imported = (node.asname or node.name for node in nodes if isinstance(node, ast.alias))
    rewriter = _Rewriter(tree, is_called, modules, {*_given(nodes), *imported, *taken})
    new = rewriter.visit(tree)
    done.modules = rewriter.modules
    done.is_guarded = guarded(new, number)
    if rewriter.changed or done.is_guarded:
        done.put(new)
        tree = done.tree
    lines = _Lines(done.text)
    done.awaited = {lines.span(each) for each in _awaited(tree, is_called)}
    _keep_value(done, tree, lines)
    return done


def _rename(node: ast.AST, names: Collection[str]) -> None:
    """Give variables other names where they are read and set, but for parameters of functions with the same name."""
    if isinstance(node, ast.Name) and node.id in names:
        node.id = _VARIABLE + node.id
    if isinstance(node, ast.Lambda):
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            _rename(default, names)
        own = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
        _rename(node.body, set(names) - own)
        return
    for child in ast.iter_child_nodes(node):
        _rename(child, names)


def _keep_value(done: Rewritten, tree: ast.Module, lines: _Lines) -> None:
    """Give the value a name, by which more can be asked of it."""
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        return
    if isinstance(last.value, (ast.Name, *_VALUES)):
        done.value = last.value.id if isinstance(last.value, ast.Name) else '""'
        return
    start, end = lines.span(last.value)
    statement = lines.span(last)
    start, end = min(start, statement[0]), max(end, statement[1])  # with the parentheses around it
    opening = b"_0=("
    done.text = (
        lines.data[:start] + opening + lines.data[start:end] + b")" + lines.data[end:].rstrip(b"\\ \n") + b"\n_0"
    ).decode("utf-8", "replace")
    done.value = "_0"
    done.shift = (last.lineno, last.col_offset, len(opening))
    done.awaited = {(a, b) if a < start else (a + len(opening), b + len(opening)) for a, b in done.awaited}


def _quietly(read: Callable[..., Any], *given: Any) -> Any:
    """What Python's parser makes of a text, without its warnings; None where it refuses the text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return read(*given)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def parsed(source: str) -> ast.Module | None:
    """The script's tree; None where Python's parser refuses it, or it is too long."""
    return _quietly(ast.parse, source) if len(source) <= MOST_CHARACTERS else None


def symbols(source: str) -> list[tuple[bool, symtable.Symbol]]:
    """Every name of a script in each scope that has it, and whether that is the outermost."""
    outermost = _quietly(symtable.symtable, source, "script", "exec")
    tables: list[symtable.SymbolTable] = [] if outermost is None else [outermost]
    for table in tables:
        tables += table.get_children()
    return [(table is outermost, symbol) for table in tables for symbol in table.get_symbols()]


def defined(source: str) -> list[str]:
    """The globals that a script sets, but for what it imports."""
    found = [
        symbol for outer, symbol in symbols(source) if symbol.is_assigned() and (outer or symbol.is_declared_global())
    ]
    return list(dict.fromkeys(symbol.get_name() for symbol in found))


def parameter(word: str, names: Collection[str]) -> str:
    """The parameter that a keyword argument names: `from_` is `from`, which is a word of Python."""
    return word[:-1] if word.endswith("_") and word not in names and word[:-1] in names else word


def dotted(node: ast.AST) -> str:
    """`a.b.c` of such an expression; "" of others."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


class _Lines:
    """Where the lines of a text begin, in bytes."""

    def __init__(self, text: str) -> None:
        self.data = text.encode("utf-8", "replace")
        self.starts = [0]
        for line in self.data.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a part of the text begins and ends."""
        start, end = self.starts[node.lineno - 1], self.starts[(node.end_lineno or 1) - 1]
        return start + node.col_offset, end + (node.end_col_offset or 0)


class _Rewriter(ast.NodeTransformer):
    """Changes a tree. A new node has the place of what it stands for."""

    def __init__(
        self, tree: ast.Module, is_tool: Callable[[str], bool], modules: Collection[str], bound: set[str]
    ) -> None:
        self.changed = False
        self.modules: list[str] = []
        self._is_tool = is_tool
        self._ours = modules
        self._bound = bound
        self._errors: list[str] = []
        self._handed = _handed(tree, is_tool)
        self._awaited = {id(each) for each in _awaited(tree, is_tool)}
        self._is_coroutine = False
        self._is_inside = False  # of an expression with variables of its own, or that is evaluated again
        self._before: list[ast.stmt] = []  # statements to put before the current one
        self._hoisted = 0

    def visit(self, node: ast.AST) -> Any:
        if not isinstance(node, ast.stmt):
            return super().visit(node)
        outer, self._before = self._before, []
        new = super().visit(node)
        before, self._before = self._before, outer
        return [*before, *(new if isinstance(new, list) else [new])] if before else new

    def _new(self, node: Any, old: ast.AST) -> Any:
        self.changed = True
        return placed(node, old)

    def _is_builtin(self, function: ast.expr, word: str) -> bool:
        return isinstance(function, ast.Name) and function.id == word and word not in self._bound

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> Any:
        origin = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
        if origin and (node.names[0].name == "*" or (origin != "tools" and origin not in self._ours)):
            return node
        parts: list[ast.stmt] = []
        for alias in node.names:
            module, target = origin or alias.name, alias.asname or alias.name
            if module != "tools" and module not in self._ours:
                parts.append(placed(ast.Import(names=[alias]), node))
                continue
            self.modules += [module] if module != "tools" else []
            found: ast.expr = name("tools" if module == "tools" else f"_m_{module}")
            found = ast.Attribute(value=found, attr=alias.name, ctx=ast.Load()) if origin else found
            store = ast.Name(id=target, ctx=ast.Store())
            parts.append(self._new(ast.Assign(targets=[store], value=found), node))
        return parts

    visit_ImportFrom = visit_Import

    def visit_Delete(self, node: ast.Delete) -> Any:
        """An item is deleted by a function; a name is unbound as that of a handler is when the handler ends."""
        flat = _flat(node.targets)
        if any(isinstance(target, ast.Attribute) for target in flat):
            return node
        parts: list[ast.stmt] = []
        for target in flat:
            if isinstance(target, ast.Subscript):
                key = _as_value(self.visit(target.slice))
                parts.append(self._new(ast.Expr(value=call("_delete", self.visit(target.value), key)), target))
            elif isinstance(target, ast.Name):
                parts.append(self._new(ast.Expr(value=name(target.id)), target))
                raised = ast.Raise(exc=name(UNBOUND), cause=None)
                handler = ast.ExceptHandler(type=name(UNBOUND), name=target.id, body=[ast.Pass()])
                unbound = ast.Try(body=[raised], handlers=[handler], orelse=[], finalbody=[])
                parts.append(self._new(unbound, target))
        return parts

    def visit_While(self, node: ast.While) -> Any:
        node.test = self._within(node.test, is_coroutine=self._is_coroutine)
        for field in (node.body, node.orelse):
            field[:] = self._block(field)
        return node

    def _block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        new = map(self.visit, statements)
        return [each for found in new for each in (found if isinstance(found, list) else [found])]

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> Any:
        if node.type is not None and self._names_failures(node.type):
            elements = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            node.type = self._new(call(CAUGHT, *elements), node.type)
        self._errors += [node.name] if node.name else []
        self.generic_visit(node)
        self._errors[len(self._errors) - bool(node.name) :] = []
        return node

    def _names_failures(self, node: ast.expr) -> bool:
        return "ToolError" not in self._bound and any(
            isinstance(each, ast.Name) and each.id == "ToolError" for each in ast.walk(node)
        )

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        if node.name not in self._handed:
            self._function(node, is_coroutine=False)
            return node
        copy = deepcopy(node)
        self._awaited |= {id(each) for each in _awaited(copy, self._is_tool)}
        fields = {field: getattr(copy, field) for field in copy._fields}
        twin = self._new(ast.AsyncFunctionDef(**{**fields, "name": f"{TWIN}{node.name}"}), node)
        self._function(twin, is_coroutine=True)
        self._function(node, is_coroutine=False)
        return [node, twin]

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        self._function(node, is_coroutine=True)
        return node

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, *, is_coroutine: bool) -> None:
        outer = self._is_coroutine, self._is_inside
        node.args = self.visit(node.args)
        node.decorator_list = [self.visit(each) for each in node.decorator_list]
        self._is_coroutine, self._is_inside = is_coroutine, False
        node.body = self._block(node.body)
        self._is_coroutine, self._is_inside = outer

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return self._within(node, is_coroutine=False)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> Any:
        variables = [part for each in node.generators for part in ast.walk(each.target)]
        if shadows := _BUILTINS.intersection(_given(variables)):
            self.changed = True
            first, node.generators[0].iter = node.generators[0].iter, ast.Constant(value=None)  # of the scope around it
            _rename(node, shadows)
            node.generators[0].iter = first
        return self._within(node, is_coroutine=self._is_coroutine)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def _within(self, node: ast.expr, *, is_coroutine: bool) -> Any:
        outer = self._is_coroutine, self._is_inside
        self._is_coroutine, self._is_inside = is_coroutine, True
        new = self.generic_visit(node) if isinstance(node, (ast.Lambda, *_COMPREHENSIONS)) else self.visit(node)
        self._is_coroutine, self._is_inside = outer
        return new

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if not isinstance(node.ctx, ast.Load) or self._is_tool(dotted(node)):
            return self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id in self._errors and node.attr in _OF_FAILURES:
            return self._new(call("_of_error", node.value, ast.Constant(value=node.attr)), node)
        self.generic_visit(node)
        if node.attr == "__class__":
            return self._new(call("_type", node.value), node)
        return self._method(node) if node.attr in _ANY_METHOD else node

    def _method(self, node: ast.Attribute) -> Any:
        """A method as a value: `_method(x, "get", lambda o, *a, **k: o.get(*a, **k))`."""
        function = ast.parse(f"lambda o, *a, **k: o.{node.attr}(*a, **k)", mode="eval").body
        return self._new(call("_method", node.value, ast.Constant(value=node.attr), placed(function, node)), node)

    def visit_Call(self, node: ast.Call) -> Any:
        written, function = dotted(node.func), node.func
        is_tool, is_awaited = self._is_tool(written), id(node) in self._awaited
        if is_tool:
            node.args = [self._as_list(argument) for argument in node.args]
            for word in node.keywords:
                word.value = self._as_list(word.value)
        if written in _PARALLEL and written not in self._bound and node.args:
            given = node.args[0]
            if isinstance(given, ast.Name) and given.id in self._handed:
                node.args[0] = self._new(name(f"{TWIN}{given.id}"), given)
            elif isinstance(given, ast.Lambda):
                node.args[0] = self._hoist(given)
        node.args = [self.visit(argument) for argument in node.args]
        node.keywords = [self.visit(word) for word in node.keywords]
        if isinstance(function, ast.Attribute) and function.attr != "__class__":
            function.value = self.visit(function.value)
            kind = function.value.id if isinstance(function.value, ast.Name) else ""
            if kind not in self._bound and function.attr in METHODS.get(kind, _NONE) - OF_CLASSES.get(kind, _NONE):
                node.func = self._method(function)  # `str.upper(x)`
        else:
            node.func = self.visit(function)
        first = node.args[0] if node.args else None
        if isinstance(first, ast.GeneratorExp) and self._is_builtin(function, "next"):
            items = placed(ast.ListComp(elt=first.elt, generators=first.generators), first)
            node.args[0] = self._new(call("_iter", items), first)
        elif len(node.args) == 2 and self._is_builtin(function, "isinstance") and self._names_failures(node.args[1]):
            node.func = self._new(name("_is_instance"), function)
        if is_tool and self._is_coroutine and not is_awaited:
            return self._new(ast.Await(value=node), node)
        return node

    def _as_list(self, node: ast.expr) -> ast.expr:
        """A list of the view or range in a value that leaves the script, if it is one when the script runs."""
        if isinstance(node, (ast.List, ast.Tuple)):
            node.elts = [self._as_list(each) for each in node.elts]
        elif isinstance(node, ast.Dict):
            node.values = [self._as_list(each) for each in node.values]
        elif isinstance(node, ast.IfExp):
            node.body, node.orelse = self._as_list(node.body), self._as_list(node.orelse)
        elif isinstance(node, ast.Call) and (
            (isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS and not node.args)
            or self._is_builtin(node.func, "range")
        ):
            return self._new(call("_list", node), node)  # type: ignore[no-any-return]
        return node

    def _hoist(self, function: ast.Lambda) -> ast.expr:
        """A lambda as a coroutine of its own before the statement, which has the same variables in sight."""
        nodes = list(ast.walk(function.body))
        has_tools = any(self._is_tool(dotted(each.func)) for each in _calls(function.body))
        defaults = [*function.args.defaults, *function.args.kw_defaults]
        is_simple = all(each is None or isinstance(each, (ast.Name, ast.Constant)) for each in defaults)
        if self._is_inside or not has_tools or not is_simple:
            return function
        if any(isinstance(each, (ast.Lambda, ast.NamedExpr, ast.Await)) for each in nodes):
            return function
        self._hoisted += 1
        for each in _calls(function.body):
            self._awaited.discard(id(each))
        body = placed(ast.Return(value=function.body), function.body)
        definition = ast.AsyncFunctionDef(
            name=f"_f{self._hoisted}", args=function.args, body=[body], decorator_list=[], returns=None
        )
        self._function(self._new(definition, function), is_coroutine=True)
        self._before.append(definition)
        return placed(name(definition.name), function)  # type: ignore[no-any-return]


def _flat(targets: list[ast.expr]) -> list[ast.expr]:
    lists = (_flat(each.elts) if isinstance(each, (ast.Tuple, ast.List)) else [each] for each in targets)
    return [each for inner in lists for each in inner]


def _as_value(key: ast.expr) -> ast.expr:
    """What stands in brackets, outside of them: a slice is written as a call."""
    if isinstance(key, ast.Tuple):
        key.elts = [_as_value(each) for each in key.elts]
    if isinstance(key, ast.Slice):
        return call("_slice", *(each or ast.Constant(value=None) for each in (key.lower, key.upper, key.step)))
    return key


def _given(nodes: list[ast.AST]) -> Iterator[str]:
    """Names that a script gives a meaning, once for each place where it does; imports aside."""
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name


def _handed(tree: ast.Module, is_tool: Callable[[str], bool]) -> set[str]:
    """Functions that `parallel_map` is given by name, that call tools, and that are defined once."""
    handed = {
        each.args[0].id
        for each in _calls(tree)
        if dotted(each.func) in _PARALLEL and each.args and isinstance(each.args[0], ast.Name)
    }
    if not handed:
        return handed
    nodes = list(ast.walk(tree))
    times = Counter(_given(nodes))
    return {
        node.name
        for node in nodes
        if isinstance(node, ast.FunctionDef)
        and node.name in handed
        and times[node.name] == 1
        and not node.decorator_list
        if any(is_tool(dotted(each.func)) for each in _calls(node))
    }


def _calls(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def _awaited(tree: ast.AST, is_tool: Callable[[str], bool]) -> list[ast.Call]:
    """Calls of tools that are awaited: at once, in `asyncio.gather`, or by way of a variable that is gathered."""
    nodes = list(ast.walk(tree))
    places: list[ast.AST] = [node.value for node in nodes if isinstance(node, ast.Await)]
    for each in _calls(tree):
        arguments = each.args if dotted(each.func) in _GATHERS else ()
        places += [argument.value if isinstance(argument, ast.Starred) else argument for argument in arguments]
    gathered = {place.id for place in places if isinstance(place, ast.Name)}
    for node in nodes:
        if isinstance(node, ast.Call) and dotted(node.func) in _PARALLEL:
            places += [argument.body for argument in node.args[:1] if isinstance(argument, ast.Lambda)]
        elif isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id in gathered for t in node.targets):
            places.append(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
            places += node.args if dotted(node.func.value) in gathered else []
    return [each for place in places for each in _produced(place) if is_tool(dotted(each.func))]


def _produced(node: ast.AST) -> Iterator[ast.Call]:
    """The calls whose results are the value of an expression, or its elements."""
    if isinstance(node, ast.Call):
        yield node
    elif isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
        yield from _produced(node.elt)
    elif isinstance(node, (ast.List, ast.Tuple, ast.IfExp, ast.Starred, ast.BinOp)):
        for part in ast.iter_child_nodes(node):
            yield from _produced(part)
