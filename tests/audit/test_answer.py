"""The text that goes back to the model."""

from __future__ import annotations

import re
import tracemalloc
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from moonbox.audit.answer import MIN_CHARS, render
from moonbox.audit.records import Call, CallError, Run
from moonbox.errors import ScriptError, UsageError
from moonbox.values import pack
from tests.audit.runs import FAILURE, make_run
from tests.long import times
from tests.strategies import plain_values


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        (("plain text\nas it is",), "plain text\nas it is"),
        ((41250.0,), "41250"),
        ((129,), "129"),
        ((True,), "true"),
        ((None,), "null"),
        (([],), "[]"),
        (({"b": 1, "a": [None, "é", 2.5]},), '{"a":[null,"é",2.5],"b":1}'),
        (({10: "x", 9: "y", "k": 0},), '{"9":"y","10":"x","k":0}'),
        (({1: "x", "1": "y"},), '{"[1]":"x","1":"y"}'),
        ((float("nan"),), "NaN"),
        (([float("inf"), -float("inf")],), "[Infinity,-Infinity]"),
        ((b"caf\xe9",), "caf\\xe9"),
        (([b"caf\xe9"],), '["caf\\\\xe9"]'),
        ((b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40,), None),
        (("",), '""'),
        ((" \n",), '" \n"'),
        ((1, "two", None), '3 values:\n1: 1\n2: "two"\n3: null'),
        (("\ud800",), "\\ud800"),
    ],
)
def test_values(returned: tuple[Any, ...], text: str | None) -> None:
    binary = "<binary, 10,248 bytes: \\x89PNG\\x0d\\x0a\\x1a\\x0a\\x00\\x01\\x02\\x03\\x04\\x05\\x06\\x07"
    binary += "\\x08\\x09\\x0a\\x0b\\x0c\\x0d\\x0e\\x0f…>"
    assert Run("a", "", values=returned).for_model() == (binary if text is None else text)


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        ({"b": 12348.0, "a": [{"z": 1, "c": 2}]}, '{"b":12348.0,"a":[{"z":1,"c":2}]}'),
        ({10: "x", "k": 0, 9: "y"}, '{"10":"x","k":0,"9":"y"}'),
        ({1: "x", "1": "y"}, '{"[1]":"x","1":"y"}'),
        (41250.0, "41250.0"),
        ({"b": "x" * 40_000, "a": {2: 1.0}}, '{"b":"' + "x" * 40_000 + '","a":{"2":1.0}}'),
    ],
)
def test_values_of_python_keep_the_order_of_keys_and_their_floats(returned: Any, text: str) -> None:
    assert render(make_run(values=(returned,), language="python"), 50_000) == text


def test_nothing_returned_teaches_how_to_return() -> None:
    lua = "ok (no value returned; end the script with `return <expression>` to see a result)"
    rhai = "ok (no value returned; end the script with an expression without `;` to see a result)"
    assert render(Run("a", "x = 1")) == lua
    assert render(Run("a", "print()", output="\n")) == lua
    assert render(Run("a", "let x = 1;", language="rhai")) == rhai
    python = "ok (no value returned; end the script with an expression, or print, to see a result)"
    assert render(Run("a", "x = 1", language="python")) == python


def test_output_alone_is_shown_as_it_is_and_beside_a_value_under_its_own_label() -> None:
    assert render(Run("a", "", output="one\ntwo\n")) == "one\ntwo"
    assert render(Run("a", "", values=(3,), output="one\ntwo\n")) == "printed:\none\ntwo\n\nreturned:\n3"


def test_whole_numbers_are_written_as_integers() -> None:
    value = {"a": 2.0, "b": [1.5, -3.0, True, {"c": 1e300}]}
    assert render(Run("a", "", values=(value,))) == '{"a":2,"b":[1.5,-3,true,{"c":1e+300}]}'
    assert render(Run("a", "", values=(2.0, 0.5))) == "2 values:\n1: 2\n2: 0.5"


def test_output_past_the_limit_is_counted() -> None:
    note = "\n[1,234 more bytes were printed and are lost: print less, or return a value]"
    assert render(Run("a", "", output="one\n", output_cut=1234)) == "one" + note
    assert render(Run("a", "", values=(3,), output="x", output_cut=1234)).endswith("returned:\n3" + note)


def test_lost_state_is_said_also_after_success() -> None:
    text = render(Run("a", "", values=(3,), state_lost=True))
    assert text == "3\n[state was lost: globals set before are gone, the next run starts afresh]"


