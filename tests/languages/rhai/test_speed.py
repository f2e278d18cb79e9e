"""Speed: compiled Rhai stays within a few times of the same work in bare Lua."""

from __future__ import annotations

import pytest

from moonbox.languages.rhai import compile

from .machine import Machine

_TIMED = """
local run, bare, rounds = ...
local clock = os.clock
local function timed(f) local start = clock() f() return clock() - start end
local best, best_bare = math.huge, math.huge
for _ = 1, rounds do
  best, best_bare = math.min(best, timed(run)), math.min(best_bare, timed(bare))
end
return best / best_bare
"""
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
    [(_FIB, _BARE_FIB, 9), (_LOOP, _BARE_LOOP, 9), (_MAPS, _BARE_MAPS, 9)],
    ids=["calls", "arrays", "maps"],
)
def test_times_of_bare_lua(rhai: str, bare: str, most: float) -> None:
    machine = Machine({"max_operations": 1_000_000_000, "max_array": 10_000_000, "max_string": 10_000_000})
    load = machine.lua.eval(
        "function(R, S, text) local c = load(text, '=rhai', 't', {}) return function() return R.run(S, c) end end"
    )
    run = load(machine.runtime, machine.state, compile(rhai).lua)
    plain = machine.lua.eval("load")(bare)
    assert run() == plain()
    timed = machine.lua.execute(f"return function(...) {_TIMED} end")
    ratio = timed(run, plain, 9)
    assert ratio < most
