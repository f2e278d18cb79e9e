"""`parallel` in scripts: batches, order, errors, concurrency, nesting and cancellation."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, defaultdict
from typing import Any

import pytest

from moonbox import Limits, Run, Sandbox, ToolError, tool
from tests import runs
from tests.runs import error_of


class Desk:
    """Tools that tell when they began and ended, and can be held up."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.cancelled: list[str] = []
        self.left: dict[str, threading.Event] = defaultdict(threading.Event)
        self.now = self.most = 0
        self._lock = threading.Lock()

    def tools(self) -> list[Any]:
        @tool
        def step(name: str, wait: float = 0.0, after: str = "") -> str:
            """Begin, wait (or wait until another step has ended), end."""
            self._enter(name)
            assert not after or self.left[after].wait(20)
            time.sleep(wait)
            self._leave(name)
            return name

        @tool
        async def astep(name: str = "a", wait: float = 0.0) -> str:
            """Begin, wait, end."""
            self._enter(name)
            try:
                await asyncio.sleep(wait)
            except asyncio.CancelledError:
                self.cancelled.append(name)
                raise
            self._leave(name)
            return name

        @tool
        def fail(message: str = "no", wait: float = 0.0) -> None:
            """Fail."""
            time.sleep(wait)
            raise ToolError(message)

        return [step, astep, fail]

    def _enter(self, name: str) -> None:
        with self._lock:
            self.events.append("+" + name)
            self.now += 1
            self.most = max(self.most, self.now)

    def _leave(self, name: str) -> None:
        with self._lock:
            self.events.append("-" + name)
            self.now -= 1
        self.left[name].set()


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture(params=["process-run", "process-arun", "inline-run", "inline-arun"])
def play(request: Any, desk: Desk) -> Any:
    isolation, way = request.param.split("-")

    def run(source: str, **limits: Any) -> Run:
        options: dict[str, Any] = {
            "isolation": isolation,
            "limits": Limits(**{"timeout": 20, "max_tool_calls": None, **limits}),
            "lua_features": {"coroutines"},
        }
        return runs.play(way, source, desk.tools(), **options)

    return run


