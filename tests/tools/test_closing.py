"""Tests of unknown keys: an error at every depth, unless the schema allows other keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NotRequired

import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from moonbox import Media, Sandbox
from moonbox.errors import ToolDefinitionError
from moonbox.tools.tool import Tool, tool
from tests.tools.making import made, problems

TEXT = {"type": "string"}
AB = {"type": "object", "properties": {"a": TEXT, "b": TEXT}}
OPEN: tuple[Any, ...] = (
    {"type": "object"},
    {"type": "object", "properties": {}},
    {**AB, "additionalProperties": True},
    {**AB, "additionalProperties": TEXT},
    {**AB, "unevaluatedProperties": True},
    {"allOf": [AB, {"additionalProperties": True}]},
    {"anyOf": [AB, {"type": "object"}]},
    {"anyOf": [AB, {"$ref": "#anchor"}], "$defs": {"x": {"$anchor": "anchor"}}},
    {"type": "object", "required": ["a"]},
    {"dependentRequired": {"a": ["other"], "b": ["c"]}},
    {"if": {"properties": {"a": {"const": "x"}}}, "then": {"required": ["a"]}},
    {"patternProperties": {"^x": TEXT}},
    {"properties": {"a": TEXT}, "required": ["a", "other"]},
    {"properties": {"a": TEXT}, "if": {"required": ["a"]}, "then": {"properties": {"other": {}}}},
    {"properties": {"a": TEXT}, "patternProperties": {"^oth": {}}},
    {"properties": {"a": TEXT}, "dependentSchemas": {"a": {"properties": {"other": {}}}}},
    {"properties": {"a": TEXT}, "dependentRequired": {"a": ["other"]}},
    {"allOf": [AB, {"properties": {"other": {}}}]},
    {"allOf": [{"$ref": "#/$defs/base"}, {"properties": {"other": {}}}]},
    {"$ref": "#/$defs/base", "properties": {"other": {}}},
    {"properties": {"a": TEXT}, "oneOf": [{"properties": {"other": {}}}, {"required": ["b"]}]},
    {"not": {"properties": {"a": {"const": "no"}}, "required": ["a"]}},
)
CLOSED: tuple[Any, ...] = (
    AB,
    {"$ref": "#/$defs/base"},
    {"$ref": "#/$defs/base", "description": "beside the reference"},
    {"anyOf": [AB, {"type": "null"}]},
    {"oneOf": [{"$ref": "#/$defs/base"}, {"type": "object", "properties": {"c": TEXT}}]},
    {"allOf": [{"$ref": "#/$defs/base"}]},
    {"allOf": [{"$ref": "#/$defs/base"}, {"properties": {"c": TEXT}}, {"required": ["a"]}]},
    {"properties": {"a": TEXT}, "patternProperties": {"^x-": {}}},
    {"properties": {"a": TEXT}, "if": {"required": ["a"]}, "then": {"properties": {"c": {}}}},
    {"properties": {"a": TEXT}, "not": {"required": ["c"]}},
    {"$ref": "#/components/schemas/base"},
)


def holding(part: Any, **more: Any) -> Tool:
    """A tool whose parameter `p` has this schema."""
    shared = {"$defs": {"base": AB, **part.get("$defs", {})}, "components": {"schemas": {"base": AB}}}
    return made({"p": part}, **shared, **more)


@pytest.mark.parametrize("part", OPEN, ids=str)
def test_other_keys_are_allowed(part: Any) -> None:
    given = {"p": {"a": "x", "other": "y"}}
    assert holding(part).bind(given) == given


@pytest.mark.parametrize(
    "draft", ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"]
)
@pytest.mark.parametrize("part", CLOSED, ids=str)
@pytest.mark.parametrize("depth", ["itself", "items", "field", "values"])
def test_unknown_keys_are_refused(part: Any, depth: str, draft: str) -> None:
    wrong: Any = {"a": "x", "othr": "y"}
    right: Any = {"a": "x"}
    path = "p"
    if depth == "items":
        part, wrong, right, path = {"type": "array", "items": part}, [right, wrong], [right], "p[1]"
    elif depth == "field":
        part, wrong, right, path = {"properties": {"q": part}}, {"q": wrong}, {"q": right}, "p.q"
    elif depth == "values":
        part, wrong, right = {"additionalProperties": part}, {"k": wrong}, {"k": right}
        path = "p.k"
    taker = holding(part, **{"$schema": draft})
    assert taker.bind({"p": right}) == {"p": right}
    assert [line.partition(";")[0] for line in problems(taker, {"p": wrong})] == [f"{path}.othr: unknown key"]


def test_a_definition_may_be_used_alone_and_as_a_part() -> None:
    derived = {"allOf": [{"$ref": "#/$defs/base"}, {"properties": {"c": TEXT}}]}
    taker = holding({"properties": {"derived": derived, "base": {"$ref": "#/$defs/base"}}})
    given = {"p": {"derived": {"a": "", "c": ""}, "base": {"a": ""}}}
    assert taker.bind(given) == given
    assert problems(taker, {"p": {"base": {"c": ""}}}) == ["p.base.c: unknown key; known keys: a, b"]
    assert problems(taker, {"p": {"derived": {"d": ""}}}) == ["p.derived.d: unknown key; known keys: a, b, c"]


def test_conditions_mean_what_they_meant() -> None:
    """A condition that a closed definition would no longer meet decides as before."""
    unless = {"not": {"properties": {"q": {"$ref": "#/$defs/base"}}, "required": ["q"]}}
    taker = holding(unless)
    assert problems(taker, {"p": {"q": {"a": "x", "other": 1}}})
    assert taker.bind({"p": {"q": {"a": 1}}})


def test_definitions_that_refer_to_themselves() -> None:
    node = {"properties": {"value": TEXT, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}}
    loop = {"allOf": [{"$ref": "#/$defs/loop"}]}
    taker = holding({"$ref": "#/$defs/node", "$defs": {"node": node, "loop": loop}})
    assert problems(taker, {"p": {"next": {"next": {"valeu": "x"}}}}) == [
        "p.next.next.valeu: unknown key; did you mean 'value'?"
    ]


@pytest.mark.parametrize(
    "part",
    [{"allOf": 5}, {"allOf": {}}, {"properties": []}, {"properties": {"a": 1}}, {"required": 3}, {"oneOf": [1]}],
    ids=str,
)
def test_what_is_no_schema_is_refused(part: Any) -> None:
    with pytest.raises(ToolDefinitionError, match="is not a valid JSON Schema"):
        holding(part)


def test_parameters_made_of_parts() -> None:
    schema = {"allOf": [AB, {"properties": {"status": TEXT}}]}
    taker = Tool.from_schema(name="f", parameters=schema, call=lambda args: args)
    assert taker.bind({"a": "x", "status": "y"})
    assert problems(taker, {"statsu": "y"}) == ["statsu: unknown parameter; did you mean 'status'?"]


class Query(BaseModel):
    status: str | None = None
    page: int = 1


@dataclass
class Filter:
    query: Query
    note: str = ""


class Options(TypedDict):
    deep: NotRequired[Query]


class Loose(BaseModel):
    model_config = ConfigDict(extra="allow")
    status: str = ""


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str] = []


@tool
def find(
    query: Query | None = None,
    where: Filter | None = None,
    several: list[Query] = [],  # noqa: B006 - it is not changed
    options: Options | None = None,
    loose: Loose | None = None,
    free: dict[str, Any] | None = None,
    pet: Cat | Dog | None = None,
    image: Media | None = None,
) -> list[Any]:
    """Find things."""
    return [query, where, several, options, loose, free, pet, image]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"query": {"statsu": "late"}}, "query.statsu: unknown key; did you mean 'status'?"),
        ({"where": {"query": {}, "nte": ""}}, "where.nte: unknown key; did you mean 'note'?"),
        ({"where": {"query": {"pag": 1}}}, "where.query.pag: unknown key; did you mean 'page'?"),
        ({"several": [{}, {"pgae": 1}]}, "several[1].pgae: unknown key; did you mean 'page'?"),
        ({"options": {"dep": {}}}, "options.dep: unknown key; did you mean 'deep'?"),
        ({"options": {"deep": {"x": 1}}}, "options.deep.x: unknown key; known keys: status, page"),
        ({"pet": {"kind": "cat", "tricks": []}}, "pet.tricks: unknown key; known keys: kind, lives"),
        ({"pet": {"kind": "cow"}}, 'pet.kind: expected one of "cat", "dog", got "cow" (string)'),
        ({"pet": {"kind": "dgo"}}, 'pet.kind: expected one of "cat", "dog", got "dgo" (string); did you mean \'dog\'?'),
        ({"pet": {"lives": 3}}, 'pet.kind: missing, expected one of "cat", "dog"'),
    ],
)
def test_unknown_keys_of_python_types(given: Any, problem: str) -> None:
    assert problems(find, given) == [problem]


def test_python_types_that_take_other_keys() -> None:
    given = {"loose": {"anything": 1}, "free": {"x": {"y": 1}}, "query": {"page": 2}}
    assert find.bind(given) == {"several": [], **given}


class Person(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    user_id: int = Field(alias="userId")
    home: str = Field("", validation_alias=AliasChoices("homeTown", "town"))


class Nested(BaseModel):
    first: int = Field(0, validation_alias=AliasPath("values", 0))


@tool
def greet(person: Person, others: list[Person] = [], nested: Nested | None = None) -> list[Any]:  # noqa: B006
    """Greet people."""
    return [(each.user_id, each.home) for each in [person, *others]]


@pytest.mark.parametrize(
    "person", [{"userId": 1, "homeTown": "x"}, {"user_id": 1, "town": "x"}, {"userId": 1, "home": "x"}]
)
def test_fields_have_all_names_that_their_model_takes(person: Any) -> None:
    bound = greet.bind({"person": person, "others": [person]})
    assert greet.invoke(bound) == [(1, "x")] * 2
    assert "user_id" not in str(greet.parameters), "the catalog shows one name"


def test_a_field_with_two_of_its_names() -> None:
    assert problems(greet, {"person": {"userId": 1, "user_id": 2}}) == [
        "person.user_id: unknown key; known keys: userId, homeTown"
    ]


def test_a_model_that_looks_inside_other_keys_takes_them() -> None:
    assert greet.invoke(greet.bind({"person": {"userId": 1}, "nested": {"values": [1]}})) == [(1, "")]


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ("return tools.find{query = {statsu = 'late'}}", "check"),
        ("local s = tostring(1) return tools.find{query = {statsu = s}}", "check"),
        ("local q = {} q['statsu'] = 'late' return tools.find{query = q}", "tool"),
    ],
)
def test_scripts_are_told(script: str, kind: str) -> None:
    with Sandbox([find]) as box:
        error = box.run(script).error
    assert error is not None and error.kind == kind
    assert "query.statsu: unknown key; did you mean 'status'?" in error.message
