"""A recorded run at one of its calls, without touching the world, and what goes on from there."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from moonbox import Answer, Diverged, Sandbox, tool
from moonbox.durable import views
from moonbox.errors import UsageError, WorkerError
from moonbox.runs.events import Begin, CallsAsked
from moonbox.runs.held_worker import read_inspected
from tests.runs import error_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from moonbox import Run
    from moonbox.durable.views import RunView

SCRIPTS = {
    "lua": """
rate = 2
local function cost(item)
  local quantity = 3
  local each = tools.price{item = item}
  return each * quantity * rate
end
local total, seen = 0, {}
for _, item in ipairs{'tea', 'coffee'} do
  total = total + cost(item)
  seen[#seen + 1] = {item = item, total = total, none = json.null}
  print('at ' .. item)
end
return {total = total, paid = tools.pay{amount = total}}
""",
    "rhai": """
let rate = 2;
fn cost(item, rate) {
  let quantity = 3;
  let each = price(item);
  each * quantity * rate
}
let total = 0; let seen = [];
for item in ["tea", "coffee"] {
  total += cost(item, rate);
  seen.push(#{item: item, total: total, none: ()});
  print(`at ${item}`);
}
#{total: total, paid: pay(#{amount: total})}
""",
    "python": """
rate = 2
def cost(item):
    quantity = 3
    each = price(item=item)
    return each * quantity * rate

total, seen = 0, []
for item in ["tea", "coffee"]:
    total += cost(item)
    seen.append({"item": item, "total": total, "none": None})
    print("at", item)
{"total": total, "paid": pay(amount=total)}
""",
}
BEFORE = {"lua": "before = 1", "rhai": "let before = 1;", "python": "before = 1"}
SEEN = [{"item": "tea", "none": None, "total": 18}]
# The innermost function, its caller, and the globals, at the second call.
FOUND: dict[str, Any] = {
    "lua": (
        ("cost", 5, {"quantity": 3, "item": "coffee"}),
        ("main chunk", 10, {"cost": "<function>", "total": 18, "seen": SEEN, "_": 2, "item": "coffee"}),
        {"before": 1, "rate": 2},
    ),
    "rhai": (
        ("cost", 5, {"quantity": 3, "item": "coffee", "rate": 2}),
        ("main script", 10, {"rate": 2, "total": 18, "seen": SEEN, "item": "coffee"}),
        {"before": 1},
    ),
    "python": (
        ("cost", 5, {}),
        ("<module>", 10, {}),
        {"before": 1, "rate": 2, "cost": "<function>", "total": 18, "seen": SEEN, "item": "coffee"},
    ),
}


class Shop:
    """Tools that count how often they were invoked."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    def tools(self) -> list[Any]:
        @tool
        def price(item: str) -> int:
            self.made.append(item)
            return len(item)

        @tool
        def pay(amount: int) -> dict[str, Any]:
            self.made.append(amount)
            return {"ok": amount < 50}

        return [price, pay]


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def box(shop: Shop, tmp_path: Path) -> Iterator[Sandbox]:
    with Sandbox(
        shop.tools(), journal=tmp_path / "j.db", audit=tmp_path / "trail.db", lua_features={"metatables", "coroutines"}
    ) as box:
        yield box


def events(box: Sandbox) -> dict[str, Any]:
    return {repl.id: box.journal.read(repl.id) for repl in box.journal.repls()}


def seen_at(box: Sandbox, source: str, at: int) -> RunView:
    run = box.run(source)
    assert len(run.calls) >= at, run.error
    return box.replay(run.id, until=at)


@pytest.mark.parametrize("language", SCRIPTS)
def test_a_run_is_shown_at_each_of_its_calls(language: str, shop: Shop, tmp_path: Path) -> None:
    trail = tmp_path / "trail.db"
    with Sandbox(shop.tools(), language=language, journal=tmp_path / "j.db", audit=trail) as box, box.repl() as repl:
        repl.run(BEFORE[language]).unwrap()
        run = repl.run(SCRIPTS[language])
        assert run.value == {"total": 54, "paid": {"ok": False}}
        before, made, written = events(box), [*shop.made], trail.stat().st_size
        shown = [box.replay(run.id, until=at) for at in (1, 2, 3)]
        assert (events(box), shop.made, trail.stat().st_size) == (before, made, written)
        assert repl.run("1" if language == "rhai" else "return 1" if language == "lua" else "1").value == 1

    inner, outer, variables = FOUND[language]
    second = shown[1]
    assert [(frame.function, frame.line, frame.locals) for frame in second.frames] == [inner, outer]
    assert all(frame.own for frame in second.frames)
    assert (second.globals, second.locals, second.line) == (variables, inner[2], 5)
    assert [view.output for view in shown] == ["", "at tea\n", "at tea\nat coffee\n"]
    assert [view.line for view in shown] == [5, 5, 14 if language != "python" else 13]
    assert [(view.at, view.total, view.ends) for view in shown] == [(1, 3, ""), (2, 3, ""), (3, 3, "")]
    assert [(call.tool, call.arguments, call.result) for call in shown[2].calls] == [
        ("price", {"item": "tea"}, 3),
        ("price", {"item": "coffee"}, 6),
        ("pay", {"amount": 54}, {"ok": False}),
    ]
    assert (second.run_id, second.repl_id, second.language) == (run.id, run.repl, language)
    assert second.source == run.source
    assert second.to_dict()["frames"][0] == {"function": "cost", "line": 5, "own": True, "locals": inner[2]}


@pytest.mark.parametrize("language", SCRIPTS)
def test_a_fork_goes_on_with_another_answer(language: str, shop: Shop, tmp_path: Path) -> None:
    with Sandbox(shop.tools(), language=language, journal=tmp_path / "j.db") as box:
        run = box.run(SCRIPTS[language])
        shop.made.clear()
        before = events(box)
        view = box.replay(run.id, until=2)

        dry = view.fork({2: 1}, dry=True)  # the sum has no recorded answer
        assert isinstance(dry, views.RunView)
        assert (dry.at, dry.call.arguments, dry.call.status) == (3, {"amount": 24}, "in_flight")
        assert (dry.ends, dry.output) == ("the record has no answer to this call", "at tea\nat coffee\n")
        ended = dry.fork({3: {"ok": None}}, dry=True)
        assert not isinstance(ended, views.RunView)
        assert ended.value == {"total": 24, "paid": {"ok": None}}
        same = view.fork(dry=True)
        assert not isinstance(same, views.RunView)
        assert (same.value, shop.made, events(box)) == (run.value, [], before)

        live: Any = view.fork({2: 1})
        assert (live.value, shop.made) == ({"total": 24, "paid": {"ok": True}}, [24])
        assert live.id != run.id
        assert [call.result for call in live.calls] == [3, 1, {"ok": True}]
        (fork,) = [known for known in box.journal.repls() if known.id == live.repl]
        assert fork.parent == run.repl
        assert box.replay(live.id).value == live.value  # it is recorded as any run
        later: Any = dry.fork({3: Answer.run()})  # from a dry fork too
        assert (later.value, shop.made) == ({"total": 24, "paid": {"ok": True}}, [24, 24])
        assert {name: kept for name, kept in events(box).items() if name in before} == before


def test_a_view_is_awaited(box: Sandbox, shop: Shop) -> None:
    async def walk(run: Run) -> list[Any]:
        view = await box.areplay(run.id, until=2)
        dry, live = await view.afork({2: 2}, dry=True), await view.afork({2: 2})
        return [view.at, dry.call.arguments, live.value, (await box.areplay(run.id)).value]

    run = box.run(SCRIPTS["lua"])
    assert asyncio.run(walk(run)) == [2, {"amount": 30}, {"total": 30, "paid": {"ok": True}}, run.value]
    assert shop.made == ["tea", "coffee", 54, 30]


def test_calls_that_are_made_together_are_seen_where_they_are_made(box: Sandbox, shop: Shop) -> None:
    source = """
local function ask(item)
  local length = #item
  local found = tools.price{item = item}
  return found + length
end
local jobs = {}
for index, item in ipairs{'a', 'bb', 'ccc'} do jobs[index] = function() local job = index return ask(item) + job end end
local inner = function() return parallel{jobs[2], jobs[3]}[2] end
return parallel{jobs[1], function() local nested = true local found = inner() return found end}
"""
    run = box.run(source)
    assert run.value == [3, 9]
    shown = [box.replay(run.id, until=at) for at in (1, 2, 3)]
    assert [view.call.arguments["item"] for view in shown] == ["a", "bb", "ccc"]
    assert [view.locals["length"] for view in shown] == [1, 2, 3]
    assert [[frame.line for frame in view.frames] for view in shown] == [
        [4, 8, 10],
        [4, 8, 9, 10, 10],
        [4, 8, 9, 10, 10],
    ]
    assert shown[2].frames[1].locals["job"] == 3
    assert shown[2].frames[3].locals["nested"] is True
    assert [call.result for call in shown[0].calls] == [1, 2, 3]
    changed: Any = shown[0].fork({1: 10, 3: 30})
    assert changed.value == [12, 36]  # the second call has its recorded answer
    with pytest.raises(UsageError, match=r"the script waits for here \(1, 2, 3\), not \{4: 1\}"):
        shown[0].fork({4: 1})


def test_rhai_closures_in_parallel_have_their_own_lines(shop: Shop, tmp_path: Path) -> None:
    source = """
let add = 1;
let jobs = [
  || { let k = add + 1; price("a") + k },
  || { let k = add + 2;
       price("bb") + k },
];
parallel(jobs)
"""
    with Sandbox(shop.tools(), language="rhai", journal=tmp_path / "j.db") as box:
        run = box.run(source)
        assert run.value == [3, 5], run.error
        shown = [box.replay(run.id, until=at) for at in (1, 2)]
    assert [(view.line, view.locals["k"], view.frames[0].function) for view in shown] == [
        (4, 2, "closure"),
        (6, 3, "closure"),
    ]
    assert [frame.line for frame in shown[0].frames] == [4, 8]


def test_a_corrected_run_is_seen_with_its_corrected_script(box: Sandbox, shop: Shop) -> None:
    run = box.run(
        "local a = tools.price{item = 'tea'} tools.price{item = 'no'} local c = tools.price{item = 'milk'} error()"
    )
    source = (
        "local a = tools.price{item = 'tea'} local c = tools.price{item = 'milk'} return tools.price{item = 'x'} + c"
    )
    assert box.patch(run.id, source, skip=[2]).value == 5
    shown = [box.replay(run.id, until=at) for at in (1, 2, 3)]
    assert [view.call.arguments["item"] for view in shown] == ["tea", "milk", "x"]
    assert {(view.source, view.total) for view in shown} == {(source, 3)}
    assert shown[2].locals == {"a": 3, "c": 4}
    assert shown[1].fork({2: 10}, dry=True).unwrap() == 11  # type: ignore[union-attr]  # it ends
    assert box.replay(run.id, source + " + 1")[0].value == 6
    assert shop.made == ["tea", "no", "milk", "x"]


def test_coroutines_and_captured_variables_are_seen(box: Sandbox) -> None:
    source = """
local outer = 'o'
local function counter()
  local count = 0
  return function() count = count + 1 local price = tools.price{item = 'x'} return price + count end
end
local co = coroutine.wrap(function(...) local mine = outer local got = counter()() return got end)
return co(1, 2)
"""
    view = seen_at(box, source, 1)
    assert [(frame.line, frame.locals) for frame in view.frames] == [
        (5, {"count": 1}),
        (7, {"mine": "o", "outer": "o", "counter": "<function>"}),
        (8, {"outer": "o", "counter": "<function>", "co": "<function>"}),
    ]


def test_functions_of_an_earlier_run_are_told_apart(box: Sandbox) -> None:
    with box.repl() as repl:
        repl.run(
            "local kept = 7\nfunction ask(item)\n  local found = tools.price{item = item}\n  return found + kept\nend"
        )
        run = repl.run("\n\nlocal x = ask('tea')\nreturn x")
        view = box.replay(run.id, until=1)
    assert [(frame.line, frame.own) for frame in view.frames] == [(3, False), (3, True)]
    assert (view.frames[0].locals, view.line) == ({"item": "tea", "kept": 7}, 3)


def test_values_are_bounded_and_nothing_of_the_script_runs(box: Sandbox) -> None:
    """What metamethods would do, or tell, shows in the globals."""
    source = r"""
touched = 0
local function touch() touched = touched + 1 return 'touched' end
local all = {}
for name in ('index newindex call tostring name pairs len eq lt concat metatable close'):gmatch('%a+') do
  all['__' .. name] = touch
end
trap = setmetatable({1, 2}, all)
bare = setmetatable({}, all)
cycle = {} cycle.cycle = cycle
long, bad, odd = ('x'):rep(5000), '\xff\1', {[1.5] = 1, [true] = 2, [trap] = 3}
wide, many = {}, {}
for i = 1, 3000 do wide[i] = {i, ('y'):rep(50)} many['k' .. i] = i end
deep = 1 for i = 1, 50 do deep = {deep} end
nan, huge, lib, f = 0/0, math.huge, math, print
local found = tools.price{item = 'x'}
return touched
"""
    view = seen_at(box, source, 1)
    found: Any = view.globals
    assert found["touched"] == 0
    assert found["trap"] == [1, 2]
    assert found["bare"] == {}
    assert found["cycle"]["cycle"]["cycle"]["cycle"]["cycle"]["cycle"] == "<map>"
    assert found["long"] == "x" * 2000 + "… 3000 more bytes"
    assert "\xff" not in found["bad"]
    assert found["odd"] == {"1.5": 1, "<boolean>": 2, "<table>": 3}
    assert (len(found["wide"]), found["wide"][100]) == (101, "… 2900 more")
    assert (len(found["many"]), found["many"]["…"]) == (101, "2900 more")
    assert (found["nan"], found["huge"], found["lib"], found["f"]) == ("<nan>", "<inf>", "<library math>", "<function>")
    assert len(str(view.globals)) < 1_000_000


def test_how_far_a_run_can_be_looked_at(box: Sandbox, shop: Shop) -> None:
    run = box.run(SCRIPTS["lua"])
    for wrong in (0, -1, "2", True):
        with pytest.raises(UsageError, match="until must be the number of a call"):
            box.replay(run.id, until=wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=f"run '{run.id}' made 3 calls$"):
        box.replay(run.id, until=4)
    with pytest.raises(UsageError, match="has no run 'nothing'"):
        box.replay("nothing", until=1)
    failed = box.run("local x = tools.price{item = 'tea'} error('no')")
    assert box.replay(failed.id, until=1).locals == {}
    with pytest.raises(UsageError, match="it was stopped"):
        box.replay(box.run("while true do end", timeout=0.05).id)


def test_a_run_that_was_cut_off_ends_where_its_record_does(box: Sandbox) -> None:
    run = box.run("local a = tools.price{item = 'tea'} local b = tools.pay{amount = a} return b")
    records = [record for event in box.journal.read(run.repl) for record in event]
    asked = [place for place, record in enumerate(records) if isinstance(record, CallsAsked)]
    cut = [replace(each, run="cut") if isinstance(each, Begin) else each for each in records[: asked[1] + 1]]
    box.journal.append(box.journal.create("cutoff", "lua", {}), 0, "cut", cut)
    view = box.replay("cut", until=2)
    assert (view.call.status, view.call.arguments) == ("in_flight", {"amount": 3})
    assert (view.ends, view.total) == ("the record has no answer to this call", 2)
    with pytest.raises(UsageError, match="made 2 calls; it was cut off, and its record ends there"):
        box.replay("cut", until=3)
    with pytest.raises(UsageError, match=r"resume\('cut'\) continues"):
        box.replay("cut")
    answered: Any = view.fork({2: {"ok": 1}}, dry=True)
    assert answered.value == {"ok": 1}
    waiting: Any = view.fork(dry=True)
    assert (waiting.at, waiting.ends) == (2, view.ends)


def test_a_run_that_does_something_else_now_says_how_far_it_can_be_followed(tmp_path: Path, shop: Shop) -> None:
    with Sandbox(shop.tools(), journal=tmp_path / "j.db", globals={"word": "tea"}) as box:
        run = box.run("local a = tools.price{item = 'x'} local b = tools.price{item = word} return b")
    with Sandbox(shop.tools(), journal=tmp_path / "j.db", globals={"word": "milk"}) as box:
        assert box.replay(run.id, until=1).line == 1
        with pytest.raises(Diverged, match=r"now: it called price.*milk.*; it can be followed up to call 1 of 2"):
            box.replay(run.id, until=2)
    with (
        Sandbox(shop.tools(), journal=tmp_path / "j.db", language="rhai") as other,
        pytest.raises(UsageError, match="runs lua"),
    ):
        other.replay(run.id, until=1)


def test_a_fork_asks_for_approval(tmp_path: Path) -> None:
    asked: list[Any] = []

    @tool(policy="approve")
    def pay(amount: int) -> int:
        return amount

    def approve(call: Any) -> bool:
        asked.append(call.arguments)
        return call.arguments["amount"] < 5

    with Sandbox([pay], journal=tmp_path / "j.db", approve=approve) as box:
        run = box.run("local a = tools.pay{amount = 1} return tools.pay{amount = a + 1}")
        asked.clear()
        view = box.replay(run.id, until=1)
        assert (view.call.approval, asked) == ("allowed", [])
        more: Any = view.fork({1: 8})
        assert (error_of(more).kind, asked) == ("denied", [{"amount": 9}])
        fewer: Any = view.fork({1: Answer.error("no money", code="conflict")})
        assert "no money" in error_of(fewer).message


def test_a_worker_that_does_not_tell_is_an_error(box: Sandbox) -> None:
    run = box.run("local a = tools.price{item = 'tea'} return a")
    view = box.replay(run.id, until=1)
    assert view.locals == {}
    for payload, message in {
        b"": "the worker cannot tell what the script has",
        b"{": "the worker sent an invalid value",
        b"[]": "malformed description",
        b'{"frames":[],"globals":{},"more":1}': "malformed description",
        b'{"frames":[{"function":"f","line":"1","own":true,"locals":{}}],"globals":{}}': "malformed description",
        b'{"frames":[{"function":"f","line":-2,"own":true,"locals":{}}],"globals":{}}': "malformed description",
        b'{"frames":[],"globals":{"x":' + b"[" * 500 + b"]" * 500 + b"}}": "nested more than",
        b'{"frames":[],"globals":'
        + str({f"x{i}": i for i in range(300)}).replace("'", '"').encode()
        + b"}": "malformed",
        b'{"frames":[],"globals":{"x":"' + b"y" * (1 << 20) + b'"}}': "at most 1,048,576 are allowed",
    }.items():
        with pytest.raises(WorkerError, match=message):
            read_inspected(payload)
    assert read_inspected(b'{"frames":[],"globals":{"x":{"\\u0001b":"z"}}}').globals == {"x": {"\ufffdb": "z"}}
