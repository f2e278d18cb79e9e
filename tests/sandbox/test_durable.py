"""Repls that outlive their Sandbox: restored from the journal without a tool being invoked."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from itertools import chain
from typing import TYPE_CHECKING, Any
from zlib import crc32

import msgspec
import pytest

from moonbox import Context, Diverged, InDoubt, Limits, Media, Sandbox, Toolbox, tool
from moonbox.durable import journaling
from moonbox.durable.backends import SqliteBackend
from moonbox.durable.store import Journal, open_journal
from moonbox.errors import ClosedError, JournalError, UsageError, WorkerError
from moonbox.runs.events import Answers, Begin, CallsAsked, End, Environment, Medium, encode
from tests.runs import error_of
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from moonbox import Repl


class Shop:
    """Tools that count how often they were invoked."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    def tools(self) -> list[Any]:
        @tool
        def price(item: str) -> int:
            self.made.append(item)
            if item == "none":
                raise LookupError("there is no such item")
            return len(item)

        @tool
        async def stock(item: str) -> dict[str, int]:
            self.made.append(item)
            return {"left": 3}

        return [price, stock]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def restored(path: Path, repl_id: str, script: str) -> Any:
    shop = Shop()
    with Sandbox(shop.tools(), journal=path) as box, box.restore(repl_id) as repl:
        value = repl.run(script).unwrap()
    assert shop.made == []
    return value


def recorded(path: Path, *scripts: str, **options: Any) -> str:
    with Sandbox(Shop().tools(), journal=path, **options) as box, box.repl() as repl:
        for script in scripts:
            repl.run(script)
        return repl.id


@pytest.mark.parametrize(
    ("scripts", "ask", "value"),
    [
        (["x = 1", "x = x + 1"], "return x", 2),
        (["function double(n) return 2 * n end"], "return double(21)", 42),
        (["t = {}", "t.self = t; t.f = function() return t end"], "return t.f() == t.self", True),
        (["n = tools.price{item = 'tea'}"], "return n", 3),
        (["s = tools.stock{item = 'tea'}"], "return s.left", 3),
        (["ok, why = pcall(tools.price, {item = 'none'})"], "return ok == false and why.tool", "price"),
        (["x = 1", "y = x; error('no')"], "return x + y", 2),
        (["r = math.random(1, 1000000); t = os.time()"], "return r > 0 and t > 0", True),
        (["p = parallel.map({'a', 'bb'}, function(i) return tools.price{item = i} end)"], "return p[2]", 2),
        (["d = docs.search('price')"], "return #d > 0", True),
    ],
)  # fmt: skip
def test_a_repl_is_restored(path: Path, scripts: list[str], ask: str, value: Any) -> None:
    assert restored(path, recorded(path, *scripts), ask) == value


def test_a_repl_is_restored_as_its_runs_were_given(path: Path) -> None:
    """Their inputs and limits, their random numbers; without what came before a reset, and without stopped runs."""
    with Sandbox(journal=path) as box, box.repl() as repl:
        repl.run("gone = 1")
        repl.reset()
        first = repl.run("r = math.random(1, 1000000) kept = rows[2] return r", inputs={"rows": [1, 2, 3]}).value
        assert repl.run("return 1", limits=Limits(max_operations=10_000)).ok
        assert error_of(repl.run("kept = 9 while true do end", limits=Limits(timeout=0.3))).limit == "time"
        repl_id = repl.id
        with pytest.raises(UsageError, match=f"has a Repl '{repl_id}' already; restore it, or choose another id$"):
            box.repl(repl_id=repl_id).run("return 1")
    assert restored(path, repl_id, "n = 1 return {gone == nil, kept, r}") == [True, 2, first]
    assert restored(path, repl_id, "n = n + 1 return n") == 2  # it goes on in the journal


