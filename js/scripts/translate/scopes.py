"""Which names a function has of its own."""

from __future__ import annotations

import ast

_RESERVED = frozenset(
    {
        *(
            "arguments",
            "await",
            "false",
            "null",
            "true",
            "case",
            "catch",
            "class",
            "const",
            "debugger",
            "default",
            "delete",
            "do",
            "enum",
            "eval",
        ),
        *(
            "export",
            "extends",
            "function",
            "implements",
            "import",
            "in",
            "instanceof",
            "interface",
            "let",
            "new",
            "null",
        ),
        *("package", "private", "protected", "public", "static", "super", "switch", "this", "throw", "try", "typeof"),
        *("undefined", "var", "void", "while", "with", "yield"),
        *("Map", "Set", "Array", "Object", "String", "Number", "Boolean", "Symbol", "Error", "RegExp"),
    }
)


def mangled(name: str) -> str:
    """The name as JavaScript can write it."""
    return f"{name}_" if name in _RESERVED else name


def parameters(arguments: ast.arguments) -> list[str]:
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [item.arg for item in [*named, arguments.vararg, arguments.kwarg] if item is not None]


def assigned(body: list[ast.stmt]) -> list[str]:
    """The names that these statements assign to, functions in them aside."""
    found: dict[str, None] = {}

    def add(name: str | None) -> None:
        if name is not None:
            found[name] = None

    def target(node: ast.AST) -> None:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                add(part.id)

    def visit(node: ast.AST, in_comprehension: bool) -> None:
        if isinstance(node, ast.NamedExpr):
            add(node.target.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            add(node.name)
            return
        elif isinstance(node, ast.Lambda):
            return
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            in_comprehension = True
        elif not in_comprehension:
            if isinstance(node, (ast.Assign, ast.Delete)):
                for each in node.targets:
                    target(each)
            elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.For)):
                target(node.target)
            elif isinstance(node, ast.ExceptHandler):
                add(node.name)
            elif isinstance(node, ast.withitem) and node.optional_vars is not None:
                target(node.optional_vars)
            elif isinstance(node, (ast.MatchAs, ast.MatchStar)):
                add(node.name)
            elif isinstance(node, ast.MatchMapping):
                add(node.rest)
        for child in ast.iter_child_nodes(node):
            visit(child, in_comprehension)

    for statement in body:
        visit(statement, False)
    outer = {
        name
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, (ast.Nonlocal, ast.Global))
        for name in node.names
    }
    return [name for name in found if name not in outer]


def is_generator(body: list[ast.stmt]) -> bool:
    """Whether the function yields."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(node))
    return False
