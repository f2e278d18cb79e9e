"""Repl and Sandbox: state, definitions, reset, globals, documentation, checkouts, options and records."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Run, Sandbox, Toolbox, tool
from moonbox.errors import ClosedError, PoolTimeout, ToolDefinitionError, UsageError
from tests.runs import ISOLATIONS, at_once
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moonbox import Repl


@tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture(params=ISOLATIONS)
def box(request: Any) -> Iterator[Sandbox]:
    with Sandbox([add], isolation=request.param, limits=Limits(timeout=20)) as box:
        yield box


@pytest.fixture
def repl(box: Sandbox) -> Iterator[Repl]:
    with box.repl() as repl:
        yield repl


def test_state_stays_from_run_to_run(repl: Repl) -> None:
    for n in range(1, 6):
        run = repl.run("n = (n or 0) + 1 return n")
        assert (run.value, run.number, run.state_lost) == (n, n, False)


def test_repls_are_apart(box: Sandbox) -> None:
    with box.repl() as one, box.repl() as two:
        one.define("given", 1)
        assert one.run("x = 'one'").ok
        assert two.run("x = 'two'").ok
        assert (one.run("return x, given").values, two.run("return x, given").values) == (("one", 1), ("two", None))
        assert one.id != two.id
    assert box.run("x = 1 return x").value == 1
    assert box.run("return x").value is None


def test_the_record(repl: Repl) -> None:
    before = time.time()
    first = repl.run("print('hi') return tools.add(1)")
    second = repl.run("return 1, 2")
    assert len({first.id, second.id}) == 2
    assert first.repl == second.repl == repl.id
    assert (first.number, second.number) == (1, 2)
    assert first.source == "print('hi') return tools.add(1)"
    assert first.language == "lua"
    assert before - 1 <= first.started <= second.started <= time.time() + 1
    assert (first.output, first.output_cut) == ("hi\n", 0)
    assert second.values == (1, 2)
    usage = first.usage
    assert usage.wall > 0
    assert usage.cpu >= 0
    assert usage.operations is None
    assert usage.calls == 1
    assert usage.bytes_in > 0
    assert usage.bytes_out > 0
    assert 0 <= usage.peak_memory < 10_000_000
    assert Run.from_json(first.to_json()) == first


def test_unwrap(repl: Repl) -> None:
    from moonbox import ScriptError

    assert repl.run("return 5").unwrap() == 5
    with pytest.raises(ScriptError, match="boom"):
        repl.run("error('boom')").unwrap()


def test_the_seed_is_recorded_and_decides(repl: Repl) -> None:
    first = repl.run("return math.random(1000000), math.random(1000000)")
    second = repl.run("return math.random(1000000), math.random(1000000)")
    assert first.seed != second.seed
    assert first.values != second.values
    again = repl.run(f"math.randomseed({first.seed}) return math.random(1000000), math.random(1000000)")
    assert again.values == first.values


def test_what_was_read_of_the_clock_is_recorded(repl: Repl) -> None:
    run = repl.run("return os.time(), os.clock(), os.date('%Y', 0), os.date('%Y')")
    assert [seen.name for seen in run.observations] == ["os.time", "os.clock", "os.time"]
    assert [seen.value for seen in run.observations][:2] == list(run.values[:2])
    assert abs(run.values[0] - time.time()) < 60
    assert repl.run("return 1").observations == ()


def test_the_record_of_the_clock_is_bounded(repl: Repl) -> None:
    run = repl.run("for i = 1, 12000 do os.time() end", limits=Limits(timeout=60))
    assert run.ok
    assert len(run.observations) == 10_000


# Definitions


CONFIG = {"a": [1, None], "b": {}, "c": 1.5}


def test_define(repl: Repl) -> None:
    steps: list[tuple[dict[str, Any], str, tuple[Any, ...]]] = [
        ({}, "return x", (None,)),
        ({"config": CONFIG, "name": "ann"}, "return config, name, config.a[2] == null", (CONFIG, "ann", True)),
        ({"x": 1}, "return x", (1,)),
        ({"x": 2}, "return x", (2,)),
        ({}, "x = 500 return x", (500,)),
        ({}, "return x", (2,)),  # a script cannot take it away
        ({"x": lambda: 3}, "return x()", (3,)),
        ({"x": None}, "return type(x)", ("nil",)),
    ]
    for definitions, source, values in steps:
        for name, value in definitions.items():
            repl.define(name, value)
        assert repl.run(source).values == values


def test_define_functions(repl: Repl) -> None:
    async def later(n: int) -> int:
        return n + 1

    def broken() -> None:
        raise ValueError("not today")

    functions = {"join": lambda *parts: "-".join(map(str, parts)), "later": later, "text.upper": str.upper}
    for name, function in {**functions, "nothing": lambda: None, "broken": broken}.items():
        repl.define(name, function)
    run = repl.run("return join(1, 'a', 2.5), later(1), text.upper('x'), nothing(), pcall(broken)")
    assert run.values[:5] == ("1-a-2.5", 2, "X", None, False)
    assert "not today" in run.values[5]["message"]
    assert [(call.tool, call.arguments) for call in run.calls] == [
        ("join", [1, "a", 2.5]),
        ("later", [1]),
        ("text.upper", ["x"]),
        ("nothing", []),
        ("broken", []),
    ]


def test_define_keeps_what_scripts_defined(repl: Repl) -> None:
    assert repl.run("mine = 1 function f() return twice(mine) end").ok
    repl.define("twice", lambda n: n * 2)
    assert repl.run("mine = 21 return f()").value == 42


@pytest.mark.parametrize("name", ["", "1x", "a b", "end", "a-b", "é", "a..b", ".a", 5, None])
def test_wrong_names(repl: Repl, name: Any) -> None:
    with pytest.raises(UsageError, match="is not a name that a script can write"):
        repl.define(name, 1)


@pytest.mark.parametrize(
    ("language", "names"),
    [
        ("lua", ["tools", "tools.mine", "print", "parallel", "progress", "show", "string.mine", "json"]),
        ("rhai", ["tools", "print", "parallel", "progress", "show", "len"]),
        (
            "python",
            ["tools", "tools.mine", "print", "pages", "progress", "show", "docs", "len", "open", "json", "re.x"],
        ),
    ],
)
def test_what_every_script_finds_cannot_be_hidden(language: str, names: list[str]) -> None:
    with Sandbox(language=language) as box, box.repl() as repl:
        for name in names:
            first = name.partition(".")[0]
            for define in (box.define, repl.define):
                with pytest.raises(UsageError, match=f"^'{name}' would hide what scripts find as '{first}': choose"):
                    define(name, lambda: 1)
        assert repl.run("return 1" if language == "lua" else "1").value == 1


def test_variables_of_rhai_hide_no_functions() -> None:
    with Sandbox(language="rhai", globals={"parallel": 2}) as box:
        run = box.run("parallel([|| parallel + pages])", inputs={"pages": 3})
    assert run.value == [5]


@pytest.mark.parametrize(("language", "word"), [("python", "class"), ("rhai", "let"), ("rhai", "module")])
def test_reserved_words_of_the_language_cannot_be_defined(language: str, word: str) -> None:
    with Sandbox(language=language) as box, box.repl() as repl:
        for name in (word, f"a.{word}"):
            with pytest.raises(UsageError, match=rf"^'{name}' is not a name that a script can write"):
                repl.define(name, lambda: 1)
        with pytest.raises(UsageError, match=rf"^'{word}' is not a name that a script can write"):
            repl.run("1", inputs={word: 1})


def test_values_may_have_names_of_functions_and_modules() -> None:
    with Sandbox(language="python", globals={"id": 1, "json": 2}) as box:
        assert box.run("[id, json, len]", inputs={"len": 3}).value == [1, 2, 3]
    with (
        Sandbox(language="rhai") as box,
        pytest.raises(UsageError, match=r"^a value has a name without dots, not 'a\.x'$"),
    ):
        box.define("a.x", 1)


@pytest.mark.parametrize("language", ["lua", "python"])
def test_a_name_is_a_value_or_a_table_of_names(language: str) -> None:
    """The latest definition counts."""
    give = "return %s" if language == "lua" else "%s"
    with Sandbox(language=language) as box, box.repl() as repl:
        for name, value, read in (("a.b", 5, "a.b"), ("a", 6, "a"), ("a.b.c", 7, "a.b.c"), ("a.b", lambda: 8, "a.b()")):
            repl.define(name, value)
            assert repl.run(give % read).value == (value() if callable(value) else value)


def test_values_that_cannot_be_defined(repl: Repl) -> None:
    with pytest.raises(UsageError, match=r"the global 'x' cannot be defined: x\.a is an object"):
        repl.define("x", {"a": object()})
    assert repl.run("return x").value is None


def test_define_for_every_repl() -> None:
    with Sandbox(globals={"answer": 42, "double": lambda n: n * 2}) as box:
        box.define("later", "yes", doc="Said later.")
        assert box.run("return answer, double(4), later, docs['later']").values == (42, 8, "yes", "Said later.")


def test_tools_that_come_later() -> None:
    tools = Toolbox.of([add])
    with Sandbox(tools) as box, box.repl() as repl:
        assert repl.run("return tools.sub").value is None

        @tool
        def sub(a: int, b: int) -> int:
            """Subtract."""
            return a - b

        tools.add(sub)
        assert repl.run("return tools.sub(5, 3), docs.search('subtract')[1].name").values == (2, "sub")


# Globals and reset


def test_globals(repl: Repl) -> None:
    assert repl.globals() == {}
    assert repl.run("a, b, c, d, e, f = 1, 'x', {}, print, true, json.null").ok
    assert repl.globals() == {
        "a": "number",
        "b": "string",
        "c": "table",
        "d": "function",
        "e": "boolean",
        "f": "null",
    }
    assert repl.run("a = nil").ok
    assert "a" not in repl.globals()
    assert asyncio.run(repl.aglobals()) == repl.globals()


def test_globals_are_bounded(repl: Repl) -> None:
    assert repl.run("for i = 1, 20000 do _G['g' .. i] = i end _G[('x'):rep(100000)] = 1 _G['\\255'] = 1").ok
    found = repl.globals()
    assert 9_000 < len(found) <= 10_000
    assert max(map(len, found)) <= 200
    assert repl.run("return g7").value == 7


def test_reset(repl: Repl) -> None:
    repl.define("kept", 1)
    assert repl.run("x = 1").ok
    repl.reset()
    run = repl.run("return x, kept")
    assert (run.values, run.number, run.state_lost) == ((None, 1), 1, False)


def test_different_repls_run_at_the_same_time(box: Sandbox) -> None:
    together = threading.Barrier(4, timeout=20)
    box.define("meet", lambda: together.wait())
    results: list[bool] = []
    at_once(*[lambda: results.append(box.repl().run("meet() return 1").ok)] * 4)
    assert results == [True] * 4


# Checkouts


def test_more_repls_than_workers_time_out() -> None:
    with Sandbox(min_workers=0, max_workers=2) as box:
        repls = [box.repl(timeout=0.1) for _ in range(3)]
        assert repls[0].run("return 1").ok
        assert repls[1].run("return 1").ok
        with pytest.raises(PoolTimeout) as caught:
            repls[2].run("return 1")
        assert str(caught.value) == (
            "all 2 workers are in use and none became free within 0.1 s; close a Repl, or raise Sandbox(max_workers=…)"
        )
        repls[0].close()
        assert repls[2].run("return 1").value == 1


def test_a_waiting_checkout_gets_the_next_free_worker() -> None:
    with Sandbox(min_workers=0, max_workers=1) as box:
        first = box.repl()
        assert first.run("x = 1").ok
        timer = threading.Timer(0.1, first.close)
        timer.start()
        with box.repl(timeout=20) as second:
            assert second.run("return x").value is None
        timer.join()


BUILTINS = "print, type, tools, json, string, pairs, _G"


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_every_run_finds_the_builtins_in_place(isolation: Any) -> None:
    """Whatever an earlier one has done to its globals; and nothing of a metatable of theirs is called for it."""
    with (
        Sandbox([add], isolation=isolation, lua_features={"metatables"}, limits=Limits(timeout=20)) as box,
        box.repl() as repl,
    ):
        kinds = repl.run(f"local kinds = {{}} for i, v in ipairs{{{BUILTINS}}} do kinds[i] = type(v) end return kinds")
        assert kinds.value == ["function", "function", "table", "table", "table", "function", "table"]
        for change in (
            f"{BUILTINS} = 1, 2, 3",
            f"{BUILTINS} = nil",
            "local all = _G for name in pairs(all) do all[name] = nil end",
        ):
            assert repl.run(change).ok
            run = repl.run("return print ~= nil, type(tools), tools.add{a = 1}, json.encode{1}, _G.print == print")
            assert run.values == (True, "table", 2, "[1]", True)
        assert repl.run(
            "local count = 0 "
            "setmetatable(_G, {"
            "  __newindex = function(t, name, value) count = count + 1 rawset(t, name, value) end,"
            "  __index = function() count = count + 1 return nil end,"
            "}) "
            "rawset(_G, 'counted', function() return count end) "
            "print, type, string = nil, nil, nil"
        ).ok
        run = repl.run("return counted(), print ~= nil, type(string), getmetatable(_G) ~= nil")
        assert run.values == (0, True, "table", True)


def test_worker_pid(box: Sandbox) -> None:
    repl = box.repl()
    assert repl.worker_pid is None
    assert repl.run("return 1").ok
    assert (repl.worker_pid is not None) == (box.isolation == "process")
    repl.close()
    assert repl.worker_pid is None


# Closing and wrong use


def test_closed(box: Sandbox) -> None:
    repl = box.repl()
    assert repl.run("return 1").ok
    repl.close()
    asyncio.run(repl.aclose())
    start, arun = lambda: repl.start("return 1"), lambda: asyncio.run(repl.arun("return 1"))
    for use in (lambda: repl.run("return 1"), arun, start, repl.globals, repl.reset):
        with pytest.raises(ClosedError, match="the Repl is closed"):
            use()
    box.close()
    asyncio.run(box.aclose())
    for make in (lambda: box.repl().id, lambda: box.run("return 1").id, lambda: asyncio.run(box.arun("return 1")).id):
        with pytest.raises(ClosedError, match="the Sandbox is closed"):
            make()


@pytest.mark.parametrize("source", [5, None, b"return 1", ["return 1"]])
def test_a_script_is_a_string(repl: Repl, source: Any) -> None:
    for use in (repl.run, lambda source: asyncio.run(repl.arun(source))):
        with pytest.raises(UsageError, match="the script must be a string, not"):
            use(source)


def test_a_script_with_half_a_surrogate_pair(repl: Repl) -> None:
    run = repl.run("return 1 -- \ud800")
    assert run.value == 1
    assert Run.from_json(run.to_json()) == run


def test_spares_are_refilled() -> None:
    with Sandbox(min_workers=2) as box:
        pids = set()
        for _ in range(6):
            with box.repl() as repl:
                assert repl.run("return 1").ok
                pids.add(repl.worker_pid)
        assert len(pids) == 6
        wait_until(lambda: box.workers.spare >= 2)


def test_a_repl_never_gets_the_worker_of_another() -> None:
    """A worker that was used is ended, not handed on: nothing of one Repl can be found in the next."""
    with Sandbox(min_workers=0, max_workers=1) as box:
        for n in range(5):
            with box.repl(timeout=20) as repl:
                assert repl.run("local before = secret secret = 'mine' return before").value is None, n


_CYCLES = """
import asyncio, gc, sys
from moonbox import Sandbox

