"""Binding: a call's arguments, named or positional, made into one validated dict.

The same code on every path: a script's call, a direct call by a model, a call over MCP or HTTP.

    {"a": 1}            named arguments; integer keys stand for positions, so {1: 5, "b": 6} works too
    [1, 2]              positional arguments, which fill the parameters as the signature shows them:
                        required ones first, each group in the order of the schema
    [{...}]             one table: named arguments, unless the first parameter accepts an object, no key of the
                        table is (or looks like) a parameter's name, and so only a positional reading makes sense
    [[...]]             one array: the first parameter's value if that accepts an array, else positional arguments
    [] or {} or None    no arguments
    [{}] or [[]]        one empty table: the first parameter's value if that one is required and accepts an array
                        or an object, else no arguments

Defaults are filled in afterwards, then values are coerced (see `coercion`) and validated.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from moonbox.errors import ArgumentError, ToolDefinitionError
from moonbox.tools.coercion import Coerce, compile_coercion
from moonbox.tools.naming import nearest
from moonbox.tools.problems import find_problems, short, stand_in
from moonbox.tools.shape import NARRATION, Document, accepts
from moonbox.tools.signature import parameter_list

if TYPE_CHECKING:
    import jsonschema_rs

__all__ = ["Binder"]


class Binder:
    """Everything about a tool's parameters that is worked out once and used for every call."""

    def __init__(self, parameters: dict[str, Any]) -> None:
        self.parameters = parameters
        self.document = Document(_closed(parameters))
        self._small: dict[tuple[str, int], jsonschema_rs.Validator | None] = {}

    def bind(self, arguments: Any, tool: str, first_index: int = 0) -> dict[str, Any]:
        """A dict with defaults filled in that fits the schema; raises ArgumentError with every problem."""
        try:
            return self._bind(arguments, tool, first_index)
        except RecursionError:
            raise self.error(["the arguments are nested too deeply"], tool) from None

    def named(self, arguments: Any, tool: str) -> Any:
        """The arguments by the names of their parameters, valid or not; as they came where they cannot be named."""
        try:
            return self._name(arguments, tool)
        except ArgumentError:
            return arguments

    def _bind(self, arguments: Any, tool: str, first_index: int) -> dict[str, Any]:
        if type(arguments) is dict and arguments:
            named = arguments
            for name in named:
                if type(name) is int:
                    named = self._place(arguments, tool)
                    break
        else:
            named = self._name(arguments, tool)
        coerce = self._coerce
        changed = coerce(named) if coerce is not None else named
        bound = self._filled(dict(changed) if changed is arguments else changed)
        try:
            if self.validator.is_valid(bound):
                return bound
            # Coercion guesses at the branch of a union that was meant; what fits as it came is taken as it came.
            if changed is not named and self.validator.is_valid(given := self._filled(dict(named))):
                return given
        except (ValueError, TypeError):  # a value that JSON has no word for: looked at below
            pass
        return self._explain(bound, tool, first_index)

    def _filled(self, bound: dict[str, Any]) -> dict[str, Any]:
        for name, default, is_plain in self._defaults:
            if name not in bound:
                bound[name] = default if is_plain else copy.deepcopy(default)
        return bound

    def check(self) -> None:
        """Raise ToolDefinitionError if the schema is not one that can be validated against, or not in sane time."""
        try:
            effort = self.document.effort()
        except RecursionError:
            raise ToolDefinitionError("parameters has references that lead too far") from None
        if effort > _MOST_EFFORT:
            raise ToolDefinitionError("parameters nests alternatives within alternatives too often to be validated")
        _ = self.validator, self._coerce, self._defaults

    def error(self, problems: list[str], tool: str) -> ArgumentError:
        """The error that lists these problems and the valid parameters."""
        lines = "\n".join(f"- {problem}" for problem in problems)
        listed = parameter_list(self.document)
        valid = f"valid parameters: {listed}" if listed else "it takes no parameters"
        return ArgumentError(f"invalid arguments for {tool}:\n{lines}\n{valid}", tool=tool)

    @cached_property
    def order(self) -> tuple[str, ...]:
        return self.document.positional_order()

    @cached_property
    def validator(self) -> jsonschema_rs.Validator:
        import jsonschema_rs

        try:
            return jsonschema_rs.validator_for(self.document.root, validate_formats=False, retriever=_refuse)
        except jsonschema_rs.ValidationError as error:
            where = "".join(f"[{part!r}]" for part in error.instance_path)
            raise ToolDefinitionError(f"parameters{where} is not a valid JSON Schema: {error.message}") from None
        except (jsonschema_rs.ReferencingError, ValueError, TypeError) as error:
            raise ToolDefinitionError(f"parameters is not a valid JSON Schema: {error}") from None

    @cached_property
    def _coerce(self) -> Coerce | None:
        return compile_coercion(self.document)

    @cached_property
    def _defaults(self) -> tuple[tuple[str, Any, bool], ...]:
        document = self.document
        found = []
        for name, part in document.properties(document.root).items():
            schema = document.deref(part)
            if isinstance(schema, dict) and "default" in schema:
                default = schema["default"]
                if self._is_valid_default(schema, default):
                    found.append((name, default, not isinstance(default, list | dict)))
            elif (
                name == NARRATION
                and name in document.required(document.root)
                and accepts(document.kinds(part), "string")
            ):
                found.append((name, "", True))  # scripts are not shown it, so they cannot be asked for it
        return tuple(found)

    def _name(self, arguments: Any, tool: str) -> dict[str, Any]:
        """Named arguments from whatever came."""
        if arguments is None:
            return {}
        if isinstance(arguments, Mapping):
            return self._place(dict(arguments), tool)
        if not isinstance(arguments, list | tuple):
            raise self.error([f"expected named arguments or an array of them, got {short(arguments)}"], tool)
        values = list(arguments)
        if len(values) == 1 and isinstance(values[0], list | dict):
            table = values[0]
            if not table:
                return {self.order[0]: table} if self._needs_table_first() else {}
            if isinstance(table, dict):
                return {self.order[0]: table} if self._means_first(table) else self._place(table, tool)
            if not self.order or not accepts(self._first_kinds(), "array"):
                values = table
        return self._place(dict(enumerate(values, 1)), tool)

    def _place(self, table: dict[Any, Any], tool: str) -> dict[str, Any]:
        """Integer keys, counted from 1, replaced by the names of the parameters in those positions."""
        named = {str(name): value for name, value in table.items() if not isinstance(name, int)}
        positions = sorted(name for name in table if isinstance(name, int))
        if positions and positions[-1] > len(self.order):
            takes = (
                "takes no arguments" if not self.order else f"takes at most {len(self.order)} ({', '.join(self.order)})"
            )
            raise self.error([f"got {len(positions)} positional arguments; {tool} {takes}"], tool)
        for position in positions:
            name = self.order[position - 1] if position >= 1 else str(position)
            if name in named:
                raise self.error([f"{name}: given twice, by name and as positional argument {position}"], tool)
            named[name] = table[position]
        return named

    def _means_first(self, table: dict[Any, Any]) -> bool:
        """Whether one table is the first parameter's value rather than the named arguments."""
        if not self.order or not accepts(self._first_kinds(), "object"):
            return False
        names = [name for name in table if isinstance(name, str)]
        if not names:
            return "array" not in (self._first_kinds() or ())
        known = [name for name in names if name in self.order]
        if known:
            must = self.document.required(self.document.root)
            return len(known) < len(names) and not all(name in table for name in must)
        return not any(nearest(name, self.order, 1) for name in names)

    def _first_kinds(self) -> frozenset[str] | None:
        if not self.order:
            return frozenset()
        return self.document.kinds(self.document.properties(self.document.root)[self.order[0]])

    def _needs_table_first(self) -> bool:
        first = self._first_kinds()
        takes = first is not None and bool(first & {"array", "object"})
        return takes and self.order[0] in self.document.required(self.document.root)

    def _explain(self, bound: dict[str, Any], tool: str, first_index: int) -> dict[str, Any]:
        problems = find_problems(self.document, bound, self._fits, first_index=first_index)
        if problems:
            raise self.error(problems, tool)
        if self.validator.is_valid(stand_in(bound)):
            return bound
        raise self.error([self._unexplained(bound)], tool)

    def _unexplained(self, bound: dict[str, Any]) -> str:
        """For the rarer keywords (`not`, `if`, `contains`): which of them is not satisfied."""
        for keyword, rule in self.document.root.items():
            if keyword not in {"properties", "additionalProperties"} and not self._fits({keyword: rule}, bound):
                return f"the arguments together do not satisfy {keyword!r}: {short(rule, 200)}"
        return "the arguments do not fit the schema"

    def _fits(self, rule: dict[str, Any], value: Any) -> bool:
        """Whether a value fits one keyword of a schema; True where that cannot be said."""
        ((keyword, inner),) = rule.items()
        key = (keyword, id(inner))  # the rules are parts of the document, so they live as long as this does
        if key not in self._small:
            self._small[key] = self._compile(rule)
        validator = self._small[key]
        try:
            return validator is None or bool(validator.is_valid(stand_in(value)))
        except (ValueError, TypeError):
            return True

    def _compile(self, rule: dict[str, Any]) -> jsonschema_rs.Validator | None:
        """A validator for a part of the document; None where it refers to what only the whole has."""
        import jsonschema_rs

        root = self.document.root
        shared = {name: root[name] for name in ("$schema", "$defs", "definitions") if name in root}
        try:
            return jsonschema_rs.validator_for({**shared, **rule}, validate_formats=False, retriever=_refuse)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError):
            return None

    def _is_valid_default(self, schema: dict[str, Any], default: Any) -> bool:
        """Servers send defaults that their own schema refuses; those are not filled in."""
        validator = self._compile(schema)
        return validator is None or bool(validator.is_valid(default))


def _closed(parameters: dict[str, Any]) -> dict[str, Any]:
    """The schema with unknown parameters refused, where it names its parameters and does not say otherwise."""
    if "properties" not in parameters or _OPENING & parameters.keys():
        return parameters
    return {**parameters, "additionalProperties": False}


_OPENING = frozenset(
    {
        "$dynamicRef",
        "$ref",
        "additionalProperties",
        "allOf",
        "anyOf",
        "dependentSchemas",
        "if",
        "oneOf",
        "patternProperties",
        "unevaluatedProperties",
    }
)


_MOST_EFFORT = 1_000_000  # looks at one value: about 10 ms


def _refuse(uri: str) -> Any:
    """A schema never makes the host fetch or open anything."""
    raise LookupError("schemas are not fetched; put it under $defs")
