"""Calls: their keyword arguments by position, and what is made by a class."""

from __future__ import annotations

import ast
import json

from translate.expressions import METHODS, Expressions
from translate.scopes import mangled
from translate.signatures import Class, Signature, Untranslatable


class Calls(Expressions):
    """Translates calls."""

    def _call(self, node: ast.Call) -> str:
        function = node.func
        is_type = isinstance(function, ast.Subscript) and ast.unparse(function.value) in (
            "list",
            "dict",
            "set",
            "tuple",
        )
        if isinstance(function, ast.Subscript) and is_type:  # `list[int]()`
            function = function.value
        if isinstance(function, ast.Name):
            return self._named_call(node, function)
        if isinstance(function, ast.Attribute):
            return self._attribute_call(node, function)
        return f"{self.value(function)}({self.values(node.args)})"

    def _named_call(self, node: ast.Call, function: ast.Name) -> str:
        name = function.id
        if self.is_local(name):
            if name == "cls":
                return self._made(self.module.classes[self.class_name], "this", node)
            if node.keywords:
                raise Untranslatable(node, "a call by keyword of a value")
            return f"{mangled(name)}({self.values(node.args)})"
        known = self.module.resolve_class(name)
        if known is not None:
            return self._made(known, mangled(name), node)
        signature = self.module.resolve_function(name)
        if signature is not None:
            return f"{mangled(name)}({self.given(signature, node)})"
        if name in ("cast",):
            return self.value(node.args[1])
        if name == "super":
            return "super"
        if name == "isinstance":
            return f"$.isinstance({self.value(node.args[0])}, {self._types(node.args[1])})"
        if name == "partial":
            return self._partial(node)
        return f"{self.name(function)}({self.loose(node)})"

    def _types(self, node: ast.expr) -> str:
        """The types of `isinstance`: one, or `A | B`, or a tuple."""
        if isinstance(node, ast.BinOp):
            return f"[{self._types(node.left)}, {self._types(node.right)}]"
        return self.value(node)

    def _partial(self, node: ast.Call) -> str:
        """`partial(function, first, name=value)`: the function with these arguments, whatever comes between."""
        function, given = node.args[0], node.args[1:]
        if not node.keywords:
            return f"$.functools.partial({self.values(node.args)})"
        signature = self.module.resolve_function(function.id) if isinstance(function, ast.Name) else None
        if signature is None:
            raise Untranslatable(node, "partial of an unknown function")
        set_here = {item.arg: item.value for item in node.keywords}
        open_names = [name for name in signature.names[len(given) :] if name not in set_here]
        values = [self.value(each) for each in given]
        values += [
            self.value(set_here[name]) if name in set_here else f"${name}" for name in signature.names[len(given) :]
        ]
        return f"({', '.join(f'${name}' for name in open_names)}) => {self.value(function)}({', '.join(values)})"

    def _attribute_call(self, node: ast.Call, function: ast.Attribute) -> str:
        value, name = function.value, function.attr
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super":
            return self._super(node, name)
        if isinstance(value, ast.Name) and not self.is_local(value.id):
            alias = self.module.aliases.get(value.id)
            if alias in self.module.modules:
                return self._module_call(node, value.id, alias, name)
            if alias is not None:
                return f"$.{alias.replace('.', '_')}.{name}({self.loose(node)})"
            known = self.module.resolve_class(value.id)
            if known is not None:
                return self._class_call(node, known, mangled(value.id), name)
            if value.id in (
                "str",
                "dict",
                "float",
                "int",
                "frozenset",
                "bytes",
                "tuple",
                "list",
            ) and not self.is_global(value.id):
                return f"$.types.{value.id}_{name}({self.loose(node)})"
        if name in METHODS:
            own = (
                self._signature_of_method(name, node)
                if node.keywords and name not in ("sort", "pop", "get", "split", "rsplit", "format")
                else None
            )
            given = self.given(own, node) if own is not None else self.loose(node)
            return f"$.methods.{name}({self.value(value)}{', ' if given else ''}{given})"
        signature = self._signature_of_method(name, node)
        if signature is None and (node.keywords):
            if name == "_replace":
                return f"{self.value(value)}._replace({self._options(node)})"
            raise Untranslatable(node, "keywords of an unknown method")
        given = self.values(node.args) if signature is None else self.given(signature, node)
        return f"{self.value(value)}.{name}({given})"

    def _super(self, node: ast.Call, name: str) -> str:
        known = self.module.classes[self.class_name]
        if name == "__init__":
            above = next((each for each in known.ancestors()[1:] if "__init__" in each.methods or each.record), None)
            if above is None:
                return f"super({self.values(node.args)})"
            assert above.constructor is not None
            return f"super({self.given(above.constructor, node)})"
        return f"super.{name}({self.values(node.args)})"

    def _module_call(self, node: ast.Call, alias: str, module: str, name: str) -> str:
        there = self.module.modules[module]
        known = there.resolve_class(name)
        if known is not None:
            return self._made(known, f"{mangled(alias)}.{name}", node)
        signature = there.resolve_function(name)
        if signature is None:
            raise Untranslatable(node, f"{module} has no function {name}")
        return f"{mangled(alias)}.{mangled(name)}({self.given(signature, node)})"

    def _class_call(self, node: ast.Call, known: Class, written: str, name: str) -> str:
        signature = next((each.methods[name] for each in known.ancestors() if name in each.methods), None)
        if signature is None:
            raise Untranslatable(node, f"{known.name} has no {name}")
        if self._is_static(known, name):
            return f"{written}.{name}({self.given(signature, node)})"
        first, *others = node.args
        inner = ast.Call(node.func, others, node.keywords)
        return f"{written}.prototype.{name}.call({self.value(first)}, {self.given(signature, inner)})"

    def _made(self, known: Class, written: str, node: ast.Call) -> str:
        if isinstance(node.func, ast.Name) and node.func.id == "cls":
            return f"new this({self.given(known.constructor or Signature([]), node)})"
        signature = known.constructor
        return f"new {written}({self.values(node.args) if signature is None else self.given(signature, node)})"

    def _signature_of_method(self, name: str, node: ast.Call) -> Signature | None:
        """The signature that all methods of that name have, as far as the call depends on it."""
        found = [
            known.methods[name]
            for module in self.module.modules.values()
            for known in module.classes.values()
            if name in known.methods
        ]
        # What is written here is meant here first.
        if self.class_name:
            own = [
                each.methods[name] for each in self.module.classes[self.class_name].ancestors() if name in each.methods
            ]
            on_self = (
                isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "self"
            )
            if own and on_self:
                return own[0]
        if not found:
            return None
        keywords = {item.arg for item in node.keywords}
        if not keywords and not any(each.keywords or each.rest for each in found):
            return found[0] if len(found) == 1 else None
        spread = any(item.arg is None for item in node.keywords) or any(
            isinstance(item, ast.Starred) for item in node.args
        )
        named = {item.arg for item in node.keywords if item.arg is not None}
        fitting = [
            each
            for each in found
            if (each.keywords or named <= set(each.names) if spread else each.takes(len(node.args), named))
        ]
        if spread and len(fitting) > 1:  # `**texts` fills what is open
            fitting = [each for each in found if each.keywords and len(node.args) == each.positional] or fitting
        written = {json.dumps([each.names, each.rest, each.keywords]) for each in fitting}
        if len(written) != 1:
            if not keywords:
                return None
            raise Untranslatable(node, f"{len(written)} methods are called {name}")
        return fitting[0]

    # Arguments

    def given(self, signature: Signature, node: ast.Call) -> str:
        """The arguments by position."""
        named = {item.arg: item.value for item in node.keywords if item.arg is not None}
        if not node.keywords and signature.keywords is None:
            return self.values(node.args)
        names = [name for name in signature.names if name != signature.keywords]
        spread = signature.keywords is None and any(item.arg is None for item in node.keywords)
        if (
            spread
            or len(node.args) > len(names)
            or any(isinstance(item, ast.Starred) for item in node.args[: len(names)])
        ):
            return self._starred_given(signature, names, named, node)
        values = [self.value(each) for each in node.args]
        values += [self.value(named.pop(name)) if name in named else "undefined" for name in names[len(values) :]]
        if signature.keywords is not None:
            values.append(self._collected(named, node))
        elif named:
            raise Untranslatable(node, f"there is no parameter {', '.join(named)}")
        while values and values[-1] == "undefined":
            values.pop()
        return ", ".join(values)

    def _starred_given(self, signature: Signature, names: list[str], named: dict[str, ast.expr], node: ast.Call) -> str:
        """`f(*pair, key=value)`: where the position of the keywords depends on how many there are."""
        missing = {name: self.value(value) for name, value in named.items() if name in names}
        rest = {name: value for name, value in named.items() if name not in names}
        if rest and signature.keywords is None:
            raise Untranslatable(node, f"there is no parameter {', '.join(rest)}")
        entries = [f"{name}: {value}" for name, value in missing.items()]
        if signature.keywords is None:
            entries += [f"...$.plain({self.value(item.value)})" for item in node.keywords if item.arg is None]
        elif rest or any(item.arg is None for item in node.keywords):
            entries.append(f"{signature.keywords}: {self._collected(rest, node)}")
        return f"...$.placed([{self.values(node.args)}], {json.dumps(signature.names)}, {{ {', '.join(entries)} }})"

    def _collected(self, named: dict[str, ast.expr], node: ast.Call) -> str:
        entries = [f"[{json.dumps(name)}, {self.value(value)}]" for name, value in named.items()]
        entries += [f"...$.methods.items({self.value(item.value)})" for item in node.keywords if item.arg is None]
        return f"$.dict_([{', '.join(entries)}])" if entries else "undefined"

    def loose(self, node: ast.Call) -> str:
        """The arguments of a function of src/python/, which takes its options as one object."""
        values = [self.value(each) for each in node.args]
        if node.keywords:
            values.append(f"new $.Options({self._options(node)})")
        return ", ".join(values)

    def _options(self, node: ast.Call) -> str:
        parts = [
            f"...$.plain({self.value(item.value)})" if item.arg is None else f"{item.arg}: {self.value(item.value)}"
            for item in node.keywords
        ]
        return f"{{ {', '.join(parts)} }}"
