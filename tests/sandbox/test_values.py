"""Values both ways between Python and a script, by properties: through a tool, a definition, and a return."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moonbox import Limits, Repl, Run, Sandbox, Tool
from moonbox.values import INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

quick = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def echo_tool() -> Tool:
    return Tool.from_schema(
        name="echo",
        description="",
        parameters={"type": "object", "properties": {"value": {}}},
        call=lambda arguments: arguments.get("value"),
    )


@pytest.fixture(scope="module", params=["process", "inline"])
def repl(request: Any) -> Iterator[Repl]:
    limits = Limits(timeout=60, max_tool_calls=None)
    with Sandbox([echo_tool()], isolation=request.param, limits=limits, allow_nan=True) as box, box.repl() as repl:
        yield repl


def script_value(value: Any) -> Any:
    """What a value is when a script has had it: a table is a list where its keys are 1 to n, an object when empty."""
    if isinstance(value, bytes):
        try:
            return value.decode()  # a script's string is text where it can be
        except UnicodeDecodeError:
            return value
    if isinstance(value, list):
        return [script_value(item) for item in value]
    if isinstance(value, dict):
        items = {key: script_value(item) for key, item in value.items()}
        if items and set(items) == set(range(1, len(items) + 1)) and all(type(key) is int for key in items):
            return [items[index] for index in range(1, len(items) + 1)]
        return items
    return value


def same(left: Any, right: Any) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return (left == right and math.copysign(1, left) == math.copysign(1, right)) or (
            left != left and right != right
        )
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(item, right[key]) for key, item in left.items())
    return bool(left == right)


def texts() -> st.SearchStrategy[str]:
    return st.text(st.characters(exclude_categories=["Cs"]))


def values(*, keys: st.SearchStrategy[Any] | None = None, floats: bool = True) -> st.SearchStrategy[Any]:
    leaves = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(INT64_MIN, INT64_MAX),
        st.sampled_from([0, -1, INT64_MIN, INT64_MAX, 2**53, 2**53 + 1]),
        st.floats() if floats else st.floats(allow_nan=False, allow_infinity=False),
        texts(),
        st.binary(),
    )
    names = texts() | st.integers(INT64_MIN, INT64_MAX) if keys is None else keys
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner),
            st.dictionaries(names, inner),
            rows(inner),
        ),
        max_leaves=15,
    )


def rows(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Tables with the same keys, enough of them to be packed into columns."""
    return st.lists(texts(), min_size=1, max_size=4, unique=True).flatmap(
        lambda names: st.lists(st.fixed_dictionaries(dict.fromkeys(names, inner)), min_size=7, max_size=20)
    )


@quick
@given(value=values())
def test_through_a_tool(repl: Repl, value: Any) -> None:
    """In through a definition, out to a tool, back as its answer, out as the result."""
    repl.define("given", [value])
    run = repl.run("return tools.echo{ value = given }, given")
    assert run.error is None
    expected = [script_value(value)]
    assert same(run.calls[0].arguments, {"value": expected})
    assert same(run.values[0], expected)
    assert same(run.values[1], expected)
    kept = Run.from_json(run.to_json())
    assert same(list(kept.values), list(run.values))
    assert same(kept.calls[0].arguments, run.calls[0].arguments)


@quick
@given(value=values())
def test_through_a_function(repl: Repl, value: Any) -> None:
    repl.define("ask", lambda: {"it": value})
    run = repl.run("local r = ask() return r.it, r")
    assert run.error is None
    expected = script_value(value)
    if isinstance(expected, bytes | str) or expected is not None:
        assert same(run.values[0], expected)
    assert same(run.values[1], {"it": expected})


@quick
@given(items=st.lists(values(), max_size=3))
def test_several_values(repl: Repl, items: list[Any]) -> None:
    repl.define("given", items)
    run = repl.run(f"return table.unpack(given, 1, {len(items)})")
    assert run.error is None
    assert same(list(run.values), [script_value(item) for item in items])


@quick
@given(value=values(keys=texts(), floats=False))
def test_json_in_the_script(repl: Repl, value: Any) -> None:
    repl.define("given", [value])
    run = repl.run(
        """
        local ok, text = pcall(json.encode, given)
        if not ok then return nil, text end
        return text, json.decode(text)
        """
    )
    assert run.error is None
    expected = [script_value(value)]
    if has_bytes(expected):
        assert run.values[0] is None
        assert "is a string that is not UTF-8" in run.values[1]
    else:
        assert same(json.loads(run.values[0]), expected)
        assert same(run.values[1], expected)


