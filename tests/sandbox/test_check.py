"""The look at a script before every run: what it costs the script, and what it leaves behind."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import CodeMode, Limits, Run, Sandbox, Tool, tool
from moonbox.audit.sinks import MemorySink
from moonbox.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

CALLS: list[str] = []


@tool
def add(a: int, b: int = 1) -> int:
    """The sum."""
    CALLS.append("add")
    return a + b


def plain(name: str, result: Any) -> Tool:
    return Tool.from_schema(name=name, description="", parameters={"type": "object"}, call=lambda _: result)


@pytest.fixture
def box() -> Iterator[Sandbox]:
    CALLS.clear()
    rows = [{"id": 1, "price": 5, "password": "s3cret"}, {"id": 2}]
    with Sandbox(
        [add, plain("rows", rows), plain("text", "hello")], isolation="inline", redact=["password"], audit=MemorySink()
    ) as sandbox:
        yield sandbox


def test_nothing_is_run(box: Sandbox) -> None:
    run = box.run("x = tools.add{a = 1}\nreturn tools.ad{a = 1}")
    assert run.error is not None
    assert (run.error.kind, run.error.line, run.error.message) == ("check", 2, "unknown tool 'ad'")
    assert (run.error.code, run.error.tool) == ("unknown_tool", "ad")
    assert (run.calls, CALLS) == ((), [])
    assert run.for_model() == (
        "check failed on line 2: unknown tool 'ad'\nhint: did you mean tools.add?\n"
        "2 | return tools.ad{a = 1}\n  |              ^\n\nnothing was run"
    )


def test_every_error_is_listed(box: Sandbox) -> None:
    run = box.run("tools.ad{}\nprint(True)")
    assert run.error is not None
    assert run.error.message == "unknown tool 'ad'\nalso on line 2: 'True' is not defined; Lua writes true, not True"


def test_it_is_in_the_trail_as_a_run(box: Sandbox) -> None:
    sink = MemorySink()
    with Sandbox([add], isolation="inline", audit=sink) as checked:
        run = checked.run("return tools.ad{}")
    (kept,) = sink.runs()
    assert (kept.id, kept.error) == (run.id, run.error)


def test_turned_off() -> None:
    with Sandbox([add], isolation="inline", check=False) as unchecked:
        run = unchecked.run("return tools.ad{}")
        assert run.error is not None
        assert run.error.kind == "runtime"
        with unchecked.repl() as repl:
            assert [finding.severity for finding in repl.check("return tools.ad{}")] == ["error"]


def test_the_state_stays(box: Sandbox) -> None:
    with box.repl() as repl:
        repl.run("x = 5")
        assert repl.run("tools.ad{}").error is not None
        assert repl.run("return x").value == 5


def test_globals_of_earlier_runs_are_known(box: Sandbox) -> None:
    with box.repl() as repl:
        assert [str(note) for note in repl.check("return x")] == ["line 1: 'x' is not set anywhere: it is nil"]
        repl.run("x = 5")
        assert repl.check("return x") == ()
        repl.run("_G['y' .. 1] = 2")
        assert repl.check("return y1") == ()
        repl.reset()
        assert len(repl.check("return x")) == 1


@pytest.mark.parametrize("source", ["x = 5", "x = 5 return x", "_G.x = 5"])
def test_what_a_script_sets_is_known_in_every_repl_that_runs_it(source: str, box: Sandbox) -> None:
    """The look at a script is shared by Repls that are new; what it sets is each Repl's own."""
    box.run(source)
    for _ in range(3):
        with box.repl() as repl:
            assert len(repl.check("return x")) == 1
            repl.run(source)
            assert repl.may_have_globals
            assert repl.check("return x") == ()
    with box.repl() as other:
        other.run("return 1")
        assert not other.may_have_globals


def test_a_script_that_was_admitted_elsewhere_is_looked_at_with_what_is_known_here(box: Sandbox) -> None:
    with box.repl() as first:
        assert first.run("return 1").notes == ()
        assert [note.message for note in first.run("return y").notes] == ["'y' is not set anywhere: it is nil"]
    with box.repl() as second:
        second.run("y = 2")
        assert second.run("return y").notes == ()
    with box.repl() as third:
        third.define("y", 3)
        assert third.run("return y").notes == ()
    with box.repl() as fourth:
        assert len(fourth.run("return y").notes) == 1


def test_what_was_defined_is_known(box: Sandbox) -> None:
    with box.repl() as repl:
        repl.define("config", {"a": 1})
        repl.define("host.now", lambda: 1)
        assert repl.check("return config.a + host.now()") == ()


def test_notes_come_with_the_answer(box: Sandbox) -> None:
    run = box.run("return totl")
    assert [note.message for note in run.notes] == ["'totl' is not set anywhere: it is nil"]
    assert run.for_model() == "null\n[note: line 1: 'totl' is not set anywhere: it is nil]"
    assert Run.from_dict(json.loads(run.to_json())) == run


