"""Binding: a call's arguments, named or positional, made into one validated dict.

The same code on every path: a script's call, a direct call by a model, a call over MCP or HTTP.

    {"a": 1}            named arguments; integer keys stand for positions, so {1: 5, "b": 6} works too
    [1, 2]              positional arguments, which fill the parameters as the signature shows them:
                        required ones first, each group in the order of the schema
    [{"a": 1}]          one table with names: always the named arguments; a key that is no parameter is an error
    [[1, 2]]            one array: the first parameter's value if that accepts an array, else positional arguments.
                        Callers that send JSON have no such shorthand: theirs are positional arguments
    [], {}, None, [{}]  no arguments: an empty table fills no parameter

Defaults are filled in afterwards, then values are coerced (see `coercion`) and validated. What is validated is what is
passed on; a value that cannot be validated is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from inspect import signature
from typing import TYPE_CHECKING, Any

from moonbox.errors import ArgumentError, ToolDefinitionError
from moonbox.languages.language import REST, UNKNOWN
from moonbox.schema.bounds import TooCostly
from moonbox.schema.closing import close
from moonbox.schema.coercion import OTHER_NAMES, Coerce, NotJson, compile_coercion, is_json, json_form, stand_in
from moonbox.schema.problems import find_problems, is_known, path_text, short
from moonbox.schema.tree import NARRATION, SchemaNode, accepts
from moonbox.schema.validation import Invalid, Validator
from moonbox.tools.signature import parameter_list
from moonbox.wording import counted

if TYPE_CHECKING:
    from moonbox.tools.schema import Converter

_UNCHANGED = frozenset({str, int, bool})
"""The types of values that coercion never changes."""


def named_by(order: Sequence[str], table: Mapping[Any, Any]) -> dict[Any, Any]:
    """Positions, counted from 1, replaced by names as far as these go and are not taken."""
    named: dict[Any, Any] = {}
    for key, value in table.items():
        position = key if isinstance(key, int) and not isinstance(key, bool) else 0
        name = order[position - 1] if 1 <= position <= len(order) else key
        named[key if name != key and name in table else name] = value
    return named


def named_arguments(function: Callable[..., Any], arguments: Sequence[Any]) -> dict[Any, Any]:
    """Positional arguments by the names of a function's parameters, as far as it has any."""
    declared = getattr(function, "parameters", None)
    try:
        names = [parameter.name for parameter in (declared or signature(function).parameters.values())]
    except (TypeError, ValueError, AttributeError):
        names = []
    return named_by(names, dict(enumerate(arguments, 1)))


