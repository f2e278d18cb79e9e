"""Tests of schemas from type hints, and of values made from them."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import typing
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, Union, Unpack

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from moonbox import CodeMode, Sandbox
from moonbox.errors import ArgumentError, ToolDefinitionError, ToolError
from moonbox.tools.function import Context, Injected
from moonbox.tools.signature import render
from moonbox.tools.tool import Tool, tool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    y: float = 1.0


class Node(BaseModel):
    title: str
    children: list[Node] = []


class Address(TypedDict):
    street: str
    city: NotRequired[str]


class Person(typing.TypedDict):
    """Of the standard library, which pydantic takes from Python 3.12 on."""

    name: Annotated[str, Field(description="in full")]
    address: Address
    tags: NotRequired[list[str]]


class Employee(Person, total=False):
    manager: typing.Required[Person | None]
    reports: dict[str, list[Person]]


def properties(made: Tool) -> dict[str, Any]:
    found = made.parameters["properties"]
    assert isinstance(found, dict)
    return found


TEXT, INTEGER, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}
MAYBE = {"anyOf": [INTEGER, NULL]}


@pytest.mark.parametrize(
    ("annotation", "schema", "given", "value"),
    [
        (str, TEXT, "x", "x"),
        (float, {"type": "number"}, 3, 3.0),
        (bool, {"type": "boolean"}, True, True),
        (Any, {}, [1], [1]),
        (Colour, {"$ref": "#/$defs/Colour"}, "blue", Colour.BLUE),
        (Point, {"$ref": "#/$defs/Point"}, {"x": 1.0}, Point(1, 1.0)),
        (Node, {"$ref": "#/$defs/Node"}, {"title": "a", "children": {}}, Node(title="a")),
        (Address, {"$ref": "#/$defs/Address"}, {"street": "A"}, {"street": "A"}),
        (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}, "a", "a"),
        (int | str, {"anyOf": [INTEGER, TEXT]}, "x", "x"),
        (Optional[int], MAYBE, None, None),  # noqa: UP045
        (Union[int, None], MAYBE, 2.0, 2),  # noqa: UP007
        (dt.datetime, {**TEXT, "format": "date-time"}, "2024-05-01T10:00:00", dt.datetime(2024, 5, 1, 10)),
        (dt.date, {**TEXT, "format": "date"}, "2024-05-01", dt.date(2024, 5, 1)),
        (decimal.Decimal, None, 0.1, decimal.Decimal("0.1")),
        (
            dt.timedelta,
            {"anyOf": [{"type": "number"}, {**TEXT, "format": "duration"}]},
            90,
            dt.timedelta(seconds=90),
        ),
        (bytes, {**TEXT, "format": "binary"}, b"\xff\x00", b"\xff\x00"),
        (list[str], {"type": "array", "items": TEXT}, {}, []),
        (set[int], {"type": "array", "items": INTEGER}, [1, 2.0], {1, 2}),
        (tuple[int, str], None, [1, "x"], (1, "x")),
        (dict[str, int], {"type": "object", "additionalProperties": INTEGER}, {"a": 1.0}, {"a": 1}),
        (
            Annotated[int, Field(description="between", ge=1, le=9)],
            {"description": "between", **INTEGER, "minimum": 1, "maximum": 9},
            3,
            3,
        ),
    ],
    ids=str,
)
def test_hints_become_schemas_and_values_arrive_in_their_types(
    annotation: Any, schema: Any, given: Any, value: Any
) -> None:
    def f(a): ...

    f.__annotations__["a"] = annotation
    taker = Tool.from_function(f)
    assert schema is None or properties(taker)["a"] == schema
    assert taker.parameters["required"] == ["a"]
    ((), arrived) = taker.plan.arguments(taker.bind({"a": given}), None, taker.path, taker.binder)
    assert arrived == {"a": value}
    assert type(arrived["a"]) is type(value)


def test_definitions_of_types() -> None:
    @tool
    def f(anything, colour: Colour, point: Point, address: Address) -> None: ...

    assert properties(f)["anything"] == {}
    assert f.parameters["required"] == ["anything", "colour", "point", "address"]
    assert f.parameters["$defs"]["Colour"] == {"enum": ["red", "blue"], "type": "string"}
    assert f.parameters["$defs"]["Point"] == {
        "type": "object",
        "properties": {"x": INTEGER, "y": {"type": "number", "default": 1.0}},
        "required": ["x"],
    }
    assert f.parameters["$defs"]["Address"]["required"] == ["street"]
    assert f.returns == NULL


def test_titles_go_but_a_property_called_title_stays() -> None:
    made = Tool.from_function(lambda node: node, name="f")
    assert (made.parameters["properties"], made.returns) == ({"node": {}}, None)

    def put(node: Node, title: str = "x") -> Node: ...  # type: ignore[empty-body]

    made = Tool.from_function(put)
    assert set(properties(made)) == {"node", "title"}
    assert made.parameters["$defs"]["Node"]["properties"]["title"] == {"type": "string"}
    assert '"title": "' not in str(made.parameters).replace("'", '"')
    assert made.returns is not None and made.returns["$ref"] == "#/$defs/Node"
    assert made.bind({"node": {"title": "a", "children": [{"title": "b"}]}})


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (Any, None),
        (None, {"type": "null"}),
        (list[dict[Any, Any]], {"type": "array", "items": {"type": "object", "additionalProperties": True}}),
        (
            list[dict],  # type: ignore[type-arg]  # people write it so
            {"type": "array", "items": {"type": "object", "additionalProperties": True}},
        ),
        (decimal.Decimal, {"anyOf": [{"type": "number"}, {"type": "string"}]}),
        (object, None),
        (type("Frame", (), {}), None),
    ],
)
def test_return_schemas(annotation: Any, expected: Any) -> None:
    def f(): ...

    f.__annotations__["return"] = annotation
    assert Tool.from_function(f).returns == expected


class Bill(BaseModel):
    total: decimal.Decimal
    due: dt.timedelta = dt.timedelta(hours=1)
    note: str = ""
    secret: str = Field(default="", exclude=True)


@dataclasses.dataclass
class Visit:
    cost: decimal.Decimal
    lasts: dt.timedelta = dt.timedelta(0)


class Extra(TypedDict):
    note: NotRequired[str]


@pytest.mark.parametrize(
    ("annotation", "value", "text"),
    [
        (Bill, Bill(total=decimal.Decimal("1.50")), "{total: string, due: string, note: string}"),
        (Visit, Visit(decimal.Decimal("1.5")), "{cost: number|string, lasts: number}"),
        (Extra, {}, "{note?: string}"),
    ],
)
def test_results_are_shown_as_they_arrive(annotation: Any, value: Any, text: str) -> None:
    def f(): ...

    f.__annotations__["return"] = annotation
    made = Tool.from_function(f, validate_result=True)
    assert render(made, "signature") == f"f() -> {text}"
    made.convert_result(value)  # the value fits what is shown


def test_values_of_strict_models_are_read_as_json() -> None:
    class Meeting(BaseModel):
        model_config = ConfigDict(strict=True)
        when: dt.datetime

    @tool
    def f(meeting: Meeting) -> Any:
        return meeting.when

    assert f.invoke(f.bind({"meeting": {"when": "2024-05-01T10:00:00Z"}})) == dt.datetime(2024, 5, 1, 10, tzinfo=dt.UTC)


def test_problems_that_only_pydantic_sees_are_listed_together() -> None:
    def even(value: int) -> int:
        if value % 2:
            raise ValueError("must be even")
        return value

    @tool
    def f(when: dt.datetime, numbers: list[Annotated[int, AfterValidator(even)]], limit: int = 10) -> None: ...

    bound = f.bind({"when": "tomorrow", "numbers": [2, 3]})
    with pytest.raises(ArgumentError) as raised:
        f.invoke(bound, first_index=1)
    assert raised.value.message == (
        "invalid arguments for f:\n"
        '- when: input should be a valid datetime or date, input is too short, got "tomorrow" (string)\n'
        "- numbers[2]: must be even, got 3 (integer)\n"
        "valid parameters: when* (string), numbers* (integer[]), limit (integer, default 10)"
    )
    assert raised.value.code == "invalid"


def test_defaults_that_json_cannot_carry_stay_with_the_function() -> None:
    missing = object()

    @tool
    def f(
        a: int = 1,
        b: Any = missing,
        c: Point = Point(1),  # noqa: B008 - a default that is an object is what is tested
        d: dt.date = dt.date(2024, 1, 2),
        e: list[int] = [],  # noqa: B006 - as above
    ) -> Any:
        return a, b, c, d, e

    assert {name: part.get("default", "none") for name, part in properties(f).items()} == {
        "a": 1,
        "b": "none",
        "c": {"x": 1, "y": 1.0},
        "d": "2024-01-02",
        "e": [],
    }
    result = f.invoke(f.bind())
    assert result[1] is missing
    assert result == (1, missing, Point(1), dt.date(2024, 1, 2), [])
    result[4].append(5)
    assert f.bind()["e"] == []


def test_none_as_default_makes_a_parameter_optional() -> None:
    @tool
    def f(
        limit: int = None,  # type: ignore[assignment] # noqa: RUF013 - written so by many
        name: Annotated[str, Field(description="who")] = None,  # type: ignore[assignment] # noqa: RUF013
    ) -> Any:
        return limit, name

    assert properties(f)["limit"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert properties(f)["name"]["description"] == "who"
    assert "required" not in f.parameters
    assert f.invoke(f.bind({"limit": None})) == (None, None)


def test_pydantic_field_defaults_and_aliases() -> None:
    @tool
    def f(
        a: int = Field(3, ge=1, description="the a"),
        b: Annotated[list[int], Field(default_factory=lambda: [1])] = ...,  # type: ignore[assignment]
        c: Annotated[int, Field(alias="theC")] = 0,
    ) -> Any:
        return a, b, c

    assert properties(f)["a"] == {"description": "the a", "minimum": 1, "type": "integer", "default": 3}
    assert "theC" in properties(f)
    assert f.invoke(f.bind({"theC": 5, "b": [2]})) == (3, [2], 5)


def test_variable_arguments() -> None:
    @tool
    def spread(first: str, *rest: int, flag: bool = False, **more: float) -> Any:
        return first, rest, flag, more

    assert properties(spread)["rest"] == {"type": "array", "items": {"type": "integer"}}
    assert spread.parameters["additionalProperties"] == {"type": "number"}
    assert spread.parameters["required"] == ["first"]
    assert spread.invoke(spread.bind({"first": "a"})) == ("a", (), False, {})
    bound = spread.bind({"first": "a", "rest": [1, 2.0], "x": 1, "flag": True})
    assert spread.invoke(bound) == ("a", (1, 2), True, {"x": 1.0})
    with pytest.raises(ArgumentError, match=r'- x: expected number, got "1" \(string\)'):
        spread.bind({"first": "a", "x": "1"})

    @tool
    def open_ended(**more: Any) -> Any:
        return more

    assert open_ended.invoke(open_ended.bind({"a": [1]})) == {"a": [1]}

    class Options(TypedDict, total=False):
        depth: int

    @tool
    def unpacked(**options: Unpack[Options]) -> Any:
        return options

    assert unpacked.parameters["additionalProperties"] is False
    assert unpacked.invoke(unpacked.bind({"depth": 2.0})) == {"depth": 2}


def test_typed_dicts_of_the_standard_library() -> None:
    @tool
    def hire(who: Person, beside: Annotated[list[Employee] | None, Field(max_length=2)] = None) -> list[Employee]:
        return [{**who, "manager": None}, *(beside or [])]  # type: ignore[typeddict-item]  # "reports" is not required

    assert properties(hire)["who"] == {"$ref": "#/$defs/Person"}
    assert properties(hire)["beside"]["anyOf"][0]["maxItems"] == 2
    person = hire.parameters["$defs"]["Person"]
    assert person["properties"]["name"] == {"type": "string", "description": "in full"}
    assert person["required"] == ["name", "address"]
    assert hire.parameters["$defs"]["Employee"]["required"] == ["name", "address", "manager"]
    assert hire.returns is not None and hire.returns["items"] == {"$ref": "#/$defs/Employee"}
    ann = {"name": "Ann", "address": {"street": "A"}}
    bound = hire.bind({"who": ann, "beside": [{**ann, "manager": ann, "reports": {"a": [ann]}}]})
    assert hire.invoke(bound)[1]["reports"] == {"a": [ann]}
    with pytest.raises(ArgumentError, match=r"- who\.address: missing"):
        hire.bind({"who": {"name": "Ann"}})


def test_positional_only_parameters_and_gaps_between_them() -> None:
    nothing = object()

    @tool
    def f(a: int, b: Any = nothing, c: int = 3, /, d: int = 4) -> Any:
        return a, b is nothing, c, d

    assert f.invoke(f.bind({"a": 1})) == (1, True, 3, 4)
    assert f.invoke(f.bind([1, "x", 2, 1])) == (1, False, 2, 1)

    @tool
    def g(a: int = 1, b: Any = nothing, *rest: int) -> Any:
        return a, b is nothing, rest

    assert g.invoke(g.bind({"rest": [7]})) == (1, True, (7,))


class Database:
    pass


def test_injected_parameters_are_not_in_the_schema() -> None:
    database = Database()

    @tool
    def f(
        a: int,
        context: Context,
        db: Annotated[Database, Injected],
        other: Annotated[Any, Injected("user")],
        maybe: Annotated[str, Injected] = "nobody",
        also: Context | None = None,
    ) -> Any:
        return a, context.run_id, db, other, maybe, also is context

    assert list(properties(f)) == ["a"]
    context = Context(run_id="r1", extra={"db": database, "user": "ann"})
    assert f.invoke(f.bind([1]), context) == (1, "r1", database, "ann", "nobody", True)
    with pytest.raises(ToolError) as raised:
        f.invoke({"a": 1}, Context())
    assert raised.value.code == "missing_context"
    assert raised.value.message == "f needs 'db', which the host did not supply"
    with pytest.raises(ArgumentError, match="- db: unknown parameter"):
        f.bind({"a": 1, "db": 1})


def test_types_without_a_schema_are_named() -> None:
    def f(a: int, db: Database) -> None: ...

    with pytest.raises(ToolDefinitionError) as raised:
        Tool.from_function(f)
    assert str(raised.value) == (
        "tool 'f': parameter 'db' has type Database, which has no JSON Schema; use JSON-like types, a dataclass or "
        "a pydantic model, or Annotated[..., Injected] for what the host supplies"
    )


def test_types_local_to_a_function_are_found() -> None:
    class Local(BaseModel):
        a: int

    def f(item: Local) -> list[Local]:
        return [item]

    made = Tool.from_function(f)
    assert made.parameters["$defs"]["Local"]["properties"] == {"a": {"type": "integer"}}
    assert made.invoke(made.bind({"item": {"a": 1}})) == [Local(a=1)]


def test_annotations_that_cannot_be_resolved_say_how_to() -> None:
    def f(a: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(ToolDefinitionError, match=r"^f has an annotation that cannot be resolved: name 'Missing'"):
        Tool.from_function(f)


class Place(NamedTuple):
    x: int
    y: int = 2


def test_a_named_tuple_is_taken_in_order_and_by_name() -> None:
    def at(place: Place, more: set[str]) -> list[int]:
        return [place.x, place.y, len(more)]

    with Sandbox([at]) as box:
        ordered = box.run("return tools.at{place = {1, 4}, more = {'a', 'a'}}")
        named = box.run("return tools.at{place = {x = 1}, more = {}}")
        wrong = box.run("return tools.at{place = {x = 1, z = 1}, more = {}}")
    assert (ordered.value, named.value) == ([1, 4, 1], [1, 2, 0])
    assert wrong.error is not None and "place.z: unknown key; known keys: x, y" in wrong.error.message


@pytest.mark.parametrize(
    ("language", "source", "value"),
    [
        ("lua", "return tools.add('a', 1, 2)", "a 3 "),
        ("lua", "return tools.add('a', {1, 2})", "a 3 "),
        ("lua", "return tools.add('a')", "a 0 "),
        ("lua", "return tools.add{label = 'a', numbers = {1}, unit = 'm'}", "a 1 m"),
        ("rhai", 'tools::add("a", 1, 2)', "a 3 "),
        ("python", "tools.add('a', 1, 2)", "a 3 "),
        ("python", "tools.add('a', 1, 2, unit='m')", "a 3 m"),
        ("python", "tools.add('a', [1, 2])", "a 3 "),
    ],
)
def test_further_values_by_position_are_those_of_args(language: Any, source: str, value: str) -> None:
    def add(label: str, *numbers: int, unit: str = "") -> str:
        return f"{label} {sum(numbers)} {unit}"

    with Sandbox([add], language=language) as box:
        run = box.run(source)
    assert (run.value, run.error) == (value, None)


class Order(BaseModel):
    number: int
    street: str
    city: str
    zip: str


class User(TypedDict):
    name: str
    street: str
    city: str
    zip: str


def test_a_type_has_the_name_of_its_class() -> None:
    def load(id: int) -> Order: ...  # type: ignore[empty-body]
    def fetch(id: int) -> Order: ...  # type: ignore[empty-body]
    def someone() -> User: ...  # type: ignore[empty-body]
    def change(user: User) -> None: ...

    with Sandbox([load, fetch, someone, change]) as box, CodeMode(box) as mode:
        lines = mode.catalog.text.splitlines()
    assert sorted(lines[1:3]) == [
        "Order = {number: integer, street: string, city: string, zip: string}",
        "User = {name: string, street: string, city: string, zip: string}",
    ]
    assert lines[4:] == [
        "- change(user: User) -> null",
        "- fetch(id: integer) -> Order",
        "- load(id: integer) -> Order",
        "- someone() -> User",
    ]