def test_however_it_is_run(box: Sandbox) -> None:
    with box.repl() as repl:
        for run in (asyncio.run(box.arun("return tools.ad{}")), repl.start("return tools.ad{}")):
            assert isinstance(run, Run)
            assert run.error is not None
            assert run.error.kind == "check"
        assert repl.run("return 1").value == 1


def test_only_text_is_a_script(box: Sandbox) -> None:
    with box.repl() as repl, pytest.raises(UsageError, match="must be a string, not int"):
        repl.check(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "message", "hint"),
    [
        ("local r = tools.rows{} return r.length", "a list has no field 'length'", "write: #r"),
        (
            "local r = tools.rows{} return r.price",
            "a list has no field 'price'",
            "read it from an element, such as r[1].price, or loop: for _, item in ipairs(r) do … item.price … end",
        ),
        (
            "local r = tools.rows{} return r.items",
            "a list has no field 'items'",
            "r is the list itself: for _, item in ipairs(r) do … end",
        ),
        ("local s = tools.text{} return s.length", "a string has no field 'length'", "write: #s"),
        (
            "local s = tools.text{} return s.value",
            "a string has no field 'value'",
            "s is text; if it is JSON, write: json.decode(s).value",
        ),
    ],
)
def test_a_field_that_cannot_be_there(source: str, message: str, hint: str, box: Sandbox) -> None:
    run = box.run(source)
    assert run.error is not None
    assert (run.error.kind, run.error.message, run.error.hint) == ("runtime", message, hint)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("local r = tools.rows{} return r[1].price + #r", 7),
        ("local r = tools.rows{} return r[3] == nil and rawget(r, 'x') == nil", True),
        ("local n = 0 for _ in ipairs(tools.rows{}) do n = n + 1 end return n", 2),
        ("return tools.text{}:upper()", "HELLO"),
        ("local r = array{} r.name = 'x' return r.name", "x"),
    ],
)
def test_what_lists_and_strings_have(source: str, value: Any, box: Sandbox) -> None:
    assert box.run(source).unwrap() == value


def test_shapes_are_learned(box: Sandbox) -> None:
    box.run("return tools.rows{}")
    assert box.toolbox.learned.schema("add") is None
    assert box.toolbox.learned.schema("rows") == {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"id": {"type": "integer"}, "price": {"type": "integer"}},
            "required": ["id"],
            "additionalProperties": True,
        },
    }
    text = box.run('return docs.describe("rows")').value
    assert text.endswith("returned so far: {id: integer, price?: integer}[]")


def test_a_learned_shape_is_never_an_error() -> None:
    with Sandbox([plain("rows", [{"id": 1}])], isolation="inline") as box:
        box.run("return tools.rows{}")
        run = box.run("return tools.rows{}[1].price")
        assert run.ok
        assert [note.message for note in run.notes] == ["the field 'price' was never seen in the result of tools.rows"]


def test_the_catalog_shows_what_was_known_at_the_start() -> None:
    with Sandbox([plain("rows", [{"id": 1}])], isolation="inline") as box:
        with CodeMode(box) as mode:
            before = mode.description
            mode.handle("lua_repl", {"source_code": "return tools.rows{}"})
            assert mode.description == before
        with CodeMode(box, learned_shapes=True) as mode:
            assert "rows() -> {id: integer}[]" in mode.description
        with CodeMode(box, learned_shapes=True) as mode:
            box.toolbox.learned.learn("rows", [{"id": 1, "name": "x"}])
            assert "name?: string" not in mode.description
            mode.show_learned()
            assert "rows() -> {id: integer, name?: string}[]" in mode.description


@pytest.mark.parametrize("isolation", ["process", "inline"])
@pytest.mark.parametrize(
    ("language", "wrong", "message", "right"),
    [
        ("lua", "local x = 1\nreturn x +", "line 2: unexpected symbol near <eof>", "return 1"),
        ("lua", "goto away", "line 1: no visible label 'away' for <goto>", "1 + 1"),
        ("rhai", "let x = ;", "line 1: Syntax error: Unexpected ';'", "let x = 1; x"),
        ("python", "x = = 1", "line 1: Expected an expression", "x = 1"),
    ],
)
def test_the_check_says_why_a_script_does_not_compile(
    language: str, wrong: str, message: str, right: str, isolation: Any
) -> None:
    own: Any = "process" if language == "python" else isolation  # Python runs in a process alone
    with Sandbox(language=language, isolation=own) as sandbox, sandbox.repl() as repl:
        (finding,) = repl.check(wrong)
        assert (finding.severity, finding.code) == ("error", "syntax")
        assert str(finding).startswith(message)
        assert repl.run(wrong).error is not None
        assert repl.check(right) == ()


def test_the_check_compiles_within_the_memory_of_a_run() -> None:
    with Sandbox(language="rhai", limits=Limits(max_memory=16 * 1024 * 1024)) as sandbox, sandbox.repl() as repl:
        assert [finding.message for finding in repl.check("let x = 1;\n" * 20_000)] == ["not enough memory"]
        assert repl.run("40 + 2").value == 42
