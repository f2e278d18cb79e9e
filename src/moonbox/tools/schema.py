"""JSON Schema from type hints, and JSON values back into the types; uses pydantic, as `generator` does."""

from __future__ import annotations

import inspect
import json
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, Optional, Required, Union, get_args, get_origin

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError
from typing_extensions import TypedDict, Unpack, is_typeddict

from moonbox.errors import ToolDefinitionError
from moonbox.schema.coercion import OTHER_NAMES
from moonbox.schema.problems import MOST_PROBLEMS, path_text, short
from moonbox.schema.tree import with_parts
from moonbox.tools.function import EMPTY, InspectedFunction
from moonbox.tools.generator import Generator

if TYPE_CHECKING:
    from moonbox.tools.docstrings import Docstring

_MOST_COLLISIONS = 250_000_000
"""Comparisons, at worst, to build the sets and dicts of one call: about 0.2 s."""
_REST = "**"  # the field that carries what **kwargs takes; no Python parameter can have this name


@dataclass(frozen=True, slots=True)
class Converter:
    """Turns a validated dict into the Python values that a function's annotations ask for."""

    names: frozenset[str]
    """The keys that are parameters; the rest belongs to **kwargs."""
    validate: Callable[[Any], dict[str, Any]]
    validate_json: Callable[[str], dict[str, Any]]
    has_rest: bool
    hashed: frozenset[str] = frozenset()
    """The parameters whose values become sets, or dicts with keys that are not text."""
    other_names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By the name of a definition: the names that its fields have besides those in the schema, with the latter."""

    def convert(self, bound: dict[str, Any]) -> dict[str, Any]:
        """Python values by parameter name; raises pydantic's ValidationError, or ValueError."""
        if self.hashed:
            self._check_collisions(bound)
        if self.has_rest:
            bound = {name: value for name, value in bound.items() if name in self.names} | {
                _REST: {name: value for name, value in bound.items() if name not in self.names}
            }
        try:
            values = self.validate(bound)
        except ValidationError:
            values = self._from_json(bound)
        if self.has_rest:
            values.update(values.pop(_REST))
        return values

    def _check_collisions(self, bound: dict[str, Any]) -> None:
        """Refuse arrays and tables so large that building a set or dict of them could take very long.

        The hashes of numbers are no secret, so that numbers can be chosen to collide: then each costs a comparison with
        all the others. (Those of text are secret.)
        """
        for name in self.hashed & bound.keys():
            if sum(size * size for size in _sizes(bound[name])) > _MOST_COLLISIONS:
                raise ValueError(
                    f"{name}: too many items; sets and tables with integer keys take about 15,000 in one call"
                )

    def _from_json(self, bound: dict[str, Any]) -> dict[str, Any]:
        """Strict types take text for a date only from JSON, so what Python mode refused is tried that way."""
        try:
            return self.validate_json(json.dumps(bound, allow_nan=False))
        except (ValidationError, TypeError, ValueError):
            return self.validate(bound)


def build(function: InspectedFunction, doc: Docstring, name: str) -> tuple[dict[str, Any], Converter]:
    """The parameters' schema and the converter for a function."""
    fields: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    hidden = {item.name for item, _ in function.injected}
    for item in function.parameters:
        if item.name in hidden:
            continue
        if item.kind is inspect.Parameter.VAR_KEYWORD:
            fields.update(_rest_fields(item.annotation))
            continue
        annotation, default = _field(item, doc.parameters.get(item.name))
        optional = item.default is not EMPTY or item.kind is inspect.Parameter.VAR_POSITIONAL or default is not EMPTY
        fields[item.name] = NotRequired[annotation] if optional else annotation
        if default is not EMPTY:
            defaults[item.name] = default
    adapter = _adapter(fields, name)
    try:
        schema = _clean(adapter.json_schema(mode="validation", schema_generator=Generator))
    except PydanticUserError as error:
        raise ToolDefinitionError(f"tool {name!r}: a parameter's type has no JSON Schema: {error.message}") from None
    other_names = {name: part.pop(OTHER_NAMES) for name, part in schema.get("$defs", {}).items() if OTHER_NAMES in part}
    has_rest = _REST in fields
    rest = schema.get("properties", {}).pop(_REST, None)
    if rest is not None:
        schema["required"] = [item for item in schema["required"] if item != _REST]
    _put_defaults(schema, defaults, fields)
    parameters = {
        "type": "object",
        "properties": schema.get("properties", {}),
        **({"required": schema["required"]} if schema.get("required") else {}),
        "additionalProperties": rest.get("additionalProperties", True) if has_rest else False,
        **({"$defs": schema["$defs"]} if "$defs" in schema else {}),
    }
    validator = adapter.validator
    return parameters, Converter(
        frozenset(parameters["properties"]),
        validator.validate_python,
        validator.validate_json,
        has_rest,
        _hashed(adapter),
        other_names,
    )


