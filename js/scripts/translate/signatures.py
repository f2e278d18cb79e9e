"""What the modules define: functions, classes and parameters, so that calls by name become calls by position."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from translate.scopes import assigned

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = {"Struct", "NamedTuple"}


class Untranslatable(Exception):
    """Python that is not translated."""

    def __init__(self, node: ast.AST, what: str = "") -> None:
        line, written = getattr(node, "lineno", "?"), ast.unparse(node)[:120]
        super().__init__(f"line {line}: {what or type(node).__name__} is not translated: {written}")


@dataclass
class Signature:
    """The parameters of a function, in the order in which JavaScript takes them."""

    names: list[str]
    rest: str | None = None
    keywords: str | None = None
    positional: int = 0
    """How many can be given by position."""
    required: frozenset[str] = frozenset()
    only_positional: frozenset[str] = frozenset()

    @classmethod
    def of(cls, arguments: ast.arguments, *, bound: bool = False) -> Signature:
        named = [item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        if bound:
            named = named[1:]
        rest = arguments.vararg.arg if arguments.vararg else None
        keywords = arguments.kwarg.arg if arguments.kwarg else None
        positional = [item.arg for item in (*arguments.posonlyargs, *arguments.args)]
        optional = {*positional[len(positional) - len(arguments.defaults) :]} if arguments.defaults else set()
        optional |= {
            item.arg for item, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default
        }
        return cls(
            named + ([keywords] if keywords else []),
            rest,
            keywords,
            len(positional) - bound,
            frozenset(named) - optional,
            frozenset(item.arg for item in arguments.posonlyargs),
        )

    def takes(self, count: int, keywords: set[str]) -> bool:
        """Whether a call with so many positions and these keywords fits."""
        given = {*self.names[:count], *keywords - self.only_positional}
        fits = self.keywords is not None or keywords <= set(self.names)
        return fits and (count <= self.positional or self.rest is not None) and self.required <= given


@dataclass(eq=False)
class Class:
    """A class: what makes one, and what it has."""

    name: str
    node: ast.ClassDef
    module: Module
    bases: list[str] = field(default_factory=list)
    methods: dict[str, Signature] = field(default_factory=dict)

    @cached_property
    def record(self) -> str:
        """ "Struct" or "NamedTuple" where it is one."""
        if any("dataclass" in ast.unparse(each) for each in self.node.decorator_list):
            return "Struct"
        for base in self.bases:
            above = self.module.resolve_class(base)
            found = base if base in RECORDS else above.record if above is not None else ""
            if found:
                return found
        return ""

    @property
    def fields(self) -> list[tuple[str, ast.expr | None]]:
        """Those of a record, with their defaults."""
        return [
            (item.target.id, item.value)
            for item in self.node.body
            if self.record
            and isinstance(item, ast.AnnAssign)
            and isinstance(item.target, ast.Name)
            and "ClassVar" not in ast.unparse(item.annotation)
        ]

    @property
    def compared(self) -> bool:
        """Whether records of it are equal that have equal fields."""
        if any(option.arg == "eq" and ast.unparse(option.value) == "False" for option in self.node.keywords):
            return False
        return all(each.compared for each in self.ancestors()[1:])

    @property
    def constructor(self) -> Signature | None:
        if self.record:
            return Signature([name for name, _ in self.all_fields()])
        for each in self.ancestors():
            if "__init__" in each.methods:
                return each.methods["__init__"]
        return None

    def ancestors(self) -> list[Class]:
        """The class and the classes of ours that it extends."""
        found = [self]
        for base in self.bases:
            above = self.module.resolve_class(base)
            if above is not None:
                found += above.ancestors()
        return found

    def all_fields(self) -> list[tuple[str, ast.expr | None]]:
        return [item for each in reversed(self.ancestors()) for item in each.fields]


class Module:
    """One module, and what its names mean."""

    def __init__(self, name: str, path: Path, modules: dict[str, Module]) -> None:
        self.name, self.path, self.modules = name, path, modules
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.aliases: dict[str, str] = {}
        """Names of imported modules."""
        self.imported: dict[str, tuple[str, str]] = {}
        """Names that are imported: from which module, and what they are called there."""
        self.functions: dict[str, Signature] = {}
        self.classes: dict[str, Class] = {}
        self.names: set[str] = set()
        self.values: set[str] = set()
        modules[name] = self

    def read(self) -> None:
        """Read the imports and definitions."""
        for node in self.statements(self.tree.body):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.functions[node.name] = Signature.of(node.args)
                self.names.add(node.name)
            elif isinstance(node, ast.ClassDef):
                self.classes[node.name] = self._class(node)
                self.names.add(node.name)
        self.values = set(assigned(self.statements(self.tree.body)))
        for node in ast.walk(ast.Module(self.statements(self.tree.body), [])):
            if isinstance(node, ast.ImportFrom) and node.module:
                for item in node.names:
                    full = f"{node.module}.{item.name}"
                    if full in self.modules:
                        self.aliases[item.asname or item.name] = full
                    else:
                        self.imported[item.asname or item.name] = (node.module, item.name)
            elif isinstance(node, ast.Import):
                for item in node.names:
                    self.aliases[item.asname or item.name] = item.name

    @staticmethod
    def statements(body: list[ast.stmt]) -> list[ast.stmt]:
        return [node for node in body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))]

    def _class(self, node: ast.ClassDef) -> Class:
        made = Class(node.name, node, self, [ast.unparse(base).partition("[")[0] for base in node.bases])
        for item in node.body:
            if isinstance(item, ast.FunctionDef):
                is_static = any(ast.unparse(each) == "staticmethod" for each in item.decorator_list)
                made.methods[item.name] = Signature.of(item.args, bound=not is_static)
        return made

    def exports(self, name: str) -> bool:
        """Whether the module has a value of that name at run time."""
        return name in self.functions or name in self.classes or name in self.values

    def resolve_class(self, name: str) -> Class | None:
        if name in self.classes:
            return self.classes[name]
        if name in self.imported:
            module, there = self.imported[name]
            return self.modules[module].resolve_class(there) if module in self.modules else None
        alias, _, inner = name.partition(".")
        if inner and self.aliases.get(alias) in self.modules:
            return self.modules[self.aliases[alias]].resolve_class(inner)
        return None

    def resolve_function(self, name: str) -> Signature | None:
        if name in self.functions:
            return self.functions[name]
        if name in self.imported:
            module, there = self.imported[name]
            return self.modules[module].resolve_function(there) if module in self.modules else None
        return None
