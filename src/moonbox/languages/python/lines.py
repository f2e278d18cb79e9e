"""The lines of a script whose tree was changed, and of errors that leave a `try`.

Monty forgets where an error was raised as soon as a `try` sees it: what leaves it has the line of the last handler.
So the body of each `try` that an error may leave, and each function of such a script, is put into a `try` of ours,
which notes the error and its line (`_note`, in prelude/functions.monty) and raises it again. A handler that takes the
error takes the note; `raise` in the handler puts it back. `except ToolError` asks the note, too, which error it is.
"""

from __future__ import annotations

import ast
from array import array

TYPE_CHECKING = False  # see worker/protocol.py: a worker starts without `typing`
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

CAUGHT = "_caught"
"""What stands for the types of a handler that names ToolError."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_UNMARKED = (*_FUNCTIONS, ast.ClassDef, ast.Global, ast.Nonlocal, ast.Pass, ast.Break, ast.Continue, ast.Try)
UNBOUND = "_Unbound"
"""The type of a handler that unbinds its name."""
_ALL = frozenset({"Exception", "BaseException", UNBOUND})


class Rewritten:
    """A script as it is run, and the places of the original that its parts have."""

    def __init__(self, text: str) -> None:
        self.text = self.source = text
        self.tree: ast.Module = None  # type: ignore[assignment]
        """The tree of the text, where it is not the original."""
        self.shift = (0, 0, 0)
        """A line and a column, counted in bytes from 0, after which that line has so many more."""
        self.modules: list[str] = []
        """Modules of ours that it imports."""
        self.awaited: set[tuple[int, int]] = set()
        """Where the calls of tools begin and end, in bytes, whose results are awaited."""
        self.caught: set[int] = set()
        """Lines of the original whose errors the script catches."""
        self.has_tools = False
        self.is_guarded = False
        """Whether errors that leave a `try` are noted."""
        self.value = ""
        """The name of the script's value."""
        self.value_line = 0
        """The line of the original that gives the value."""
        self._changed: ast.Module | None = None
        self._origins: dict[tuple[int, int], tuple[int, int]] = {}
        self._lines = array("I")

    def put(self, changed: ast.Module) -> None:
        """Take the text of a tree, whose nodes have the places of the original."""
        self.text = ast.unparse(changed)
        self.tree, self._changed = ast.parse(self.text), changed

    def settle(self) -> None:
        """Forget the texts and trees, which take much: of scripts that have run, only lines are asked."""
        if self._changed is not None:
            origins = dict(_pairs(self._changed, self.tree))
            first = {line: old for (line, _), (old, _) in origins.items()}
            self._lines = array("I", (first.get(line, 0) for line in range(self.text.count("\n") + 2)))
            self._origins = {at: old for at, old in origins.items() if old[0] != first[at[0]]}
        self._changed = self.tree = None  # type: ignore[assignment]
        self.text = self.source = ""

    def place(self, line: int, column: int) -> tuple[int, int | None]:
        """The line and column of the original, counted from 1; None where that column is not known."""
        if not self.text:
            old, _ = self._origins.get((line, column - 1), (0, 0))
            return old or (self._lines[line] if line < len(self._lines) else 0) or line, None
        at, from_, more = self.shift
        lines = self.text.split("\n", line)
        column = len(lines[line - 1][: column - 1].encode()) if line <= len(lines) else column - 1
        column -= more if line == at and column >= from_ + more else 0
        if self._changed is not None:
            if not self._origins:
                self._origins = dict(_pairs(self._changed, self.tree))
            found = self._origins.get((line, column))
            if found is None:  # within a text, or of our own
                before = [(at, start) for (at, _), (start, _) in self._origins.items() if at <= line]
                return (max(before)[1] if before else line), None
            line, column = found
        lines = self.source.split("\n", line)
        if line <= len(lines):
            column = len(lines[line - 1].encode()[:column].decode("utf-8", "ignore"))
        return line, column + 1


