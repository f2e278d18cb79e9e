"""Statements, functions, classes and whole modules."""

from __future__ import annotations

import ast
import json
import re
import textwrap

from translate.patterns import Patterns
from translate.scopes import assigned, is_generator, mangled, parameters
from translate.signatures import Class, Untranslatable

_SKIPPED_DECORATORS = frozenset({"overload", "override", "final"})
_TYPE_MAKERS = frozenset({"TypeVar", "ParamSpec", "NewType"})


class Statements(Patterns):
    """Translates statements."""

    def block(self, body: list[ast.stmt]) -> str:
        return "\n".join(text for statement in body if (text := self.statement(statement)))

    def indented(self, body: list[ast.stmt]) -> str:
        return "{\n" + textwrap.indent(self.block(body), "  ") + "\n}"

    def statement(self, node: ast.stmt) -> str:
        handler = getattr(self, f"_{type(node).__name__.lower()}_statement", None)
        if handler is None:
            raise Untranslatable(node)
        return handler(node)

    def _expr_statement(self, node: ast.Expr) -> str:
        return "" if isinstance(node.value, ast.Constant) else f"{self.value(node.value)};"

    def _pass_statement(self, node: ast.Pass) -> str:
        return ""

    def _assert_statement(self, node: ast.Assert) -> str:
        return ""

    def _import_statement(self, node: ast.Import) -> str:
        return ""

    _importfrom_statement = _import_statement
    _nonlocal_statement = _import_statement
    _global_statement = _import_statement

    def _break_statement(self, node: ast.Break) -> str:
        return "break;"

    def _continue_statement(self, node: ast.Continue) -> str:
        return "continue;"

    def _return_statement(self, node: ast.Return) -> str:
        return "return null;" if node.value is None else f"return {self.value(node.value)};"

    def _assign_statement(self, node: ast.Assign) -> str:
        value = self.value(node.value)
        if len(node.targets) == 1:
            return f"{self.assigned(node.targets[0], value)};"
        name = self.fresh()
        texts = [f"{self.assigned(target, name)};" for target in node.targets]
        return f"const {name} = {value};\n" + "\n".join(texts)

    def assigned(self, target: ast.expr, value: str) -> str:
        """An assignment, as an expression."""
        if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice):
            return f"$.splice({self.value(target.value)}, {self.bounds(target.slice)}, {value})"
        if isinstance(target, ast.Subscript):
            return f"$.set({self.value(target.value)}, {self.value(target.slice)}, {value})"
        if isinstance(target, (ast.Tuple, ast.List)):
            stars = [index for index, part in enumerate(target.elts) if isinstance(part, ast.Starred)]
            if stars and stars[0] < len(target.elts) - 1:
                value = f"$.unpacked({value}, {stars[0]}, {len(target.elts) - stars[0] - 1})"
                parts = [part.value if isinstance(part, ast.Starred) else part for part in target.elts]
                return f"[{', '.join(map(self.target, parts))}] = {value}"
            return f"{self.target(target)} = $.sequence({value})"
        return f"{self.target(target)} = {value}"

    def _annassign_statement(self, node: ast.AnnAssign) -> str:
        return "" if node.value is None else f"{self.assigned(node.target, self.value(node.value))};"

    def _augassign_statement(self, node: ast.AugAssign) -> str:
        target, value = node.target, self.value(node.value)
        operators = {
            ast.Add: "iadd",
            ast.Sub: "sub",
            ast.Mult: "mul",
            ast.BitOr: "ior",
            ast.FloorDiv: "floordiv",
            ast.Div: "div",
            ast.BitAnd: "and",
            ast.Mod: "mod",
        }
        name = operators[type(node.op)]
        if isinstance(target, ast.Subscript):
            where, key = self.value(target.value), self.value(target.slice)
            return f"$.set({where}, {key}, $.{name}($.at({where}, {key}), {value}));"
        written = self.target(target)
        return f"{written} = $.{name}({written}, {value});"

    def _delete_statement(self, node: ast.Delete) -> str:
        texts = []
        for target in node.targets:
            if not isinstance(target, ast.Subscript):
                raise Untranslatable(node)
            where = self.value(target.value)
            if isinstance(target.slice, ast.Slice):
                texts.append(f"$.splice({where}, {self.bounds(target.slice)});")
            else:
                texts.append(f"$.remove({where}, {self.value(target.slice)});")
        return "\n".join(texts)

    def bounds(self, node: ast.Slice) -> str:
        return ", ".join("null" if part is None else self.value(part) for part in (node.lower, node.upper))

    # Branches and loops

    def _if_statement(self, node: ast.If) -> str:
        if "TYPE_CHECKING" in ast.unparse(node.test):
            return ""
        text = f"if ({self.test(node.test)}) {self.indented(node.body)}"
        if node.orelse:
            is_chain = len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If)
            text += f" else {self.block(node.orelse) if is_chain else self.indented(node.orelse)}"
        return text

    def _for_statement(self, node: ast.For) -> str:
        return self._with_else(
            node, f"for ({self.target(node.target)} of {self.iterated(node.iter)}) {self.indented(node.body)}"
        )

    def _while_statement(self, node: ast.While) -> str:
        return self._with_else(node, f"while ({self.test(node.test)}) {self.indented(node.body)}")

    def _with_else(self, node: ast.For | ast.While, loop: str) -> str:
        if not node.orelse:
            return loop
        label = f"$else{self.fresh()[2:]}"
        body = loop.replace("break;", f"break {label};")
        return f"{label}: {{\n{body}\n{self.block(node.orelse)}\n}}"

    def _match_statement(self, node: ast.Match) -> str:
        subject = self.fresh()
        self.scopes_declare(subject)
        texts = []
        for case in node.cases:
            condition = self.pattern(case.pattern, subject)
            if case.guard is not None:
                condition = f"{condition} && {self.test(case.guard)}"
            texts.append(f"if ({condition}) {self.indented(case.body)}")
        value = node.subject
        text = f"$.T({self.values(value.elts)})" if isinstance(value, ast.Tuple) else self.value(value)
        return f"{subject} = {text};\n" + " else ".join(texts)

    # Errors

    def _raise_statement(self, node: ast.Raise) -> str:
        if node.exc is None:
            return "throw $error;"
        known = self.module.resolve_class(node.exc.id) if isinstance(node.exc, ast.Name) else None
        builtin = isinstance(node.exc, ast.Name) and not self.is_global(node.exc.id) and not self.is_local(node.exc.id)
        text = self.value(node.exc)
        return f"throw new {text}();" if known is not None or builtin else f"throw {text};"

    def _try_statement(self, node: ast.Try) -> str:
        done = ""
        body = self.block(node.body)
        if node.orelse:
            done = self.fresh()
            self.scopes_declare(done)
            body = f"{done} = false;\n{body}\n{done} = true;"
        text = "try {\n" + textwrap.indent(body, "  ") + "\n}"
        if node.handlers:
            parts = []
            for handler in node.handlers:
                named = f"{mangled(handler.name)} = $error;\n" if handler.name else ""
                condition = "true" if handler.type is None else f"$.caught($error, {self._types(handler.type)})"
                parts.append(f"if ({condition}) {{\n{textwrap.indent(named + self.block(handler.body), '  ')}\n}}")
            text += " catch ($error) {\n" + textwrap.indent(" else ".join(parts) + " else throw $error;", "  ") + "\n}"
        if node.finalbody:
            text += f" finally {self.indented(node.finalbody)}"
        return text + (f"\nif ({done}) {self.indented(node.orelse)}" if node.orelse else "")

    def _with_statement(self, node: ast.With) -> str:
        text = self.indented(node.body)
        for item in reversed(node.items):
            called = item.context_expr
            written = ast.unparse(called.func) if isinstance(called, ast.Call) else ""
            if written in ("suppress", "contextlib.suppress"):
                assert isinstance(called, ast.Call)
                kinds = self.values(called.args)
                text = f"try {text} catch ($error) {{ if (!$.caught($error, [{kinds}])) throw $error; }}"
                continue
            if item.optional_vars is not None:
                raise Untranslatable(node)
        return text

    # Functions

    def function(self, arguments: ast.arguments, body: list[ast.stmt], *, bound: bool = False, after: str = "") -> str:
        """Parameters and body of a function; `bound` ones call their first parameter `this`."""
        names = parameters(arguments)
        own = [name for name in assigned(body) if name not in names]
        with self.scope({*names, *own}):
            self.pending.append([])
            head = self.parameters(arguments, skip=int(bound))
            text = self.block(body)
            declared = [*map(mangled, own), *self.pending.pop()]
        lines = [f"let {', '.join(declared)};"] if declared else []
        if bound:
            first = [*arguments.posonlyargs, *arguments.args][0].arg
            own_object = f"const {mangled(first)} = this;"
            before, call, behind = text.partition("super(")
            if call and after == "constructor":
                called, _, rest = behind.partition(";\n") if ";\n" in behind else (behind[:-1], ";", "")
                text = f"{before}super({called};\n{own_object}\n{rest}"
            elif after == "extends":
                text = f"super();\n{own_object}\n{text}"
            else:
                lines.append(own_object)
        return f"({head}) {{\n" + textwrap.indent("\n".join([*lines, text]), "  ") + "\n}"

    def _functiondef_statement(self, node: ast.FunctionDef) -> str:
        marks = [ast.unparse(each) for each in node.decorator_list]
        if any(mark.rpartition(".")[2] in _SKIPPED_DECORATORS for mark in marks):
            return ""
        star = "*" if is_generator(node.body) else ""
        name = mangled(node.name)
        if self.scopes:  # a function in a function, which may use its `self`
            return f"{name} = function{star} {self.function(node.args, node.body)};"
        text = f"function{star} {name}{self.function(node.args, node.body)}"
        if any(mark.startswith(("cache", "lru_cache", "functools.cache")) for mark in marks):
            return f"export const {name} = $.functools.cache({text});"
        return f"export {text}"

    # Classes

    def _classdef_statement(self, node: ast.ClassDef) -> str:
        known = self.module.classes[node.name]
        self.class_name = node.name
        base = self._base(known)
        parts = []
        if known.record:
            parts.append(self._record(known))
        for item in node.body:
            if isinstance(item, ast.FunctionDef):
                parts.append(self._method(item, known, base))
            elif isinstance(item, (ast.Assign, ast.AnnAssign)) and not known.record:
                parts.append(self._class_value(item))
        self.class_name = ""
        body = "\n".join(part for part in parts if part)
        return f"export class {node.name}{f' extends {base}' if base else ''} {{\n{textwrap.indent(body, '  ')}\n}}"

    def _base(self, known: Class) -> str:
        for base in known.bases:
            if base in ("Struct", "msgspec.Struct", "object", "Protocol", "Generic", "ABC"):
                continue
            if base == "NamedTuple":
                return "$.Tuple"
            if self.module.resolve_class(base) is not None:
                return base
            return "String" if base == "str" else f"$.{base}_"
        return "$.Struct" if known.record else ""

    def _record(self, known: Class) -> str:
        fields = known.all_fields()
        given = ", ".join(
            mangled(name) if default is None else f"{mangled(name)} = {self._default(default)}"
            for name, default in fields
        )
        listed = f"static fields = {json.dumps([name for name, _ in fields])};"
        if not known.compared:
            listed += "\nstatic compared = false;"
        if known.record == "NamedTuple":
            sets = " ".join(f"this[{index}] = {mangled(name)};" for index, (name, _) in enumerate(fields))
            getters = "\n".join(f"get {name}() {{ return this[{index}]; }}" for index, (name, _) in enumerate(fields))
            return f"{listed}\nconstructor({given}) {{ super(); {sets} }}\n{getters}"
        sets = " ".join(f"this.{name} = {mangled(name)};" for name, _ in fields)
        ready = " this.__post_init__();" if any("__post_init__" in each.methods for each in known.ancestors()) else ""
        above = self.module.resolve_class(known.bases[0]) if known.bases else None
        inherited = (
            ", ".join(mangled(name) for name, _ in above.all_fields()) if above is not None and above.record else ""
        )
        return f"{listed}\nconstructor({given}) {{ super({inherited}); {sets}{ready} }}"

    def _default(self, node: ast.expr) -> str:
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "field":
            options = {item.arg: item.value for item in node.keywords}
            return (
                f"{self.value(options['default_factory'])}()"
                if "default_factory" in options
                else self.value(options["default"])
            )
        return self.value(node)

    def _class_value(self, node: ast.Assign | ast.AnnAssign) -> str:
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if node.value is None or not isinstance(target, ast.Name):
            return ""
        return f"static {{ this.{target.id} = this.prototype.{target.id} = {self.value(node.value)}; }}"

    def _method(self, node: ast.FunctionDef, known: Class, base: str) -> str:
        marks = [ast.unparse(each) for each in node.decorator_list]
        if any(mark.rpartition(".")[2] in _SKIPPED_DECORATORS for mark in marks):
            return ""
        star = "*" if is_generator(node.body) else ""
        if node.name == "__init__":
            calls_super = "super().__init__" in "\n".join(map(ast.unparse, node.body))
            after = "constructor" if calls_super else "extends" if base else ""
            return f"constructor{self.function(node.args, node.body, bound=True, after=after)}"
        if "property" in marks:
            return f"get {node.name}{self.function(node.args, node.body, bound=True)}"
        if any(mark.endswith("cached_property") for mark in marks):
            made = f"(function {self.function(node.args, node.body, bound=True)}).call(this)"
            own = json.dumps(f"${node.name}")
            keep = f"if (!Object.hasOwn(this, {own})) $.keep(this, {own}, {made});"
            return f"get {node.name}() {{\n  {keep}\n  return this[{own}];\n}}"
        if "staticmethod" in marks:
            return f"static {star}{node.name}{self.function(node.args, node.body)}"
        if marks and "classmethod" not in marks:
            return self._described(node, known)
        static = "static " if "classmethod" in marks else ""
        return f"{static}{star}{node.name}{self.function(node.args, node.body, bound=True)}"

    def _described(self, node: ast.FunctionDef, known: Class) -> str:
        """A method that a decorator of its module makes a descriptor of."""
        if len(node.decorator_list) != 1 or not isinstance(mark := node.decorator_list[0], ast.Name):
            raise Untranslatable(node, "a method with these decorators")
        made = f"new {mangled(mark.id)}" if self.module.resolve_class(mark.id) else mangled(mark.id)
        function = f"$.named({json.dumps(node.name)}, function {self.function(node.args, node.body)})"
        return f"static {{ $.described(this, {json.dumps(node.name)}, {made}({function})); }}"

    # Modules

    def whole(self, runtime: str, paths: dict[str, str]) -> str:
        """The module as a JavaScript module; `paths` are where other modules are."""
        self.module.names |= set(assigned(self.module.tree.body))
        defined = {*self.module.functions, *self.module.classes}
        values = [name for name in assigned(self.module.tree.body) if name not in defined]
        texts = [text for node in self.module.tree.body if not self._is_typing(node) and (text := self.statement(node))]
        imports = [f'import * as $ from "{runtime}";']
        used = set(re.findall(r"[\w$]+", "\n".join(texts)))
        for alias, module in self.module.aliases.items():
            if module in paths and mangled(alias) in used:
                imports.append(f'import * as {mangled(alias)} from "{paths[module]}";')
        for name, (module, there) in self.module.imported.items():
            if module in paths and mangled(name) in used and self.module.modules[module].exports(there):
                imports.append(f'import {{ {mangled(there)} as {mangled(name)} }} from "{paths[module]}";')
        declared = [f"export let {', '.join(map(mangled, values))};"] if values else []
        own = [f"let {', '.join(self.pending[0])};"] if self.pending[0] else []
        return "\n".join([*imports, *declared, *own, *texts]) + "\n"

    def _is_typing(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.AnnAssign) and "TypeAlias" in ast.unparse(node.annotation):
            return True
        made = node.value if isinstance(node, ast.Assign) else None
        if isinstance(made, ast.BinOp) and isinstance(made.op, ast.BitOr) and isinstance(made.left, ast.Subscript):
            made = made.left  # `frozenset[str] | None`
        first = next((part.id for part in ast.walk(made) if isinstance(part, ast.Name)), "") if made is not None else ""
        if isinstance(made, ast.Subscript) and first in ("tuple", "dict", "list", "frozenset"):
            return True
        if (
            first != "Literal"
            and not isinstance(made, ast.Call)
            and self.module.imported.get(first, ("",))[0]
            in (
                "typing",
                "collections.abc",
            )
        ):
            return True
        return (isinstance(made, ast.Call) and ast.unparse(made.func) in _TYPE_MAKERS) or (
            isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        )
