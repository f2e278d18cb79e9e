"""Arguments of host functions: what each may be, and the checks that hold it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from moonbox.errors import ArgumentError
from moonbox.suggest import unknown
from moonbox.values import INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Kind", "Parameter", "bind", "bounded", "excerpt", "text_or_bytes", "type_word"]

Kind = Literal["string", "data", "integer", "number", "boolean", "table", "array", "options", "any"]
_WORDS: dict[Kind, str] = {
    "string": "a string",
    "data": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "table": "a table",
    "array": "an array",
    "options": "a table",
    "any": "any value",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a host function, or one key of its options table.

    `data` accepts any string, binary ones included, and arrives as bytes; `options` is a table of the keys in
    `options` and no others, and arrives as a dict that holds every one of them.
    """

    name: str
    kind: Kind
    doc: str = ""
    required: bool = False
    default: Any = None
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    options: tuple[Parameter, ...] = ()


def bind(signature: str, parameters: Sequence[Parameter], args: Sequence[Any]) -> list[Any]:
    """The checked arguments in the parameters' order; raises ArgumentError that begins with the signature."""
    try:
        if len(args) > len(parameters):
            most = f"at most {len(parameters)} argument{'s' * (len(parameters) != 1)}" if parameters else "no arguments"
            raise _Wrong(f"takes {most}, not {len(args)}")
        given = [*args, *[None] * (len(parameters) - len(args))]
        return [_checked(parameter, value, parameter.name) for parameter, value in zip(parameters, given, strict=True)]
    except _Wrong as wrong:
        raise ArgumentError(f"{signature}: {wrong}") from None


def text_or_bytes(data: bytes) -> str | bytes:
    """Text when it is valid UTF-8. Scripts see the same string either way."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def bounded(function: str, data: str | bytes, most: int) -> None:
    """Raises ArgumentError when the data is longer than a function may work on."""
    if len(data) > most:
        raise ArgumentError(f"{function} takes at most {most:,} bytes, not {len(data):,}", code="too_large")


def excerpt(value: Any, most: int = 60) -> str:
    """The beginning of a text that a script chose, for a message."""
    text = str(value)
    return text if len(text) <= most else text[:most] + "…"


def type_word(value: Any) -> str:
    """The script's word for the type of a plain value."""
    if value is None:
        return "null"
    words = {bool: "boolean", int: "integer", float: "float", str: "string", bytes: "binary string"}
    return words.get(type(value)) or ("array" if isinstance(value, list) else "table")


class _Wrong(Exception):
    """A problem, before it is known which function was called."""


def _checked(parameter: Parameter, value: Any, path: str) -> Any:
    if value is None:
        if parameter.required:
            raise _Wrong(f"{path} is missing")
        return _options(parameter, {}, path) if parameter.kind == "options" else parameter.default
    value = _converted(parameter, value, path)
    if isinstance(value, int | float) and not isinstance(value, bool):
        _in_range(parameter, value, path)
    if parameter.choices and value not in parameter.choices:
        known = ", ".join(f'"{choice}"' for choice in parameter.choices)
        raise _Wrong(f'{path} must be one of {known}, not "{excerpt(value)}"')
    return value


def _converted(parameter: Parameter, value: Any, path: str) -> Any:
    match parameter.kind:
        case "any":
            return value
        case "string" | "data" if isinstance(value, str):
            encoded = _encoded(value, path)
            return value if parameter.kind == "string" else encoded
        case "data" if isinstance(value, bytes):
            return value
        case "string" if isinstance(value, bytes):
            raise _Wrong(f"{path} must be text, but this string is not UTF-8")
        case "boolean" if isinstance(value, bool):
            return value
        case "integer" | "number" if isinstance(value, int) and not isinstance(value, bool):
            return value
        case "number" if isinstance(value, float) and math.isfinite(value):
            return value
        case "integer" if isinstance(value, float) and value.is_integer() and INT64_MIN <= value <= INT64_MAX:
            return int(value)
        # An empty table of a script may arrive as either of the two.
        case "array" if isinstance(value, list) or value == {}:
            return list(value)
        case "table" if isinstance(value, dict) or value == []:
            return dict(value)
        case "options" if isinstance(value, dict) or value == []:
            return _options(parameter, dict(value), path)
    given = str(value) if isinstance(value, float) and not math.isfinite(value) else type_word(value)
    raise _Wrong(f"{path} must be {_WORDS[parameter.kind]}, not {given}")


def _options(parameter: Parameter, given: dict[Any, Any], path: str) -> dict[str, Any]:
    known = {option.name: option for option in parameter.options}
    for key in given:
        if key not in known:
            raise _Wrong(unknown("option", str(key), known))
    return {name: _checked(option, given.get(name), f"{path}.{name}") for name, option in known.items()}


def _in_range(parameter: Parameter, value: float, path: str) -> None:
    if parameter.least is not None and value < parameter.least:
        raise _Wrong(f"{path} must be at least {parameter.least:g}, not {value}")
    if parameter.most is not None and value > parameter.most:
        raise _Wrong(f"{path} must be at most {parameter.most:g}, not {value}")


def _encoded(value: str, path: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise _Wrong(f"{path} contains half of a surrogate pair, which is not a character") from None