@pytest.mark.parametrize(
    ("language", "call", "endless", "ask"),
    [
        ("lua", "x = tools.price{item = 'tea'}", "while true do end", "return x"),
        ("python", "x = tools.price(item='tea')", "while True: pass", "x"),
    ],
    ids=["lua", "python"],
)
def test_a_repl_is_restored_after_a_stopped_run_that_made_calls(
    path: Path, language: str, call: str, endless: str, ask: str
) -> None:
    if language == "python":
        pytest.importorskip("pydantic_monty")
    with Sandbox(Shop().tools(), journal=path, language=language) as box, box.repl() as repl:
        assert repl.run(call).ok
        assert error_of(repl.run(f"{call}\n{endless}", timeout=0.5)).limit == "time"
        after = repl.run(call)
        assert after.ok and not after.state_lost
    with Sandbox(Shop().tools(), journal=path, language=language) as box, box.restore(repl.id) as again:
        assert again.run(ask).value == 3


@pytest.mark.parametrize("way", ["restore", "sleep"])
def test_runs_that_used_what_a_stopped_run_had_defined_are_left_out_with_it(path: Path, way: str) -> None:
    """They do something else without it. The Repl stays usable, and the next Run says that something is lost."""
    with Sandbox(Shop().tools(), journal=path) as box, box.repl() as repl:
        repl.run("before = 1")
        assert error_of(repl.run("half = 1 while true do end", timeout=1)).limit == "time"
        assert repl.run("whole = half + 1 return whole").value == 2
        assert repl.run("if whole then stock = tools.price{item = 'tea'} end").ok
        repl.run("after = 4")
        assert not repl.run("return whole").state_lost
        assert way == "restore" or repl.sleep()
        with contextlib.nullcontext(repl) if way == "sleep" else closed_and_restored(repl, path) as again:
            run = again.run("return {before, half, whole, stock, after}")
            assert (run.value, run.state_lost) == ([1, None, None, None, 4], True)
            assert not again.run("return 1").state_lost


@contextlib.contextmanager
def closed_and_restored(repl: Repl, path: Path) -> Iterator[Repl]:
    repl.close()
    with Sandbox(Shop().tools(), journal=path) as box, box.restore(repl.id) as again:
        yield again


def test_what_cannot_be_repeated_is_named(path: Path) -> None:
    repl_id = recorded(path, "n = tools.price{item = 'tea'}")

    @tool
    def price(item: str) -> int:
        """Another tool of that name."""
        return 0

    journal = open_journal(path)
    events = journal.read(repl_id)
    begin = next(each for event in events for each in event if isinstance(each, Begin))
    held = journal.take(repl_id)
    changed = Begin(**{**{name: getattr(begin, name) for name in begin.__struct_fields__}, "run": "other", "number": 2})
    journal.append(held, len(events), "other", [changed])
    journal.append(held, len(events) + 1, "other", [CallsAsked(calls=[(1, "tools.price", [{"item": "milk"}])])])
    journal.append(held, len(events) + 2, "other", [Answers(replies=[])])
    journal.append(held, len(events) + 3, "other", [End(run="other", outcome="ok")])
    journal.close()
    with Sandbox([price], journal=path) as box, pytest.raises(Diverged) as caught:
        box.restore(repl_id)
    assert str(caught.value) == (
        f"run 2 of the Repl {repl_id} does not repeat what was recorded: "
        'recorded: it called price[{"item":"milk"}]; now: it called price[{"item":"tea"}] '
        "(tools that are gone, new or changed: price, stock)"
    )


def test_a_fork_that_cannot_be_made_leaves_nothing(path: Path) -> None:
    with Sandbox(journal=path) as box, box.repl() as repl:
        repl.define("given", 5)
        repl.run("return given").unwrap()
        repl.run("x = 1", run_id="second").unwrap()
    with Sandbox(journal=path) as box:
        with pytest.raises(
            Diverged, match=r"one value and output; now: another \(definitions that are gone or new: given\)$"
        ):
            box.replay("second", "return 1")
        assert [known.id for known in box.journal.repls()] == [repl.id]


