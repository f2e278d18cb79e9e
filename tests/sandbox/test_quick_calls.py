"""Calls by the shortest way: nothing about them, their records or their order differs from the way of all calls."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, Field

from moonbox import Context, Limits, Middleware, Sandbox, Tool, Toolbox, ToolError, tool
from moonbox.errors import WorkerError
from moonbox.media import Media
from moonbox.sandbox.messages import LARGEST_COUNT, LONGEST_NAME, read_calls
from moonbox.worker.encoding import Decoder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moonbox import Run


def add(a: int, b: int = 1) -> int:
    return a + b


def say(text: str, loud: bool = False) -> str:
    return text.upper() if loud else text


def fail(code: str) -> None:
    if code == "plain":
        raise ValueError("something odd in /home/someone/file.py")
    raise ToolError("no luck", code=code, retryable=True, data={"n": 1})


def nothing() -> None:
    return None


def give(what: str) -> Any:
    """A result of every kind."""
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    return {
        "list": [1, [2, {"x": None}], "ä"],
        "tuple": (1, 2),
        "json": '{"a": [1, 2]}',
        "text": "42",
        "bytes": b"\xff\x00",
        "generator": (item for item in range(3)),
        "nan": float("nan"),
        "large": 2**80,
        "object": object(),
        "long": "x" * 200,
        "many": list(range(200)),
        "cyclic": cyclic,
        "surrogate": "a\ud800b",
        "true": True,
        "float": 1.5,
    }[what]


def stop(code: int) -> None:
    raise SystemExit(code)


def checked(n: Annotated[int, AfterValidator(lambda value: value * 2)]) -> int:
    return n


def bounded(n: int = Field(3, ge=1)) -> int:
    return n


def half(n: float) -> float:
    return n / 2


def named(context: Context, a: int) -> str:
    return f"{context.tool} {context.index} {a}"


def only_by_position(a: int, /, b: int) -> int:
    return a - b


def many(*numbers: int) -> int:
    return sum(numbers)


def rest(a: int, **more: int) -> int:
    return a + sum(more.values())


TOOLS = [add, say, fail, nothing, give, stop, checked, bounded, half, named, only_by_position, many, rest]
KINDS = (
    *("list", "tuple", "json", "text", "bytes", "generator", "nan", "large", "object", "long", "many", "cyclic"),
    *("surrogate", "true", "float"),
)
SCRIPTS = (
    "return tools.add(1, 2), tools.add(1), tools.add{a = 1}, tools.add{b = 4, a = 1}, tools.add{1, b = 2}",
    *("return tools.add()", "return tools.add('5')", "return tools.add(1.0)", "return tools.add(1.5)"),
    *("return tools.add(true)", "return tools.add(nil, 2)", "return tools.add(1, 2, 3)", "return tools.add{c = 1}"),
    *("return tools.add{{1}}", "return tools.add{a = {1}}", "return tools.add(9223372036854775807, 1)"),
    "return tools.say('hi'), tools.say('hi', true), tools.say{text = 'hä'}, tools.say('a\\nb\\\\c'), tools.say('\\1b')",
    "return tools.say(5), tools.say(true)",
    "return tools.nothing(), tools.nothing{}, tools.nothing{x = 1}",
    *(f"return tools.give('{kind}')" for kind in KINDS),
    "return tools.checked(2), tools.half(3), tools.half(1.5), tools.named(7), tools.many(1, 2)",
    "return tools.rest{a = 1, z = 2}, tools.rest(4)",
    *("return tools.bounded(), tools.bounded(5)", "return tools.bounded(0)", "return tools.only_by_position(5, 3)"),
    "return tools.stop(3)",
    "return tools.missing(1)",
    "local ok, e = pcall(tools.fail, 'unlucky') return ok, e.code, e.message, e.retryable, tools.add(1)",
    "for i = 1, 3 do pcall(tools.fail, 'plain') tools.add(i) end pcall(tools.fail, 'other') return tools.fail('plain')",
    "for i = 1, 20 do print(i, tools.add(i)) end",
    "for i = 1, 5 do tools.add(i) local t = os.time() local d = docs['tools.add'] end return docs.search('add')",
    "tools.add(1) return parallel{function() return tools.add(2) end, function() return tools.say('x') end}",
    "for i = 1, 60 do tools.add(i) end",
    "tools.add(1) show('seen') return tools.add(2)",
    "tools.add(1) error('enough')",
)


@pytest.fixture(scope="module", params=["process", "inline"])
def boxes(request: pytest.FixtureRequest) -> Iterator[tuple[Sandbox, Sandbox]]:
    """One whose calls are quick, and one whose calls never are."""
    limits = Limits(timeout=60, max_string=100, max_array=100)
    watched = Middleware(before=lambda _: None)
    with (
        Sandbox(TOOLS, limits=limits, isolation=request.param, check=False) as quick,
        Sandbox(TOOLS, limits=limits, isolation=request.param, check=False, middleware=[watched]) as usual,
    ):
        yield quick, usual


def told(run: Run) -> dict[str, Any]:
    """What the record says, without times and names that differ from run to run."""
    calls = [
        {
            **{name: getattr(call, name) for name in ("index", "tool", "arguments", "status", "result", "approval")},
            **{name: getattr(call, name) for name in ("retry_of", "batch", "bytes_in", "bytes_out")},
            "error": None if call.error is None else (call.error.code, call.error.message, call.error.retryable),
            "data": None if call.error is None else call.error.data,
        }
        for call in run.calls
    ]
    error = None if run.error is None else (run.error.kind, run.error.message, run.error.line)
    usage = run.usage.calls, run.usage.bytes_in, run.usage.bytes_out
    return {"values": run.values, "output": run.output, "error": error, "calls": calls, "usage": usage}


def ordered(value: Any) -> Any:
    """With its tables in one order: Lua's is another in every worker; and NaN equal to itself."""
    if isinstance(value, dict):
        return sorted(((repr(key), ordered(item)) for key, item in value.items()), key=lambda pair: pair[0])
    return [ordered(item) for item in value] if isinstance(value, list | tuple) else repr(value)


