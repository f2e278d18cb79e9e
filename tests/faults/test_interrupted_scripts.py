"""Scripts full of coroutines, stopped at random moments: the interrupt never touches what is not there any more."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from moonbox import Limits, Sandbox, tool
from tests.long import times
from tests.runs import error_of

TEXT = """
while true do coroutine.wrap(function() local t = {} for i = 1, 50 do t[i] = { i } end end)() end

local function f(n) if n > 0 then coroutine.wrap(f)(n - 1) end end
while true do f(20) end

local co = coroutine.wrap(function() while true do coroutine.yield(("x"):rep(100)) end end)
while true do co() end

while true do parallel{ function() for i = 1, 100 do end end, function() return tools.quick() end } end

while true do pcall(coroutine.wrap(function() error({}) end)) end

local t = {}
for n = 1, math.huge do
  t[n % 500] = coroutine.create(function() coroutine.yield() end)
  coroutine.resume(t[n % 500])
end

while true do
  local co = coroutine.create(function()
    local x <close> = setmetatable({}, { __close = function() end })
    coroutine.yield()
  end)
  coroutine.resume(co)
  coroutine.close(co)
end

while true do
  pcall(string.gsub, "abc", ".", function(c) return coroutine.wrap(function() return c end)() end)
end

while true do xpcall(function() coroutine.wrap(function() error("x") end)() end, function(e) return e end) end
"""
SCRIPTS = TEXT.split("\n\n")


@tool
def quick() -> int:
    """One."""
    return 1


def test_stopped_at_random_moments() -> None:
    limits = Limits(timeout=5, max_tool_calls=None, max_memory=8_000_000)
    with Sandbox([quick], limits=limits, lua_features={"coroutines", "metatables"}) as box:

        def work(seed: int) -> None:
            chance = random.Random(seed)
            with box.repl() as repl:
                for n in range(times(60)):
                    assert repl.run(f"n = {n}").ok
                    timeout = 0.001 + chance.random() * 0.03
                    operations = chance.choice([None, None, None, chance.randrange(1, 20_000)])
                    run = repl.run(
                        chance.choice(SCRIPTS), limits=replace(limits, timeout=timeout, max_operations=operations)
                    )
                    assert error_of(run).kind == "limit", run.error
                    after = repl.run("return n, coroutine.wrap(function() return 'fine' end)()")
                    assert after.values == (None if run.state_lost else n, "fine")

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(6)))