def returned(annotation: Any) -> dict[str, Any] | None:
    """The result's schema; None where the annotation says nothing that a schema can say."""
    if annotation is EMPTY or isinstance(annotation, str) or annotation is Any:
        return None
    try:
        made = TypeAdapter(_accepted(annotation)).json_schema(mode="serialization", schema_generator=Generator)
    except (PydanticUserError, PydanticSerializationError, TypeError, NameError):
        return None  # the value may cross all the same: `values` knows more types than pydantic has schemas for
    named = {"title": made["title"]} if "properties" in made and "title" in made else {}  # other classes are in $defs
    return {**named, **_clean(made)} or None


def explain(error: ValueError, bound: dict[str, Any], first_index: int = 0) -> list[str]:
    """Pydantic's problems as lines like those of `problems`."""
    if not isinstance(error, ValidationError):
        return [str(error)]
    lines = []
    for item in error.errors(include_url=False, include_context=False)[: 10 * MOST_PROBLEMS]:
        path, value = _walk(tuple(part for part in item["loc"] if part != _REST), bound)
        message = item["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
        text = message[:1].lower() + message[1:] if message.startswith("Input ") else message
        lines.append(f"{path_text(path, first_index)}: {text}, got {short(value)}" if path else text)
    lines = list(dict.fromkeys(lines))
    return lines if len(lines) <= MOST_PROBLEMS else [*lines[:MOST_PROBLEMS], "… and more"]


def _field(item: inspect.Parameter, description: str | None) -> tuple[Any, Any]:
    """The annotation as pydantic should see it, and the default that the schema should show."""
    annotation, default = _accepted(item.annotation), item.default
    if item.kind is inspect.Parameter.VAR_POSITIONAL:
        return _described(list[annotation], description), EMPTY  # type: ignore[valid-type] # made at run time
    if isinstance(default, FieldInfo):  # def f(x: int = Field(3, ge=1))
        annotation = Annotated[annotation, default]
        default = EMPTY
    info = FieldInfo.from_annotation(annotation) if get_origin(annotation) is Annotated else None
    if info is not None and default is EMPTY and not info.is_required():
        default = info.get_default(call_default_factory=True, validated_data={})
    description = (info.description if info is not None else None) or description
    if default is None and not _takes_none(annotation):
        annotation = Optional[annotation]  # noqa: UP045 - `|` fails for some forms; `limit: int = None` means int or None
    return _described(annotation, description), default


def _accepted(annotation: Any, within: tuple[Any, ...] = ()) -> Any:
    """With `typing_extensions.TypedDict` for each `typing.TypedDict`, which pydantic refuses before Python 3.12."""
    if sys.version_info >= (3, 12):
        return annotation
    if typing.is_typeddict(annotation):
        return annotation if annotation in within else _typed_dict(annotation, (*within, annotation))
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner = _accepted(arguments[0], within)
        return annotation if inner is arguments[0] else Annotated[(inner, *annotation.__metadata__)]
    if origin is None or origin is Literal or any(isinstance(argument, list) for argument in arguments):
        return annotation
    accepted = tuple(_accepted(argument, within) for argument in arguments)
    if all(new is old for new, old in zip(accepted, arguments, strict=True)):
        return annotation
    return Union[accepted] if origin is types.UnionType else origin[accepted]  # noqa: UP007 - made at run time


def _typed_dict(typed: Any, within: tuple[Any, ...]) -> Any:
    hints = typing.get_type_hints(typed, include_extras=True)
    fields: dict[str, Any] = {}
    for name, hint in hints.items():
        marked = get_origin(hint)  # not in __required_keys__ where annotations are text
        field = _accepted(get_args(hint)[0] if marked in {NotRequired, Required} else hint, within)
        required = marked is Required or (marked is not NotRequired and name in typed.__required_keys__)
        fields[name] = field if required else NotRequired[field]
    twin: Any = TypedDict(typed.__name__, fields)  # type: ignore[misc] # made at run time
    twin.__doc__, twin.__module__, twin.__qualname__ = typed.__doc__, typed.__module__, typed.__qualname__
    return twin


def _described(annotation: Any, description: str | None) -> Any:
    return Annotated[annotation, Field(description=description)] if description else annotation


def _rest_fields(annotation: Any) -> dict[str, Any]:
    """What `**kwargs: T` takes, or the fields of `**kwargs: Unpack[SomeTypedDict]`."""
    if get_origin(annotation) in {typing.Unpack, Unpack} and is_typeddict(get_args(annotation)[0]):
        typed = get_args(annotation)[0]
        needed, fields = typed.__required_keys__, typed.__annotations__.items()
        bare = {name: get_args(part)[0] if get_origin(part) is NotRequired else part for name, part in fields}
        return {name: part if name in needed else NotRequired[part] for name, part in bare.items()}
    return {_REST: dict[str, annotation]}


def _takes_none(annotation: Any) -> bool:
    try:
        TypeAdapter(annotation).validate_python(None)
    except ValidationError:
        return False
    except PydanticUserError:
        return True  # reported when the whole schema is built, with the parameter's name
    return True


def _adapter(fields: dict[str, Any], name: str) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(TypedDict("Arguments", fields))  # type: ignore[operator] # made at run time
    except (PydanticUserError, NameError, TypeError):
        for field, annotation in fields.items():
            try:
                TypeAdapter(TypedDict("Arguments", {field: annotation}))  # type: ignore[operator]
            except (PydanticUserError, NameError, TypeError) as error:
                raise _unsupported(name, field, annotation, error) from None
        raise


def _unsupported(name: str, field: str, annotation: Any, error: Exception) -> ToolDefinitionError:
    inner = get_args(annotation)[0] if get_origin(annotation) in {Annotated, NotRequired} else annotation
    if isinstance(error, PydanticUserError) and error.code == "schema-for-unknown-type":
        reason = "which has no JSON Schema"
    else:
        reason = f"which pydantic refuses: {str(error).splitlines()[0]}"
    return ToolDefinitionError(
        f"tool {name!r}: parameter {field!r} has type {getattr(inner, '__name__', inner)}, {reason}; "
        "use JSON-like types, a dataclass or a pydantic model, or Annotated[..., Injected] for what the host supplies"
    )


def _put_defaults(schema: dict[str, Any], defaults: dict[str, Any], fields: dict[str, Any]) -> None:
    """Defaults that survive the way to JSON and back are shown; the function itself fills in the others."""
    for name, default in defaults.items():
        part = schema.get("properties", {}).get(name)
        if part is None or default is None:
            continue
        adapter: TypeAdapter[Any] = TypeAdapter(get_args(fields[name])[0])
        try:
            lowered = adapter.dump_python(default, mode="json", warnings="error")
            same = adapter.validate_python(lowered) == default
        except (ValidationError, PydanticSerializationError, TypeError, ValueError):
            continue
        if same is True and lowered is not None:
            part["default"] = lowered


def _clean(schema: Any) -> Any:
    """Without titles and null defaults, which say nothing that the rest does not."""
    if not isinstance(schema, dict):
        return schema
    said = {key: value for key, value in schema.items() if key != "title" and (key, value) != ("default", None)}
    return with_parts(said, lambda part, _: _clean(part))


def _walk(loc: tuple[str | int, ...], value: Any) -> tuple[tuple[str | int, ...], Any]:
    """The part of a location that exists in the arguments: pydantic adds the names of union branches to it."""
    path: list[str | int] = []
    for part in loc:
        in_list = isinstance(value, list) and isinstance(part, int) and part < len(value)
        if in_list or (isinstance(value, dict) and part in value):
            value = value[part]
            path.append(part)
    return tuple(path), value


_SECRET_HASHES = frozenset({"bytes", "str"})
_FEW_VALUES = frozenset({"bool", "enum", "literal", "none"})


def _hashed(adapter: TypeAdapter[Any]) -> frozenset[str]:
    """The fields whose values hold a set, or the keys of a dict, with hashes that a caller can predict."""
    core: Any = adapter.core_schema
    definitions = {item["ref"]: item for item in core.get("definitions", ())}
    core = core["schema"] if core["type"] == "definitions" else core
    return frozenset(name for name, part in core.get("fields", {}).items() if _is_hashed(part, definitions))


def _is_hashed(schema: Any, definitions: dict[str, Any]) -> bool:
    waiting, seen = [schema], set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, list | tuple):
            waiting.extend(node)
        if not isinstance(node, dict) or id(node) in seen:
            continue
        seen.add(id(node))
        match node.get("type"):
            case "definition-ref":
                waiting.append(definitions.get(node["schema_ref"]))
            case "set" | "frozenset":
                if node.get("items_schema", {}).get("type") not in _SECRET_HASHES | _FEW_VALUES:
                    return True
            case "dict":  # keys of which nothing is said stay text
                if node.get("keys_schema", {}).get("type", "any") not in {*_SECRET_HASHES, *_FEW_VALUES, "any"}:
                    return True
        waiting.extend(node.values())
    return False


def _sizes(value: Any) -> Iterable[int]:
    """The lengths of all arrays and tables within a value."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list | dict):
            yield len(item)
            waiting.extend(item.values() if isinstance(item, dict) else item)