def cut_off(path: Path) -> tuple[str, str]:
    """A run whose host died while a tool was running: its Repl and its id."""
    repl_id = recorded(path, "x = 1")
    journal = open_journal(path)
    held = journal.take(repl_id)
    begin = Begin(
        run="cut", number=2, source="return x + tools.price{item = 'tea'}", inputs=[], limits={}, seed=1, started=0.0
    )
    seq = len(journal.read(repl_id))
    journal.append(held, seq, "cut", [begin])
    journal.append(held, seq + 1, "cut", [CallsAsked(calls=[(1, "tools.price", [{"item": "tea"}])])])
    journal.close()
    return repl_id, "cut"


def test_a_call_in_doubt_is_put_to_the_caller(path: Path) -> None:
    repl_id, run_id = cut_off(path)
    shop = Shop()
    with Sandbox(shop.tools(), journal=path) as box:
        (found,) = box.interrupted()
        assert (found.run_id, found.repl_id, found.pending[0].tool) == (run_id, repl_id, "price")
        with pytest.raises(InDoubt, match=r"call 1 \(price\).*neither read_only nor idempotent") as caught:
            box.resume(run_id)
        assert caught.value.pending == found.pending
        with pytest.raises(UsageError, match="has not ended; continue it with resume"):
            box.restore(repl_id)
        assert shop.made == []
        assert box.resume(run_id, in_flight="retry").value == 4
        assert shop.made == ["tea"]
        assert box.interrupted() == ()
        assert box.resume(run_id).value == 4  # its record again
        assert shop.made == ["tea"]
        with box.restore(repl_id) as repl:
            assert repl.run("return x").value == 1


@pytest.mark.parametrize("name", ["show_receipt", "progress_payment", "docs_pay", "sys_pay", "shop.show"])
def test_a_definition_in_doubt_is_put_to_the_caller_whatever_its_name(path: Path, name: str) -> None:
    """A function that was added with `define` is a call, also where its name begins as that of a question."""
    paid: list[int] = []

    def pay(cents: int) -> str:
        paid.append(cents)
        return "paid"

    repl_id = recorded(path, "x = 1")
    journal = open_journal(path)
    held, seq = journal.take(repl_id), len(journal.read(repl_id))
    begin = Begin(run="cut", number=2, source=f"return {name}(5)", inputs=[], limits={}, seed=1, started=0.0)
    journal.append(held, seq, "cut", [begin])
    journal.append(held, seq + 1, "cut", [CallsAsked(calls=[(1, f"fn.{name}", [5])])])
    journal.close()
    with Sandbox(journal=path, globals={name: pay}) as box:
        assert [call.tool for call in box.interrupted()[0].pending] == [name]
        with pytest.raises(InDoubt, match=rf"call 1 \({name}\)"):
            box.resume("cut")
        assert paid == []
        assert box.resume("cut", in_flight="retry").value == "paid"
        assert paid == [5]


def test_a_call_in_doubt_can_fail_or_be_answered(path: Path) -> None:
    from moonbox import Answer

    _, run_id = cut_off(path)
    shop = Shop()
    with Sandbox(shop.tools(), journal=path) as box:
        run = asyncio.run(box.aresume(run_id, in_flight=lambda call: Answer.value(len(call.arguments["item"]) + 1)))
    assert (run.value, run.calls[0].result, shop.made) == (5, 4, [])
    path.unlink()
    _, run_id = cut_off(path)
    with Sandbox(shop.tools(), journal=path) as box:
        error = box.resume(run_id, in_flight="fail").error
    assert error is not None
    assert "whether it took effect is not known" in error.message


def test_an_interrupted_run_can_be_given_up(path: Path) -> None:
    repl_id, _ = cut_off(path)
    with Sandbox(Shop().tools(), journal=path) as box:
        with box.restore(repl_id, abandon=True) as repl:
            assert repl.run("return x").value == 1
        assert box.interrupted() == ()


