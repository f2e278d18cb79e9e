"""Tests of binding: named and positional calls, defaults, coercions, and what a wrong call is told."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field

from moonbox.errors import ArgumentError, ToolDefinitionError
from moonbox.schema.coercion import is_json
from moonbox.tools.tool import Tool, tool
from tests.counting import count_calls
from tests.long import times
from tests.tools.making import made, refusal


@tool
def get_expenses(
    employee_id: int, limit: int = 10, kind: Literal["travel", "food"] | None = None
) -> list[dict[str, Any]]:
    """Expense items of one employee."""
    return []


VALID = 'valid parameters: employee_id* (integer), limit (integer, default 10), kind ("travel"|"food"|null)'


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"employee_id": 7}, {"employee_id": 7, "limit": 10}),
        ([7], {"employee_id": 7, "limit": 10}),
        ((7, 3), {"employee_id": 7, "limit": 3}),
        ([7, 3, "food"], {"employee_id": 7, "limit": 3, "kind": "food"}),
        ([{"employee_id": 7, "limit": 1}], {"employee_id": 7, "limit": 1}),
        ([[7, 3]], {"employee_id": 7, "limit": 3}),
        ({1: 7, "limit": 2}, {"employee_id": 7, "limit": 2}),
        ([{1: 7, 2: 5}], {"employee_id": 7, "limit": 5}),
        ([7, None, "food"], {"employee_id": 7, "limit": 10, "kind": "food"}),
        ({"employee_id": 7.0, "limit": 4.0}, {"employee_id": 7, "limit": 4}),
        ({"employee_id": 7, "kind": None}, {"employee_id": 7, "kind": None, "limit": 10}),
        ({"employee_id": 7, "limit": None}, {"employee_id": 7, "limit": 10}),
    ],
)
def test_ways_of_calling(arguments: Any, expected: dict[str, Any]) -> None:
    bound = get_expenses.bind(arguments)
    assert bound == expected
    assert type(bound["employee_id"]) is int and type(bound["limit"]) is int


@pytest.mark.parametrize("arguments", [None, {}, [], [{}], [[]]])
def test_no_arguments(arguments: Any) -> None:
    assert made({"a": {"type": "integer", "default": 1}}).bind(arguments) == {"a": 1}


def test_what_was_given_is_never_changed() -> None:
    given_arguments = {"employee_id": 7.0}
    get_expenses.bind(given_arguments)
    assert given_arguments == {"employee_id": 7.0}
    nested = {"rows": [{"n": 1.0, "x": None}]}
    rows = made(
        {
            "rows": {
                "type": "array",
                "items": {"type": "object", "properties": {"n": {"type": "integer"}, "x": {"type": "string"}}},
            }
        }
    )
    assert rows.bind(nested) == {"rows": [{"n": 1}]}
    assert nested == {"rows": [{"n": 1.0, "x": None}]}


def test_every_problem_is_listed_at_once() -> None:
    assert refusal(get_expenses, {"employe_id": "7", "limit": 1.5, "kind": "foood"}) == (
        "invalid arguments for get_expenses:\n"
        "- employee_id: missing, expected integer\n"
        "- employe_id: unknown parameter; did you mean 'employee_id'?\n"
        "- limit: expected integer, got 1.5 (number)\n"
        '- kind: expected one of "travel", "food", got "foood" (string); did you mean \'food\'?\n' + VALID
    )


def test_arguments_that_fit_no_parameter() -> None:
    assert "- employee_id: given twice, by name and as positional argument 1\n" in refusal(
        get_expenses, {1: 5, "employee_id": 7}
    )
    assert '- expected named arguments or an array of them, got "x" (string)\n' in refusal(get_expenses, "x")
    assert refusal(get_expenses, [1, 2, "food", 4]) == (
        "invalid arguments for get_expenses:\n"
        "- got 4 positional arguments; get_expenses takes at most 3 (employee_id, limit, kind)\n" + VALID
    )
    assert refusal(made({}), [1]) == (
        "invalid arguments for f:\n- got 1 positional argument; f takes no arguments\nit takes no parameters"
    )


def test_paths_count_as_the_callers_language_does() -> None:
    order = made({"items": {"type": "array", "items": {"type": "object", "properties": {"price": {"type": "number"}}}}})
    wrong = {"items": [{"price": 1}, {"price": "x"}]}
    assert '- items[1].price: expected number, got "x" (string)' in refusal(order, wrong)
    assert '- items[2].price: expected number, got "x" (string)' in refusal(order, wrong, first_index=1)
    table = made({"a": {"type": "object", "properties": {"odd-name": {"type": "integer"}}}, "b-c": {"type": "integer"}})
    message = refusal(table, {"a": {"odd-name": "x"}, "b-c": "y"})
    assert '- a["odd-name"]: expected integer' in message
    assert "- b-c: expected integer" in message


def test_positional_arguments_follow_the_signature() -> None:
    mixed = made(
        {"optional": {"type": "string"}, "needed": {"type": "integer"}, "also": {"type": "integer"}}, ("needed", "also")
    )
    assert mixed.parameter_names == ("needed", "also", "optional")
    assert mixed.bind([1, 2, "x"]) == {"needed": 1, "also": 2, "optional": "x"}


OBJECT = {"type": "object"}


@pytest.mark.parametrize(
    ("properties", "required", "arguments", "expected"),
    [
        ({"filter": OBJECT}, ("filter",), [{"filter": {"name": "x"}}], {"filter": {"name": "x"}}),
        ({"filter": OBJECT, "limit": {}}, ("filter",), [{"filter": {}, "limit": 2}], {"filter": {}, "limit": 2}),
        ({"filter": OBJECT}, (), [{}], {}),
        ({"filter": OBJECT}, ("filter",), [[{"name": "x"}]], {"filter": {"name": "x"}}),
        ({"filter": OBJECT}, ("filter",), [{1: {"name": "x"}}], {"filter": {"name": "x"}}),
        ({"list": {"type": "array"}}, ("list",), [[1, 2]], {"list": [1, 2]}),
        ({"any": {}}, ("any",), [[1]], {"any": [1]}),
        ({"filter": OBJECT}, ("filter",), [{"filter": {10: "x"}}], {"filter": {"10": "x"}}),
        ({"filter": OBJECT, "n": {}}, ("filter",), [{"a": 1}, 5], {"filter": {"a": 1}, "n": 5}),
    ],
)
def test_one_table(properties: Any, required: Any, arguments: Any, expected: Any) -> None:
    assert made(properties, required).bind(arguments) == expected


WIPE = made({"where": OBJECT, "dry_run": {"type": "boolean", "default": False}}, ("where",))
WIPE_VALID = "valid parameters: where* (object), dry_run (boolean, default false)"


@pytest.mark.parametrize(
    ("table", "problems"),
    [
        ({"status": "old", "dry_run": True}, ["where: missing, expected object", "status: unknown parameter"]),
        ({"status": "old"}, ["where: missing, expected object", "status: unknown parameter"]),
        (
            {"wher": {"a": 1}},
            ["where: missing, expected object", "wher: unknown parameter; did you mean 'where'?"],
        ),
        ({"where": {}, "dryrun": True}, ["dryrun: unknown parameter; did you mean 'dry_run'?"]),
        ({}, ["where: missing, expected object"]),
        ([], ["where: missing, expected object"]),
        ({10: "x"}, ["got a table with the key 10; f takes at most 2 (where, dry_run)"]),
        ({0: "x"}, ["got a table with the key 0; f takes at most 2 (where, dry_run)"]),
        ({b"\xff": 1}, ["expected the name of a parameter, got a string that is not UTF-8"]),
    ],
)
@pytest.mark.parametrize("is_json_call", [False, True])
def test_a_table_with_names_is_never_the_first_parameters_value(
    table: Any, problems: list[str], is_json_call: bool
) -> None:
    lines = ["invalid arguments for f:", *(f"- {problem}" for problem in problems), WIPE_VALID]
    for arguments in (table, [table]) if isinstance(table, dict) else ([table],):
        assert refusal(WIPE, arguments, is_json_call=is_json_call).splitlines() == lines


def test_a_key_of_a_parameters_object_is_named_with_the_parameter() -> None:
    filter_ = {"type": "object", "properties": {"status": {"type": "string"}}}
    find = made({"filter": filter_, "limit": {"type": "integer"}}, ("filter",))
    assert "- status: unknown parameter; did you mean 'filter.status'?\n" in refusal(
        find, [{"status": "open", "limit": 3}]
    )


def test_one_array_is_positional_where_json_is_sent() -> None:
    total = made({"numbers": {"type": "array"}}, ("numbers",))
    assert total.bind([[1, 2]]) == {"numbers": [1, 2]}
    assert "- got 2 positional arguments; f takes at most 1 (numbers)\n" in refusal(total, [[1, 2]], is_json_call=True)
    assert total.bind([[[1, 2]]], is_json_call=True) == {"numbers": [1, 2]}


REFS = {
    "$defs": {
        "Item": {
            "type": "object",
            "properties": {"n": {"type": "integer"}, "tags": {"type": "array"}, "next": {"$ref": "#/$defs/Item"}},
        }
    }
}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "integer"}, 3.0, 3),
        ({"type": "number"}, 3.0, 3.0),
        ({"type": ["integer", "null"]}, 3.0, 3),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, 3.0, 3),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, 3.0, 3.0),
        ({"enum": [1, 2]}, 2.0, 2),
        ({"const": 2}, 2.0, 2),
        ({"allOf": [{"type": "integer"}]}, 3.0, 3),
        ({"type": "array"}, {}, []),
        ({"type": "object"}, [], {}),
        ({"type": ["array", "object"]}, {}, {}),
        ({"anyOf": [{"type": "array"}, {"type": "null"}]}, {}, []),
        ({"oneOf": [{"type": "object"}, {"type": "string"}]}, [], {}),
        ({}, {}, {}),
        ({"items": {"type": "integer"}}, {}, []),
        ({"properties": {"a": {}}}, [], {}),
        ({"type": "array", "items": {"type": "integer"}}, [1.0, 2], [1, 2]),
        ({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "array"}]}, [1.0, {}], [1, []]),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1.0}, {"a": 1}),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {1: 1.0}, {"1": 1}),
        (
            {"$ref": "#/$defs/Item"},
            {"n": 1.0, "tags": {}, "next": {"n": 2.0, "next": []}},
            {"n": 1, "tags": [], "next": {"n": 2, "next": {}}},
        ),
        ({"anyOf": [{"$ref": "#/$defs/Item"}, {"type": "null"}]}, {"n": 1.0, "tags": None}, {"n": 1}),
        ({"type": "array", "items": {"$ref": "#/$defs/Item"}}, [{"n": 1.0}, []], [{"n": 1}, {}]),
    ],
)
def test_coercions(schema: Any, value: Any, expected: Any) -> None:
    result = made({"a": schema}, ("a",), **REFS).bind({"a": value})["a"]
    assert result == expected
    assert repr(result) == repr(expected)  # 3 and 3.0 are equal


def test_coercion_in_a_union_follows_the_discriminating_field() -> None:
    shape = {
        "oneOf": [
            {
                "type": "object",
                "properties": {"kind": {"const": "circle"}, "size": {"type": "number"}, "tags": {"type": "object"}},
            },
            {
                "type": "object",
                "properties": {"kind": {"const": "grid"}, "size": {"type": "integer"}, "tags": {"type": "array"}},
            },
        ]
    }
    shapes = made({"shape": shape})
    assert (
        repr(shapes.bind({"shape": {"kind": "grid", "size": 2.0, "tags": {}}})["shape"])
        == "{'kind': 'grid', 'size': 2, 'tags': []}"
    )
    assert (
        repr(shapes.bind({"shape": {"kind": "circle", "size": 2.0, "tags": []}})["shape"])
        == "{'kind': 'circle', 'size': 2.0, 'tags': {}}"
    )
    assert '- shape.size: expected integer, got "x" (string)' in refusal(
        shapes, {"shape": {"kind": "grid", "size": "x"}}
    )


def test_what_fits_as_it_came_is_not_lost_to_a_wrong_guess() -> None:
    branches = [
        {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "object"}}, "minProperties": 2},
        {"type": "object", "properties": {"a": {}, "b": {"type": "array"}}, "required": ["a"], "maxProperties": 1},
    ]
    guessed = made({"x": {"anyOf": branches}})
    assert guessed.bind({"x": {"a": None}}) == {"x": {"a": None}}


def test_unknown_keys() -> None:
    assert made({"a": {}}, additionalProperties=True).bind({"b": 1}) == {"b": 1}
    assert made({"a": {}}, additionalProperties={"type": "integer"}).bind({"b": 1.0}) == {"b": 1}
    assert made({"a": {}}, patternProperties={"^x-": {}}).bind({"x-b": 1}) == {"x-b": 1}
    assert Tool.from_schema(name="f", parameters={"type": "object"}, call=print).bind({"b": 1}) == {"b": 1}


@pytest.mark.parametrize(
    ("schema", "value", "problem"),
    [
        ({"type": "integer"}, "7", 'expected integer, got "7" (string)'),
        ({"type": "integer"}, True, "expected integer, got true"),
        ({"minimum": 1}, 0, "expected at least 1, got 0 (integer)"),
        ({"exclusiveMaximum": 9}, 9, "expected less than 9, got 9 (integer)"),
        ({"multipleOf": 5}, 7, "expected a multiple of 5, got 7 (integer)"),
        ({"type": "string", "minLength": 3}, "ab", 'expected at least 3 characters, got 2 in "ab" (string)'),
        ({"type": "string", "minLength": 3}, "", "expected at least 3 characters, got the empty string"),
        ({"type": "string", "pattern": "^[a-z]+$"}, "A1", 'expected text that matches ^[a-z]+$, got "A1" (string)'),
        ({"type": "array", "maxItems": 2}, [1, 2, 3], "expected at most 2 items, got 3"),
        (
            {"type": "array", "uniqueItems": True},
            [1, 1],
            "expected items without duplicates, got [1,1] (array)",
        ),
        ({"const": "x"}, "y", 'expected "x", got "y" (string)'),
        ({"enum": [1, 2]}, 3, "expected one of 1, 2, got 3 (integer)"),
        ({"type": ["integer", "null"]}, "x", 'expected integer|null, got "x" (string)'),
        ({"type": "number"}, float("nan"), "expected number, got nan, which is not a JSON number"),
        ({"type": "string"}, b"\xff", "expected string, got a string that is not UTF-8"),
        (
            {"type": "array"},
            {1: "a", 3: "b"},
            'expected array, got {"1":"a","3":"b"} (object); the indexes of an array run from 1 without gaps',
        ),
        ({"type": "array"}, {"a": 1}, 'expected array, got {"a":1} (object)'),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, [], "expected integer|string, got [] (array)"),
        ({"oneOf": [{"minimum": 1}, {"minimum": 2}]}, 5, "expected exactly one of any, got 5 (integer)"),
        ({"type": "string"}, "x" * 99, None),
        ({"type": "integer"}, "x" * 99, f'expected integer, got "{"x" * 58}… (string)'),
        ({"type": "integer"}, list(range(30)), "expected integer, got an array of 30 items"),
        (False, 1, "no value is allowed here, got 1 (integer)"),
    ],
)
def test_wordings(schema: Any, value: Any, problem: str | None) -> None:
    one = made({"a": schema})
    if problem is None:
        assert one.bind({"a": value}) == {"a": value}
    else:
        assert refusal(one, {"a": value}).splitlines()[1] == f"- a: {problem}"


def test_keywords_without_a_wording_still_refuse() -> None:
    pair = made({"a": {}, "b": {}}, dependentRequired={"a": ["b"]})
    assert refusal(pair, {"a": 1}).splitlines()[1] == (
        '- the arguments together do not satisfy \'dependentRequired\': {"a":["b"]} (object)'
    )
    nested = made({"a": {"not": {"type": "integer"}}})
    assert refusal(nested, {"a": 1}).splitlines()[1] == "- the arguments do not fit the schema"


def test_older_drafts() -> None:
    old = made(
        {
            "a": {"$ref": "#/definitions/N"},
            "day": {"type": "string", "format": "date-time"},
            "pair": {"type": "array", "items": [{"type": "integer"}, {"type": "string"}]},
        },
        definitions={"N": {"type": "integer"}},
        **{"$schema": "http://json-schema.org/draft-07/schema#"},
    )
    assert old.bind({"a": 1.0, "pair": [2.0, "x"]}) == {"a": 1, "pair": [2, "x"]}
    assert "- pair[0]: expected integer" in refusal(old, {"pair": ["x"]})
    assert old.bind({"day": "x"}) == {"day": "x"}, "formats are not checked"


def test_defaults_are_copied_and_must_fit_their_own_schema() -> None:
    assert made({"a": {"type": "integer", "default": ""}}).bind({}) == {}
    assert made({"a": {"type": ["integer", "null"], "default": None}}).bind({}) == {"a": None}
    lists = {"items": {"$ref": "#/$defs/Lists"}, "type": "array"}
    loop = made(
        {name: {"$ref": "#/$defs/Lists", "default": [[], given]} for name, given in (("a", []), ("b", 1))},
        **{"$defs": {"Lists": lists}},
    )
    assert loop.bind({}) == {"a": [[], []]}
    listing = made({"a": {"type": "array", "default": []}})
    listing.bind()["a"].append(1)
    assert listing.bind() == {"a": []}


def test_the_narration_parameter_is_hidden_and_filled_in() -> None:
    narrated = made({"human_intent": {"type": "string"}, "a": {"type": "integer"}}, ("human_intent", "a"))
    assert narrated.bind([1]) == {"a": 1, "human_intent": ""}
    assert narrated.bind({"a": 1, "human_intent": "because"}) == {"a": 1, "human_intent": "because"}
    assert (
        refusal(narrated, {})
        == "invalid arguments for f:\n- a: missing, expected integer\nvalid parameters: a* (integer)"
    )


def test_many_problems_are_cut_short() -> None:
    lines = refusal(made({"a": {"type": "array", "items": {"type": "integer"}}}), {"a": ["x"] * 50_000}).splitlines()
    assert len(lines) == 15
    assert lines[13] == "- … and more"


def test_a_value_made_to_match_every_branch_of_a_recursive_union_costs_little() -> None:
    branches = [
        {"type": "object", "properties": {"c": {"$ref": "#/$defs/N"}, f"k{n}": {"type": "string"}}} for n in range(6)
    ]
    tree = made({"q": {"$ref": "#/$defs/N"}}, **{"$defs": {"N": {"anyOf": [*branches, {"type": "integer"}]}}})
    value: Any = "bad"
    for _ in range(60):
        value = {"c": value}
    assert count_calls(lambda: refusal(tree, {"q": value})) < 200_000
    message = refusal(tree, {"q": value})
    assert message.splitlines()[1] == f'- q{".c" * 60}: expected object|integer, got "bad" (string)'


def test_a_schema_that_refers_to_itself_without_end() -> None:
    union = {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A"}]}
    loop = made({"a": {"$ref": "#/$defs/A"}}, **{"$defs": {"A": union}})
    assert loop.bind({"a": 1.0}) == {"a": 1.0}


def _laughs(levels: int) -> dict[str, Any]:
    levels_of_ten = {f"L{n}": {"anyOf": [{"$ref": f"#/$defs/L{n + 1}"}] * 10} for n in range(levels)}
    return {"$defs": {**levels_of_ten, f"L{levels}": {"type": "integer"}}}


def test_a_schema_that_grows_tenfold_with_each_level() -> None:
    few = made({"a": {"$ref": "#/$defs/L0"}}, **_laughs(4))
    assert repr(few.bind({"a": 3.0})) == "{'a': 3}"
    assert '- a: expected integer, got "x" (string)' in refusal(few, {"a": "x"})
    with pytest.raises(ToolDefinitionError, match="nests too many alternatives within alternatives"):
        made({"a": {"$ref": "#/$defs/L0"}}, **_laughs(30))


def test_a_chain_of_references_without_end_in_sight() -> None:
    chain = {f"C{n}": {"anyOf": [{"$ref": f"#/$defs/C{n + 1}"}]} for n in range(1000)}
    message = r"^tool 'f': parameters cannot be validated: its schema has a chain of references that is too long$"
    with pytest.raises(ToolDefinitionError, match=message):
        made({"a": {"$ref": "#/$defs/C0"}}, **{"$defs": {**chain, "C1000": {}}})


def test_values_nested_without_end_are_refused() -> None:
    tree = made(
        {"a": {"$ref": "#/$defs/N"}}, **{"$defs": {"N": {"type": "object", "properties": {"c": {"$ref": "#/$defs/N"}}}}}
    )
    value: Any = {}
    for _ in range(3000):
        value = {"c": value}
    assert "- the arguments are nested too deeply\n" in refusal(tree, {"a": value})


KINDS = ("integer", "string", "number", "boolean", "null")
SIMPLE = st.sampled_from([{}, {"enum": ["a", 1]}, *({"type": kind} for kind in KINDS)])
SCHEMAS = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.builds(lambda item: {"type": "array", "items": item}, inner),
        st.builds(lambda parts: {"anyOf": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda parts: {"oneOf": parts}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(
            lambda named, closed: {
                "type": "object",
                "properties": named,
                "required": sorted(named)[:1],
                "additionalProperties": not closed,
            },
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            st.booleans(),
        ),
    ),
    max_leaves=6,
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats() | st.text(max_size=3) | st.binary(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd") | st.integers(1, 3), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=times(300), deadline=None)
@given(schema=SCHEMAS, arguments=st.builds(lambda value: {"a": value}, VALUES) | st.lists(VALUES, max_size=3))
def test_whatever_comes_is_bound_validly_or_refused(schema: Any, arguments: Any) -> None:
    anything = made({"a": schema, "b": {}}, ("a",))
    try:
        bound = anything.bind(arguments)
    except ArgumentError as error:
        assert error.message.startswith("invalid arguments for f:\n- ")
    else:
        if is_json(bound):
            jsonschema_rs.validate(anything.parameters, bound)


def test_messages_for_annotated_functions() -> None:
    @tool
    def pay(amount: Annotated[float, Field(gt=0, description="how much")], to: list[str]) -> None: ...

    assert refusal(pay, {"amount": 0, "to": "ann"}) == (
        "invalid arguments for pay:\n"
        "- amount: expected more than 0, got 0 (integer)\n"
        '- to: expected string[], got "ann" (string)\n'
        "valid parameters: amount* (number), to* (string[])"
    )
