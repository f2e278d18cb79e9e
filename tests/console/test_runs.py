"""The pages of runs in a real browser: the list, one run, the comparison; empty, large and live."""

from __future__ import annotations

import datetime as dt
import json
import re
from typing import TYPE_CHECKING

import httpx
import pytest
from msgspec.structs import replace
from playwright.sync_api import expect

from moonbox import Limits, Run, Sandbox
from moonbox.audit.records import Call, CallError, Try, Usage
from moonbox.audit.sinks import MemorySink
from moonbox.audit.sqlite import SqliteSink
from moonbox.errors import ScriptError
from moonbox.runs.decisions import Decision
from moonbox.values import pack

from .conftest import visiting
from .serving import TOOLS, running_console

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Route

    from .conftest import Visitor
    from .serving import Console

RUNS = 600
STARTED = 1_790_000_000.0


def record(number: int) -> Run:
    calls = tuple(
        Call(
            index=index,
            tool=("list_orders", "refund", "flaky")[index % 3],
            arguments={"n": index},
            status="error" if index % 3 == 2 else "ok",
            error=CallError("unlucky", "no luck", True) if index % 3 == 2 else None,
            packed=pack([index] * 200),
            started=STARTED + number + index * 0.01,
            queued=0.002,
            duration=0.006,
            batch=1 + index // 3,
            approval="edited" if index % 3 == 1 else None,
            approval_by="bob" if index % 3 == 1 else "",
            approval_reason="too much" if index % 3 == 1 else "",
            original_arguments={"n": 99} if index % 3 == 1 else None,
            retry_of=index - 3 if index % 3 == 2 and index > 3 else None,
            tries=tuple(
                Try(STARTED + number + 0.022 + at / 250, 0.002, "busy", f"try {at}") for at in range(2 * (index == 2))
            ),
        )
        for index in range(1, 7)
    )
    failed = number % 10 == 0
    return Run(
        id=f"{number:032x}",
        source=f"-- run {number}\nlocal n = {number}\nreturn n * 2" + ("\n-- a rare needle" if number == 7 else ""),
        values=() if failed else ({"n": number},),
        output=f"printed by {number}\n",
        calls=calls,
        usage=Usage(wall=0.08, cpu=0.001, peak_memory=70_000, calls=len(calls)),
        limits=Limits(max_tool_calls=77) if number % 10 == 0 else None,
        error=ScriptError("runtime", "it broke", line=2, hint="mend it", traceback="script:2: it broke")
        if failed
        else None,
        started=STARTED + number,
        repl=f"repl{number // 4}",
        number=number % 4 + 1,
        labels={"user": f"user{number % 10}"},
    )


@pytest.fixture(scope="module")
def trail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteSink]:
    sink = SqliteSink(tmp_path_factory.mktemp("trail") / "audit.db")
    for number in range(RUNS):
        sink.write(record(number))
    yield sink
    sink.close()


@pytest.fixture(scope="module")
def console(trail: SqliteSink) -> Iterator[Console]:
    with running_console(TOOLS, trail=trail) as running:
        yield running


def test_the_list_has_the_latest_runs_first_and_goes_on(visitor: Visitor, console: Console) -> None:
    page = visitor.enter(console, "runs")
    rows = page.locator("#runs tbody tr")
    expect(rows).to_have_count(50)
    expect(rows.first).to_contain_text(f"local n = {RUNS - 1}")
    page.get_by_role("button", name="Earlier runs").click()
    expect(rows).to_have_count(100)
    expect(rows.last).to_contain_text(f"local n = {RUNS - 100}")


def test_a_phone_shows_every_figure_of_the_list(visitor: Visitor, console: Console) -> None:
    """Each row is a card there, without a sideways scroll; a phone loses no column."""
    page = visitor.enter(console, "runs?state=failed")
    shown = "tds => tds.map(td => td.innerText.trim() && td.getClientRects().length > 0)"
    cells = page.locator("#runs tbody tr").first.locator("td")
    expect(cells.nth(5)).not_to_be_empty()  # comes after the others
    on_a_desk = cells.evaluate_all(shown)
    page.set_viewport_size({"width": 390, "height": 844})
    assert cells.evaluate_all(shown) == on_a_desk
    assert sum(map(bool, on_a_desk)) >= 6
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for name in ("Run again", "State", "Since", "Group by"):
        places = [page.get_by_role("link", name=name), page.get_by_label(name)]
        assert any(place.first.is_visible() for place in places), name
    box = page.locator("#runs tbody tr").first.bounding_box()
    assert box is not None and box["width"] <= 390


