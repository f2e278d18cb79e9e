"""Definitions: each provider's format, names and schemas that all of them accept."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moonbox import CodeMode, Sandbox, Tool
from moonbox.codemode.definitions import FORMATS, Definition, portable_schema, provider_names
from moonbox.errors import UsageError

NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
CODE_SCHEMA = {
    "type": "object",
    "properties": {"source_code": {"type": "string", "description": "The script."}},
    "required": ["source_code"],
    "additionalProperties": False,
}


def test_each_format(mode: CodeMode) -> None:
    path = {"path": {"type": "string"}}
    rm = {"type": "object", "properties": path, "required": ["path"], "additionalProperties": False}
    tools = (("lua_repl", mode.description, CODE_SCHEMA), ("rm", "Remove a file.", rm))

    def shown(key: str) -> list[dict[str, Any]]:
        return [{"name": name, "description": description, key: schema} for name, description, schema in tools]

    functions = shown("parameters")
    assert mode.definitions()[:2] == [{"type": "function", "function": item} for item in functions]
    responses = [{"type": "function", **item, "strict": False} for item in functions]
    assert mode.definitions("openai-responses")[:2] == responses
    assert mode.definitions("anthropic")[:2] == shown("input_schema")
    assert mode.definitions("gemini")[0]["function_declarations"][:2] == shown("parameters_json_schema")
    code, other = shown("inputSchema")
    assert mode.definitions("mcp")[:2] == [
        {**code, "annotations": {"readOnlyHint": False}},
        {**other, "annotations": {"destructiveHint": True}},
    ]
    assert [len(mode.definitions(form)) for form in FORMATS] == [4, 4, 4, 1, 4]  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^unknown format 'openai-chat'; did you mean 'openai'\?$"):
        mode.definitions("openai-chat")  # type: ignore[arg-type]


def test_definitions_are_the_callers_own(mode: CodeMode) -> None:
    first = mode.definitions()
    first[0]["function"]["parameters"]["properties"].clear()
    first[1]["function"]["parameters"]["properties"].clear()
    assert mode.definitions()[0]["function"]["parameters"] == CODE_SCHEMA
    assert mode.definitions()[1]["function"]["parameters"]["properties"]
    mode.definitions("mcp")[1]["inputSchema"]["properties"].clear()
    assert list(mode.definitions("mcp")[1]["inputSchema"]["properties"]) == ["path"]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=90)))
def test_names_that_every_provider_accepts(names: list[str]) -> None:
    made = [
        Tool.from_schema(name=name, call=lambda args: None)
        for name in dict.fromkeys(names)
        if len(name) <= 80 and "" not in name.split(".")
    ]
    given = provider_names(made, ["lua_repl"])
    assert len(given) == len(made)
    assert "lua_repl" not in given
    assert all(NAME.fullmatch(name) for name in given)


def test_names_that_collide() -> None:
    paths = ["a.b", "a__b", "a b", "a-b", "lua_repl", "x" * 70, "x" * 71, "2fa", "-x"]
    given = provider_names([Tool.from_schema(name=path, call=len) for path in paths], ["lua_repl"])
    assert list(given) == [
        *("a__b", "a__b_2", "a_b", "a-b", "lua_repl_2", "x" * 64, "x" * 62 + "_2", "_2fa", "_-x"),
    ]


def test_thousands_of_names_that_collide() -> None:
    one = Tool.from_schema(name="日", call=len)
    tools = [one.with_(name=chr(0x4E00 + number)) for number in range(2000)]
    given = provider_names(tools, [])
    assert list(given)[:3] == ["_", "__2", "__3"] and list(given)[-1] == "__2000"


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ({}, {"type": "object", "properties": {}}),
        ({"type": "object"}, {"type": "object", "properties": {}}),
        ({"type": ["object", "null"]}, {"type": "object", "properties": {}}),
        ({"$schema": "https://x", "$id": "y", "type": "object"}, {"type": "object", "properties": {}}),
        (
            {"properties": {"a": {"type": "array"}}, "required": ["a", "ghost"]},
            {"type": "object", "properties": {"a": {"type": "array", "items": {}}}, "required": ["a"]},
        ),
        (
            {
                "$ref": "#/$defs/A",
                "$defs": {"A": {"type": "object", "properties": {"a": {"$ref": "#/$defs/B"}}}, "B": {}},
            },
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/B"}},
                "$defs": {"A": {"type": "object", "properties": {"a": {"$ref": "#/$defs/B"}}}, "B": {}},
            },
        ),
        (
            {"type": "object", "allOf": [{"properties": {"a": {}}, "required": ["a"]}]},
            {
                "type": "object",
                "properties": {"a": {}},
                "required": ["a"],
                "description": 'The arguments must also fit this JSON Schema: {"allOf":[{"properties":{"a":{}},'
                '"required":["a"]}]}',
            },
        ),
        (
            {"description": "Say.", "oneOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}]},
            {
                "type": "object",
                "properties": {"a": {}, "b": {}},
                "description": 'Say.\nThe arguments must also fit this JSON Schema: {"oneOf":[{"properties":{"a":{}},'
                '"required":["a"]},{"properties":{"b":{}}}]}',
            },
        ),
    ],
)
def test_schemas_that_every_provider_accepts(schema: dict[str, Any], wanted: dict[str, Any]) -> None:
    before = repr(schema)
    assert portable_schema(schema) == wanted
    assert repr(schema) == before
    jsonschema_rs.meta.validate(wanted)


@pytest.mark.parametrize("form", FORMATS)
def test_definitions_can_be_sent_whatever_a_tool_says(form: Any) -> None:
    odd = Tool.from_schema(
        name="odd",
        description="half \ud83d of a pair, and a whole \ud83d\ude00",
        parameters={
            "type": "object",
            "properties": {"n": {"enum": [float("nan"), 1.5], "default": float("inf"), "description": "ä"}},
        },
        returns={"type": "object", "properties": {"n": {"maximum": float("inf")}}},
        call=lambda args: None,
        policy="direct",
    )
    with Sandbox([odd], isolation="inline") as box, CodeMode(box) as mode:
        made = mode.definitions(form)
        sent = json.dumps(made, ensure_ascii=False, allow_nan=False).encode()
        assert "half \ufffd of a pair, and a whole 😀".encode() in sent
        assert json.loads(sent) == made


def test_calls_are_checked_against_the_tools_own_schema() -> None:
    either = Tool.from_schema(
        name="either",
        parameters={"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"},
        call=lambda args: "fine",
        policy="direct",
    )
    with Sandbox([either]) as box, CodeMode(box) as mode:
        assert mode.handle("either", {"a": 1}) == "fine"
        assert mode.reply("either", {"a": 1, "b": 1}).is_error


@pytest.mark.parametrize("longest", [200, 300, 1024, 5000])
def test_what_does_not_fit_moves_to_the_parameter(box: Sandbox, longest: int) -> None:
    with CodeMode(box, description_chars=longest) as mode:
        code = mode.neutral_definitions()[0]
        assert len(code.description) <= longest
        where = code.parameters["properties"]["source_code"]["description"]
        if longest == 5000:
            assert (code.description, where) == (mode.description, "The script.")
            return
        head, note = code.description.rsplit("\n", 1)
        assert note == "(Continued in the description of source_code.)"
        first, rest = where.split("\n", 1)
        assert first == "The script."
        assert f"{head}\n{rest}" == mode.description


def test_a_long_description_of_a_direct_tool() -> None:
    definition = Definition("x", "word " * 100, {"type": "object", "properties": {}})
    short = definition.within(200)
    assert len(short.description) == 199 and short.description.endswith("…")
    assert short.description[:-1] + short.parameters["description"] == definition.description
    assert definition.within(None) is definition.within(500) is definition
