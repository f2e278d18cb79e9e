"""Expressions: values, operators, comprehensions and strings."""

from __future__ import annotations

import ast
import builtins
import json
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING

from translate.scopes import assigned, is_generator, mangled, parameters
from translate.signatures import Module, Untranslatable

if TYPE_CHECKING:
    from collections.abc import Iterator

METHODS = frozenset(
    name
    for kind in (str, list, dict, set, bytes, tuple, float, deque)
    for name in dir(kind)
    if not name.startswith("_")
)
"""Methods of text and containers: called through src/python/, which asks what the value is."""
_BUILTINS = frozenset(dir(builtins))
_OPERATORS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.BitOr: "or",
    ast.BitAnd: "and", ast.BitXor: "xor", ast.Pow: "pow", ast.LShift: "shl", ast.RShift: "shr", ast.Div: "div",
}  # fmt: skip
_ORDER = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
_SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_OF_OBJECTS = {"__dict__": "attributes", "__name__": "name_of"}
_LARGEST = 2**53


class Expressions:
    """Translates the expressions of one module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.scopes: list[set[str]] = []
        self.temporary = 0
        self.class_name = ""
        self.pending: list[list[str]] = [[]]
        """Variables of the translation's own that wait to be declared, for each open function."""

    # Names

    @contextmanager
    def scope(self, names: set[str]) -> Iterator[None]:
        self.scopes.append(names)
        yield
        self.scopes.pop()

    def is_local(self, name: str) -> bool:
        return any(name in scope for scope in self.scopes)

    def is_global(self, name: str) -> bool:
        return name in self.module.names or name in self.module.imported or name in self.module.aliases

    def name(self, node: ast.Name) -> str:
        name = node.id
        if self.is_local(name):
            return mangled(name)
        if name in self.module.imported and self.module.imported[name][0] not in self.module.modules:
            module, there = self.module.imported[name]
            return f"$.{module.replace('.', '_')}.{there}"
        if self.is_global(name):
            return mangled(name)
        if name in _BUILTINS:
            return f"$.{name}_"
        raise Untranslatable(node, f"the name {name}")

    def fresh(self) -> str:
        self.temporary += 1
        return f"$${self.temporary}"

    # Truth

    def test(self, node: ast.expr) -> str:
        """A condition, as true or false."""
        if isinstance(node, ast.BoolOp):
            sign = " && " if isinstance(node.op, ast.And) else " || "
            return f"({sign.join(map(self.test, node.values))})"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return f"!{self.test(node.operand)}"
        text = self.value(node)
        if isinstance(node, ast.Compare) or self.is_truth(node):
            return text
        return f"$.truth({text})"

    @staticmethod
    def is_truth(node: ast.expr) -> bool:
        if isinstance(node, ast.Constant):
            return isinstance(node.value, bool)
        called = node.func if isinstance(node, ast.Call) else None
        return (isinstance(called, ast.Name) and called.id in ("isinstance", "any", "all", "bool", "callable")) or (
            isinstance(called, ast.Attribute)
            and called.attr in ("startswith", "endswith", "isprintable", "isascii", "isdigit")
        )

    # Values

    def value(self, node: ast.expr) -> str:
        handler = getattr(self, f"_{type(node).__name__.lower()}", None)
        if handler is None:
            raise Untranslatable(node)
        return handler(node)

    def values(self, nodes: list[ast.expr]) -> str:
        return ", ".join(map(self.value, nodes))

    def _starred(self, node: ast.Starred) -> str:
        return f"...$.iter({self.value(node.value)})"

    def _constant(self, node: ast.Constant) -> str:
        value = node.value
        if value is None:
            return "null"
        if value is ...:
            return "$.Ellipsis"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str):
            return json.dumps(value)
        if isinstance(value, int):
            return f"{value}n" if abs(value) > _LARGEST else str(value)
        if isinstance(value, float):
            return repr(value)
        if isinstance(value, bytes):
            return f"$.bytes_of({json.dumps(list(value))})"
        raise Untranslatable(node)

    def _joinedstr(self, node: ast.JoinedStr) -> str:
        parts: list[str] = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                parts.append(json.dumps(part.value)[1:-1].replace("`", "\\`").replace("${", "\\${").replace('\\"', '"'))
            else:
                parts.append("${" + self.value(part) + "}")
        return f"`{''.join(parts)}`"

    def _formattedvalue(self, node: ast.FormattedValue) -> str:
        text = self.value(node.value)
        if node.conversion == ord("r"):
            text = f"$.repr_({text})"
        if node.format_spec is not None:
            return f"$.format_({text}, {self.value(node.format_spec)})"
        return f"$.str_({text})"

    def _name(self, node: ast.Name) -> str:
        return self.name(node)

    def _attribute(self, node: ast.Attribute) -> str:
        value = node.value
        if isinstance(value, ast.Name) and not self.is_local(value.id):
            alias = self.module.aliases.get(value.id)
            if alias is not None and alias not in self.module.modules:
                return f"$.{alias.replace('.', '_')}.{node.attr}"
            known = self.module.resolve_class(value.id)
            if (
                known is not None
                and any(node.attr in each.methods for each in known.ancestors())
                and not self._is_static(known, node.attr)
            ):
                return f"$.unbound({mangled(value.id)}, {json.dumps(node.attr)})"
            if alias is not None:
                return f"{mangled(value.id)}.{mangled(node.attr)}"
        if node.attr in _OF_OBJECTS:
            return f"$.{_OF_OBJECTS[node.attr]}({self.value(value)})"
        if self._may_be_bound(node.attr):
            return f"$.bound({self.value(value)}, {json.dumps(node.attr)})"
        return f"{self.value(value)}.{node.attr}"

    @staticmethod
    def _is_static(known: object, name: str) -> bool:
        for each in known.ancestors():  # type: ignore[attr-defined]
            for item in each.node.body:
                if isinstance(item, ast.FunctionDef) and item.name == name:
                    return any(ast.unparse(mark) in ("classmethod", "staticmethod") for mark in item.decorator_list)
        return False

    def _may_be_bound(self, name: str) -> bool:
        """Whether an attribute of that name may be a method, which keeps its object where it is not called at once."""
        if name in METHODS:
            return True
        return any(
            isinstance(item, ast.FunctionDef)
            and item.name == name
            and not any("property" in ast.unparse(mark) for mark in item.decorator_list)
            for module in self.module.modules.values()
            for known in module.classes.values()
            for item in known.node.body
        )

    def _subscript(self, node: ast.Subscript) -> str:
        if isinstance(node.value, ast.Name) and node.value.id == "Literal":
            return f"$.T({self.values(node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice])})"
        value = self.value(node.value)
        if isinstance(node.slice, ast.Slice):
            parts = [node.slice.lower, node.slice.upper, node.slice.step]
            return f"$.slice({value}, {', '.join('null' if part is None else self.value(part) for part in parts)})"
        return f"$.at({value}, {self.value(node.slice)})"

    def _tuple(self, node: ast.Tuple) -> str:
        return f"$.T({self.values(node.elts)})"

    def _list(self, node: ast.List) -> str:
        return f"[{self.values(node.elts)}]"

    def _set(self, node: ast.Set) -> str:
        return f"$.set_([{self.values(node.elts)}])"

    def _dict(self, node: ast.Dict) -> str:
        entries = [
            f"...$.methods.items({self.value(value)})" if key is None else f"[{self.value(key)}, {self.value(value)}]"
            for key, value in zip(node.keys, node.values, strict=True)
        ]
        return f"$.dict_([{', '.join(entries)}])"

    # Operators

    def _boolop(self, node: ast.BoolOp) -> str:
        if all(isinstance(value, ast.Compare) or self.is_truth(value) for value in node.values):
            return self.test(node)
        *before, last = node.values
        text = self.value(last)
        for value in reversed(before):
            name = self.fresh()
            self.scopes_declare(name)
            first = f"$.truth({name} = {self.value(value)})"
            text = f"({first} ? {text} : {name})" if isinstance(node.op, ast.And) else f"({first} ? {name} : {text})"
        return text

    def scopes_declare(self, name: str) -> None:
        """A variable of the translation's own, declared where the function begins."""
        self.pending[-1].append(name)

    def _unaryop(self, node: ast.UnaryOp) -> str:
        if isinstance(node.op, ast.Not):
            return f"!{self.test(node.operand)}"
        sign = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}[type(node.op)]
        return f"({sign}{self.value(node.operand)})"

    def _binop(self, node: ast.BinOp) -> str:
        folded = self._folded(node)
        if folded is not None:
            return self._constant(ast.Constant(folded))
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.op, (ast.Add, ast.Sub)) and (_is_number(node.right) or _is_number(node.left)):
            sign = "+" if isinstance(node.op, ast.Add) else "-"
            if _is_length(node.left) or _is_length(node.right):
                return f"({left} {sign} {right})"
        return f"$.{_OPERATORS[type(node.op)]}({left}, {right})"

    @staticmethod
    def _folded(node: ast.expr) -> int | None:
        if not all(isinstance(part, (ast.BinOp, ast.Constant, ast.operator)) for part in ast.walk(node)):
            return None
        if not all(isinstance(part.value, int) for part in ast.walk(node) if isinstance(part, ast.Constant)):
            return None
        found = eval(compile(ast.Expression(node), "", "eval"))
        return found if isinstance(found, int) else None

    def _compare(self, node: ast.Compare) -> str:
        parts, left = [], node.left
        simple = len(node.ops) == 1
        text = self.value(left)
        for operator, right in zip(node.ops, node.comparators, strict=True):
            other = self.value(right)
            if not simple and right is not node.comparators[-1] and not isinstance(right, (ast.Name, ast.Constant)):
                name = self.fresh()
                self.scopes_declare(name)
                parts.append(self._compared(left, text, operator, right, f"({name} = {other})"))
                other = name
            else:
                parts.append(self._compared(left, text, operator, right, other))
            left, text = right, other
        return f"({' && '.join(parts)})"

    def _compared(self, left: ast.expr, text: str, operator: ast.cmpop, right: ast.expr, other: str) -> str:
        if isinstance(operator, (ast.Is, ast.IsNot)):
            is_none = isinstance(right, ast.Constant) and right.value is None
            return f"{text} {'=' if isinstance(operator, ast.Is) else '!'}={'' if is_none else '='} {other}"
        if isinstance(operator, (ast.In, ast.NotIn)):
            return f"{'!' if isinstance(operator, ast.NotIn) else ''}$.has({other}, {text})"
        if isinstance(operator, (ast.Eq, ast.NotEq)):
            no = "!" if isinstance(operator, ast.NotEq) else ""
            if any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in (left, right)):
                return f"{text} {no or '='}== {other}"
            return f"{no}$.eq({text}, {other})"
        if any(_is_number(side) or _is_length(side) for side in (left, right)):
            return f"{text} {_SIGNS[type(operator)]} {other}"
        return f"$.{_ORDER[type(operator)]}({text}, {other})"

    def _ifexp(self, node: ast.IfExp) -> str:
        return f"({self.test(node.test)} ? {self.value(node.body)} : {self.value(node.orelse)})"

    def _namedexpr(self, node: ast.NamedExpr) -> str:
        return f"({mangled(node.target.id)} = {self.value(node.value)})"

    # Functions and comprehensions

    def _lambda(self, node: ast.Lambda) -> str:
        with self.scope(set(parameters(node.args))):
            self.pending.append([])
            body = self.value(node.body)
            own = self.pending.pop()
            head = f"({self.parameters(node.args)}) =>"
            return f"{head} {{ let {', '.join(own)}; return {body}; }}" if own else f"{head} ({body})"

    def parameters(self, arguments: ast.arguments, *, skip: int = 0) -> str:
        """The parameters of a function as JavaScript declares them."""
        named = [*arguments.posonlyargs, *arguments.args]
        defaults: dict[str, ast.expr] = dict(
            zip([item.arg for item in named][len(named) - len(arguments.defaults) :], arguments.defaults, strict=True)
        )
        for item, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if default is not None:
                defaults[item.arg] = default
        texts = [
            f"{mangled(item.arg)} = {self.value(defaults[item.arg])}" if item.arg in defaults else mangled(item.arg)
            for item in [*named, *arguments.kwonlyargs][skip:]
        ]
        if arguments.kwarg:
            texts.append(f"{mangled(arguments.kwarg.arg)} = $.dict_()")
        if arguments.vararg:
            texts.append(f"...{mangled(arguments.vararg.arg)}")
        return ", ".join(texts)

    def _looped(self, generators: list[ast.comprehension], element: object, wrap: str) -> str:
        """A comprehension; `element` makes what stands innermost once the names of the loops are known."""
        loops: list[tuple[str, list[str], str]] = []
        pushed = 0
        for generator in generators:
            iterated = self.iterated(generator.iter)
            names = {part.id for part in ast.walk(generator.target) if isinstance(part, ast.Name)}
            self.scopes.append(names)
            pushed += 1
            loops.append((self.target(generator.target), [self.test(each) for each in generator.ifs], iterated))
        text = element()  # type: ignore[operator]
        for _ in range(pushed):
            self.scopes.pop()
        for loop, conditions, iterated in reversed(loops):
            condition = f"if ({' && '.join(conditions)}) " if conditions else ""
            text = f"for (const {loop} of {iterated}) {{ {condition}{text} }}"
        return wrap.replace("%", text)

    def iterated(self, node: ast.expr) -> str:
        return f"$.iter({self.value(node)})"

    def target(self, node: ast.expr) -> str:
        """What a loop assigns to."""
        if isinstance(node, ast.Name):
            return mangled(node.id)
        if isinstance(node, (ast.Tuple, ast.List)):
            return f"[{', '.join(map(self.target, node.elts))}]"
        if isinstance(node, ast.Starred):
            return f"...{self.target(node.value)}"
        if isinstance(node, ast.Attribute):
            return f"{self.value(node.value)}.{node.attr}"
        raise Untranslatable(node)

    def _listcomp(self, node: ast.ListComp) -> str:
        return self._looped(
            node.generators, lambda: f"$r.push({self.value(node.elt)});", "(() => { const $r = []; % return $r; })()"
        )

    def _setcomp(self, node: ast.SetComp) -> str:
        return self._looped(
            node.generators,
            lambda: f"$r.add({self.value(node.elt)});",
            "(() => { const $r = $.set_(); % return $r; })()",
        )

    def _dictcomp(self, node: ast.DictComp) -> str:
        def element() -> str:
            return f"$r.set({self.value(node.key)}, {self.value(node.value)});"

        return self._looped(node.generators, element, "(() => { const $r = $.dict_(); % return $r; })()")

    def _generatorexp(self, node: ast.GeneratorExp) -> str:
        return self._looped(
            node.generators, lambda: f"yield {self.value(node.elt)};", "$.generated(function* () { % })"
        )

    def _yield(self, node: ast.Yield) -> str:
        return f"yield {'null' if node.value is None else self.value(node.value)}"

    def _yieldfrom(self, node: ast.YieldFrom) -> str:
        return f"yield* $.iter({self.value(node.value)})"

    def own_names(self, arguments: ast.arguments, body: list[ast.stmt]) -> tuple[list[str], bool]:
        """The variables that a function declares, and whether it is a generator."""
        given = set(parameters(arguments))
        return [name for name in assigned(body) if name not in given], is_generator(body)


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool)


def _is_length(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"