def test_a_long_string_keeps_head_and_tail_and_says_how_to_read_on() -> None:
    whole = "".join(f"{number:08}" for number in range(100_000))
    text = render(Run("a", "", values=(whole,)), 2000)
    head, note, tail = re.split(r"\n(\[….*…\])\n", text)
    assert len(text) <= 2000
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert note == (
        f"[… {800_000 - len(head) - len(tail):,} of 800,000 characters left out here; "
        "the value is a string of 800,000 characters. Return less: filter, count or sum in the script. "
        "To read on, keep it in a global (big = …) and return a part: return big:sub(20001, 40000) …]"
    )


@pytest.mark.parametrize(
    ("language", "value", "advice"),
    [
        ("lua", list(range(5000)), "an array of 5,000 elements"),
        (
            "lua",
            list(range(5000)),
            "keep it in a global (big = …) and return a part: return {table.unpack(big, 1, 50)}",
        ),
        ("lua", {"n": 1, "rows": ["x" * 9] * 500}, "a table with 2 keys (n, rows: 500)"),
        ("lua", {"n": 1, "rows": ["x" * 9] * 500}, "return a part: return big.rows"),
        ("rhai", list(range(5000)), "keep it in a variable (let big = …;) and end with a part: big.extract(0, 50)"),
        ("rhai", "é" * 5000, "end with a part: big.sub_string(20000, 20000)"),
        ("rhai", {"rows": ["x" * 9] * 500}, "end with a part: big.rows"),
        ("python", list(range(5000)), "keep it in a variable (big = …) and end with a part: big[:50]"),
        ("python", "é" * 5000, "end with a part: big[20000:40000]"),
        ("python", {"rows": ["x" * 9] * 500}, 'end with a part: big["rows"]'),
    ],
)
def test_the_note_speaks_of_the_value_in_the_scripts_language(language: str, value: Any, advice: str) -> None:
    assert advice in render(Run("a", "", language=language, values=(value,)), 1000)


def test_value_and_output_share_the_room() -> None:
    text = render(Run("a", "", values=("v" * 9000,), output="o" * 9000), 3000)
    assert len(text) <= 3000
    assert text.count("v") > 900
    assert text.count("o") > 900
    short = render(Run("a", "", values=("v" * 9000,), output="o" * 50), 3000)
    assert short.count("v") > 2400
    assert short.startswith("printed:\n" + "o" * 50 + "\n\nreturned:\n")