def _pairs(old: ast.AST, new: ast.AST) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Places of the nodes of the second tree, and those of the first; innermost first, so that the outermost stays."""
    for inner_old, inner_new in zip(ast.iter_child_nodes(old), ast.iter_child_nodes(new), strict=False):
        if type(inner_old) is type(inner_new):
            yield from _pairs(inner_old, inner_new)
    if isinstance(new, (ast.expr, ast.stmt)) and isinstance(old, (ast.expr, ast.stmt)):
        yield (new.lineno, new.col_offset), (old.lineno, old.col_offset)


def name(word: str) -> ast.Name:
    return ast.Name(id=word, ctx=ast.Load())


def call(function: str, *args: ast.expr) -> ast.Call:
    return ast.Call(func=name(function), args=list(args), keywords=[])


def placed(node: Any, old: ast.AST) -> Any:
    """A new node, and what is new in it, with the place of an old one."""
    ast.copy_location(node, old)
    for part in ast.walk(node):
        if isinstance(part, (ast.expr, ast.stmt, ast.ExceptHandler, ast.arg)) and not hasattr(part, "lineno"):
            ast.copy_location(part, old)
    return node


def guarded(tree: ast.Module, number: int) -> bool:
    """Guard the functions of a script with such a `try`, and every `try`; whether there is one."""
    if not any(isinstance(node, ast.Try) and _lets_through(node) for node in ast.walk(tree)):
        return False
    guard = _Guard(number)
    tree.body = guard.statements(tree.body, "<module>", marked=False)
    return True


def _lets_through(node: ast.Try) -> bool:
    """Whether an error may leave it, or a handler asks for the failures of tools."""
    types = [handler.type for handler in node.handlers]
    takes_all = any(type_ is None or (isinstance(type_, ast.Name) and type_.id in _ALL) for type_ in types)
    raises = any(isinstance(each, ast.Raise) for handler in node.handlers for each in ast.walk(handler))
    return bool(node.finalbody) or raises or not takes_all or _asks(node)


def _asks(node: ast.Try) -> bool:
    """Whether a handler asks for the failures of tools."""
    types = [handler.type.func for handler in node.handlers if isinstance(handler.type, ast.Call)]
    return any(isinstance(function, ast.Name) and function.id == CAUGHT for function in types)


class _Guard:
    """Guards the statements of one script."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._handlers = 0

    def statements(self, body: list[ast.stmt], function: str, *, marked: bool) -> list[ast.stmt]:
        """With a mark of its line before each where an error of it may be noted."""
        found: list[ast.stmt] = []
        last = 0
        for node in body:
            if marked and not isinstance(node, _UNMARKED) and node.lineno != last:
                last = node.lineno
                found.append(_mark(node, last))
            found += self._statement(node, function, marked)
        return found

    def _statement(self, node: ast.stmt, function: str, marked: bool) -> list[ast.stmt]:
        if isinstance(node, _FUNCTIONS):
            node.body = self._function(node)
        elif isinstance(node, ast.Try) and _lets_through(node):
            return [self._try(node, function)]
        else:
            is_class = isinstance(node, ast.ClassDef)
            for field in ("body", "orelse", "finalbody"):
                if getattr(node, field, None):
                    setattr(
                        node, field, self.statements(getattr(node, field), function, marked=marked and not is_class)
                    )
            for each in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                each.body = self.statements(each.body, function, marked=marked)
            if marked and isinstance(node, (ast.If, ast.While)):  # a test is asked again, or after another one
                stored = ast.NamedExpr(
                    target=ast.Name(id="_line_", ctx=ast.Store()), value=ast.Constant(value=node.test.lineno)
                )
                node.test = placed(ast.BoolOp(op=ast.And(), values=[stored, node.test]), node.test)
        return [node]

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.stmt]:
        split = 0
        while split < len(node.body) and isinstance(node.body[split], (ast.Global, ast.Nonlocal)):
            split += 1
        head, body = node.body[:split], self.statements(node.body[split:], node.name, marked=True)
        return [*head, self._noting(body, node.name, node)] if body else head

    def _try(self, node: ast.Try, function: str) -> ast.stmt:
        handlers, orelse, last = node.handlers, node.orelse, node.finalbody
        for handler in handlers:
            handler.body = self._handled(handler, function)
        inner: ast.stmt = self._noting(self.statements(node.body, function, marked=True), function, node)
        if handlers:
            orelse = self.statements(orelse, function, marked=True)
            inner = placed(ast.Try(body=[inner], handlers=handlers, orelse=orelse, finalbody=[]), node)
        if last:
            inner = self._noting([inner], function, node) if handlers else inner
            last = self.statements(last, function, marked=True)
            inner = placed(ast.Try(body=[inner], handlers=[], orelse=[], finalbody=last), node)
        return inner

    def _noting(self, body: list[ast.stmt], function: str, old: ast.stmt) -> ast.Try:
        """These statements; what they raise is noted."""
        where = (ast.Constant(value=self._number), ast.Constant(value=function))
        noting = "_note_failure" if isinstance(old, ast.Try) and _asks(old) else "_note"
        note = ast.Expr(value=call(noting, name("_e_"), name("_line_"), *where))
        again = ast.Raise(exc=None, cause=None)
        handler = ast.ExceptHandler(type=name("BaseException"), name="_e_", body=[note, again])
        body = body if any(isinstance(each, ast.Assign) for each in body[:1]) else [_mark(old, old.lineno), *body]
        return placed(ast.Try(body=body, handlers=[handler], orelse=[], finalbody=[]), old)  # type: ignore[no-any-return]

    def _handled(self, handler: ast.ExceptHandler, function: str) -> list[ast.stmt]:
        """The statements of a handler, which takes the note, and puts it back where it raises the error again."""
        self._handlers += 1
        held = f"_held{self._handlers}_"
        raises = [each for node in handler.body for each in ast.walk(node) if isinstance(each, ast.Raise)]
        again = {
            id(each)
            for each in raises
            if each.exc is None or (isinstance(each.exc, ast.Name) and each.exc.id == handler.name)
        }
        taken = placed(ast.Assign(targets=[ast.Name(id=held, ctx=ast.Store())], value=call("_take")), handler)
        body = _with_puts(handler.body, again, held)
        return [taken, *self.statements(body, function, marked=True)]


def _with_puts(body: list[ast.stmt], again: set[int], held: str) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for node in body:
        if id(node) in again:
            found.append(placed(ast.Expr(value=call("_put", name(held))), node))
        elif not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            for field in ("body", "orelse", "finalbody"):
                if getattr(node, field, None):
                    setattr(node, field, _with_puts(getattr(node, field), again, held))
        found.append(node)
    return found


def _mark(node: ast.stmt, line: int) -> ast.stmt:
    store = ast.Name(id="_line_", ctx=ast.Store())
    return placed(ast.Assign(targets=[store], value=ast.Constant(value=line)), node)  # type: ignore[no-any-return]
