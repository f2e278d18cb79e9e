"""The reader: a table of the configuration as a settings model, and a clear message for each key that is wrong.

A model is a class with the decorator `settings_model`. Its types say what is valid, `__post_init__` checks
what types cannot say, and the docstrings of its fields describe them in the JSON Schema and in the documentation.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, time
from typing import Any, TypeVar, dataclass_transform, get_args, get_type_hints

from moonbox.config.variables import place_name, unset_problem
from moonbox.errors import ConfigError
from moonbox.suggest import unknown

T = TypeVar("T")

CLOSED = {"extra": "forbid", "strict": True, "use_attribute_docstrings": True}
"""For `__pydantic_config__`: no unknown keys, no guessing at types, and fields described by their docstrings."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(dataclasses.field,))
def settings_model(kind: type[T]) -> type[T]:
    """Make a class a settings model: a frozen dataclass."""
    kind.__pydantic_config__ = CLOSED  # type: ignore[attr-defined]  # which pydantic reads
    return dataclasses.dataclass(frozen=True, kw_only=True)(kind)


def read(kind: type[T], data: Any, section: str, *, later: Collection[str] = ()) -> T:
    """A model from a table. ConfigError has one line for each key that is wrong, and says what is valid.

    The caller looks for variables that are not set in the values of the keys `later`.
    """
    from pydantic import ValidationError

    given = table(data, section)
    if (unset := unset_problem({key: value for key, value in given.items() if key not in later})) is not None:
        raise ConfigError(unset)
    try:
        # As JSON, because a strict reading then still takes an array for a tuple and a string for a path.
        model: T = _adapter(kind).validate_json(json.dumps(given, default=_json_value))  # type: ignore[arg-type]  # a class is hashable
    except ValidationError as error:
        lines = [_line(problem, kind, section) for problem in error.errors(include_url=False)]
        raise ConfigError("\n".join(lines)) from None
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{_header([section])}{error}") from None
    return model


def table(data: Any, section: str) -> dict[str, Any]:
    """The data, if it is a table."""
    if not isinstance(data, Mapping):
        raise ConfigError(f"{_header([section])}must be a table, not {data!r}")
    return dict(data)


def check_keys(data: Mapping[str, Any], known: Iterable[str], section: str) -> None:
    """Refuse keys that are not known."""
    options = list(known)
    for key in data:
        if key not in options:
            raise ConfigError(f"{_header([section])}{unknown(_noun([section]), str(key), options)}")


def positive(name: str, value: float | None) -> None:
    """Refuse a number that is not above 0, in `__post_init__`."""
    if value is not None and not 0 < value < float("inf"):
        raise ConfigError(f"{name} must be more than 0, not {value:g}")


def schema(kind: type[Any]) -> dict[str, Any]:
    """The JSON Schema of what `read` takes, with the descriptions of the fields."""
    whole: dict[str, Any] = _adapter(kind).json_schema()  # type: ignore[arg-type]  # a class is hashable
    return whole


@functools.cache
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _json_value(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, date | time):  # of TOML
        return value.isoformat()
    raise TypeError(f"a value of type {type(value).__name__} is not allowed: {value}")


# Messages


def _line(problem: Any, kind: Any, section: str) -> str:
    place, value = [section, *problem["loc"]], problem["input"]
    match problem["type"]:
        case "unexpected_keyword_argument" | "extra_forbidden":
            known = [item.name for item in dataclasses.fields(_model_at(kind, problem["loc"][:-1]))]
            return f"{_header(place[:-1])}{unknown(_noun(place[:-1]), str(place[-1]), known)}"
        case "missing" | "missing_argument" | "missing_keyword_only_argument":
            if isinstance(place[-1], int):  # of an array of a fixed length
                return f"{place_name(place[:-1])} must have another value after the first {place[-1]}"
            return f"{_header(place[:-1])}{place[-1]} is missing"
        case "value_error":  # raised by __post_init__, whose message names the key
            return f"{_header(place)}{str(problem['ctx']['error']).removeprefix(f'{place[-1]}: ')}"
    name = place_name([part for part in place if part != ""])
    if problem["type"] == "tuple_type" and isinstance(value, str):
        return f'{name} must be an array: write {place[-1]} = ["{value}"]'
    wanted = _WANTED.get(problem["type"]) or problem["msg"].replace("Input should be", "must be")
    return f"{name} {wanted.format(**problem.get('ctx', {}))}, not {value!r}"


_WANTED = {
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "string_type": "must be a string",
    "path_type": "must be a path",
    "tuple_type": "must be an array",
    "list_type": "must be an array",
    "dict_type": "must be a table",
    "mapping_type": "must be a table",
    "dataclass_type": "must be a table",
    "greater_than": "must be more than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    "string_pattern_mismatch": "must be 1 to 64 letters, digits and underscores, not beginning with a digit",
}


def _header(section: Sequence[Any]) -> str:
    """`[mcp.servers.github] `; nothing for settings that come from Python and have no section."""
    name = ".".join(str(part) for part in section if part != "")
    return f"[{name}] " if name else ""


def _noun(section: Sequence[Any]) -> str:
    return "key" if _header(section) else "setting"


# Models inside models


def _model_at(kind: Any, path: Sequence[Any]) -> Any:
    """The model that a table inside a table is read as."""
    for part in path:
        hint = get_type_hints(kind).get(part) if dataclasses.is_dataclass(kind) else None
        if hint is not None:
            kind = next(_dataclasses_in(hint), kind)
    return kind


def _dataclasses_in(hint: Any) -> Iterator[Any]:
    if dataclasses.is_dataclass(hint):
        yield hint
    for part in get_args(hint):
        yield from _dataclasses_in(part)
