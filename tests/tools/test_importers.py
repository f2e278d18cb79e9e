"""Tests of tools from the providers' own definitions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moonbox.errors import ArgumentError, ToolDefinitionError
from moonbox.tools.toolbox import Toolbox

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def dispatch(name: str, arguments: dict[str, Any]) -> Any:
    return [name, arguments]


CHAT = {"type": "function", "function": {"name": "get_weather", "description": "Weather.", "parameters": SCHEMA}}
RESPONSES = {"type": "function", "name": "get_weather", "description": "Weather.", "parameters": SCHEMA, "strict": True}
ANTHROPIC = {"name": "get_weather", "description": "Weather.", "input_schema": SCHEMA}
GEMINI = {
    "name": "get_weather",
    "description": "Weather.",
    "parameters": {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}, "required": ["city"]},
}


@pytest.mark.parametrize(
    "box",
    [
        Toolbox.from_openai([CHAT], dispatch),
        Toolbox.from_openai([RESPONSES], dispatch),
        Toolbox.from_anthropic([ANTHROPIC], dispatch),
        Toolbox.from_gemini([GEMINI], dispatch),
        Toolbox.from_gemini([{"function_declarations": [GEMINI]}], dispatch),
        Toolbox.from_gemini(
            [{"functionDeclarations": [{**GEMINI, "parameters": None, "parametersJsonSchema": SCHEMA}]}], dispatch
        ),
    ],
)
def test_each_form(box: Toolbox) -> None:
    made = box["get_weather"]
    assert made.description == "Weather."
    assert made.parameters == SCHEMA
    assert made.invoke(made.bind(["Rome"])) == ["get_weather", {"city": "Rome"}]
    with pytest.raises(ArgumentError, match="- city: missing, expected string"):
        made.bind({})


def test_one_function_for_each_name_and_options_for_all() -> None:
    async def later(arguments: dict[str, Any]) -> str:
        return f"sunny in {arguments['city']}"

    box = Toolbox.from_openai([CHAT], {"get_weather": later}, hints={"read_only": True}, namespace="web")
    made = box["web.get_weather"]
    assert made.is_async and made.hints.read_only
    assert asyncio.run(made.invoke({"city": "Rome"})) == "sunny in Rome"


def test_an_asynchronous_dispatcher() -> None:
    async def later(name: str, arguments: dict[str, Any]) -> str:
        return name

    made = Toolbox.from_anthropic([ANTHROPIC], later)["get_weather"]
    assert made.is_async
    assert asyncio.run(made.invoke({"city": "x"})) == "get_weather"


def test_geminis_dialect_becomes_json_schema() -> None:
    declaration = {
        "name": "f",
        "parameters": {
            "type": "OBJECT",
            "properties": {
                "n": {"type": "INTEGER", "nullable": True},
                "kind": {"type": "STRING", "format": "enum", "enum": ["a", "b"], "nullable": True},
                "list": {"type": "ARRAY", "items": {"type": "NUMBER"}, "max_items": "3"},
                "any": {"type": "TYPE_UNSPECIFIED"},
                "either": {"any_of": [{"type": "STRING"}, {"type": "BOOLEAN"}], "nullable": True},
            },
            "property_ordering": ["n"],
        },
        "response": {"type": "STRING"},
    }
    made = Toolbox.from_gemini([declaration], dispatch)["f"]
    assert made.parameters == {
        "type": "object",
        "properties": {
            "n": {"type": ["integer", "null"]},
            "kind": {"type": ["string", "null"], "format": "enum", "enum": ["a", "b", None]},
            "list": {"type": "array", "items": {"type": "number"}, "maxItems": 3},
            "any": {},
            "either": {"anyOf": [{"type": "string"}, {"type": "boolean"}, {"type": "null"}]},
        },
    }
    assert made.returns == {"type": "string"}
    assert made.bind({"n": None, "kind": None, "list": {}}) == {"n": None, "kind": None, "list": []}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Toolbox.from_openai([{"type": "web_search"}], dispatch),
            "an OpenAI tool of type 'web_search' is run by OpenAI and cannot be imported",
        ),
        (
            lambda: Toolbox.from_anthropic([{"type": "bash_20250124", "name": "bash"}], dispatch),
            "an Anthropic tool of type 'bash_20250124' has no input_schema and cannot be imported",
        ),
        (
            lambda: Toolbox.from_openai([CHAT], {"get_wether": print}),
            "no function for tool 'get_weather'; did you mean 'get_wether'?",
        ),
        (lambda: Toolbox.from_openai(["x"], dispatch), "invalid OpenAI definition (expected a dict): 'x'"),
        (
            lambda: Toolbox.from_gemini([{"description": "x"}], dispatch),
            "the definition {'description': 'x'} has no name",
        ),
        (
            lambda: Toolbox.from_openai([CHAT], 5),  # type: ignore[arg-type]
            "call must be a function of (name, arguments) or a mapping from name to function",
        ),
    ],
)
def test_what_cannot_be_imported(make: Any, message: str) -> None:
    with pytest.raises(ToolDefinitionError) as raised:
        make()
    assert str(raised.value) == message
