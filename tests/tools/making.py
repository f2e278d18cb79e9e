"""Tools to call wrongly, and what they say about it."""

from __future__ import annotations

from typing import Any

import pytest

from moonbox.errors import ArgumentError
from moonbox.tools.tool import Tool


def made(properties: dict[str, Any], required: Any = (), **more: Any) -> Tool:
    """A tool with these parameters, which returns its arguments."""
    schema = {"type": "object", "properties": properties, "required": list(required), **more}
    return Tool.from_schema(name="f", parameters=schema, call=lambda args: args)


def refusal(bad: Tool, arguments: Any, **options: Any) -> str:
    """The message that a call with these arguments gets."""
    with pytest.raises(ArgumentError) as raised:
        bad.bind(arguments, **options)
    assert raised.value.code == "invalid"
    assert raised.value.tool == bad.path
    return raised.value.message


def problems(bad: Tool, arguments: Any) -> list[str]:
    """What that message lists."""
    return [line[2:] for line in refusal(bad, arguments).splitlines() if line.startswith("- ")]
