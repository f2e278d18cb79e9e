"""What Monty lacks and plain text can supply: a script is rewritten, line by line, before it is run.

- modules that Monty does not have are ours (`import statistics`, see prelude/);
- `del d["a"]`, methods as values (`key=d.get`, `map(str.upper, …)`) and `next(x for x in …)` become what Monty runs;
- `e.code` of a caught error reads the failure of the tool;
- `d.keys()`, `range(n)` and the like become lists where they leave the script;
- functions for `parallel_map` become coroutines, so that their calls are made together.

Lines stay where they are. A text that Python's own parser refuses is left alone: Monty says what is wrong with it.
"""

from __future__ import annotations

import ast
import symtable
from collections import Counter

TYPE_CHECKING = False  # see worker/protocol.py: a worker starts without `typing`
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

_TAKES_FUNCTION = frozenset({"map", "filter", "sorted", "min", "max", "reduce", "defaultdict", "sort"})
_VIEWS = frozenset({"keys", "values", "items"})
_TYPES = frozenset({"str", "dict", "list", "set", "tuple", "bytes", "int", "float"})
_OF_FAILURES = frozenset({"code", "message", "tool", "retryable", "data"})
_PARALLEL = frozenset({"parallel_map", "parallel_settle"})
_GATHERS = frozenset({"asyncio.gather", "gather"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (*_FUNCTIONS, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
MOST_CHARACTERS = 200_000
"""Longer scripts are not rewritten."""


class Rewritten:
    """A script as it is run."""

    __slots__ = ("awaited", "before", "caught", "changed", "has_tools", "modules", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.before: list[Rewritten] = []
        """Functions to define first."""
        self.modules: list[str] = []
        """Modules of ours that it imports."""
        self.awaited: set[tuple[int, int]] = set()
        """Where the calls of tools begin and end, in bytes, whose results are awaited."""
        self.changed: set[int] = set()
        """Lines whose columns are not those of the original."""
        self.caught: set[int] = set()
        """Lines whose errors the script catches."""
        self.has_tools = False


def rewrite(source: str, is_tool: Callable[[str], bool], modules: Collection[str], number: int) -> Rewritten:
    """The script as Monty runs it; `modules` are those that we supply."""
    tree = parsed(source)
    if tree is None:
        return Rewritten(source)
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}

    def is_called(name: str) -> bool:
        return name not in own and is_tool(name)

    done = _Rewriter(source, tree, is_called, modules, number).rewritten()
    tree = tree if done.text == source else parsed(done.text)
    if tree is not None:
        done.awaited = _awaited_places(done.text, tree, is_called)
        done.has_tools = any(is_called(dotted(call.func)) for call in _calls(tree))
        tries = [node.body for node in ast.walk(tree) if isinstance(node, ast.Try)]
        done.caught = {line for body in tries for line in range(body[0].lineno, (body[-1].end_lineno or 0) + 1)}
    return done


def _awaited_places(text: str, tree: ast.Module, is_tool: Callable[[str], bool]) -> set[tuple[int, int]]:
    lines = _Lines(text)
    return {lines.span(call) for call in _awaited(tree, is_tool)}


def parsed(source: str) -> ast.Module | None:
    """The script's tree; None where Python's parser refuses it, or it is too long."""
    if len(source) > MOST_CHARACTERS:
        return None
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def symbols(source: str) -> list[tuple[bool, symtable.Symbol]]:
    """Every name of a script in each scope that has it, and whether that is the outermost."""
    try:
        tables = [symtable.symtable(source, "script", "exec")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    for table in tables:
        tables += table.get_children()
    return [(table is tables[0], symbol) for table in tables for symbol in table.get_symbols()]


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


class _Rewriter:
    def __init__(
        self, source: str, tree: ast.Module, is_tool: Callable[[str], bool], modules: Collection[str], number: int
    ) -> None:
        self.edits: list[tuple[int, int, bytes]] = []
        self._lines = _Lines(source)
        self._done = Rewritten(source)
        self._is_tool = is_tool
        self._modules = modules
        self._number = number
        self._errors: list[str] = []
        self._apart: set[ast.AST] = set()  # handled as a whole
        self._coroutines = self._made_coroutines(tree)
        self._visit(tree, inside=None)
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            self._leave(tree.body[-1].value)

    def rewritten(self) -> Rewritten:
        data, done = self._lines.data, self._done
        parts: list[bytes] = []
        at = 0
        for start, end, text in sorted(self.edits, key=lambda edit: edit[:2]):
            if start >= at:  # not inside of what was replaced
                parts += (data[at:start], text)
                at = end
                done.changed.add(data.count(b"\n", 0, start) + 1)
        done.text = (b"".join(parts) + data[at:]).decode("utf-8", "replace")
        return done

    def _replace(self, node: ast.expr | ast.stmt, text: str) -> None:
        start, end = self._lines.span(node)
        lines = self._lines.data.count(b"\n", start, end)
        self.edits.append((start, end, text.encode() + b"\n" * lines))

    def _put_around(self, node: ast.expr, opening: bytes) -> None:
        start, end = self._lines.span(node)
        self.edits += [(start, start, opening), (end, end, b")")]

    def _text(self, node: ast.expr | ast.stmt) -> str:
        start, end = self._lines.span(node)
        return self._lines.data[start:end].decode("utf-8", "replace")

    def _made_coroutines(self, tree: ast.Module) -> set[str]:
        """Functions that are only handed to `parallel_map`, and call tools."""
        handed = {
            call.args[0].id
            for call in _calls(tree)
            if dotted(call.func) in _PARALLEL and call.args and isinstance(call.args[0], ast.Name)
        }
        nodes = list(ast.walk(tree))
        used = Counter(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
        defined = Counter(node.name for node in nodes if isinstance(node, ast.FunctionDef))
        return {name for name in handed if used[name] == defined[name] == 1}

    def _visit(self, node: ast.AST, inside: ast.AST | None) -> None:
        """`inside` is the function or comprehension around the node; None at the top."""
        if node in self._apart:
            return
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self._import(node)
        elif isinstance(node, ast.Delete):
            self._delete(node)
        elif isinstance(node, ast.Call):
            self._call(node, inside)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            if isinstance(node.value, ast.Name) and node.value.id in self._errors and node.attr in _OF_FAILURES:
                self._replace(node, f'failure({node.value.id})["{node.attr}"]')
        elif isinstance(node, ast.FunctionDef) and node.name in self._coroutines:
            start = self._lines.span(node)[0]
            self.edits.append((start, start, b"async "))
            self._insert_awaits(node.body)
        elif isinstance(node, ast.AsyncFunctionDef):
            self._insert_awaits(node.body)
        if isinstance(node, ast.ExceptHandler) and node.name:
            self._errors.append(node.name)
        around = node if isinstance(node, _SCOPES) else inside
        for child in ast.iter_child_nodes(node):
            self._visit(child, around)
        if isinstance(node, ast.ExceptHandler) and node.name:
            self._errors.pop()

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        origin = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
        if origin and (node.names[0].name == "*" or (origin != "tools" and origin not in self._modules)):
            return
        parts = []
        for alias in node.names:
            module, name = origin or alias.name, alias.asname or alias.name
            found = "tools" if module == "tools" else f"_m_{module}" if module in self._modules else ""
            self._done.modules += [module] if found.startswith("_m_") else []
            value = f"{found}.{alias.name}" if origin else found
            as_it_is = f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
            parts.append(f"{name}={value}" if found else as_it_is)
        if any("=" in part for part in parts):
            self._replace(node, ";".join(parts))

    def _delete(self, node: ast.Delete) -> None:
        parts = []
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                whole, key = self._text(target.value), self._text(target.slice)
                is_slice = isinstance(target.slice, ast.Slice)
                parts.append(f"{whole}[{key}]=[]" if is_slice else f"{whole}.pop({key})")
            elif isinstance(target, ast.Name):
                parts.append(f"{target.id}=None")
            else:
                return
        self._replace(node, ";".join(parts))

    def _call(self, node: ast.Call, inside: ast.AST | None) -> None:
        name = dotted(node.func)
        last = node.func.attr if isinstance(node.func, ast.Attribute) else name
        functions = [keyword.value for keyword in node.keywords if keyword.arg in ("key", "default_factory")]
        if last in _TAKES_FUNCTION and node.args:
            functions.append(node.args[0])
        for function in functions:
            if isinstance(function, ast.Attribute) and not self._is_tool(dotted(function)):
                self._method_as_value(function)
        if self._is_tool(name):
            for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                self._leave(argument)
        if name == "next" and node.args and isinstance(node.args[0], ast.GeneratorExp):
            self._iterate(node)
        if name in _PARALLEL and node.args and isinstance(node.args[0], ast.Lambda) and inside is None:
            self._hoist(node.args[0])

    def _leave(self, node: ast.expr) -> None:
        """Make lists of the views and ranges in a value that leaves the script."""
        if isinstance(node, (ast.List, ast.Tuple)):
            inner = node.elts
        elif isinstance(node, (ast.Dict, ast.IfExp)):
            inner = node.values if isinstance(node, ast.Dict) else [node.body, node.orelse]
        elif isinstance(node, (ast.ListComp, ast.DictComp)):
            inner = [node.elt if isinstance(node, ast.ListComp) else node.value]
        else:
            inner = []
            is_view = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS
            if isinstance(node, ast.Call) and (dotted(node.func) == "range" or (is_view and not node.args)):
                self._put_around(node, b"list(")
        for each in inner:
            self._leave(each)

    def _method_as_value(self, function: ast.Attribute) -> None:
        """`d.get` as `lambda *a: d.get(*a)`; `str.upper` as a call of the method of its argument."""
        base = dotted(function.value)
        if base in _TYPES:
            self._replace(function, f"(lambda x, *a: x.{function.attr}(*a))")
        elif isinstance(function.value, (ast.Name, ast.Constant, ast.Attribute, ast.Subscript)):
            text = self._text(function)
            if "\n" not in text:
                self._replace(function, f"(lambda *a: {text}(*a))")

    def _iterate(self, node: ast.Call) -> None:
        """`next(x for …)` as `next(iter([x for …]))`: an expression of that kind is a list here."""
        start, end = self._lines.span(node.args[0])  # with its parentheses, which may be those of the call
        self.edits += [(start, start + 1, b"(iter(["), (end - 1, end, b"]))")]

    def _hoist(self, function: ast.Lambda) -> None:
        """A lambda at the top level as a coroutine of its own: it reads only globals."""
        if any(isinstance(node, (ast.Lambda, ast.NamedExpr)) for node in ast.walk(function.body)):
            return
        name = f"_f{self._number}_{len(self._done.before)}"
        calls = [call for call in _calls(function.body) if self._is_tool(dotted(call.func))]
        if not calls or any(isinstance(node, ast.Await) for node in ast.walk(function.body)):
            return
        start, end = self._lines.span(function.body)
        body = bytearray(self._lines.data[start:end])
        for call in sorted(calls, key=lambda call: self._lines.span(call)[0], reverse=True):
            at, stop = (place - start for place in self._lines.span(call))
            body[stop:stop] = b")"
            body[at:at] = b"(await "
        parameters = ast.unparse(function.args)
        text = body.decode("utf-8", "replace")
        blank = "\n" * (function.body.lineno - 1)
        definition = Rewritten(f"{blank}async def {name}({parameters}): return ({text})")
        tree = parsed(definition.text)
        if tree is None:
            return
        definition.awaited = _awaited_places(definition.text, tree, self._is_tool)
        self._done.before.append(definition)
        self._replace(function, name)
        self._apart.add(function)

    def _insert_awaits(self, body: list[ast.stmt]) -> None:
        """In a coroutine, before calls of tools that nothing awaits."""
        module = ast.Module(body=body, type_ignores=[])
        awaited = {id(call) for call in _awaited(module, self._is_tool)}
        functions = [node for node in ast.walk(module) if isinstance(node, _FUNCTIONS)]
        nested = {id(inner) for function in functions for inner in ast.walk(function)}
        for call in _calls(module):
            if id(call) not in awaited and id(call) not in nested and self._is_tool(dotted(call.func)):
                self._put_around(call, b"(await ")


def _calls(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def _awaited(tree: ast.AST, is_tool: Callable[[str], bool]) -> list[ast.Call]:
    """Calls of tools that are awaited: at once, in `asyncio.gather`, or by way of a variable that is gathered."""
    nodes = list(ast.walk(tree))
    places: list[ast.AST] = [node.value for node in nodes if isinstance(node, ast.Await)]
    for call in _calls(tree):
        arguments = call.args if dotted(call.func) in _GATHERS else ()
        places += [argument.value if isinstance(argument, ast.Starred) else argument for argument in arguments]
    gathered = {place.id for place in places if isinstance(place, ast.Name)}
    for node in nodes:
        if isinstance(node, ast.Call) and dotted(node.func) in _PARALLEL:
            places += [argument.body for argument in node.args[:1] if isinstance(argument, ast.Lambda)]
        elif isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id in gathered for t in node.targets):
            places.append(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
            places += node.args if dotted(node.func.value) in gathered else []
    return [call for place in places for call in _produced(place) if is_tool(dotted(call.func))]


def _produced(node: ast.AST) -> Iterator[ast.Call]:
    """The calls whose results are the value of an expression, or its elements."""
    if isinstance(node, ast.Call):
        yield node
    elif isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
        yield from _produced(node.elt)
    elif isinstance(node, (ast.List, ast.Tuple, ast.IfExp, ast.Starred, ast.BinOp)):
        for part in ast.iter_child_nodes(node):
            yield from _produced(part)
