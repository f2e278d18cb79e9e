"""The seam between runtime and host: states, values that cross, errors, limits, stops; and its speed."""

from __future__ import annotations

from typing import Any

import pytest
from lupa.lua54 import LuaError

from .machine import Later, Machine, Stopped


def test_what_cannot_leave_is_named() -> None:
    machine = Machine()
    outcome = machine.run("#{rows: [1, #{f: |x| x}]}")
    with pytest.raises(LuaError) as caught:
        machine.exported(outcome)
    assert str(caught.value).splitlines()[0] == (
        "value.rows[1].f is a function, which cannot leave the script: return its result, f.call(...)"
    )


def test_depth_of_what_leaves_is_bounded() -> None:
    machine = Machine({"max_depth": 10})
    machine.run("let a = []; for i in 0..8 { a = [a]; }")
    assert machine.exported(machine.run("a")) is not None
    with pytest.raises(LuaError, match=r"value(\[0\])+ is nested too deeply"):
        machine.exported(machine.run("[[a]]"))


def test_bytes_that_are_no_text_enter_as_a_blob() -> None:
    machine = Machine()
    imported = machine.lua.eval('function(R) return R.import("\\255\\0a") end')(machine.runtime)
    assert machine.runtime.type_of(imported) == "blob"
    assert machine.runtime.debug(imported) == "[ff0061]"


def test_an_error_is_a_table_with_all_its_parts() -> None:
    machine = Machine()
    error = machine.run("fn f(x) {\n  x.nope()\n}\nfn g() { f(1) }\ng()").raw
    assert (error.kind, error.error) == ("runtime", "ErrorFunctionNotFound")
    assert error.message == "Function not found: nope (i64)"
    assert (error.line, error.position) == (2, 5)
    assert [(frame.fn, frame.line, frame.position) for frame in error.trace.values()] == [("f", 4, 10), ("g", 5, 1)]
    assert error.text == (
        "Function not found: nope (i64) (line 2, position 5)\n"
        "in call to function 'f' (line 4, position 10)\n"
        "in call to function 'g' (line 5, position 1)"
    )


def test_an_error_whose_message_has_no_position_still_tells_where() -> None:
    error = Machine().run("let x = 9223372036854775807;\nx + 1").raw
    assert error.text == "Addition overflow: 9223372036854775807 + 1"
    assert (error.line, error.near_line, error.near_position) == (None, 2, 3)


def test_a_stop_passes_through_every_try() -> None:
    def stop(_args: Any) -> None:
        raise Stopped

    machine = Machine(tools={"stop": stop})
    script = """
        fn f() { try { stop() } catch (e) { print(e); } finally_() }
        try { [1].map(|x| f()); } catch { print("caught"); }
        try { parallel_settle([|| f()]); } catch { print("caught"); }
    """
    outcome = machine.run(script)
    assert (outcome.kind, outcome.text, outcome.prints) == ("stopped", "stopped", [])
    assert machine.run("parallel_settle([|| stop()])").kind == "stopped"


def test_limits_may_change_between_runs() -> None:
    machine = Machine({"max_array": 3, "max_string": 1000})
    machine.run("fn fill(n) { let a = []; for i in 0..n { a.push(i); } a.len() }")
    assert machine.run("fill(4)").text == "Size of array/BLOB too large (line 1, position 1)"
    machine.host.limits.max_array = 5
    assert machine.run("fill(4)").raw == 4
    machine.host.limits.max_array = 2
    assert machine.run("fill(3)").kind == "limit"
    machine.host.limits.max_operations = 50
    assert machine.run("loop { }").text == "Too many operations (line 1, position 6)"
    machine.host.limits.max_operations = None
    assert machine.run("let n = 0; while n < 1000 { n += 1; } n").raw == 1000


def test_closures_in_parallel_take_turns_and_share_the_budget() -> None:
    order: list[Any] = []

    def work(args: Any) -> Any:
        order.append(args[0])
        return Later(args[0])

    machine = Machine({"max_operations": 100_000}, {"work": work})
    script = "fn two(n) { let a = work(n); let b = work(n + 10); a + b } parallel([|| two(1), || two(2)])"
    assert machine.exported(machine.run(script)) == [12, 14]
    assert order == [1, 2, 11, 12]
    alone = Machine(tools={"work": work}).run("fn two(n) { let a = work(n); let b = work(n + 10); a + b } two(1)")
    assert machine.run("parallel([|| two(1), || two(2)])").operations > 2 * alone.operations - 10


def test_the_clock_is_the_hosts() -> None:
    times = iter([10.0, 12.5])
    assert Machine(clock=lambda: next(times)).run("let t = timestamp(); t.elapsed").raw == 2.5


def test_strings_keep_their_library_for_the_host() -> None:
    machine = Machine()
    machine.run("1")
    assert machine.lua.eval("('abc'):upper()") == "ABC"
    assert machine.lua.eval("pcall(function() return 'a' + 1 end)") == (True, None)


# Compiled Rhai takes a few times the Lua instructions of the same work in bare Lua.
_FIB = "fn fib(n) { if n < 2 { n } else { fib(n - 1) + fib(n - 2) } } fib(20)"
_BARE_FIB = "local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end return fib(20)"
_LOOP = "let a = []; let s = 0; for i in 0..50000 { a.push(i); s += a[i]; } s"
_BARE_LOOP = "local a, s = {}, 0 for i = 0, 49999 do a[#a + 1] = i s = s + a[i + 1] end return s"
_MAPS = "let s = 0; for i in 0..20000 { let m = #{id: i, n: i * 2}; if m.n % 3 == 0 { s += m.id; } } s"
_BARE_MAPS = (
    "local s = 0 for i = 0, 19999 do local m = {id = i, n = i * 2} if m.n % 3 == 0 then s = s + m.id end end return s"
)


@pytest.mark.parametrize(
    ("rhai", "bare", "most"),
    [(_FIB, _BARE_FIB, 6), (_LOOP, _BARE_LOOP, 6), (_MAPS, _BARE_MAPS, 6)],
    ids=["calls", "arrays", "maps"],
)
def test_instructions_of_bare_lua(rhai: str, bare: str, most: float) -> None:
    machine = Machine({"max_operations": 1_000_000_000, "max_array": 10_000_000, "max_string": 10_000_000})
    script = machine.lua.eval("function(R, S, source) return function() return R.run(S, source) end end")
    counted = machine.helpers.counted
    steps, value = counted(script(machine.runtime, machine.state, rhai))
    bare_steps, bare_value = counted(machine.lua.eval("load")(bare))
    assert value == bare_value
    assert steps / bare_steps < most
