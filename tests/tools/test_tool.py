"""Tests of Tool and @tool."""

from __future__ import annotations

import asyncio
import functools
import inspect
from typing import Any

import pytest

from moonbox.errors import ToolDefinitionError, UsageError
from moonbox.tools.function import Context
from moonbox.tools.hints import Hints
from moonbox.tools.tool import Tool, tool
from moonbox.tools.toolbox import Toolbox


def test_bare_decorator_keeps_the_function_callable_and_recognisable() -> None:
    @tool
    def add(a: int, b: int = 2) -> int:
        """Add two numbers.

        Args:
            a: The first.
        """
        return a + b

    assert add(1) == 3
    assert add(a=1, b=5) == 6
    assert (add.name, add.path, add.description) == ("add", "add", "Add two numbers.")
    assert add.__name__ == "add"  # type: ignore[attr-defined]  # tools from schemas have none
    assert add.__doc__ is not None and add.__doc__.startswith("Add two")
    assert list(inspect.signature(add).parameters) == ["a", "b"]
    assert add.parameters == {
        "type": "object",
        "properties": {"a": {"description": "The first.", "type": "integer"}, "b": {"type": "integer", "default": 2}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert add.returns == {"type": "integer"}


def test_decorator_with_arguments() -> None:
    @tool(
        name="sum_up",
        namespace="maths",
        description="Sums.",
        policy="approve",
        hints={"read_only": True},
        timeout=1.5,
        max_concurrency=3,
        parse_json=False,
        tags=("numbers",),
    )
    def add(a: int) -> int:
        """Not this."""
        return a

    assert add.path == "maths.sum_up"
    assert add.description == "Sums."
    assert (add.policy, add.timeout, add.max_concurrency, add.parse_json) == ("approve", 1.5, 3, False)
    assert add.hints == Hints(read_only=True)
    assert add.tags == ("numbers",)
    with pytest.raises(UsageError, match=r"^unknown tool option 'polcy'; did you mean 'policy'\?"):
        tool(polcy="auto")  # type: ignore[call-overload]


def test_tools_are_compared_by_identity_and_hashable() -> None:
    first = Tool.from_function(lambda: 1, name="one")
    second = Tool.from_function(lambda: 1, name="one")
    assert first != second
    assert len({first, second}) == 2


def test_from_function_of_a_tool_is_the_tool_or_a_changed_copy() -> None:
    one = Tool.from_function(lambda x: x, name="one")
    assert Tool.from_function(one) is one
    other = Tool.from_function(one, policy="direct")
    assert (other.policy, other.name, one.policy) == ("direct", "one", "auto")
    assert other.binder is one.binder


def test_from_schema_takes_one_dict() -> None:
    numbers: dict[str, Any] = {"a": {"type": "number"}, "b": {"type": "number"}}
    made = Tool.from_schema(
        name="add",
        description="Adds.",
        parameters={"type": "object", "properties": numbers, "required": ["a"]},
        call=lambda args: args["a"] + args.get("b", 0),
        returns={"type": "number"},
        policy="auto",
        hints={"read_only": True},
    )
    numbers["a"]["type"] = "string"
    assert made.invoke(made.bind([1, 2])) == 3, "it has its own copy of the schema"
    assert made.hints.read_only is True
    assert not made.is_async
    now = Tool.from_schema(name="now", call=lambda args: 1)
    assert (now.parameters, now.bind()) == ({"type": "object", "properties": {}}, {})
    assert Tool.from_schema(name="keys", parameters={"type": "object"}, call=sorted).invoke({"b": 1, "a": 2}) == [
        "a",
        "b",
    ]


def test_from_schema_with_an_asynchronous_callable_and_context() -> None:
    async def answer(args: dict[str, Any], context: Context) -> str:
        return f"{args['a']} in {context.run_id}"

    made = Tool.from_schema(name="x", parameters={"type": "object", "properties": {"a": {}}}, call=answer)
    assert made.is_async
    assert asyncio.run(made.invoke({"a": 1}, Context(run_id="r1"))) == "1 in r1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": ""}, "a tool name must not be empty"),
        ({"name": 3}, "a tool name must be a string, not int"),
        ({"name": "a..b"}, "the tool name 'a..b' has an empty part; dots separate parts, as in 'github.create_issue'"),
        ({"name": " a"}, "the tool name ' a' has surrounding white space or a character that cannot be printed"),
        ({"name": "a\nb"}, "the tool name 'a\\nb' has surrounding white space or a character that cannot be printed"),
        (
            {"policy": "aprove"},
            "tool 'x': unknown policy 'aprove'; did you mean 'approve'?",
        ),
        ({"timeout": 0}, "tool 'x': timeout must be a number of seconds above 0, not 0"),
        ({"timeout": "1"}, "tool 'x': timeout must be a number of seconds above 0, not '1'"),
        ({"max_concurrency": 0}, "tool 'x': max_concurrency must be a whole number of at least 1, not 0"),
        ({"max_concurrency": True}, "tool 'x': max_concurrency must be a whole number of at least 1, not True"),
        (
            {"hints": {"readonly": True}},
            ("unknown hint 'readonly'; did you mean 'read_only'?"),
        ),
        ({"hints": {"risk": "huge"}}, "hint 'risk' must be low, medium or high, not 'huge'"),
        ({"hints": {"category": ""}}, "hint 'category' must be a word, not ''"),
        ({"hints": {"read_only": "yes"}}, "hint 'read_only' must be True, False or None, not 'yes'"),
        ({"parameters": [1]}, "tool 'x': parameters must be a JSON Schema (a dict), not list"),
        ({"parameters": {"type": "array"}}, "tool 'x': parameters must be a JSON Schema of type object, not array"),
        (
            {"parameters": {"type": "object", "properties": {"a": {"type": "strin"}}}},
            (
                "tool 'x': parameters['properties']['a']['type'] is not a valid JSON Schema: "
                "\"strin\" is not valid under any of the schemas listed in the 'anyOf' keyword"
            ),
        ),
        (
            {"parameters": {"type": "object", "properties": {"a": {"$ref": "#/$defs/no"}}}},
            "tool 'x': parameters is not a valid JSON Schema: Pointer '/$defs/no' does not exist",
        ),
    ],
)
def test_wrong_definitions_say_what_is_right(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ToolDefinitionError) as raised:
        Tool.from_schema(**{"name": "x", "call": lambda args: args, **options})
    assert str(raised.value) == message