@pytest.mark.parametrize("source", SCRIPTS)
def test_the_record_is_that_of_any_call(boxes: tuple[Sandbox, Sandbox], source: str) -> None:
    quick, usual = (told(box.run(source)) for box in boxes)
    for key in ("values", "output", "error", "calls"):
        assert ordered(quick[key]) == ordered(usual[key])
    assert quick["usage"][0] == usual["usage"][0]
    for record in (quick, usual):
        assert all(call["bytes_in"] > 0 for call in record["calls"])


def test_a_tool_that_is_replaced_meanwhile_is_the_new_one() -> None:
    toolbox = Toolbox([add])

    @tool
    def change() -> None:
        toolbox.add(Tool.from_function(lambda a, b=1: a * 100, name="add"), replace=True)

    toolbox.add(change)
    with Sandbox(toolbox) as box:
        run = box.run("local before = tools.add(1) tools.change() return before, tools.add(1)")
    assert run.values == (2, 100)


def test_other_types_in_the_schema_than_in_the_function_are_converted() -> None:
    parameters = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    texts = Tool.from_function(add).with_(parameters=parameters)
    with Sandbox([texts]) as box:
        run = box.run("return tools.add('1', '2')")
    assert run.values == (3,)


def test_a_call_that_returns_media_keeps_it() -> None:
    def picture(n: int) -> Any:
        return [Media(b"\x89PNG", "image/png", name=f"{n}.png")]

    with Sandbox([picture, add]) as box, box.repl() as repl:
        run = repl.run("local p = tools.picture(1)[1] tools.add(1) return p")
        medium = repl.find_medium(run.value)
    assert medium is not None
    assert medium.data == b"\x89PNG"


def test_a_slow_call_among_quick_ones_is_left_to_its_thread() -> None:
    release = threading.Event()

    def wait(seconds: int) -> int:
        release.wait(seconds)
        return seconds

    with Sandbox([add, wait], limits=Limits(timeout=60)) as box:
        threading.Timer(0.05, release.set).start()  # a call so long has left the helper, but it need not have
        run = box.run("local t = tools.add(1) t = t + tools.wait(30) for i = 1, 5 do t = tools.add(t) end return t")
    assert run.values == (37,)
    assert [call.tool for call in run.calls] == ["add", "wait", *["add"] * 5]


def test_calls_that_were_left_behind_count() -> None:
    """64 of them, and no other is made: those of the shortest way are counted too."""
    release = threading.Event()
    begun: list[int] = []

    def wait(n: int) -> int:
        begun.append(n)
        release.wait(60)
        return n

    with Sandbox([add, wait]) as box, box.repl() as repl:
        try:
            while len(begun) < 64:
                assert repl.run("return tools.wait(1)", limits=Limits(timeout=0.02)).error is not None
            run = repl.run("return tools.add(1)")
            assert run.error is not None
            assert run.error.code == "busy"
        finally:
            release.set()


# What a worker sends


def calls_like() -> st.SearchStrategy[Any]:
    leaf = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5)
    value = st.recursive(leaf, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))
    number = st.integers(-2, 5) | st.just(2**53) | leaf
    target = st.sampled_from(["tools.add", "tools.", "tools", "fn.show", "tools." + "x" * 500]) | leaf
    call = st.tuples(number, target, st.lists(value, max_size=3) | leaf).map(list) | st.lists(leaf, max_size=4)
    return st.lists(call, max_size=3) | leaf


@given(calls_like(), st.integers(0, 3))
def test_a_lone_call_is_read_as_all_are(data: Any, after: int) -> None:
    payload = json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")
    lone = Decoder(10_000, 20).lone_call(payload, after, LARGEST_COUNT, LONGEST_NAME)
    if lone is None:
        return
    assert list(map(list, read_calls(payload, Decoder(10_000, 20).decode, after))) == [[*lone[1:]]]
    assert lone[2].startswith("tools.")


@given(st.binary(max_size=200) | st.text(alphabet='[]{}",:\\u0001tools.123eE-nNaI', max_size=60).map(str.encode))
def test_no_bytes_harm_the_reader_of_a_lone_call(data: bytes) -> None:
    lone = Decoder(10_000, 20).lone_call(data, 0, LARGEST_COUNT, LONGEST_NAME)
    assert lone is None or list(map(list, read_calls(data, Decoder(10_000, 20).decode, 0))) == [[*lone[1:]]]


@pytest.mark.parametrize("payload", ['[[1,"tools.a",[1e999]]]', f'[[1,"tools.a",[{2**64}]]]', '[[1,"tools.a",[NaN]]]'])
def test_numbers_out_of_range_are_for_the_exact_reader(payload: str) -> None:
    assert Decoder(10_000, 20).lone_call(payload.encode(), 0, LARGEST_COUNT, LONGEST_NAME) is None
    with pytest.raises(WorkerError):
        Decoder(10_000, 20).decode(payload.encode())


def test_what_was_read_is_counted() -> None:
    decoder = Decoder(400, 20)
    payload = json.dumps([[1, "tools.a", [list(range(60))]]]).encode()
    read = [decoder.lone_call(payload, 0, LARGEST_COUNT, LONGEST_NAME) for _ in range(10)]
    with pytest.raises(WorkerError, match="elements"):
        for _ in range(10):
            decoder.decode(payload)
    assert None in read