def test_an_interrupted_run_is_not_continued_after_a_later_one(path: Path) -> None:
    repl_id, run_id = cut_off(path)
    journal = open_journal(path)
    later = Begin(run="later", number=3, source="y = 2", inputs=[], limits={}, seed=1, started=0.0)
    journal.append(journal.take(repl_id), len(journal.read(repl_id)), "later", [later])
    journal.close()
    with Sandbox(Shop().tools(), journal=path) as box:
        assert [found.run_id for found in box.interrupted()] == ["later"]
        with pytest.raises(UsageError, match=r"cannot be run again: it was stopped \(interrupted\)"):
            box.resume(run_id, in_flight="retry")
        assert box.resume("later").ok
    assert restored(path, repl_id, "return {x, y}") == [1, 2]


@pytest.mark.parametrize("in_flight", ["again", 5])
def test_a_wrong_decision_is_refused(path: Path, in_flight: Any) -> None:
    _, run_id = cut_off(path)
    with Sandbox(Shop().tools(), journal=path) as box:
        with pytest.raises(UsageError, match="in_flight must"):
            box.resume(run_id, in_flight=in_flight)
        with pytest.raises(UsageError, match="in_flight must give"):
            box.resume(run_id, in_flight=lambda _: in_flight)
        assert box.resume(run_id, in_flight="retry").ok


def test_without_a_journal_nothing_can_be_restored(tmp_path: Path) -> None:
    with Sandbox() as box:
        for ask in (lambda: box.restore("x"), box.interrupted, lambda: box.resume("x")):
            with pytest.raises(UsageError, match=r'no journal; make it with Sandbox\(journal="state.db"\)'):
                ask()
    with Sandbox(journal=tmp_path / "j.db") as box, pytest.raises(UsageError, match="has no Repl 'x'"):
        box.restore("x")


def test_another_language_is_named(path: Path) -> None:
    repl_id = recorded(path, "x = 1")
    with Sandbox(journal=path, language="rhai") as box, pytest.raises(UsageError, match="runs lua"):
        box.restore(repl_id)


def test_two_sandboxes_cannot_use_one_repl(path: Path) -> None:
    with Sandbox(journal=path) as box, Sandbox(journal=path) as other, box.repl() as repl:
        repl.run("x = 1")
        with pytest.raises(UsageError, match="is in use by process"):
            other.restore(repl.id)


def run_in(box: Sandbox, mode: str, script: str) -> Any:
    return asyncio.run(box.arun(script)) if mode == "async" else box.run(script)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_an_answer_and_the_next_call_are_one_write(path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journaling, "LONGEST_DELAY", 60.0)
    with Sandbox(Shop().tools(), journal=path) as box:
        run = run_in(box, mode, "for _, i in ipairs{'a', 'bb'} do tools.price{item = i} end os.time() return 1")
        events = box.journal.read(run.repl)
    kinds = [[type(record) for record in records] for records in events]
    assert kinds == [[Environment, Begin, CallsAsked], [Answers, CallsAsked], [Answers, CallsAsked, Answers, End]]
    assert [known.state for known in open_journal(path).runs()] == ["ok"]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_an_answer_is_on_file_while_the_script_computes(path: Path, mode: str) -> None:
    seen: list[type] = []

    def look(box: Sandbox) -> None:
        def answered() -> bool:
            seen[:] = [type(each) for repl in box.journal.repls() for each in chain(*box.journal.read(repl.id))]
            return Answers in seen

        wait_until(answered)
        box.close()

    with Sandbox(Shop().tools(), journal=path, limits=Limits(timeout=None)) as box:
        looking = threading.Thread(target=look, args=(box,))
        looking.start()
        with contextlib.suppress(ClosedError, WorkerError):
            run_in(box, mode, "tools.price{item = 'tea'} while true do end")
        looking.join()
    assert End not in seen


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("at", [1, 2])
def test_a_write_that_fails_leaves_no_gap(path: Path, mode: str, at: int) -> None:
    class Failing(Journal):
        left = 0

        def append(self, *args: Any) -> None:
            self.left -= 1
            if self.left == 0:
                raise JournalError("the disk is full")
            super().append(*args)

    journal = Failing(SqliteBackend(path))
    with Sandbox(Shop().tools(), journal=journal) as box, box.repl() as repl:
        repl.run("x = 1")
        journal.left = at
        script = "x = tools.price{item = 'tea'}"
        with pytest.raises(JournalError, match="the disk is full"):
            asyncio.run(repl.arun(script)) if mode == "async" else repl.run(script)
        assert repl.run("y = 2 return x").value == 1  # what is on file
        assert repl.run("return {x, y}").value == [1, 2]
        repl_id = repl.id
    assert restored(path, repl_id, "return {x, y}") == [1, 2]


