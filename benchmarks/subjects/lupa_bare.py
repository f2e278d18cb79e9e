"""Bare lupa: Lua in the same process, with no protection at all. What native speed is."""

from __future__ import annotations

import lupa.lua54
import work

lua = lupa.lua54.LuaRuntime(register_eval=False)
total = lua.execute("return function(rows) local t = 0.0 for _, r in ipairs(rows) do t = t + r.amount end return t end")
call = lua.execute("return function(f, n) for i = 1, n do f(i, 1) end end")


def compute(definition: str, call: str) -> float:
    """In a runtime of its own: how fast a global is found depends on the seed of Lua's hashes, which differs."""
    fresh = lupa.lua54.LuaRuntime(register_eval=False)
    fresh.execute(definition)
    return work.timed(lambda: fresh.execute(f"return {call}"))


def plain(value: object) -> object:
    """A Lua table as Python values."""
    if lupa.lua54.lua_type(value) != "table":
        return value
    items = dict(value.items())  # type: ignore[attr-defined]
    if 1 in items:
        return [plain(item) for item in items.values()]
    return {key: plain(item) for key, item in items.items()}


def rows_in(count: int = work.ROWS, shape: str = "flat") -> float:
    table = work.rows(count, shape)
    return work.timed(lambda: total(lua.table_from(table, recursive=True)))


def rows_out(count: int = work.ROWS, shape: str = "flat") -> float:
    held = lua.table_from(work.rows(count, shape), recursive=True)
    return work.timed(lambda: plain(held))


START = "from lupa import lua54\nlua54.LuaRuntime(register_eval=False).execute('return 1')"

work.serve(
    {
        "start": lambda: work.started(START),
        "fib": lambda: compute(work.LUA_FIB, f"fib({work.FIB})"),
        "loop": lambda: compute(work.LUA_LOOP, f"loop({work.LOOP})"),
        "empty": lambda: work.repeated(lambda: lua.execute("return 1"), work.EMPTY),
        "call": lambda n=work.CALLS: work.repeated(lambda: call(lambda a, b: a + b, n), work.runs_of_calls(n), n),
        "result": lambda n: work.repeated(lambda: lua.execute(f"return ('x'):rep({n})"), work.runs_of_result(n)),
        "rows_in": rows_in,
        "rows_out": rows_out,
        "fresh": lambda: work.timed(lambda: [lupa.lua54.LuaRuntime().execute("return 1") for _ in range(20)], 20),
    }
)