SCRIPTS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "results keep the order of the list": (
        "return parallel.map({0.03, 0.0, 0.02, 0.01}, function(w, i) return tools.step('s' .. i, w) end)",
        (["s1", "s2", "s3", "s4"],),
    ),
    "tools can be given directly": (
        "return parallel{ tools.astep, tools.astep }",
        (["a", "a"],),
    ),
    "settle lets the rest go on": (
        """
        local r = parallel.settle{
          function() tools.fail("one") end,
          function() return tools.step("two", 0.02) end,
          function() error({ code = 3 }) end,
        }
        return r[1].ok, r[1].error.message, r[2].ok, r[2].value, r[3].ok, r[3].error.code
        """,
        (False, "one", True, "two", False, 3),
    ),
    "an error in a nested parallel": (
        """
        local r = parallel.settle{
          function()
            return parallel{ function() tools.fail("inner") end, function() return tools.step("x", 0.05) end }
          end,
          function() return tools.step("outer", 0.05) end,
        }
        return r[1].ok, r[1].error.message, r[2].value
        """,
        (False, "inner", "outer"),
    ),
    # Inside sort and gsub a call is made by itself; answers to others that come meanwhile are not lost.
    "calls that cannot wait for others": (
        """
        return parallel{
          function() return tools.astep("first", 0.02) end,
          function()
            return (("a b"):gsub("%a", function(c) return tools.step(c .. "!", 0.05) end))
          end,
          function()
            local t = { 1, 2 }
            table.sort(t, function(a, b) tools.step("cmp", 0.03) return a < b end)
            return t
          end,
          function() return tools.step("last", 0.01) end,
        }
        """,
        (["first", "a! b!", [1, 2], "last"],),
    ),
    "parallel where it cannot yield": (
        """
        return parallel{
          function() return tools.astep("outer", 0.05) end,
          function()
            return (("x"):gsub("x", function()
              return parallel.map({ 0.1, 0.01 }, function(wait, i) return tools.step("i" .. i, wait) end)[2]
            end))
          end,
          coroutine.wrap(function()
            return parallel{ function() return tools.step("j", 0.07) end }[1]
          end),
        }
        """,
        (["outer", "i2", "j"],),
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_values(play: Any, name: str) -> None:
    source, values = SCRIPTS[name]
    assert play(source).values == values


def test_sync_and_async_tools_in_one_batch(play: Any, desk: Desk) -> None:
    run = play(
        "return parallel{ function() return tools.step('a', 0.3) end, function() return tools.astep('b', 0.3) end }"
    )
    assert run.value == ["a", "b"]
    assert desk.most == 2
    assert {call.batch for call in run.calls} == {1}


def test_an_answer_goes_on_while_others_wait(play: Any, desk: Desk) -> None:
    """The first function makes its second call before the second function's only call has ended."""
    source = """
    return parallel{
      function() tools.step("quick 1") return tools.step("quick 2") end,
      function() return tools.step{ name = "slow", after = "quick 2" } end,
    }
    """
    run = play(source)
    assert run.value == ["quick 2", "slow"]
    assert desk.events.index("-quick 2") < desk.events.index("-slow")


def test_an_error_cancels_the_rest(play: Any, desk: Desk) -> None:
    source = """
    local ok, e = pcall(parallel, {
      function() return tools.astep("long", 10) end,
      function() tools.fail("first", 0.05) end,
      function() tools.step("short") tools.step("never", 0.2) while true do tools.step("never") end end,
    })
    return ok, e.message
    """
    run = play(source)
    assert run.values == (False, "first")
    assert run.calls[0].status == "cancelled"
    assert "-long" not in desk.events


@pytest.mark.parametrize("width", [1, 2, 3])
def test_concurrency(play: Any, desk: Desk, width: int) -> None:
    source = """
    return #parallel.map({1, 2, 3, 4, 5, 6}, function(i) return tools.step("s" .. i, 0.01) end, { concurrency = WIDTH })
    """
    assert play(source.replace("WIDTH", str(width))).value == 6
    assert desk.most <= width


def test_nesting(play: Any, desk: Desk) -> None:
    source = """
    return parallel.map({ "a", "b", "c" }, function(name)
      local r = parallel.map({ 1, 2 }, function(i) return tools.step(name .. i, 0.01) end)
      return r[1] .. r[2]
    end)
    """
    run = play(source)
    assert run.value == ["a1a2", "b1b2", "c1c2"]
    assert desk.most > 2
    assert {call.batch for call in run.calls} == {1}


def test_many_functions(play: Any) -> None:
    source = """
    local items = {}
    for i = 1, 500 do items[i] = i end
    local r = parallel.map(items, function(i) return tools.astep(tostring(i)) end)
    for i = 1, 500 do assert(r[i] == tostring(i)) end
    return #r
    """
    run = play(source)
    assert run.value == 500
    assert len(run.calls) == 500


def test_a_loop_of_batches(play: Any) -> None:
    source = """
    local n = 0
    for round = 1, 20 do
      local names = parallel.map({ 1, 2, 3 }, function(i) return tools.step(round .. "-" .. i) end)
      for _, name in ipairs(names) do n = n + #name end
    end
    return n
    """
    run = play(source)
    assert run.value == 9 * 3 * 3 + 11 * 3 * 4
    assert [call.batch for call in run.calls] == [batch for batch in range(1, 21) for _ in range(3)]


def test_the_deadline_in_the_middle_of_a_batch(play: Any) -> None:
    source = "parallel{ function() tools.astep('a', 10) end, function() tools.astep('b', 10) end } "
    run = play(source, timeout=1.5)  # long enough for both calls to begin on a busy machine
    assert error_of(run).limit == "time"
    assert [call.status for call in run.calls] == ["in_flight", "in_flight"]


def test_more_than_can_be_under_way(desk: Desk) -> None:
    """The rest waits in the script; nothing is lost when some of them fail or are cancelled."""

    @tool
    def number(n: int) -> int:
        """Give it back."""
        if n == 2_500:
            raise ToolError("the last one")
        return n

    limits = Limits(timeout=50, max_tool_calls=None)
    with Sandbox([number], limits=limits) as box, box.repl() as repl:
        source = """
        local items = {}
        for i = 1, COUNT do items[i] = i end
        local r = parallel.map(items, function(i) return tools.number(i) end)
        local sum = 0
        for i = 1, COUNT do assert(r[i] == i) sum = sum + r[i] end
        return sum
        """
        run = repl.run(source.replace("COUNT", "2499"))
        assert run.value == 2_499 * 2_500 // 2
        assert len(run.calls) == 2_499
        assert max(Counter(call.batch for call in run.calls).values()) <= 1000
        failed = repl.run(source.replace("COUNT", "2700"))
        assert error_of(failed).kind == "tool"
        assert repl.run("return tools.number(5)").value == 5


IN_PYTHON: dict[str, tuple[str, Any]] = {  # what is about coroutines and `gsub` is Lua's
    "results keep the order of the list": (
        "parallel_map(lambda w: step(name=f's{w}', wait=w), [0.03, 0.0, 0.02])",
        ["s0.03", "s0.0", "s0.02"],
    ),
    "tools can be given directly": ("parallel_map(astep, ['a', 'b'])", ["a", "b"]),
    "they are under way together": (
        "parallel_map(lambda x: step(name=x[0], after=x[1:]), ['ab', 'b'])",
        ["a", "b"],
    ),
    "gathered ones are, too": (
        "import asyncio\nawait asyncio.gather(step(name='a', after='b'), step(name='b'))",
        ["a", "b"],
    ),
    "settle lets the rest go on": (
        (
            "def f(n):\n    return fail(message=n) if n == 'one' else step(name=n, wait=0.02)\n"
            "r = parallel_settle(f, ['one', 'two'])\n[r[0]['ok'], r[0]['error']['message'], r[1]['ok'], r[1]['value']]"
        ),
        [False, "one", True, "two"],
    ),
    "one inside another": (
        "def outer(n):\n    return parallel_map(lambda m: step(name=f'{n}{m}'), [1, 2])\n[outer(n) for n in 'ab']",
        [["a1", "a2"], ["b1", "b2"]],
    ),
}


@pytest.mark.parametrize("isolation", ["process", "inline"])
@pytest.mark.parametrize("what", IN_PYTHON)
def test_in_python(what: str, isolation: Any, desk: Desk) -> None:
    source, expected = IN_PYTHON[what]
    run = runs.play("run", source, desk.tools(), isolation=isolation, language="python", limits=Limits(timeout=20))
    assert (run.error, run.value) == (None, expected)
