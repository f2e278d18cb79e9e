"""A tool's return value made ready for the script, within the limits.

Text that is JSON (an object or an array) from a tool without a result schema becomes data, so that a script
need not decode it; `parse_json=False` turns that off. Text that is anything else stays text, "42" too.
"""

from __future__ import annotations

import json
from typing import Any

from moonbox.errors import ConversionError, ToolError
from moonbox.values import measure, plain

__all__ = ["convert"]


def convert(
    value: Any, *, tool: str, parse_json: bool, max_string: int, max_array: int, max_depth: int, allow_nan: bool = True
) -> Any:
    """The plain value; raises ToolError with code `result_too_large` or `bad_result`."""
    if parse_json and isinstance(value, str):
        value = _parsed(value, max_depth)
    try:
        lowered = plain(value, allow_nan=allow_nan, max_depth=max_depth, path="result")
        measure(lowered, max_string=max_string, max_array=max_array, max_depth=max_depth, path="result")
    except ConversionError as error:
        code = "result_too_large" if error.limit else "bad_result"
        raise ToolError(f"the result of {tool} cannot be used: {error}", code=code, tool=tool) from None
    except RecursionError:
        raise ToolError(f"the result of {tool} is nested too deeply", code="result_too_large", tool=tool) from None
    except Exception as error:  # noqa: BLE001 - lowering calls code of the value's own class
        raise ToolError(
            f"the result of {tool} cannot be converted: {type(error).__name__}",
            code="bad_result",
            tool=tool,
            detail=str(error),
        ) from None
    return lowered


def _parsed(text: str, max_depth: int) -> Any:
    """The data that the text encodes, or the text itself."""
    if text.lstrip()[:1] not in {"{", "["}:
        return text
    try:
        return plain(json.loads(text, parse_constant=_no_constant), max_depth=max_depth)
    except (ValueError, RecursionError, ConversionError):
        return text


def _no_constant(name: str) -> Any:
    raise ValueError(name)
