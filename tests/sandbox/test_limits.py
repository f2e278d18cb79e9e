"""Limits of runs: what ends gracefully, what is killed, and what is left afterwards."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Sandbox, tool
from tests.runs import ISOLATIONS, WAYS, error_of

if TYPE_CHECKING:
    from collections.abc import Iterator


@tool
def text(size: int) -> str:
    """So much text."""
    return "x" * size


@pytest.fixture(scope="module", params=ISOLATIONS)
def box(request: Any) -> Iterator[Sandbox]:
    with Sandbox([text], isolation=request.param, lua_features={"coroutines", "metatables"}) as box:
        yield box


GRACEFUL = {
    "time": ("while true do end", Limits(timeout=0.5)),
    "operations": ("while true do end", Limits(timeout=20, max_operations=5000)),
    "memory": ("local t = {} while true do t[#t + 1] = {} end", Limits(timeout=20, max_memory=2_000_000)),
    "output": ("while true do print('line') end", Limits(timeout=20, max_output=100)),
    "calls": ("while true do tools.text(1) end", Limits(timeout=20, max_tool_calls=3)),
    "string": ("return ('x'):rep(200)", Limits(timeout=20, max_string=100)),
    "array": ("return { 1, 2, 3, 4, 5, 6 }", Limits(timeout=20, max_array=5)),
    "depth": ("return { { { { } } } }", Limits(timeout=20, max_depth=3)),
}


@pytest.mark.parametrize("limit", GRACEFUL)
def test_the_state_is_kept(box: Sandbox, limit: str) -> None:
    source, limits = GRACEFUL[limit]
    with box.repl(limits=Limits(timeout=20)) as repl:
        assert repl.run("kept = { 1, 2 }").ok
        run = repl.run("kept[3] = 3 " + source, limits=limits)
        assert (error_of(run).kind, error_of(run).limit, run.state_lost) == ("limit", limit, False)
        assert run.values == ()
        assert repl.run("return #kept, kept[3]").values == (3, 3)
        assert repl.run("return ('x'):rep(200), { 1, 2, 3, 4, 5, 6 }, { { { { } } } }").ok  # for that run only


IN_PYTHON = {  # `operations` are not counted there, and `memory` is that of the first run: limit__memory.py
    "time": ("while True:\n    pass", Limits(timeout=0.5)),
    "output": ("for _ in range(1000):\n    print('line')", Limits(timeout=20, max_output=100)),
    "calls": ("while True:\n    text(1)", Limits(timeout=20, max_tool_calls=3)),
    "string": ("'x' * 200", Limits(timeout=20, max_string=100)),
    "array": ("[1, 2, 3, 4, 5, 6]", Limits(timeout=20, max_array=5)),
    "depth": ("[[[[]]]]", Limits(timeout=20, max_depth=3)),
}


@pytest.mark.parametrize("limit", IN_PYTHON)
@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_the_state_is_kept_in_python(isolation: Any, limit: str) -> None:
    source, limits = IN_PYTHON[limit]
    with Sandbox([text], isolation=isolation, language="python") as box, box.repl(limits=Limits(timeout=20)) as repl:
        assert repl.run("kept = [1, 2]").ok
        run = repl.run("kept.append(3)\n" + source, limits=limits)
        assert (error_of(run).kind, error_of(run).limit, run.state_lost) == ("limit", limit, False)
        assert run.values == ()
        assert repl.run("[len(kept), kept[2]]").value == [3, 3]
        assert repl.run("['x' * 200, [1, 2, 3, 4, 5, 6], [[[[]]]]]").ok  # for that run only


def test_operations_are_counted_where_they_are_limited(box: Sandbox) -> None:
    with box.repl() as repl:
        free = repl.run("for i = 1, 1000 do end")
        counted = repl.run("for i = 1, 1000 do end", limits=Limits(max_operations=100_000))
        assert free.usage.operations is None
        assert counted.usage.operations is not None
        assert 1000 <= counted.usage.operations < 5000


def test_operations_of_a_coroutine_from_another_run(box: Sandbox) -> None:
    """Made where nothing was counted, resumed where it is."""
    with box.repl() as repl:
        assert repl.run("co = coroutine.wrap(function() coroutine.yield() while true do end end) co()").ok
        run = repl.run("co()", limits=Limits(timeout=20, max_operations=5000))
        assert error_of(run).limit == "operations"


def test_a_coroutine_that_was_counted_goes_on_uncounted(box: Sandbox) -> None:
    with box.repl() as repl:
        counted = Limits(timeout=20, max_operations=50_000)
        assert repl.run(
            "co = coroutine.wrap(function() while true do coroutine.yield() end end) co()", limits=counted
        ).ok
        assert repl.run("for i = 1, 1000 do co() end return 1").value == 1


@pytest.mark.parametrize("way", WAYS)
def test_what_lua_cannot_stop_is_killed(way: str) -> None:
    """Its state is lost, and the next worker finds room."""
    with Sandbox(min_workers=0, max_workers=1) as box, box.repl() as repl:
        for _ in range(3):
            assert repl.run("x = 1").ok
            source, limits = "return ('a'):rep(50):find(('a-'):rep(20) .. 'b')", Limits(timeout=1)
            run = repl.run(source, limits=limits) if way == "run" else asyncio.run(repl.arun(source, limits=limits))
            assert (error_of(run).limit, run.state_lost) == ("time", True)
            assert repl.run("return x").values == (None,)


@pytest.mark.parametrize("timeout", [None, 1_000_000_000])
def test_long_timeouts(box: Sandbox, timeout: float | None) -> None:
    with box.repl(limits=Limits(timeout=timeout)) as repl:
        assert repl.run("for i = 1, 1000000 do end return 1, #tools.text(5)").values == (1, 5)


@pytest.mark.parametrize(("most", "text", "shown", "cut"), [(10, "0123456789abcde", "0123456789", 6), (0, "", "", 1)])
def test_what_was_printed_past_the_limit_is_counted(box: Sandbox, most: int, text: str, shown: str, cut: int) -> None:
    with box.repl(limits=Limits(max_output=most)) as repl:
        run = repl.run(f"print('{text}')")
        assert (run.output, run.output_cut, error_of(run).limit) == (shown, cut, "output")


def test_memory_that_is_freed_does_not_count(box: Sandbox) -> None:
    with box.repl(limits=Limits(timeout=30, max_memory=4_000_000)) as repl:
        assert repl.run("for i = 1, 300 do local s = ('x'):rep(1000000) .. i end return 1").value == 1


def test_peak_memory_is_told(box: Sandbox) -> None:
    with box.repl() as repl:
        run = repl.run("big = ('x'):rep(5000000) return #big")
        assert 4_500_000 <= run.usage.peak_memory < 20_000_000
        assert repl.run("big = nil return 1").ok


def test_memory_of_answers_counts(box: Sandbox) -> None:
    limits = Limits(timeout=20, max_memory=3_000_000)
    with box.repl(limits=limits) as repl:
        run = repl.run("keep = {} for i = 1, 20 do keep[i] = tools.text(500000) end")
        assert error_of(run).limit == "memory"
        assert 3 < len(run.calls) < 10
        assert repl.run("keep = nil return 1").value == 1


@pytest.mark.parametrize("isolation", ["process", "inline"])
@pytest.mark.parametrize("language", ["lua", "rhai", "python"])
def test_scripts_longer_than_max_source(isolation: Any, language: str) -> None:
    """A longer one is neither checked nor compiled, and nothing is lost."""
    comment = {"lua": "--", "rhai": "//", "python": "# "}[language]
    with (
        Sandbox(isolation=isolation, language=language, limits=Limits.untrusted(timeout=20)) as box,
        box.repl() as repl,
    ):
        for text, size in ((f"{comment} " + "x" * 3_900_000, 3_900_003), (f"{comment} " + "é" * 32_768, 65_539)):
            run = repl.run(text)
            assert (error_of(run).kind, error_of(run).limit, run.state_lost) == ("limit", "source", False)
            assert error_of(run).message == f"the script has {size} bytes; max_source is 65536"
        assert repl.run(f"{comment} " + "x" * 65_533).ok


def test_scripts_too_large_for_the_memory(box: Sandbox) -> None:
    with box.repl(limits=Limits(timeout=20, max_memory=2_000_000, max_source=2_000_000)) as repl:
        assert repl.run("kept = 1").ok
        run = repl.run("-- " + "x" * 1_000_000)
        assert (error_of(run).kind, error_of(run).limit, run.state_lost) == ("limit", "memory", False)
        assert error_of(run).message == "the script has 1000003 characters, too many for max_memory = 2000000 bytes"
        assert repl.run("return kept").value == 1


def test_a_large_script_when_the_memory_is_full(box: Sandbox) -> None:
    """Lua is handed the script outside of its own protection: that must not end the process."""
    with box.repl(limits=Limits(timeout=20, max_memory=2_000_000)) as repl:
        assert repl.run("hoard = {} while true do hoard[#hoard + 1] = ('x'):rep(100) .. #hoard end").error is not None
        run = repl.run("return 1 -- " + "x" * 400_000)
        assert run.error is None or run.error.limit == "memory"
        assert not run.state_lost
        assert repl.run("hoard = nil return 1").value == 1


def test_changed_limits_reach_the_worker_after_a_refused_script(box: Sandbox) -> None:
    with box.repl() as repl:
        small = Limits(timeout=20, max_memory=1_100_000, max_string=100)
        assert repl.run("-- " + "x" * 1_000_000, limits=small).error is not None
        run = repl.run("return ('x'):rep(200)", limits=small)
        assert error_of(run).limit == "string"
        assert repl.run("return #('x'):rep(200)").value == 200


def test_the_time_of_a_run_that_is_stopped_at_its_start(box: Sandbox) -> None:
    with box.repl() as repl:
        assert repl.run("kept = 1").ok
        for _ in range(20):
            run = repl.run("while true do end", limits=Limits(timeout=0.0005))
            assert error_of(run).limit == "time"
        assert repl.run("return kept").value == 1


def test_nan_where_it_is_allowed() -> None:
    with Sandbox(allow_nan=True) as box:
        nan, infinity, inner = box.run("return 0/0, math.huge, { -math.huge }").values
        assert nan != nan
        assert (infinity, inner) == (float("inf"), [float("-inf")])


def test_a_preset_for_the_unknown() -> None:
    with Sandbox([text], limits=Limits.untrusted()) as box, box.repl() as repl:
        for source in (
            "while true do end",
            "local t = {} while true do t[#t + 1] = t end",
            "return ('x'):rep(200000)",
            "for i = 1, 10 do tools.text(1) end",
            "print(('x'):rep(20000))",
        ):
            run = repl.run(source)
            assert error_of(run).kind == "limit"
            assert not run.state_lost


def test_garbage_is_collected_after_an_answer_that_did_not_fit() -> None:
    def rows(count: int) -> list[dict[str, int]]:
        return [{"id": number, "twice": 2 * number} for number in range(count)]

    garbage = "for i = 1, 200000 do local t = {i, i, i, i} end return 1"
    with Sandbox([rows], limits=Limits(max_memory=8 << 20, timeout=60)) as box, box.repl() as repl:
        whole = repl.run("return #tools.rows{count = 5000}")
        assert whole.value == 5000
        assert repl.run(garbage).usage.peak_memory < 4 << 20
        failed = repl.run("return #tools.rows{count = 90000}")
        assert error_of(failed).limit == "memory"
        after = repl.run(garbage)
        assert (after.value, after.usage.peak_memory < 4 << 20) == (1, True)


@tool
async def wait(name: str) -> str:
    """Answers never."""
    await asyncio.Event().wait()
    return name


@pytest.mark.parametrize(
    ("language", "source", "line"),
    [
        ("lua", "local a = tools.text{size = 1}\nlocal b = tools.wait{name = a}\nreturn b", 2),
        (
            "lua",
            "parallel{\n  function() return tools.text{size = 1} end,\n  function() return tools.wait{name = 'b'} end}",
            3,
        ),
        ("rhai", "let a = tools::text(1);\ntools::wait(a)", 2),
    ],
)
def test_the_hint_names_the_call_that_took_the_time(language: str, source: str, line: int) -> None:
    with Sandbox([text, wait], limits=Limits(timeout=3), language=language) as box:
        error = box.run(source).error
    assert error is not None and error.limit == "time" and error.hint is not None
    assert error.hint.startswith(f"the call of 'wait' on line {line} took ")
    assert error.hint.endswith(" seconds: ask it for less, or go on without it")


def test_the_hint_names_no_call_that_took_only_a_part_of_the_time() -> None:
    with Sandbox([text], limits=Limits(timeout=1.5)) as box:
        error = box.run("tools.text{size = 1}\nwhile true do end").error
    assert (
        error is not None
        and error.hint == "it was at line 2; the loop of line 2 never ends: add a break or a condition"
    )


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_garbage_of_a_run_with_more_memory_does_not_raise_a_lower_limit(isolation: Any) -> None:
    holding = "local t = {} for i = 1, %d do t[i] = ('x'):rep(1000) .. i end"
    with Sandbox(isolation=isolation, limits=Limits(max_memory=160_000_000)) as box, box.repl() as repl:
        assert repl.run(holding % 100_000).ok
        run = repl.run(holding % 50_000, limits=Limits(max_memory=16_000_000))
    assert error_of(run).limit == "memory"


def test_a_script_whose_memory_is_full_does_not_collect_for_long() -> None:
    limits = Limits(max_memory=30_000_000, timeout=60)
    with Sandbox(limits=limits) as box:
        run = box.run("local t = {} for i = 1, 1e8 do t[i] = tostring(i) end")
    assert run.error is not None
    assert run.error.limit == "memory"
    if run.usage.native:  # elsewhere lupa's own allocator decides
        assert run.usage.cpu < 4  # processor time, which does not depend on others; it was 8 and more