def test_every_character_at_every_place_of_a_long_string(repl: Repl) -> None:
    """Strings are looked at several bytes at once: none may hide behind its neighbours."""
    source = r"""
    local texts = {}
    for place = 0, 17 do
      for byte = 0, 127 do
        local c = string.char(byte)
        texts[#texts + 1] = ("x"):rep(place) .. c .. ("\127"):rep(17 - place) .. c .. "!"
      end
    end
    return texts
    """
    texts = ["x" * place + chr(n) + "\x7f" * (17 - place) + chr(n) + "!" for place in range(18) for n in range(128)]
    assert repl.run(source).value == texts
    neighbours = [chr(n) * place + '\x1f !"#[\\]\x7f\x80é' for place in range(9) for n in (31, 32, 33, 34, 91, 92, 127)]
    assert repl.run("return texts", inputs={"texts": neighbours}).value == neighbours


@pytest.mark.parametrize("count", [4095, 4096, 4099, 10_007, 65_536, 100_000, 99_999])
def test_strings_that_are_repeated_often(repl: Repl, count: int) -> None:
    run = repl.run(f"return ('ab'):rep({count}), ('ab'):rep({count}.0) == ('ab'):rep({count}), ('a'):rep({count}, '-')")
    assert run.values == ("ab" * count, True, "-".join("a" * count))


def has_bytes(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(has_bytes, value))
    if isinstance(value, dict):
        return any(map(has_bytes, value.values()))
    return isinstance(value, bytes)


@quick
@given(text=st.text() | st.binary())
def test_printed_text(repl: Repl, text: str | bytes) -> None:
    repl.define("given", text)
    run = repl.run("print(given)")
    data = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    assert run.output == data.decode("utf-8", "replace") + "\n"


@quick
@given(number=st.integers(INT64_MIN, INT64_MAX))
def test_integers_written_in_a_script(repl: Repl, number: int) -> None:
    literal = f"({number})" if number != INT64_MIN else "math.mininteger"
    run = repl.run(f"return {literal}, {literal} == given", limits=None)
    assert run.values[0] == number
    assert type(run.values[0]) is int


@quick
@given(number=st.floats(allow_nan=False, allow_infinity=False))
def test_floats_written_in_a_script(repl: Repl, number: float) -> None:
    run = repl.run(f"return ({number!r})")
    assert same(run.value, number)


@quick
@given(text=st.text() | st.text(alphabet="[](){}=<>\"'\\\n -+*/%^#;:,.~ abcdefghijklmnop0123456789_"))
def test_any_text_is_a_script_that_ends(repl: Repl, text: str) -> None:
    """Whatever it is, it runs or is refused with words, and the worker lives."""
    run = repl.run(text, limits=Limits(timeout=5, max_operations=10_000))
    assert run.error is None or run.error.kind in ("syntax", "check", "runtime", "limit")
    assert run.error is None or run.error.message
    assert not run.state_lost


ODD = [
    "return { ['\\255'] = 1 }",
    "return { [1.5] = 1 }",
    "return { [true] = 1 }",
    "return '\\255', { '\\0' }",
    "return { ['$bytes'] = 'x' }, { ['$pairs'] = 1 }, { ['$float'] = 1 }",
    "return { [math.mininteger] = math.maxinteger }",
    "error({ ['\\255'] = 1 })",
    "error({ { '\\255' }, [7] = 0/0 })",
    "error('\\255')",
    "print('\\255') tools.echo{ value = '\\255' }",
    "tools.echo{ value = { ['\\255'] = 1 } }",
    "tools.echo{ ['\\255'] = 1 }",
    "tools.echo{ value = { [5] = '\\0' } }",
    "return ('\\xed\\xa0\\x80')",
    "x = '\\255' .. nil",
    "return \255",
]


@pytest.mark.parametrize("source", ODD)
@pytest.mark.parametrize("kind", ["db", "jsonl"])
def test_no_script_escapes_the_trail(source: str, kind: str, tmp_path: Path) -> None:
    """Whatever a script returns, raises, prints or passes on can be written down."""
    with Sandbox([echo_tool()], isolation="inline", audit=tmp_path / f"trail.{kind}") as box:
        run = box.run(source)
        assert Run.from_json(run.to_json()).source == run.source
        assert run.for_model()
    assert run.id in (tmp_path / f"trail.{kind}").read_bytes().decode("latin-1")