@pytest.mark.parametrize("at", [1, 2])
def test_a_run_whose_write_failed_is_over_when_the_next_begins(path: Path, at: int) -> None:
    class Failing(Journal):
        left = at

        def append(self, *args: Any) -> None:
            self.left -= 1
            if self.left == 0:
                raise JournalError("the disk is full")
            super().append(*args)

    with Sandbox(Shop().tools(), journal=Failing(SqliteBackend(path))) as box, box.repl() as repl:
        with pytest.raises(JournalError, match="the disk is full"):
            repl.run("x = tools.price{item = 'tea'} y = tools.price{item = 'tea'}", run_id="failed")
        assert repl.run("y = 2").ok
        assert repl.run("z = 3").ok
        repl_id = repl.id
    with Sandbox(Shop().tools(), journal=path) as box:
        assert box.interrupted() == ()
        with pytest.raises(UsageError, match="'failed' cannot be run again" if at > 1 else "has no run 'failed'"):
            box.resume("failed")
    assert restored(path, repl_id, "return {x == nil, y, z}") == [True, 2, 3]


@tool
def picture(size: int) -> Media:
    return Media(b"\x89PNG\r\n\x1a\n" + bytes(size - 8), name="chart.png")


@tool
def look(image: Media) -> str:
    return f"{image.name} {image.type} {image.size}"


def test_images_and_files_are_restored_up_to_a_bound(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journaling, "LARGEST_MEDIUM", 1000)
    tools = [picture, look]
    with Sandbox(tools, journal=path) as box, box.repl() as repl:
        repl.run("small, large, given = tools.picture{size = 1000}, tools.picture{size = 1001}, file",
                 inputs={"file": Media(b"text", "text/plain", "a.txt")}).unwrap()  # fmt: skip
        repl_id = repl.id
    for _ in range(2):  # the second time with the run that the first has added
        with Sandbox(tools, journal=path) as box, box.restore(repl_id) as repl:
            seen = repl.run("return {tools.look{image = small}, tools.look{image = given}}").unwrap()
            assert seen == ["chart.png image/png 1000", "a.txt text/plain 4"]
            run = repl.run("return tools.look{image = large}")
            assert "this medium is unknown here" in str(run.error)
    kept = [record for records in open_journal(path).read(repl_id) for record in records if isinstance(record, Medium)]
    assert sorted(len(each.data) for each in kept) == [4, 1000]  # each once


@pytest.mark.parametrize("way", ["restore", "arestore"])
def test_a_repl_is_restored_with_what_is_not_in_the_journal(path: Path, way: str) -> None:
    repl_id = recorded(path, "x = 1")

    @tool
    def whom(context: Context) -> list[Any]:
        """For whom the script runs."""
        return [context.extra["user"], dict(context.labels)]

    with Sandbox(journal=path) as box:
        options: Any = {"toolbox": Toolbox.of([whom]), "context": {"user": "ann"}, "labels": {"tenant": "a"}}
        again = asyncio.run(box.arestore(repl_id, **options)) if way == "arestore" else box.restore(repl_id, **options)
        with again:
            assert again.run("return tools.whom(), x").values == (["ann", {"tenant": "a"}], 1)