def test_filters_have_addresses_and_the_back_button_works(visitor: Visitor, console: Console) -> None:
    page = visitor.enter(console, "runs")
    page.get_by_label("State").select_option("failed")
    expect(page).to_have_url(re.compile("state=failed"))
    expect(page.locator("#runs tbody tr").first).to_contain_text("runtime")
    expect(page.locator("#runs .state.good")).to_have_count(0)
    page.go_back()
    expect(page.locator("#runs .state.good").first).to_be_visible()
    page.goto(console.address("runs?tool=flaky&state=ok"))
    expect(page.locator("#runs tbody tr")).to_have_count(50)
    page.goto(console.address("runs?label=user%3Duser7"))
    expect(page.get_by_label("Label")).to_have_value("user=user7")
    expect(page.locator("#runs tbody tr").first).to_contain_text("7")
    expect(page.locator("#runs tbody tr")).to_have_count(min(50, RUNS // 10))


def test_the_search_filters_in_place_while_one_types(visitor: Visitor, console: Console) -> None:
    page = visitor.enter(console, "runs")
    page.evaluate("window.stayed = true")
    page.keyboard.press("/")
    page.keyboard.type("a RARE", delay=80)
    expect(page.locator("#runs tbody tr")).to_have_count(1)
    page.keyboard.type(" needle", delay=80)
    expect(page).to_have_url(console.address("runs?q=a+RARE+needle"))
    expect(page.get_by_role("searchbox")).to_have_value("a RARE needle")
    expect(page.get_by_role("searchbox")).to_be_focused()
    expect(page.locator("#runs tbody tr")).to_contain_text("local n = 7")
    page.get_by_role("searchbox").fill("")
    expect(page.locator("#runs tbody tr")).to_have_count(50)
    expect(page).to_have_url(console.address("runs"))
    since, until = (dt.datetime.fromtimestamp(STARTED + n, dt.UTC).isoformat() for n in (100, 130))
    page.get_by_label("Since").fill(since)
    page.get_by_label("Until").fill(until)
    page.get_by_label("Until").press("Enter")
    expect(page.locator("#total")).to_have_text("30 runs")
    assert page.evaluate("window.stayed")
    page.goto(console.address("runs?q=nothing+like+this"))
    expect(page.locator("#nothing")).to_contain_text("No run matches these filters.")


def test_a_direct_call_spares_no_tokens(visitor: Visitor) -> None:
    sink = MemorySink()
    for number, language in enumerate(("lua", "direct"), 1):
        sink.write(replace(record(number), language=language, labels={"kind": language}))
    with visiting(visitor, "runs", TOOLS, trail=sink) as (_, page):
        spared = page.locator('#runs tbody tr:not(.group) [data-noun="spared"]')
        expect(spared).to_have_text(["", re.compile(r"^[\d,]+$")])
        page.get_by_label("Group by").select_option("kind")
        expect(page.locator("tr.group", has_text="kind lua")).to_contain_text("tokens spared")
        expect(page.locator("tr.group", has_text="kind direct")).to_contain_text("1 run")
        expect(page.locator("tr.group", has_text="kind direct")).not_to_contain_text("spared")
        page.goto(page.url.partition("?")[0] + "/" + record(2).id)
        expect(page.get_by_role("region", name="What the model saw")).not_to_contain_text("spared")


def test_runs_are_sorted_grouped_and_exported(visitor: Visitor) -> None:
    sink = MemorySink()
    for number, conversation in enumerate(("ann-1", "bob-1", "ann-1")):
        made = replace(record(number + 1), labels={"conversation": conversation, "team": f"t{number}"})
        sink.write(replace(made, usage=replace(made.usage, wall=float(number * 7 % 5))))
    traced = Run(
        "traced", "return 1", calls=(Call(1, "f", {}, "error"), Call(2, "slow", {}, "in_flight")), started=STARTED
    )
    sink.write(traced)
    with visiting(visitor, "runs", TOOLS, trail=sink) as (_, page):
        rows = page.locator("#runs tbody tr:not(.group)")
        expect(page.locator("#total")).to_have_text("4 runs")
        expect(rows.last).to_contain_text("2 (1 failed, 1 in doubt)")
        expect(rows.first.locator("td").nth(5)).to_have_text(re.compile(r"^[\d,]+$"))
        page.get_by_role("button", name="Time").click()
        expect(rows.locator("td:nth-child(5)")).to_have_text(["4.0 s", "2.0 s", "0 µs", "0 µs"])
        page.get_by_role("button", name="Started").click()
        page.get_by_label("Group by").select_option("conversation")
        expect(page.locator("tr.group")).to_contain_text(["conversation ann-1 · 2 runs", "bob-1 · 1 run", "without a"])
        page.get_by_label("Group by").select_option("team")
        expect(page.locator("tr.group")).to_have_count(4)
        page.reload()  # sort and group are in the address
        expect(page.locator("tr.group")).to_have_count(4)
        expect(page.locator('[data-sort="started"]')).to_have_attribute("aria-sort", "descending")
        page.get_by_role("button", name="Time").click()
        expect(page).to_have_url(re.compile(r"\?sort=-wall&group=team$"))
        page.reload()
        expect(page.locator('[data-sort="wall"]')).to_have_attribute("aria-sort", "descending")
        saved = {}
        for kind in ("CSV", "JSON"):
            with page.expect_download() as told:
                page.get_by_role("button", name=f"Export {kind}").click()
            saved[kind] = told.value.path().read_text(encoding="utf-8")
        assert saved["CSV"].startswith("id,started,state,")
        assert "\r\ntraced,2026-09-21T14:13:20.000Z,".replace("\r", "") in saved["CSV"]
        assert saved["CSV"].count("conversation=ann-1 team=") == 2
        assert {run["id"] for run in json.loads(saved["JSON"])} == {run.id for run in sink.runs()}
        page.locator("tr.group a").first.click()
        expect(page).to_have_url(re.compile("label=team%3Dt"))


def test_a_run_is_listed_while_it_runs_and_run_again_from_the_list(visitor: Visitor) -> None:
    with visiting(visitor, "playground", TOOLS) as (console, page):
        page.locator("#editor textarea").fill("return tools.refund{order_id = 1, amount = 2}")
        page.click("#run")
        expect(page.locator("#questions .question")).to_be_visible()
        page.get_by_role("link", name="Runs").click()
        row = page.locator("#runs tbody tr")
        expect(row.locator(".state")).to_have_text("waits for you")
        row.locator("td.title a").click()
        expect(page.locator(".head .state")).to_have_text("running")
        page.go_back()
        console.bench.approvals.answer(console.bench.approvals.pending()[0].id, Decision("deny"))
        expect(row.locator(".state")).to_have_text("failed: denied")
        row.get_by_role("link", name="Run again").click()
        expect(page.locator("#questions .question")).to_be_visible()
        page.locator("#questions").get_by_role("button", name="Allow").click()
        expect(page.locator("#values")).to_contain_text("refunded 2.00")
        page.goto(console.address(f"playground?run={console.trail.list(1)[0].id}"))
        expect(page.locator("#status")).to_have_text("ready")
        assert not console.bench.approvals.pending(), "an address alone runs nothing"


def test_only_what_comes_later_is_marked_as_new(visitor: Visitor, console: Console) -> None:
    """The list may be answered later than what the page asks for once it is connected."""
    page = visitor.enter(console, "tools")
    held: list[Route] = []
    page.route(re.compile("/runs.*details=false"), lambda route: held.append(route))
    page.goto(console.address("runs"))
    expect(page.locator("html")).to_have_attribute("data-live", "live")
    page.evaluate("async () => { for (let n = 0; n < 3; n++) await (await fetch('/runs?limit=50')).text(); }")
    held.pop().continue_()
    expect(page.locator("#runs tbody tr")).to_have_count(50)
    expect(page.locator("#total")).not_to_be_empty()
    expect(page.locator("#runs tbody tr.new")).to_have_count(0)


def test_new_runs_appear_by_themselves(visitor: Visitor, console: Console) -> None:
    page = visitor.enter(console, "runs")
    expect(page.locator("html")).to_have_attribute("data-live", "live")
    expect(page.locator("#runs tbody tr")).to_have_count(50)
    with Sandbox(audit=SqliteSink(console.trail.path), min_workers=0) as elsewhere:
        elsewhere.run("return 'written by another sandbox'")
    expect(page.locator("#runs tbody tr").first).to_contain_text("written by another sandbox")
    expect(page.locator("#runs tbody tr.new")).to_have_count(1)


def test_runs_that_new_ones_displace_are_loaded_again(visitor: Visitor) -> None:
    with visiting(visitor, "runs", TOOLS) as (console, page):
        expect(page.locator("html")).to_have_attribute("data-live", "live")
        sink = console.bench.sink(console.trail)
        for number in range(210):
            sink.write(record(number))
        rows, earlier = page.locator("#runs tbody tr"), page.get_by_role("button", name="Earlier runs")
        expect(page.locator("#total")).to_have_text("210 runs")
        expect(rows).to_have_count(200)
        earlier.click()
        expect(rows).to_have_count(210)
        expect(rows.last).to_contain_text("local n = 0")
        sink.write(record(210))  # what was asked for stays
        expect(rows.first).to_contain_text("local n = 210")
        expect(rows).to_have_count(210)
        expect(rows.last).to_contain_text("local n = 1")
        expect(earlier).to_be_visible()


def test_the_keyboard_moves_through_the_list(visitor: Visitor, console: Console) -> None:
    page = visitor.enter(console, "runs?state=failed")
    expect(page.locator("td.title a").nth(1)).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("td.title a").nth(1)).to_be_focused()
    page.keyboard.press("x")
    page.keyboard.press("k")
    page.keyboard.press("x")
    expect(page.get_by_role("button", name="Compare these two")).to_be_enabled()
    page.keyboard.press("c")
    expect(page).to_have_url(re.compile("/console/compare"))
    page.keyboard.press("/")


def test_a_run_shows_everything(visitor: Visitor, console: Console) -> None:
    page = visitor.enter(console, f"runs/{10:032x}")
    expect(page.locator("h1")).to_contain_text("Run 00000000")
    expect(page.get_by_role("region", name="Error")).to_contain_text("it broke")
    expect(page.get_by_role("region", name="Error")).to_contain_text("mend it")
    expect(page.locator("pre.source .line.here")).to_contain_text("local n = 10")
    expect(page.locator(".tl-row")).to_have_count(6)
    expect(page.locator(".tl-note")).to_contain_text("2 not ok · 1 retried")
    expect(page.locator(".tl-bar.ask")).to_have_count(2)
    expect(page.get_by_role("region", name="Usage")).to_contain_text("6 of 77")
    expect(page.get_by_role("region", name="What the model saw")).to_contain_text("tokens spared: 6 direct calls")
    page.locator(".tl-row").nth(1).hover()
    expect(page.locator(".tl-card")).to_contain_text("unlucky: no luck")
    expect(page.locator(".tl-card")).to_contain_text("2 tries")
    expect(page.locator(".tl-card li")).to_have_text(["busy: try 0", "busy: try 1"])
    expect(page.locator(".tl-row").nth(1).locator(".tl-bar.bad")).to_have_count(2)
    page.locator(".tl-row").nth(0).hover()
    expect(page.locator(".tl-card")).to_contain_text("approval: edited by bob (too much)")
    expect(page.locator(".tl-card")).to_contain_text("99")
    expect(page.locator(".head")).to_contain_text("user=user0")
    page.get_by_text("Traceback").click()
    expect(page.get_by_role("region", name="Error")).to_contain_text("script:2: it broke")


def test_the_time_in_which_a_person_was_asked_is_a_break_of_the_axis(visitor: Visitor) -> None:
    sink = MemorySink()
    starts, waits = (0.0, 0.1, 600.2), (0.0, 600.0, 0.0)
    calls = [
        Call(index, "pay", {}, "ok", started=STARTED + start, queued=wait, duration=0.1, batch=index)
        for index, (start, wait) in enumerate(zip(starts, waits, strict=True), 1)
    ]
    calls[1] = replace(calls[1], approval="allowed")
    sink.write(Run("asked", "return 1", calls=tuple(calls), usage=Usage(wall=0.4, calls=3), started=STARTED))
    with visiting(visitor, "runs/asked", TOOLS, trail=sink) as (_, page):
        expect(page.locator(".tl-note")).to_have_text("3 calls · in 3 batches · 400 ms · 10.0 min asking")
        expect(page.locator(".tl-break")).to_have_count(1)
        expect(page.locator(".tl-time:not(.asked)")).to_have_text(["0", "200 ms", "300 ms", "400 ms"])
        expect(page.locator(".tl-time.asked")).to_contain_text("10.0 min in which only a person was asked")
        lane, asked, worked = (
            page.locator(place).last.bounding_box() for place in (".tl-lane", ".tl-bar.ask", ".tl-bar.ok")
        )
        assert lane is not None and asked is not None and worked is not None
        assert asked["width"] < 0.06 * lane["width"] < 0.2 * lane["width"] < worked["width"]


def test_a_timeline_of_many_calls_has_the_rows_in_sight(visitor: Visitor) -> None:
    sink = MemorySink()
    calls = tuple(
        Call(index, "look_up", {}, "ok", started=STARTED + index * 0.01, duration=0.005, batch=index)
        for index in range(1, 2001)
    )
    sink.write(Run("many", "return 1", calls=calls, usage=Usage(wall=20.0, calls=2000), started=STARTED))
    with visiting(visitor, "runs/many", TOOLS, trail=sink) as (_, page):
        rows = page.locator(".tl-row")
        expect(page.locator(".tl-note")).to_contain_text("2,000 calls")
        assert 10 < rows.count() < 60
        page.locator(".tl-body").evaluate("body => { body.scrollTop = 1000 * 24; }")
        expect(rows.first).to_have_attribute("data-index", re.compile(r"99\d"))
        page.locator(".tl-lane").focus()
        page.keyboard.press("End")
        expect(page.locator('.tl-row[data-index="2000"]')).to_be_focused()
        expect(page.locator(".tl-card h3")).to_have_text("2000. look_up")
        page.keyboard.press("ArrowUp")
        expect(page.locator('.tl-row[data-index="1999"]')).to_be_focused()
        assert rows.count() < 60


def test_recorded_calls_of_a_fork_come_right_before_it(visitor: Visitor, console: Console) -> None:
    page = visitor.enter(console, "runs")
    moved = page.evaluate(
        """async () => {
          const module = document.querySelector("script[type=module]").src.replace(/[^/]+$/, "axis.js");
          const {together} = await import(module);
          const call = (started, duration, status = "ok") => ({started, duration, queued: 1, status});
          const calls = [call(10, 2), call(14, 3), call(100, 1), call(20, 0, "in_flight")];
          return together(calls, 100).map(({started}) => started);
        }"""
    )
    assert moved == [92, 96, 100, 20]


def test_labels_are_on_the_pages_without_a_browser() -> None:
    sink = MemorySink()
    sink.write(replace(record(7), labels={"user": "<ann>"}))
    with running_console(TOOLS, trail=sink, public=True) as running, httpx.Client(base_url=running.url) as client:
        page = client.get(f"/console/runs/{7:032x}").text
        assert 'href="/console/runs?label=user%3D%3Cann%3E"' in page
        assert "user=&lt;ann&gt;" in page
        assert client.get("/runs?label=user").status_code == 400
        assert [run["id"] for run in client.get("/runs?label=user%3D%3Cann%3E").json()["runs"]] == [f"{7:032x}"]


def test_neighbours_of_the_same_session_and_the_playground_are_linked(visitor: Visitor, console: Console) -> None:
    page = visitor.enter(console, f"runs/{9:032x}")
    page.keyboard.press("[")
    expect(page).to_have_url(re.compile(f"{8:032x}$"))
    expect(page.locator('html[data-live="live"]')).to_be_visible()
    expect(page.locator('a[rel="prev"]')).to_have_count(0)
    page.keyboard.press("]")
    expect(page).to_have_url(re.compile(f"{9:032x}$"))
    expect(page.locator('html[data-live="live"]')).to_be_visible()  # from now on it hears keys
    page.keyboard.press("o")
    expect(page.locator("#editor textarea")).to_have_value(record(9).source)


def test_two_runs_are_compared(visitor: Visitor, console: Console) -> None:
    page = visitor.enter(console, f"compare?a={9:032x}&b={10:032x}")
    expect(page.locator(".diff ins")).to_contain_text(["-- run 10", "local n = 10"])
    expect(page.locator(".diff del")).to_contain_text(["-- run 9", "local n = 9"])
    calls = page.get_by_role("region", name="Calls", exact=True)
    expect(calls).to_contain_text("Both made the same calls, with the same answers.")
    expect(calls.locator("tbody tr")).to_have_count(6)
    expect(calls.locator("tbody tr svg")).to_have_count(12)
    page.get_by_role("link", name="Swap").click()
    expect(page.locator(".diff ins").first).to_contain_text("-- run 9")


def test_the_first_difference_is_marked_and_values_are_compared_as_trees(visitor: Visitor) -> None:
    def made(id: str, *calls: Call, value: object) -> Run:
        return Run(id, "return 1", calls=calls, values=(value,), output="the same", started=STARTED)

    def call(index: int, customer: str, *found: int) -> Call:
        return Call(index, "find", {"customer": customer}, "ok", packed=pack({"found": found}), started=STARTED + index)

    sink = MemorySink()
    sink.write(made("a", call(1, "ada", 1), call(2, "bob", 1, 2), value={"rows": [{"id": 1}], "note": "kept"}))
    both = (call(1, "ada", 1), call(2, "bob", 1, 3), call(3, "cy"))
    sink.write(made("b", *both, value={"rows": [{"id": 2}, {"id": 3}], "note": "kept"}))
    with visiting(visitor, "compare?a=a&b=b", TOOLS, trail=sink) as (_, page):
        rows = page.locator("#pairs > tbody > tr")
        expect(rows).to_have_count(3)
        expect(page.locator("#pairs tr.differs")).to_have_count(2)
        expect(page.locator("#first")).to_contain_text('first difference find {"customer":"bob"}')
        expect(rows.last).to_contain_text("not called")
        page.keyboard.press("n")
        page.keyboard.press("Enter")
        whole = page.locator("#pairs tr.whole")
        expect(whole).to_contain_text("answer1 difference in 1found1 difference in 22")
        expect(whole.locator("del")).to_have_text("2")
        expect(whole.locator("ins")).to_have_text("3")
        page.keyboard.press("Enter")
        expect(whole).to_have_count(0)
        compared = page.locator("#compared")
        expect(compared).to_contain_text("value1 difference in 2rows2 differences in 2")
        expect(compared.locator("ins")).to_have_text(["2", '{"id":3}'])
        expect(compared).not_to_contain_text("note")
        expect(compared).to_contain_text("printedthe same")


def test_an_unknown_run_is_said_to_be_unknown(visitor: Visitor, console: Console) -> None:
    visitor.allowed = ("status of 404", "status of 400")
    page = visitor.enter(console, "runs/doesnotexist")
    expect(page.locator("main")).to_contain_text("There is no run with this id.")
    page.goto(console.address("runs?before=doesnotexist"))
    expect(page.locator("#searched")).to_contain_text("before must be the id of a run")


def test_a_trail_without_runs_tells_what_to_do(visitor: Visitor) -> None:
    with visiting(visitor, "runs") as (empty, page):
        expect(page.locator("#nothing")).to_contain_text("There are no runs yet.")
        empty.service.sandbox.run("return 'the first'")
        expect(page.locator("#runs tbody tr")).to_contain_text("the first")
        expect(page.locator("#nothing")).to_be_hidden()
