"""Speed: compiled Rhai takes a few times the Lua instructions of the same work in bare Lua."""

from __future__ import annotations

import pytest

from .machine import Machine

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