@pytest.mark.parametrize("way", ["resume", "aresume"])
def test_a_run_is_resumed_with_what_is_not_in_the_journal(path: Path, way: str) -> None:
    """The hints of the tools that its Repl is given count too."""
    _, run_id = cut_off(path)

    @tool(hints={"read_only": True})
    def price(item: str, context: Context) -> int:
        """The price of an item."""
        return int(context.extra["price"])

    with Sandbox(journal=path) as box:
        options: Any = {"toolbox": Toolbox.of([price]), "context": {"price": 30}}
        run = asyncio.run(box.aresume(run_id, **options)) if way == "aresume" else box.resume(run_id, **options)
    assert run.value == 31


def test_the_journal_is_not_read_on_the_event_loop(path: Path) -> None:
    _, run_id = cut_off(path)
    seen = []

    class Watched(Journal):
        def read(self, repl: str) -> Any:
            seen.append(threading.current_thread())
            return super().read(repl)

        def release(self, held: Any) -> None:
            seen.append(threading.current_thread())
            super().release(held)

    journal = Watched(SqliteBackend(str(path)))
    with Sandbox(Shop().tools(), journal=journal) as box:
        assert asyncio.run(box.aresume(run_id, "retry")).ok
    assert seen and threading.main_thread() not in seen


def test_a_run_before_a_reset_is_replayed(path: Path) -> None:
    with Sandbox(Shop().tools(), journal=path) as box, box.repl() as repl:
        repl.run("x = tools.price{item = 'tea'}")
        repl.run("return x", run_id="before").unwrap()
        repl.reset()
        repl.run("x = 9").unwrap()
        run, differences = box.replay("before", "return x + 1")
        assert (run.value, differences) == (4, ())


def test_a_changed_tool_does_not_concern_what_is_recorded(path: Path) -> None:
    """Its script would be refused today; the recorded answers are taken."""
    repl_id = recorded(path, "n = tools.price{item = 'tea'}", "function f() return n end")

    @tool
    def price(article: str, currency: str) -> int:
        raise AssertionError("no tool is invoked")

    with Sandbox([price], journal=path) as box, box.restore(repl_id) as repl:
        assert error_of(repl.run("return tools.price{item = 'tea'}")).kind == "check"
        assert repl.run("return f()").value == 3
    with Sandbox([price], journal=path) as box, box.restore(repl_id) as repl:  # the refused run is not run again
        assert repl.run("return f()").value == 3


def test_a_replay_may_take_longer_than_the_run(path: Path) -> None:
    """As on a machine that stalls: the recorded run had ended by itself."""
    source = "x = 0 for i = 1, 3000000 do x = x + 1 end"
    with Sandbox(journal=path) as box, box.repl() as repl:
        repl.run(source, timeout=20).unwrap()
        repl_id = repl.id
    journal = open_journal(path)
    events = journal.read(repl_id)
    with journal.backend.writing() as db:
        for seq, records in enumerate(events):
            for place, each in enumerate(records):
                if isinstance(each, Begin):
                    records[place] = msgspec.structs.replace(each, limits={**each.limits, "timeout": 0.001})
            data = encode(records)
            db.change("UPDATE events SET data = ?, checksum = ? WHERE seq = ?", (data, crc32(data), seq))
    journal.close()
    assert restored(path, repl_id, "return x") == 3_000_000


def test_a_run_that_was_given_up_is_in_both_lists_as_that(path: Path) -> None:
    repl_id, run_id = cut_off(path)
    with Sandbox(Shop().tools(), journal=path) as box:
        assert {known.id: known.state for known in box.journal.runs()}[run_id] == "interrupted"
        box.restore(repl_id, abandon=True).close()
        assert box.interrupted() == ()
        assert {known.id: known.state for known in box.journal.runs()}[run_id] == "given up"