def test_a_huge_value_is_not_built_as_one_string() -> None:
    value = {"rows": ["é" * 100_000] * 200}  # 20 million characters, of which a few are shown
    tracemalloc.start()
    text = render(Run("a", "", values=(value,)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(text) == 20_000
    assert "of 20,000,610 characters left out" in text
    assert peak < 3_000_000


def test_a_failure_says_what_where_how_and_what_had_happened() -> None:
    text = render(make_run(values=(), error=FAILURE, output="so far\n"))
    assert text == (
        "runtime error on line 3: attempt to index a nil value (local 'row')\n"
        "hint: check `if row then` first\n"
        "  3 | return row.name\n"
        "    |        ^\n"
        "\n"
        "state kept: globals set before the error are still there\n"
        "calls already made (2 ok, 1 not ok); do not repeat those that changed something:\n"
        '1. get_expenses {"employee_id":1}: ok\n'
        '2. get_expenses {"employee_id":2}: ok\n'
        '3. send {"to":5}: failed (invalid): to: not a string\n'
        "\n"
        "printed:\n"
        "so far"
    )


@pytest.mark.parametrize(
    ("error", "first"),
    [
        (ScriptError("syntax", "'=' expected near '+'", line=2), "syntax error on line 2: '=' expected near '+'"),
        (ScriptError("limit", "stopped after 5 s", limit="time"), "limit reached (time): stopped after 5 s"),
        (ScriptError("denied", "send was refused", tool="send"), "denied: send was refused"),
        (ScriptError("cancelled", "by the caller"), "cancelled: by the caller"),
        (ScriptError("crashed", "the worker died"), "crashed: the worker died"),
        (
            ScriptError("tool", "no such file", line=1, tool="read", code="not_found", retryable=True),
            "tool error on line 1 (read, not_found, may work if tried again): no such file",
        ),
        (ScriptError("tool", "nope", data={"field": "to"}), 'tool error: nope\ndata: {"field":"to"}'),
    ],
)
def test_headlines(error: ScriptError, first: str) -> None:
    assert render(Run("a", "", error=error)).split("\n\n")[0] == first


def test_a_traceback_that_repeats_the_message_is_not_shown_twice() -> None:
    repeated = FAILURE.with_(traceback=f"script:3: {FAILURE.message}\n  3 | return row.name\n    |        ^")
    assert render(Run("a", "", error=repeated)) == render(Run("a", "", error=FAILURE))


def test_state_notes() -> None:
    assert render(Run("a", "", error=FAILURE, state_lost=True)).endswith(
        "\n\nstate was lost: globals set before are gone, the next run starts afresh"
    )
    syntax = ScriptError("syntax", "x")
    assert render(Run("a", "", error=syntax, repl="r")).endswith("\n\nnothing was run; state is unchanged")
    assert render(Run("a", "", error=FAILURE, repl="r")).endswith(
        "state kept: globals set before the error are still there"
    )


def test_a_script_by_itself_has_no_state_to_speak_of() -> None:
    assert render(Run("a", "", error=ScriptError("syntax", "x"))) == "syntax error: x\n\nnothing was run"
    text = render(Run("a", "", error=FAILURE, calls=(Call(1, "a", {}),)))
    assert "state" not in text
    assert text.endswith("\n\ncalls already made (1 ok); do not repeat those that changed something:\n1. a {}: ok")


def test_the_message_of_a_failed_call_stands_once() -> None:
    calls = (Call(1, "send", {}, "error", error=CallError("refused", "no such address")),)
    error = ScriptError("tool", "no such address", line=1, tool="send", code="refused")
    text = render(Run("a", "", error=error, calls=calls, repl="r"))
    assert text.count("no such address") == 1
    assert text.endswith("\n1. send {}: failed (refused)")


def test_call_lines_say_what_may_have_taken_effect() -> None:
    calls = (
        Call(1, "a", {}, "timeout", error=CallError("timeout", "after 5 s")),
        Call(2, "b", {"text": "x" * 500}, "in_flight"),
        Call(3, "c", None, "denied", error=CallError("denied", "no")),
        Call(4, "d", [], "cancelled"),
    )
    lines = render(Run("a", "", error=FAILURE, calls=calls)).splitlines()[-4:]
    assert lines == [
        "1. a {}: timed out, may still have taken effect",
        '2. b {"text":"' + "x" * 90 + "…: in flight when the run ended, may have taken effect",
        "3. c null: denied",
        "4. d []: cancelled, may have taken effect",
    ]


def test_many_calls_are_bounded_with_a_count() -> None:
    calls = tuple(Call(n, "t", {"n": n}, "error" if n == 30 else "ok") for n in range(1, 101))
    text = render(Run("a", "", error=FAILURE, calls=calls))
    assert "calls already made (99 ok, 1 not ok)" in text
    assert '\n10. t {"n":10}: ok\n… 80 more calls, 1 not ok …\n91. t {"n":91}: ok\n' in text


def test_error_and_hint_survive_any_truncation() -> None:
    calls = tuple(Call(n, "tool" * 50, {"x": "y" * 1000}) for n in range(1, 500))
    run = Run("a", "", error=FAILURE, calls=calls, output="noise " * 100_000, output_cut=999_999_999, state_lost=True)
    for room in (MIN_CHARS, 1000, 5000, 50_000):
        text = render(run, room)
        assert len(text) <= room
        assert text.startswith(
            "runtime error on line 3: attempt to index a nil value (local 'row')\nhint: check `if row then` first\n"
        )
        assert "state was lost" in text
    huge = FAILURE.with_(message="m" * 10_000_000, traceback="t" * 10_000_000)
    text = render(Run("a", "", error=huge, calls=calls, output="noise " * 100_000), MIN_CHARS)
    assert len(text) <= MIN_CHARS
    assert text.startswith("runtime error on line 3: mmm")
    assert "\nhint: check `if row then` first\n" in text


def test_too_small_a_bound_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^max_chars must be at least 500, not 100$"):
        Run("a", "").for_model(100)


@settings(max_examples=times(60), deadline=None)
@example([b""], "", MIN_CHARS, True)
@given(st.lists(plain_values(max_leaves=30), max_size=3), st.text(), st.integers(MIN_CHARS, 2000), st.booleans())
def test_any_run_gives_a_bounded_text_that_can_be_sent(returned: list[Any], output: str, room: int, ok: bool) -> None:
    error = None if ok else ScriptError("runtime", output * 9, hint=output, data=returned)
    calls = tuple(Call(n, output, value, packed=pack(value)) for n, value in enumerate(returned, 1))
    run = Run("a", output, values=tuple(returned), output=output * 50, error=error, calls=calls)
    text = render(run, room)
    assert 0 < len(text) <= room
    assert text.strip()
    assert text.encode()
    assert text == render(Run.from_json(run.to_json()), room)


@given(st.text(st.characters(exclude_categories=())), st.text(st.characters(exclude_categories=())))
def test_any_string_at_all_can_be_sent(one: str, two: str) -> None:
    for run in (Run("a", "", values=(one,)), Run("a", "", values=({one: [two]},), output=two)):
        assert render(run).encode()
    error = ScriptError("tool", one, hint=two, tool=two, code=one, data=two)
    assert render(
        Run("a", "", error=error, calls=(Call(1, one, {two: one}, "error", error=CallError(two, one)),))
    ).encode()