class Binder:
    """Everything about a tool's parameters that is worked out once and used for every call.

    The `converter` of a function checks its own types after binding, on the very values that it gets: then a value that
    JSON cannot express is judged by them alone. `spread` is the parameter that takes all further values by position:
    `*args`.
    """

    def __init__(
        self, parameters: dict[str, Any], converter: Converter | None = None, spread: str | None = None
    ) -> None:
        self.parameters = parameters
        self.typed = converter is not None
        self._other_names = {} if converter is None else converter.other_names
        self._spread = spread

    def bind(self, arguments: Any, tool: str, first_index: int = 0, *, is_json_call: bool = False) -> dict[str, Any]:
        """A dict with defaults filled in that fits the schema; raises ArgumentError with every problem."""
        try:
            named = self._name(arguments, tool, is_json_call)
            coerce = None if _UNCHANGED.issuperset(map(type, named.values())) else self._coerce
            changed = coerce(named) if coerce is not None else named
            bound = self._filled(changed) if self._defaults else changed
            if self._is_valid(bound):
                return bound
            # Coercion guesses at the branch of a union that was meant; what fits as it came is taken as it came.
            if changed is not named and self._is_valid(given := self._filled(dict(named))):
                return given
            problems = self._problems(bound, first_index)
        except RecursionError:
            problems = ["the arguments are nested too deeply"]
        except TooCostly:
            problems = ["the arguments are too large to be validated"]
        raise self.error(problems, tool)

    def certain_problems(self, arguments: list[Any], tool: str, first_index: int = 0) -> list[str]:
        """The problems that arguments have whatever values take the places of UNKNOWN and REST."""
        try:
            if is_known(arguments):
                self.bind(arguments, tool, first_index)
                return []
            if len(arguments) == 1 and arguments[0] is UNKNOWN:
                return []  # a table of named arguments, or the first of them
            rest: dict[Any, Any] = {}
            if len(arguments) == 1 and isinstance(arguments[0], dict) and REST in arguments[0]:
                rest = {REST: UNKNOWN}
                arguments = [{name: value for name, value in arguments[0].items() if name is not REST}]
            named: dict[Any, Any] = self._name(arguments, tool)
            coerced = self._coerce(named) if self._coerce is not None else named
            filled = {**self._filled(dict(coerced)), **rest}
            return find_problems(self.accepted, filled, self.validator.fits, first_index=first_index)
        except ArgumentError as error:
            return [line[2:] for line in error.message.splitlines() if line.startswith("- ")]
        except (RecursionError, TooCostly):
            return []

    def named(self, arguments: Any, tool: str) -> Any:
        """The arguments by the names of their parameters, valid or not.

        What cannot be named, such as one argument too many, keeps its position as its key.
        """
        try:
            return self._name(arguments, tool)
        except ArgumentError:
            if isinstance(arguments, list | tuple):
                first = arguments[0] if len(arguments) == 1 else None
                alone = isinstance(first, dict) or (isinstance(first, list) and not self._takes_array_first)
                arguments = first if alone else arguments
            if isinstance(arguments, list | tuple):
                arguments = dict(enumerate(arguments, 1))
            return named_by(self.order, arguments) if isinstance(arguments, Mapping) else arguments

    def check(self) -> None:
        """Raise ToolDefinitionError if the schema is invalid, or would take too long to validate against."""
        try:
            self.validator.check()
        except TooCostly as problem:
            raise ToolDefinitionError(f"parameters cannot be validated: {problem}") from None
        except Invalid as problem:
            raise ToolDefinitionError(f"parameters{problem.where} is not a valid JSON Schema: {problem}") from None
        _ = self._coerce, self._defaults

    def error(self, problems: list[str], tool: str) -> ArgumentError:
        """The error that lists these problems and the valid parameters."""
        lines = "\n".join(f"- {problem}" for problem in problems)
        listed = parameter_list(self.accepted)
        valid = f"valid parameters: {listed}" if listed else "it takes no parameters"
        return ArgumentError(f"invalid arguments for {tool}:\n{lines}\n{valid}", tool=tool)

    @cached_property
    def accepted(self) -> SchemaNode:
        """The parameters' schema as it is judged: closed, and with all names of the fields of definitions."""
        closed = close(self.parameters)
        defined = closed.get("$defs") or {}
        named = {
            name: {**defined[name], OTHER_NAMES: names}
            for name, names in self._other_names.items()
            if isinstance(defined.get(name), dict)
        }
        return SchemaNode({**closed, "$defs": {**defined, **named}} if named else closed)

    @cached_property
    def order(self) -> tuple[str, ...]:
        return self.accepted.positional_order()

    @cached_property
    def validator(self) -> Validator:
        return Validator(self.accepted, own=self.typed)

    @cached_property
    def _coerce(self) -> Coerce | None:
        return compile_coercion(self.accepted)

    @cached_property
    def _defaults(self) -> tuple[tuple[str, Any, bool], ...]:
        defaults = []
        for name, part in self.accepted.fields.items():
            if "default" in part.says:
                default = part.says["default"]
                if self.validator.takes(part.says, default):  # servers send some that their own schema refuses
                    defaults.append((name, default, not isinstance(default, list | dict)))
            elif name == NARRATION and name in self.accepted.required and accepts(part.kinds, "string"):
                defaults.append((name, "", True))  # scripts are not shown it, so they cannot be asked for it
        return tuple(defaults)

    # Naming

    def _name(self, arguments: Any, tool: str, is_json_call: bool = False) -> dict[str, Any]:
        """Named arguments from whatever came."""
        if arguments is None:
            return {}
        if isinstance(arguments, list | tuple) and len(arguments) == 1 and isinstance(arguments[0], dict):
            arguments = arguments[0]
        if type(arguments) is dict or isinstance(arguments, Mapping):
            return dict(arguments) if set(map(type, arguments)) <= {str} else self._place(arguments, tool)
        if not isinstance(arguments, list | tuple):
            raise self.error([f"expected named arguments or an array of them, got {short(arguments)}"], tool)
        values: Sequence[Any] = arguments
        if len(values) == 1 and isinstance(values[0], list):
            if not values[0]:
                return {}
            if is_json_call or not self._takes_array_first:
                values = values[0]
        values = self.gathered(values)
        if len(values) <= len(self.order):
            return dict(zip(self.order, values, strict=False))
        return self._place(dict(enumerate(values, 1)), tool)

    def gathered(self, values: Sequence[Any]) -> Sequence[Any]:
        """Positional arguments with those for `*args` as one array, as which they may also be given."""
        at = len(values) if self._spread is None else self.order.index(self._spread)
        rest = values[at:]
        return values if not rest or (len(rest) == 1 and isinstance(rest[0], list)) else [*values[:at], list(rest)]

    def _place(self, table: Mapping[Any, Any], tool: str) -> dict[str, Any]:
        """Integer keys, counted from 1, replaced by the names of the parameters in those positions."""
        for name in table:
            if type(name) is not int and not isinstance(name, str):
                raise self.error([f"expected the name of a parameter, got {short(name)}"], tool)
        positions = sorted(name for name in table if type(name) is int)
        if positions and not 1 <= positions[0] <= positions[-1] <= len(self.order):
            takes = f"at most {len(self.order)} ({', '.join(self.order)})" if self.order else "no arguments"
            what = counted(len(positions), "positional argument")
            if positions != list(range(1, len(positions) + 1)):
                what = f"a table with the key {positions[-1] if positions[0] > 0 else positions[0]}"
            raise self.error([f"got {what}; {tool} takes {takes}"], tool)
        for position in positions:
            if (name := self.order[position - 1]) in table:
                raise self.error([f"{name}: given twice, by name and as positional argument {position}"], tool)
        return named_by(self.order, table)

    @cached_property
    def _takes_array_first(self) -> bool:
        return bool(self.order) and accepts(self.accepted.fields[self.order[0]].kinds, "array")

    # Validation

    def _filled(self, bound: dict[str, Any]) -> dict[str, Any]:
        for name, default, is_plain in self._defaults:
            if name not in bound:
                bound[name] = default if is_plain else deepcopy(default)
        return bound

    def _is_valid(self, bound: dict[str, Any]) -> bool:
        """Whether the validator accepts exactly this; what it cannot judge is not valid."""
        try:
            judged = bound if self.typed or is_json(bound) else json_form(bound, self.accepted)
            return bool(self.validator.is_valid(judged))
        except (NotJson, ValueError, TypeError):
            if not self.typed:
                return False
        try:  # the function's own types judge the values that JSON cannot express
            return not self._found(bound, 0) and bool(self.validator.is_valid(stand_in(bound)))
        except (ValueError, TypeError):
            return False

    def _problems(self, bound: dict[str, Any], first_index: int) -> list[str]:
        """Why the arguments are not valid, in words; never empty."""
        if problems := self._found(bound, first_index):
            return problems
        if not self.typed and not is_json(bound):
            try:
                json_form(bound, self.accepted)
            except NotJson as refused:
                return [f"{path_text(refused.path, first_index)}: {refused.reason}"]
        fits = self.validator.fits
        for keyword, rule in self.accepted.schema.items():  # the rarer keywords: `not`, `if`, `contains`
            if keyword not in {"properties", "additionalProperties"} and not fits({keyword: rule}, bound):
                return [f"the arguments together do not satisfy {keyword!r}: {short(rule, 200)}"]
        return ["the arguments do not fit the schema"]

    def _found(self, bound: dict[str, Any], first_index: int) -> list[str]:
        return find_problems(self.accepted, bound, self.validator.fits, first_index=first_index)