@pytest.mark.parametrize("call", [lambda: 1, lambda a, b: 1, lambda *, a: 1])
def test_a_callable_that_does_not_take_one_dict_is_refused_at_once(call: Any) -> None:
    with pytest.raises(ToolDefinitionError, match=r"^tool 'x': call must take the arguments as one dict, and at most"):
        Tool.from_schema(name="x", call=call)


def test_the_option_of_another_name_is_told() -> None:
    with pytest.raises(UsageError, match=r"^unknown tool option 'function'; the function is given as call=$"):
        Tool.from_schema(name="x", function=lambda args: 1)


@pytest.mark.parametrize("uri", ["http://127.0.0.1:9/schema.json", "https://example.invalid/x", "file:///etc/hostname"])
def test_a_schema_makes_the_host_fetch_nothing(uri: str) -> None:
    with pytest.raises(ToolDefinitionError, match=r"schemas are not fetched; put it under \$defs"):
        Tool.from_schema(name="x", parameters={"type": "object", "properties": {"a": {"$ref": uri}}}, call=print)


def test_a_schema_nested_without_end_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(10_000):
        schema = {"type": "object", "properties": {"a": schema}}
    with pytest.raises(ToolDefinitionError, match=r"^tool 'x': parameters is nested deeper than 100 levels$"):
        Tool.from_schema(name="x", parameters=schema, call=print)


