"""Closed contracts: frozen dataclasses read from a mapping in which every key must be known."""

from __future__ import annotations

import difflib
import functools
import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from moonbox.errors import ConfigError

__all__ = ["CLOSED", "positive", "read", "schema", "suggestion"]

T = TypeVar("T")
_TRIES = 5

CLOSED = {"extra": "forbid", "strict": True, "use_attribute_docstrings": True}
"""For `__pydantic_config__`: no unknown keys, no guessing at types, descriptions from the docstrings of fields."""


def read(kind: type[T], data: Any, where: str) -> T:
    """A dataclass from a mapping; raises ConfigError that names every key that is wrong, and what is right."""
    from pydantic import ValidationError

    if not isinstance(data, Mapping):
        raise ConfigError(f"{where} must be a table, not {type(data).__name__}")
    try:
        # As JSON, because a strict reading then still takes an array for a tuple and a string for a path.
        made: T = _adapter(kind).validate_json(json.dumps(data, default=str))  # type: ignore[arg-type]  # a class is hashable
        return made
    except ValidationError as error:
        known = [item.name for item in fields(kind)]  # type: ignore[arg-type]  # T is always a dataclass
        raise ConfigError("\n".join(_problem(problem, where, known) for problem in error.errors())) from None
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where} cannot be read: {error}") from None


def schema(kind: type[Any]) -> dict[str, Any]:
    """The JSON Schema of what `read` takes."""
    made: dict[str, Any] = _adapter(kind).json_schema()  # type: ignore[arg-type]  # a class is hashable
    return made


@functools.cache
def _adapter(kind: Any) -> Any:
    """Made once for each kind. It parses the docstrings, and CPython 3.11 may trip over that while threads run."""
    from pydantic import TypeAdapter

    for _ in range(_TRIES):
        try:
            return TypeAdapter(kind)
        except SystemError:
            continue
    return TypeAdapter(kind)


def positive(name: str, value: float | None) -> None:
    if value is not None and not 0 < value < float("inf"):
        raise ConfigError(f"{name} must be more than 0, not {value}")


def suggestion(name: Any, known: list[str]) -> str:
    close = difflib.get_close_matches(str(name), known, 1)
    return f"did you mean {close[0]!r}?" if close else f"known are: {', '.join(known)}"


def _problem(problem: Any, where: str, known: list[str]) -> str:
    path = ".".join(str(part) for part in (where, *problem["loc"]))
    match problem["type"]:
        case "unexpected_keyword_argument" | "extra_forbidden":
            key = problem["loc"][-1]
            return f"{where}: unknown key {key!r}; {suggestion(key, known)}"
        case "missing" | "missing_argument" | "missing_keyword_only_argument":
            return f"{path} is missing"
        case "value_error":
            return f"{path}: {problem['ctx']['error']}"
    message = problem["msg"].replace("Input should be", "must be")
    return f"{path} {message}, not {problem['input']!r}"
