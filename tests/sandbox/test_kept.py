"""What an answer cuts stays in the Repl under a name that the answer states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Repl, Sandbox, tool
from tests.runs import awaited, blocking, stepped

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = {
    "lua": "return tools.rows{}",
    "rhai": "rows()",
    "python": "rows()",
}
LAST = {"lua": "return {{{name}[2000].id, #{name}}}", "rhai": "[{name}[1999].id, {name}.len()]"}
LAST["python"] = '[{name}[1999]["id"], len({name})]'
NAMES = {"lua": ("_1", "_"), "rhai": ("kept_1", "kept"), "python": ("_1", "_")}
PRINTED = {
    "lua": "print(('0123456789'):rep(100))",
    "rhai": "let s = ''; for i in 0..100 { s += '0123456789'; } print(s);",
    "python": "print('0123456789' * 100)",
}


@tool
def rows() -> list[dict[str, int]]:
    """Many rows."""
    return [{"id": number} for number in range(1, 2001)]


@pytest.mark.parametrize("language", ["lua", "rhai", "python"])
def test_the_next_script_reads_on_without_calling_again(language: str) -> None:
    with Sandbox([rows], language=language) as box, box.repl() as repl:
        run = repl.run(ROWS[language])
        numbered, last = NAMES[language]
        assert run.kept == numbered
        text = run.for_model(1000)
        assert f"the value is an array of 2,000 elements, kept as {numbered}. Read on without calling anything" in text
        assert text.startswith('[{"id":1},')
        assert text.endswith('{"id":2000}]')
        for name in (numbered, last):
            again = repl.run(LAST[language].format(name=name))
            assert (again.error, again.value, again.calls) == (None, [2000, 2000], ())
        assert numbered not in repl.globals()


@pytest.mark.parametrize("language", ["lua", "rhai", "python"])
def test_output_is_kept_too(language: str) -> None:
    with Sandbox(language=language) as box, box.repl() as repl:
        run = repl.run(PRINTED[language].replace("'", '"'))
        name = NAMES[language][0] + "_printed"
        assert (run.kept, run.kept_output) == ("", name)
        assert f"printed characters left out here; kept as {name}. Read on: " in run.for_model(800)
        again = repl.run(f"return {name}" if language == "lua" else name)
        assert again.value == "0123456789" * 100 + "\n"


def test_output_of_a_run_that_failed_is_kept() -> None:
    with Sandbox() as box, box.repl() as repl:
        run = repl.run("print(('x'):rep(1000)) error('no')")
        assert run.kept_output == "_1_printed"
        assert repl.run("return #_1_printed").value == 1001


def test_several_values_are_kept_as_a_list(repl: Repl) -> None:
    assert repl.run("return ('x'):rep(600), nil, 3").kept == "_1"
    assert repl.run("return #_1, #_1[1], _1[2], _1[3]").values == (3, 600, None, 3)


@pytest.mark.parametrize("native", ["1", "0"])
@pytest.mark.parametrize("run", [blocking, awaited, stepped])
def test_all_ways_to_run_keep_alike(native: str, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOONBOX_NATIVE", native)
    with Sandbox() as box, box.repl() as repl:
        first = run(repl, "return ('x'):rep(600)")
        assert (first.kept, first.kept_output) == ("_1", "")
        second = run(repl, "print(('y'):rep(600)) return ('z'):rep(600)")
        assert (second.kept, second.kept_output) == ("_2", "_2_printed")
        third = run(repl, "print(('y'):rep(600)) return 1")
        assert (third.kept, third.kept_output) == ("", "_3_printed")
        last = run(repl, "return #_1, #_2, #_2_printed, #_3_printed, #_")
        assert (last.values, last.notes) == ((600, 600, 601, 601, 600), ())


def test_the_check_knows_the_names_of_what_is_kept(repl: Repl) -> None:
    assert repl.run("return ('x'):rep(600)").kept == "_1"
    assert repl.check("return #_1, _") == ()
    assert [finding.line for finding in repl.check("\nreturn #_2")] == [2]
    for _ in range(100):
        assert repl.run("return ('x'):rep(600)").kept
    assert [finding.line for finding in repl.check("return #_101, _\n, _1")] == [2], "that is gone for long"


def test_what_a_worker_that_was_lost_had_kept_is_not_known_any_more() -> None:
    with Sandbox() as box, box.repl() as repl:
        assert repl.run("return ('x'):rep(600)").kept == "_1"
        assert repl.run("return ('a'):rep(50):find(('a-'):rep(20) .. 'b')", limits=Limits(timeout=1)).state_lost
        assert len(repl.check("return #_1")) == 1


def test_short_answers_and_those_of_a_run_by_itself_are_not_kept(repl: Repl) -> None:
    run = repl.run("return 'x'")
    assert (run.kept, run.kept_output) == ("", "")
    assert repl.run("return _1, _").values == (None, None)
    with Sandbox() as box:
        assert box.run("return ('x'):rep(9000)").kept == ""


def test_names_that_a_script_has_taken_are_given_back(repl: Repl) -> None:
    repl.run("_1, _ = 'mine', 'mine too'")
    assert repl.run("return ('x'):rep(600)").kept == "_2"
    assert repl.run("return _1, #_, #_2").values == ("mine", 600, 600)
    assert repl.globals() == {"_": "string", "_1": "string"}


def test_only_the_names_themselves_are_found(repl: Repl) -> None:
    assert repl.run("return ('x'):rep(600)").kept == "_1"
    names = ("_01", "_1_", "_1_printed", "_1x", "_10", "__1", "_" + "1" * 400, "_1e0", "_0x1")
    assert repl.run(f"return {', '.join(f'_G[{name!r}]' for name in names)}, _G[1]").values == (None,) * (
        len(names) + 1
    )
    assert repl.run("_1 = 5 return _1").value == 5
    assert repl.run("function last() return #_ end return last()").value == 600
    assert repl.run("return last()").value == 600


def test_a_script_that_changes_the_environment_itself_finds_them() -> None:
    with Sandbox(lua_features={"metatables"}) as box, box.repl() as repl:
        assert repl.run("return ('x'):rep(600)").kept == "_1"
        changed = repl.run("setmetatable(_G, {__index = function(_, name) return 'no ' .. name end}) return other")
        assert changed.value == "no other"
        assert repl.run("return #_1, #_, other").values == (600, 600, "no other")


def test_they_age(repl: Repl) -> None:
    repl.run("return ('x'):rep(600)")
    for _ in range(20):
        assert repl.run("return #_1").value == 600
    assert repl.run("return _1, _").values == (None, None)


def test_the_oldest_go_when_there_are_too_many() -> None:
    limits = Limits(max_memory=16 << 20)  # a sixteenth of it is kept
    with Sandbox(limits=limits) as box, box.repl() as repl:
        for number in range(1, 6):
            assert repl.run("return ('x'):rep(300000)").kept == f"_{number}"
        assert repl.run("return _1 == nil, _2 == nil, #_3, #_5").values == (True, True, 300000, 300000)
        assert repl.run("return ('x'):rep(2000000)").kept == ""
        assert repl.run("return #_3, #_5, _").values == (300000, 300000, "x" * 300000), "it did not push the others out"


def test_they_make_room_when_memory_is_scarce() -> None:
    with Sandbox(limits=Limits(max_memory=4 << 20)) as box, box.repl() as repl:
        assert repl.run("return ('x'):rep(200000)").kept == "_1"
        assert repl.run("big = {} for i = 1, 120000 do big[i] = i end").ok
        assert repl.run("return _1").value is None


@pytest.fixture
def repl() -> Iterator[Repl]:
    with Sandbox(isolation="inline") as box:
        yield box.repl()