def test_methods_partials_and_callable_objects() -> None:
    class Shop:
        def price(self, item: str, count: int = 1) -> float:
            """Price of an item."""
            return count * 2.5

        @classmethod
        def name(cls) -> str:
            return cls.__name__

        @staticmethod
        def add(a: int) -> int:
            return a + 1

    class PriceList:
        """Prices."""

        def __call__(self, item: str) -> str:
            return item.upper()

    class Fetch:
        async def __call__(self, url: str) -> str:
            """Fetch a page."""
            return url

    price = Tool.from_function(Shop().price)
    assert list(price.parameters["properties"]) == ["item", "count"]
    assert price.invoke(price.bind(["x", 2])) == 5.0
    assert Tool.from_function(Shop.name).invoke({}) == "Shop"
    assert Tool.from_function(Shop.add).invoke({"a": 1}) == 2
    prices = Tool.from_function(PriceList())
    assert (prices.name, prices.description, prices.is_async) == ("price_list", "Prices.", False)
    assert prices.invoke({"item": "x"}) == "X"
    fetch = Tool.from_function(Fetch())
    assert (fetch.name, fetch.description, fetch.is_async) == ("fetch", "Fetch a page.", True)

    by_keyword = Tool.from_function(functools.partial(Shop().price, count=3))
    assert list(by_keyword.parameters["properties"]) == ["item"]
    assert by_keyword.name == "price"
    assert by_keyword.invoke(by_keyword.bind({"item": "x"})) == 7.5
    by_position = Tool.from_function(functools.partial(Shop().price, "apple"), name="apples")
    assert list(by_position.parameters["properties"]) == ["count"]
    assert by_position.invoke({"count": 4}) == 10.0


def test_asynchronous_functions_are_known_through_partials() -> None:
    async def later(a: int, b: int) -> int:
        return a + b

    made = Tool.from_function(functools.partial(later, 1))
    assert made.is_async
    assert asyncio.run(made.invoke(made.bind([2]))) == 3


def test_decorated_methods_are_tools_of_the_instance() -> None:
    class Counter:
        def __init__(self) -> None:
            self.count = 0

        @tool
        def increase(self, by: int = 1) -> int:
            """Count on."""
            self.count += by
            return self.count

    counter = Counter()
    assert counter.increase(by=2) == 2
    assert list(counter.increase.parameters["properties"]) == ["by"]
    assert counter.increase.invoke(counter.increase.bind([3])) == 5
    assert len(Toolbox([counter.increase])) == 1
    with pytest.raises(
        ToolDefinitionError, match=r"^'increase' is a method without its instance; use instance.increase$"
    ):
        Toolbox([Counter.increase])


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (dict, "dict is a class; give a function, a method, or an instance with __call__"),
        (lambda x: x, "a lambda has no name; give one with name="),
        (5, "5 is not callable"),
        ("f", "'f' is not callable"),
    ],
)
def test_what_cannot_be_a_tool(made: Any, message: str) -> None:
    with pytest.raises(ToolDefinitionError) as raised:
        Tool.from_function(made)
    assert str(raised.value) == message


def test_hints_and_mcp_annotations() -> None:
    hints = Hints.from_mcp({"readOnlyHint": True, "destructiveHint": False, "title": "x", "openWorldHint": None})
    assert hints == Hints(read_only=True, destructive=False)
    assert hints.to_mcp() == {"readOnlyHint": True, "destructiveHint": False}
    assert Hints(cpu_bound=True).to_mcp() == {}
    assert Hints(cpu_bound=True).to_dict() == {"cpu_bound": True}

    class Annotations:
        readOnlyHint = None
        idempotentHint = True

    assert Hints.from_mcp(Annotations()) == Hints(idempotent=True)
    assert Hints.from_mcp(None) == Hints()
