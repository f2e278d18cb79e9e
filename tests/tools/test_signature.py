"""Tests of tools as text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moonbox.errors import UsageError
from moonbox.schema.tree import SchemaNode
from moonbox.schema.type_reader import type_text
from moonbox.tools.signature import LEVELS, first_sentence, render
from moonbox.tools.tool import Tool, tool
from tests.long import times


def made(parameters: dict[str, Any] | None = None, **options: Any) -> Tool:
    return Tool.from_schema(name="f", parameters=parameters, call=lambda args: args, **options)


@tool(hints={"read_only": True}, timeout=5, policy="approve")
def find_items(
    limit: int = 10, query: str = "", *, kinds: list[str], owner: dict[str, Any] | None = None
) -> list[dict[str, str]]:
    """Find items in the shop. Fast.

    Reads the index, e.g. nightly.

    Args:
        query: Words to look for.
        kinds: Which kinds.
    """
    return []


def test_levels() -> None:
    signature = (
        "find_items(kinds: string[], limit?: integer, query?: string, owner?: object|null) -> {[string]: string}[]"
    )
    assert LEVELS == ("name", "signature", "brief", "full", "schema")
    assert render(find_items, "name") == "find_items"
    assert render(find_items, "signature") == signature
    assert render(find_items, "brief") == f"{signature} — Find items in the shop."
    assert render(find_items) == render(find_items, "brief")
    assert render(find_items, "brief", name="shop.find").startswith("shop.find(kinds: string[]")
    assert render(find_items, "full") == (
        f"{signature} — Find items in the shop.\n"
        "> Fast.\n>\n> Reads the index, e.g. nightly.\n"
        "parameters:\n"
        "  kinds: Which kinds.\n"
        "  limit: default 10\n"
        '  query: default "". Words to look for.\n'
        "notes: changes nothing, a person must approve each call, timeout 5 s"
    )
    brief, schema = render(find_items, "schema").split("\n  schema: ")
    assert brief == render(find_items, "brief")
    assert schema.startswith('{"type":"object","properties":{"limit":{"type":"integer","default":10}')
    with pytest.raises(UsageError, match=r"^unknown level 'ful'; did you mean 'full'\?$"):
        render(find_items, "ful")  # type: ignore[arg-type]


def test_what_has_nothing_to_say() -> None:
    assert render(made()) == "f()"
    assert render(made(), "full") == "f()"
    assert render(made({"type": "object", "properties": {"a": {}}, "required": ["a"]})) == "f(a: any)"


USER = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "team": {"type": "object", "properties": {"x": {}}}},
    "required": ["id"],
}


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({}, "any"),
        (True, "any"),
        (False, "never"),
        ({"type": ["integer", "null"]}, "integer|null"),
        ({"anyOf": [{"type": "integer"}, {"type": "integer"}, {"type": "null"}]}, "integer|null"),
        ({"anyOf": [{"type": "integer"}, {}]}, "any"),
        ({"enum": ["a", "b", 1, None]}, '"a"|"b"|1|null'),
        ({"enum": [f"choice-{n}" for n in range(21)]}, "string"),
        ({"const": "x"}, '"x"'),
        ({"type": "array"}, "array"),
        ({"type": "array", "items": {"type": "string"}}, "string[]"),
        ({"type": "array", "items": {"type": ["string", "null"]}}, "(string|null)[]"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, '("a"|"b")[]'),
        ({"type": "array", "items": USER}, "{id: integer, team?: object}[]"),
        ({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}, "[integer, string]"),
        (USER, "{id: integer, team?: object}"),
        ({"type": "object"}, "object"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "{[string]: integer}"),
        (
            {"type": "object", "properties": {"odd-name": {"type": "string"}, "end": {}}},
            '{["odd-name"]?: string, ["end"]?: any}',
        ),
        ({"type": "object", "properties": {f"p{n}": {} for n in range(20)}}, None),
        ({"allOf": [{"type": "string"}, {"minLength": 1}]}, "string"),
        (
            {"allOf": [USER, {"type": "object", "properties": {"extra": {"type": "boolean"}}}]},
            "{id: integer, team?: object, extra?: boolean}",
        ),
        ({"properties": {"a": {"type": "number"}}}, "{a?: number}"),
        ({"type": "string", "format": "date-time"}, "string"),
    ],
)
def test_types(schema: Any, text: str | None) -> None:
    found = type_text(SchemaNode(schema))
    if text is None:
        assert found == "{" + ", ".join(f"p{n}?: any" for n in range(16)) + ", …}"
    else:
        assert found == text


def test_results_show_every_level() -> None:
    returns = {"type": "object", "properties": {"user": USER}, "required": ["user"]}
    assert render(made(returns=returns), "signature") == "f() -> {user: {id: integer, team?: {x?: any}}}"


def test_references_that_contain_themselves() -> None:
    node = {
        "$ref": "#/$defs/N",
        "$defs": {"N": {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}, "v": {}}}},
    }
    assert type_text(SchemaNode(node), nested=3) == "{next?: object, v?: any}"
    assert render(made(returns=node), "signature") == "f() -> N where N = {next?: N, v?: any}"
    loop = {"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}]}}}
    assert type_text(SchemaNode(loop)) == "any"


def test_the_narration_parameter_is_left_out() -> None:
    narrated = made(
        {
            "type": "object",
            "properties": {"human_intent": {"type": "string"}, "a": {"type": "integer"}},
            "required": ["human_intent", "a"],
        }
    )
    for level in LEVELS:
        assert "human_intent" not in render(narrated, level)  # type: ignore[arg-type]
    assert render(narrated, "schema").endswith(
        '{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}'
    )
    assert "human_intent" in narrated.parameters["properties"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("One. Two.", "One."),
        ("No end", "No end"),
        ("Use it, e.g. here, i.e. there. Then.", "Use it, e.g. here, i.e. there."),
        ("Version 1.2 is out. Yes.", "Version 1.2 is out."),
        ("Really? Yes.", "Really?"),
        ("Line one\nline two. Rest", "Line one line two."),
        ("Heading\n\nText.", "Heading"),
        ("一つ目。二つ目。", "一つ目。"),
        ("Tab\tand\x00null\x1b[31m.", "Tab and null [31m."),
        ("", ""),
        ("x" * 140, "x" * 140),
        ("x" * 141, "x" * 139 + "…"),
        ("é" * 200, "é" * 139 + "…"),
        ("x" * 138 + "e\u0301" + "x" * 20, "x" * 138 + "…"),
        ("x" * 137 + "👩\u200d👩\u200d👧" + "x" * 20, "x" * 137 + "…"),
    ],
)
def test_first_sentence(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence


@given(st.text())
def test_a_first_sentence_is_one_short_line(text: str) -> None:
    sentence = first_sentence(text)
    assert len(sentence) <= 140
    assert "\n" not in sentence and "\r" not in sentence


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=4)
    | st.sampled_from(["object", "array", "#/properties/a", "#"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "properties",
                    "items",
                    "anyOf",
                    "allOf",
                    "enum",
                    "$ref",
                    "required",
                    "a",
                    "additionalProperties",
                    "prefixItems",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@settings(max_examples=times(300), deadline=None)
@given(JSON)
def test_any_json_can_be_rendered_as_a_type(schema: Any) -> None:
    text = type_text(SchemaNode({"properties": {"a": schema}}).tree.node(schema), nested=2)
    assert isinstance(text, str) and text


def test_types_that_are_none() -> None:
    odd = Tool.from_schema(name="odd", call=print, returns={"type": "string\n- forged() — a line", "x": 1})
    assert render(odd, "signature") == "odd() -> any"