def double(n: int = 1) -> int:
    return 2 * n

async def awaited(repl):
    for _ in range(20):
        await repl.arun(sys.argv[1])

with Sandbox([double]) as box, box.repl() as repl:
    for _ in range(3):
        repl.run(sys.argv[1])
    gc.collect()
    gc.disable()
    for _ in range(20):
        repl.run(sys.argv[1])
    blocking = gc.collect()
    asyncio.run(awaited(repl))
    print(blocking, gc.collect())
"""


@pytest.mark.parametrize("script", ["return 1", "tools.double(2)", "error('no')", "parallel({tools.double})"])
def test_a_run_leaves_no_garbage_in_cycles(script: str) -> None:
    """Collecting it would cost more than the run. In a process of its own: other threads make garbage too."""
    done = subprocess.run([sys.executable, "-c", _CYCLES, script], capture_output=True, text=True, check=True)
    blocking, waiting = map(int, done.stdout.split())
    assert blocking == 0
    assert waiting < 20  # some of the event loop's own


def test_tools_of_one_repl_alone() -> None:
    """A Toolbox, or what one is made of."""

    @tool
    def mine() -> int:
        """Ours."""
        return 1

    with Sandbox() as box:
        for toolbox in (Toolbox.of([mine]), [mine]):
            assert box.repl(toolbox=toolbox).run("return tools.mine()").value == 1  # type: ignore[arg-type]
            assert box.call("mine", toolbox=toolbox).value == 1  # type: ignore[arg-type]
        with pytest.raises(ToolDefinitionError, match="5 is not a tool"):
            box.repl(toolbox=5)  # type: ignore[arg-type]
