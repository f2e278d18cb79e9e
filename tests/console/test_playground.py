"""The playground in a real browser: run, step, stop, approve, and see what a script does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from moonbox.http.browser import SignInKey
from moonbox.wording import seconds
from tests.long import only_long

from .conftest import visiting
from .serving import running_console

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page, Route

    from .conftest import Visitor
    from .serving import Console


def write(page: Page, source: str) -> None:
    page.locator("#editor textarea").fill(source)


def run(page: Page, source: str) -> None:
    write(page, source)
    page.click("#run")
    expect(page.locator("#status")).to_have_class(re.compile("good|bad"))


def hold(page: Page, address: str, method: str) -> list[Route]:
    """Requests of this kind, which wait until the test lets them go on."""
    held: list[Route] = []
    page.route(address, lambda route: held.append(route) if route.request.method == method else route.fallback())
    return held


def let_go(page: Page, held: list[Route]) -> None:
    """Send what was held, and wait until its answers are there."""
    for route in held:
        with page.expect_event("requestfinished", lambda request, sent=route.request: request == sent):
            route.continue_()
    page.evaluate("() => new Promise(requestAnimationFrame)")


def complete_tool(page: Page, before: str, completed: str) -> None:
    """Type the beginning of a tool's name, and accept what the editor offers for it."""
    write(page, "")
    page.locator("#editor textarea").press_sequentially(f"{before}tools.list_o")
    expect(page.locator("#choices li").first).to_contain_text("tools.list_orders")
    page.keyboard.press("Tab")
    expect(page.locator("#editor textarea")).to_have_value(completed)


def test_a_run_shows_its_output_its_value_and_its_calls(page: Page) -> None:
    run(page, "print('hello')\nreturn tools.list_orders{customer = 'ada', limit = 2}")
    expect(page.locator("#status")).to_contain_text("ok")
    expect(page.locator("#output")).to_have_text("hello\n")
    expect(page.locator("#values th")).to_have_text(["id", "customer", "total"])
    expect(page.locator("#timeline .tl-row")).to_have_count(1)
    page.locator("#timeline .tl-row").hover()
    expect(page.locator(".tl-card")).to_contain_text("customer")
    expect(page.locator(".tl-card")).to_contain_text("ada")


def test_output_comes_while_the_script_goes_on(page: Page) -> None:
    write(page, "print('before')\ntools.refund{order_id = 1, amount = 5}\nprint('after')")
    page.click("#run")
    question = page.locator("#questions .question")
    for text in ("refund waits for your approval", "By the script, line 2", "destructive"):
        expect(question).to_contain_text(text)
    expect(page.locator("#approvals-badge")).to_have_text("1")
    expect(page.locator("#output")).to_have_text("before\n")
    expect(page.locator("#record")).to_be_hidden()
    page.locator("#questions").get_by_role("button", name="Allow").click()
    expect(page.locator("#approvals-badge")).to_be_hidden()
    expect(page.locator("#output")).to_have_text("before\nafter\n")
    expect(page.locator("#status")).to_contain_text("waiting for you · 1 call")


def test_waiting_together_counts_once(page: Page, console: Console) -> None:
    write(page, "parallel.map({1, 2, 3, 4}, function(n) return tools.refund{order_id = n, amount = 1} end)")
    page.click("#run")
    questions = page.locator("#questions .question")
    expect(questions).to_have_count(4)  # all four wait from here to their answers
    for left in range(3, -1, -1):
        page.keyboard.press("j")
        page.keyboard.press("a")
        expect(questions).to_have_count(left)
    expect(page.locator("#status")).to_contain_text("waiting for you · 4 calls")
    expect(page.locator(".tl-note")).to_contain_text("4 calls · in 1 batch")
    calls = console.trail.get(console.trail.list(1)[0].id).calls
    waited = max(call.started + call.queued for call in calls) - min(call.started for call in calls)
    assert waited < sum(call.queued for call in calls)
    expect(page.locator("#status")).to_contain_text(f" {seconds(waited)} waiting for you")


def test_a_denial_is_told_with_its_reason(page: Page) -> None:
    """What a newcomer does next is in test_command."""
    write(page, "local rows = tools.list_orders{customer = 'ada'}\nreturn tools.refund{order_id = 1, amount = 5}")
    page.click("#run")
    page.locator("#questions").get_by_role("button", name="Deny…").click()
    page.get_by_label("Reason for the script").fill("not today")
    page.keyboard.press("Enter")
    expect(page.locator("#values")).to_contain_text("the call of refund was denied: not today")
    expect(page.get_by_text("the call of refund was denied: not today")).to_have_count(1)
    expect(page.locator("#problems")).not_to_contain_text("do not repeat")
    expect(page.locator(".tl-name")).to_have_text(["1 list_orders", "2 refund"])


def test_printed_output_ends_at_its_last_line(page: Page) -> None:
    at_the_end = "box => box.scrollHeight > box.clientHeight && box.scrollHeight - box.scrollTop - box.clientHeight < 2"
    write(page, "for n = 1, 300 do print('line', n) end\nreturn 1")
    page.get_by_role("tab", name="Model sees").click()
    page.click("#run")
    expect(page.locator("#status")).to_contain_text("ok")
    assert page.locator("#model pre").evaluate(
        "text => text.scrollHeight > text.clientHeight && text.clientHeight < 700"
    )
    page.locator("#model").get_by_role("button", name="Copy").click()
    assert "line\t150\n" in page.evaluate("navigator.clipboard.readText()")
    page.get_by_role("tab", name="Result").click()
    expect(page.locator("#output")).to_contain_text("line\t300")
    assert page.locator("#output").evaluate(at_the_end)


def test_numbers_are_plotted_and_trees_unfold(page: Page) -> None:
    run(page, "return {3, 1, 4, 1, 5}")
    page.get_by_role("button", name="Plot").click()
    expect(page.locator("#values svg.plot")).to_be_visible()
    expect(page.locator("#values rect.plot-bar")).to_have_count(5)
    run(page, "return {deep = {deeper = {deepest = 'here'}}}")
    page.locator("#values summary", has_text="deep").last.click()
    page.locator("#values summary", has_text="deeper").last.click()
    expect(page.locator("#values")).to_contain_text("here")


def test_rows_are_plotted_by_the_columns_that_are_chosen(page: Page) -> None:
    run(page, "local r = {} for n = 1, 5 do r[n] = {id = n, week = 'w' .. n, cents = n * 3, calls = -n} end return r")
    values = page.locator("#values")
    values.get_by_role("button", name="Plot").click()
    expect(values.locator("svg.plot")).to_have_attribute("aria-label", "Plot of 5 numbers (cents), from 3 to 15")
    expect(values.locator(".plot-bar title").first).to_have_text("w1, cents: 3")
    values.get_by_role("button", name="calls").click()
    expect(values.locator("svg.plot")).to_have_attribute(
        "aria-label", "Plot of 5 numbers (cents, calls), from -5 to 15"
    )
    expect(values.locator(".tl-legend")).to_have_text("centscalls")
    values.get_by_role("button", name="cents").click()
    values.get_by_label("Labels").select_option("(number of the row)")
    expect(values.locator(".plot-bar title")).to_have_text(
        ["1, calls: -1", *(f"{n}, calls: -{n}" for n in range(2, 6))]
    )
    values.get_by_label("Labels").select_option("id")
    expect(values.locator(".plot-bar title").first).to_have_text("1, calls: -1")


def test_the_result_is_widened_and_fills_the_window(page: Page, console: Console) -> None:
    def width(place: str) -> float:
        box = page.locator(place).bounding_box()
        assert box is not None
        return box["width"]

    before, line = width("#result-pane"), page.get_by_role("separator", name="Width of the script").bounding_box()
    assert line is not None
    page.mouse.move(line["x"] + line["width"] / 2, line["y"] + 100)
    page.mouse.down()
    page.mouse.move(line["x"] - 200, line["y"] + 100)
    page.mouse.up()
    dragged = width("#result-pane")
    assert dragged > before + 150
    page.keyboard.press("ArrowRight")
    assert before < width("#result-pane") < dragged
    kept = width("#result-pane")
    page.goto(console.address("playground"))
    assert abs(width("#result-pane") - kept) < 2, "the browser keeps it"
    page.get_by_role("button", name="Maximise").click()
    assert width("#result-pane") == 1280
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Maximise")).to_be_visible()
    assert abs(width("#result-pane") - kept) < 2
    page.get_by_role("separator").dblclick()
    assert abs(width("#result-pane") - before) < 2


def test_rows_are_sorted_and_exported(page: Page) -> None:
    rows = """{id = 9007199254740993, t = '=1+1'}, {id = 9007199254740992, t = 'a,"b'}, {id = 2.5, t = {1}}"""
    run(page, f"return {{{rows}}}")
    page.get_by_role("button", name="id", exact=True).click()
    expect(page.locator("#values tbody tr:not(.gap) td:first-child")).to_have_text(
        ["2.5", "9007199254740992", "9007199254740993"]
    )
    expect(page.locator("#values th").first).to_have_attribute("aria-sort", "ascending")
    saved = {}
    for kind in ("CSV", "JSON"):
        with page.expect_download() as told:
            page.locator("#values").get_by_role("button", name=kind).click()
        saved[kind] = told.value.path().read_text(encoding="utf-8")
    assert saved["CSV"] == 'id,t\n2.5,[1]\n9007199254740992,"a,""b"\n9007199254740993,\'=1+1\n'
    assert '"id": 9007199254740993' in saved["JSON"]


def test_media_are_shown_as_media(page: Page) -> None:
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    run(page, f"return {{mimeType = 'image/png', data = '{pixel}'}}")
    image = page.locator("#values img.medium")
    expect(image).to_be_visible()
    assert image.evaluate("image => image.naturalWidth") == 1


def test_an_error_is_marked_at_its_line_with_its_hint(page: Page) -> None:
    run(page, "local x = 1\nreturn tools.list_ordres{customer = 'ada'}")
    expect(page.locator("#status")).to_have_class(re.compile("bad"))
    expect(page.locator("#status")).to_contain_text("failed: ")
    expect(page.locator("#values")).to_contain_text("line 2: unknown tool")
    expect(page.locator("#problems")).to_contain_text("line 2")
    expect(page.locator("#problems")).to_contain_text("list_orders")
    expect(page.locator(".gutter .number.error")).to_have_text("2")


def test_a_message_keeps_its_lines(page: Page) -> None:
    write(page, "return tools.list_orders{customer = 5}")
    page.click("#run")
    message = page.locator("#values .bad-text")
    expect(message).to_contain_text("customer: expected string")
    assert message.inner_text().splitlines()[0] == "line 1: invalid arguments for list_orders:"


def test_an_error_stays_where_a_check_answers_late(page: Page) -> None:
    held = hold(page, "**/check", "POST")
    with page.expect_request("**/check"):
        write(page, "local order\nreturn order.total")
    page.click("#run")
    expect(page.locator("#problems")).to_contain_text("line 2")
    let_go(page, held)
    page.unroute("**/check")
    expect(page.locator("#problems")).to_contain_text("line 2")
    expect(page.locator(".gutter .number.error")).to_have_text("2")
    write(page, "return 1")
    expect(page.locator("#problems")).to_be_empty()
    expect(page.locator(".gutter .number.error")).to_have_count(0)


def test_the_check_marks_mistakes_while_one_types(page: Page) -> None:
    page.locator("#editor textarea").fill("")
    page.locator("#editor textarea").press_sequentially("local a = 1\nreturn tools.list_ordres{} ")
    expect(page.locator(".gutter .number.error")).to_have_text("2")
    expect(page.locator("#problems .finding")).to_contain_text("list_orders")
    page.get_by_role("button", name="change it to").first.click()
    expect(page.locator("#editor textarea")).to_have_value("local a = 1\nreturn tools.list_orders{} ")
    write(page, "return tools.list_orders{customer = 5}")
    message = page.locator("#problems .finding .message")
    expect(message).to_contain_text("got 5 (integer)")
    lines = message.inner_text().splitlines()
    assert lines[:2] == ["invalid arguments for list_orders:", "- customer: expected string, got 5 (integer)"]
    page.locator("#editor textarea").fill("local a = 1\nlocal b = = 2\nreturn a")
    expect(page.locator("#problems .finding")).to_contain_text("unexpected symbol near '='")
    expect(page.locator(".gutter .number.error")).to_have_text("2")
    page.locator("#editor textarea").fill("local a = 1\nlocal b = 2\nreturn a")
    expect(page.locator(".gutter .number.error")).to_have_count(0)


OFFERED = {
    "local n = 1\n  n += 1\nreturn n": "local n = 1\n  n = n + 1\nreturn n",
    "while True:\n  break\nend": "while true do\n  break\nend",
    "const x = 1": "local x = 1",
    "local names = {}\nnames:push(1)": "local names = {}\ntable.insert(names, 1)",
    "local t = {}\ntable.isnert(t, 1)": "local t = {}\ntable.insert(t, 1)",
}


def test_the_offered_line_is_put_in_place(page: Page) -> None:
    for source, mended in OFFERED.items():
        write(page, source)
        page.locator("#problems").get_by_role("button", name=re.compile("Use this line|Change it to")).click()
        expect(page.locator("#editor textarea")).to_have_value(mended)
        expect(page.locator("#problems")).to_be_empty()
        page.keyboard.press("Control+z")
        expect(page.locator("#editor textarea")).to_have_value(source)
        write(page, "")
        expect(page.locator("#problems")).to_be_empty()


def test_a_part_of_a_line_is_not_offered_as_the_line(page: Page) -> None:
    write(page, "local n = len({1, 2})\nreturn n")
    expect(page.locator("#problems")).to_contain_text("write: #{1, 2}")
    expect(page.get_by_role("button", name="use this line")).to_have_count(0)


def test_a_stepped_run_stops_before_each_batch(page: Page) -> None:
    write(
        page,
        "local a = tools.list_orders{customer = 'ada'}\nlocal b = tools.list_orders{customer = 'bob'}\nreturn #a + #b",
    )
    page.click("#step")
    paused = page.locator("#paused")
    expect(paused).to_contain_text("The script waits for 1 call")
    expect(page.locator(".gutter .number.next")).to_have_text("1")
    paused.get_by_role("button", name="Go on").click()
    expect(page.locator(".gutter .number.next")).to_have_text("2")
    expect(page.locator(".behind .next")).to_contain_text("'bob'")
    paused.get_by_label("Answer of list_orders").select_option("value")
    paused.get_by_label("Value or message for list_orders").fill("[1, 2,")
    paused.get_by_role("button", name="Go on").click()
    expect(paused.get_by_role("alert")).to_contain_text("This is not valid JSON: unexpected end")
    paused.get_by_label("Value or message for list_orders").fill("[1, 2, 3, 4, 5]")
    paused.get_by_role("button", name="Go on").click()
    expect(page.locator("#status")).to_contain_text("ok")
    expect(page.locator("#values")).to_contain_text("8")
    expect(page.locator(".gutter .number.next")).to_have_count(0)


def test_a_running_script_tells_how_far_it_is_and_is_stopped(page: Page) -> None:
    write(page, "kept = 1 progress(3, 10, 'rows') while true do end")
    page.click("#run")
    expect(page.locator("#status")).to_have_text("running… 3 of 10: rows")
    page.click("#stop")
    expect(page.locator("#status")).to_contain_text("cancelled")
    run(page, "return kept")
    expect(page.locator("#values")).to_contain_text("1")


def test_a_run_survives_a_visit_to_another_page(page: Page) -> None:
    write(page, "print('before') return tools.refund{order_id = 1, amount = 2}")
    page.click("#run")
    expect(page.locator("#questions .question")).to_be_visible()
    page.get_by_role("link", name="Approvals").click()
    page.locator(".question").get_by_role("button", name="Allow").first.click()
    expect(page.locator("#inbox .question")).to_have_count(0)
    page.go_back()
    expect(page.locator("#status")).to_contain_text("ok")
    expect(page.locator("#output")).to_have_text("before\n")
    expect(page.locator("#values")).to_contain_text("refunded 2.00")
    assert re.search(r"/console/playground/[\w-]+$", page.url)


def test_the_session_and_the_draft_survive_navigation(page: Page) -> None:
    run(page, "answer = 42")
    write(page, "return tools.refund{order_id = answer, amount = 2}")
    page.click("#run")
    expect(page.locator("#questions .question")).to_be_visible()
    write(page, "-- not run yet\nreturn answer")
    page.get_by_role("link", name="Runs").click()
    expect(page.locator("h1")).to_have_text("Runs")
    page.get_by_role("link", name="Playground", exact=True).click()
    expect(page.locator("#questions .question")).to_contain_text("refund waits for your approval")
    expect(page.locator("#playground")).to_have_attribute("data-state", "running")
    page.locator("#questions").get_by_role("button", name="Allow").click()
    expect(page.locator("#values")).to_contain_text("refunded 2.00 for order 42")
    expect(page.locator("#editor textarea")).to_have_value("-- not run yet\nreturn answer")
    page.click("#run")
    expect(page.locator("#values")).to_have_text("value42")


def test_a_draft_has_the_name_of_its_first_comment(page: Page) -> None:
    run(page, "local meals = 2\n-- What lunch costs\nreturn meals")
    page.get_by_text("Drafts and history").click()
    page.get_by_role("button", name="New draft").click()
    expect(page.locator("#draft-list").get_by_role("button", name="What lunch costs", exact=True)).to_be_visible()


def test_drafts_and_the_history_outlive_the_tab(page: Page, console: Console) -> None:
    run(page, "return 'the first'")
    page.get_by_text("Drafts and history").click()
    page.get_by_role("button", name="New draft").click()
    run(page, "return 'the second'")
    with page.context.expect_page() as opened:
        page.evaluate("open(location.origin + '/console/playground', '_blank', 'noopener')")
    other = opened.value
    expect(other.locator("#editor textarea")).to_have_value("return 'the second'")
    other.get_by_text("Drafts and history").click()
    expect(other.locator("#history-list li")).to_contain_text(["return 'the second'", "return 'the first'"])
    other.locator("#draft-list").get_by_role("button", name="return 'the first'", exact=True).click()
    expect(other.locator("#editor textarea")).to_have_value("return 'the first'")
    other.get_by_role("button", name="Delete the draft return 'the second'").click()
    expect(other.locator("#draft-list li")).to_have_count(1)
    other.close()


AT_ONCE = """async () => {
  const { post } = await import(new URL("api.js", document.querySelector("script[type=module]").src));
  const ask = () => post("/check", { source_code: "return 1", language: "lua", session: null });
  return (await Promise.all([ask(), ask(), ask()])).length;
}"""


def test_a_restart_of_the_server_is_told_and_the_script_run_again(visitor: Visitor) -> None:
    visitor.allowed = ("Failed to load resource", "ERR_")
    source = "tools.refund{order_id = 1, amount = 1} return 'done'"
    with running_console(public=True) as first:
        page = visitor.enter(first)
        page.set_viewport_size({"width": 390, "height": 844})
        write(page, source)
        page.click("#run")
        expect(page.locator("#questions .question")).to_be_visible()
    expect(page.locator("#banner")).to_contain_text("The server does not answer.")
    expect(page.locator("#banner")).to_be_in_viewport()
    with running_console(public=True, port=int(first.url.rpartition(":")[2])):
        expect(page.locator("#banner")).to_contain_text("The session has ended: the server was restarted")
        expect(page.locator("#status")).to_have_text("the session has ended")
        page.get_by_role("button", name="Run again").click()
        page.locator("#questions").get_by_role("button", name="Allow").click()
        expect(page.locator("#values")).to_contain_text("done")
        expect(page.locator("#banner")).to_be_hidden()
        visitor.leave()
    with running_console(port=int(first.url.rpartition(":")[2])) as third:
        expect(page.locator("#banner")).to_contain_text("Your sign-in has ended")
        page.click("#run")
        expect(page.locator("#status")).to_have_text("your sign-in has ended; sign in again")
        with page.context.expect_page() as opened:
            page.evaluate("address => open(address, '_blank', 'noopener')", third.sign_in_address())
        expect(opened.value.locator("h1")).to_have_text("Playground")
        # The sign-in of another tab counts here, too.
        expect(page.locator("#banner")).to_contain_text("The session has ended: the server was restarted")
        assert page.evaluate(AT_ONCE) == 3, "requests that find the new sign-in at the same moment"
        write(page, "return 'again'")
        page.click("#run")
        expect(page.locator("#status")).to_contain_text("ok")
        expect(page.locator("#values")).to_contain_text("again")
        visitor.leave()


def test_a_tab_goes_on_after_a_restart(visitor: Visitor, tmp_path: Path) -> None:
    visitor.allowed = ("Failed to load resource", "ERR_")
    with running_console(key=SignInKey(tmp_path / "key")) as first:
        page = visitor.enter(first)
        write(page, "return tools.refund{order_id = 1, amount = 1}")
        page.click("#run")
        expect(page.locator("#questions .question")).to_be_visible()
    expect(page.locator("#status")).to_have_text("no connection: whether the run goes on is not known")
    with running_console(key=SignInKey(tmp_path / "key"), port=int(first.url.rpartition(":")[2])):
        expect(page.locator("#status")).to_have_text("the session has ended")
        expect(page.locator("#questions .question")).to_have_count(0)
        run(page, "return 'again'")
        expect(page.locator("#values")).to_contain_text("again")
        visitor.leave()


def test_a_server_that_hangs_is_told(visitor: Visitor) -> None:
    visitor.allowed = ("Failed to load resource", "ERR_")
    with running_console() as console:
        page = visitor.enter(console)
        write(page, "return tools.refund{order_id = 1, amount = 1}")
        page.click("#run")
        expect(page.locator("#questions .question")).to_be_visible()
        held = hold(page, "**/approvals", "GET")  # it takes the request, and does not answer
    expect(page.locator("#banner")).to_contain_text("The server does not answer.")
    expect(page.locator("#status")).to_have_text("no connection: whether the run goes on is not known")
    assert held
    visitor.leave()


def test_globals_limits_languages_and_what_the_model_sees(page: Page) -> None:
    run(page, "answer = 42")
    page.get_by_role("tab", name="Globals").click()
    expect(page.locator("#globals")).to_contain_text("answer")
    page.click("#reset")
    run(page, "return answer, tools.list_orders{customer = 'ada'}[1]")
    expect(page.locator("#values")).not_to_contain_text("42")
    page.get_by_role("tab", name="Model sees").click()
    expect(page.locator("#model")).to_contain_text(re.compile(r"about \d+ tokens"))
    expect(page.locator("#model pre")).to_contain_text('"customer":"ada"')
    page.get_by_text("Other limits").click()
    page.locator("#limits input[name=max_tool_calls]").fill("1")
    run(page, "tools.list_orders{customer = 'a'} tools.list_orders{customer = 'b'}")
    expect(page.locator("#status")).to_contain_text("limit (calls)")
    page.select_option("#language", "rhai")
    run(page, "let n = 20; n + 22")
    expect(page.locator("#values")).to_contain_text("42")


def test_another_language_is_there_at_once(page: Page) -> None:
    """The server may take long to end the session: what was written since stays, and runs."""
    run(page, "answer = 42")
    held = hold(page, "**/sessions/*", "DELETE")
    page.select_option("#language", "rhai")
    write(page, "let n = 20; n + 22")
    let_go(page, held)
    expect(page.locator("#editor textarea")).to_have_value("let n = 20; n + 22")
    page.click("#run")
    expect(page.locator("#values")).to_contain_text("42")
    assert len(held) == 1


def test_a_new_session_is_there_at_once(page: Page) -> None:
    run(page, "answer = 42")
    held = hold(page, "**/sessions/*", "DELETE")
    page.click("#reset")
    run(page, "return answer == nil")
    expect(page.locator("#values")).to_have_text("valuetrue")
    let_go(page, held)
    run(page, "return 'still here'")
    expect(page.locator("#values")).to_contain_text("still here")
    assert len(held) == 1


def test_what_was_typed_last_stays_with_its_language(page: Page) -> None:
    page.evaluate(
        """() => {
            const area = document.querySelector("#editor textarea");
            const choice = document.querySelector("#language");
            area.focus();
            area.select();
            document.execCommand("insertText", false, "return 'lua'");
            choice.value = "rhai";
            choice.dispatchEvent(new Event("change"));
        }"""
    )
    expect(page.locator("#editor textarea")).not_to_have_value("return 'lua'")
    write(page, "let a = 1;")
    page.select_option("#language", "lua")
    expect(page.locator("#editor textarea")).to_have_value("return 'lua'")
    page.select_option("#language", "rhai")
    expect(page.locator("#editor textarea")).to_have_value("let a = 1;")
    page.reload()
    expect(page.get_by_label("Language")).to_have_value("rhai")
    expect(page.locator("#editor textarea")).to_have_value("let a = 1;")


def test_what_is_typed_while_a_page_opens_its_session_stays(page: Page, console: Console) -> None:
    page.select_option("#language", "rhai")
    run(page, "let a = 1; a + 1")
    own = page.url
    for number, address in enumerate((own, console.address("playground"))):
        page.goto(console.address("runs"))
        held = hold(page, "**/sessions/*", "GET")
        with page.expect_request("**/sessions/*"):
            page.goto(address)
        expect(page.get_by_label("Language")).to_have_value("rhai")
        write(page, f"let b = {number}; b")
        let_go(page, held)
        expect(page.locator("#editor textarea")).to_have_value(f"let b = {number}; b")
        page.unroute("**/sessions/*")
        page.click("#run")
        expect(page.locator("#values")).to_have_text(f"value{number}")
        assert page.url == own


def test_a_script_that_was_cleared_does_not_come_back(page: Page) -> None:
    held = hold(page, "**/sessions/*/run", "POST")
    write(page, "print('ran')")
    with page.expect_request("**/sessions/*/run"):
        page.click("#run")
    write(page, "")
    let_go(page, held)
    expect(page.locator("#output")).to_have_text("ran\n")
    expect(page.locator("#editor textarea")).to_have_value("")


def test_late_answers_leave_what_a_person_types(visitor: Visitor, console: Console) -> None:
    """Whatever the page asks the server for is held until the person has typed."""
    page = visitor.enter(console)
    run(page, "return nothing.here")
    held: list[Route] = []
    typing = [True]
    page.route(
        re.compile(r":\d+/(sessions|runs|approvals|check|events)\b"),
        lambda route: held.append(route) if typing else route.continue_(),
    )
    fields = {"playground": "#editor textarea", "runs": "[data-search]", "tools/list_orders": "#field-customer"}
    for view, field in fields.items():
        typing[:] = [True]
        held.clear()
        page.goto(console.address(view))
        page.locator(field).fill("local typed = 'since'")
        typing.clear()
        while held:
            held.pop().continue_()
        expect(page.locator("html")).to_have_attribute("data-live", "live")
        expect(page.locator(field)).to_have_value("local typed = 'since'")
        if view == "playground":  # the error of the run belongs to another text
            expect(page.locator("#status")).to_contain_text("failed")
            expect(page.locator(".gutter .number.error")).to_have_count(0)


def test_an_offered_line_is_not_put_over_a_changed_one(page: Page) -> None:
    write(page, "local n = 1\nn += 1\nreturn n")
    button = page.locator("#problems").get_by_role("button", name="use this line")
    expect(button).to_be_visible()
    page.evaluate(
        """() => {
            const area = document.querySelector("#editor textarea");
            area.focus();
            area.setSelectionRange(14, 18);
            document.execCommand("insertText", false, "= n * 5");
            document.querySelector("#problems button:last-of-type").click();
        }"""
    )
    expect(page.locator("#problems")).to_be_empty()
    expect(page.locator("#editor textarea")).to_have_value("local n = 1\nn = n * 5\nreturn n")


def test_the_session_of_another_tab_is_shown_with_its_script(page: Page) -> None:
    page.select_option("#language", "rhai")
    run(page, "let n = 6 * 7; n")
    with page.context.expect_page() as opened:
        page.evaluate("open(location.href, '_blank', 'noopener')")
    other = opened.value
    expect(other.get_by_label("Language")).to_have_value("rhai")
    expect(other.locator("#editor textarea")).to_have_value("let n = 6 * 7; n")
    expect(other.locator("#values")).to_contain_text("42")


def test_the_script_that_the_console_begins_with_is_of_its_language(visitor: Visitor) -> None:
    with visiting(visitor, "playground", script="return 'begin'") as (_, page):
        expect(page.locator("#editor textarea")).to_have_value("return 'begin'")
        page.select_option("#language", "rhai")
        expect(page.locator("#editor textarea")).not_to_have_value("return 'begin'")
        complete_tool(page, "", "tools.list_orders(#{})")
        page.reload()
        expect(page.get_by_label("Language")).to_have_value("rhai")
        complete_tool(page, "", "tools.list_orders(#{})")


def test_tools_and_fields_are_completed(page: Page) -> None:
    complete_tool(page, "return ", "return tools.list_orders{}")
    editor = page.locator("#editor textarea")
    expect(page.locator("#choices li")).to_have_text(["customerstring · required", "limitinteger · optional"])
    page.keyboard.type("cu")
    page.keyboard.press("Tab")
    page.keyboard.type("'a, b = {', ")
    expect(page.locator("#choices li")).to_have_text(["limitinteger · optional"])
    page.keyboard.press("Escape")
    expect(page.locator("#choices")).to_be_hidden()
    expect(editor).to_have_value("return tools.list_orders{customer = 'a, b = {', }")
    assert page.locator("#editor .paper").evaluate("paper => paper.scrollLeft") == 0, "the text stays where it is"


def test_tab_indents_and_leaves_after_escape(page: Page) -> None:
    editor = page.locator("#editor textarea")
    write(page, "local a = 1\nlocal b = 2")
    editor.press("Tab")
    expect(editor).to_have_value("local a = 1\nlocal b = 2  ")
    editor.press("Control+a")
    editor.press("Tab")
    expect(editor).to_have_value("  local a = 1\n  local b = 2  ")
    editor.press("Shift+Tab")
    editor.press("Control+/")
    expect(editor).to_have_value("-- local a = 1\n-- local b = 2  ")
    editor.press("Control+/")
    expect(editor).to_have_value("local a = 1\nlocal b = 2  ")
    editor.press("Escape")
    editor.press("Tab")
    expect(editor).not_to_be_focused()
    expect(editor).to_have_value("local a = 1\nlocal b = 2  ")


def press_before_the_next_frame(page: Page, text: str, key: str) -> None:
    """Type that text at once after a word that completions are shown for, and press the key before they can change."""
    write(page, "")
    page.locator("#editor textarea").press_sequentially("return to")
    expect(page.locator("#choices li").first).to_contain_text("tools.")
    page.locator("#editor textarea").evaluate(
        """async (area, [text, key]) => {
            document.execCommand("insertText", false, text);
            area.dispatchEvent(new KeyboardEvent("keydown", { key, cancelable: true }));
            for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
        }""",
        [text, key],
    )


def test_a_key_that_comes_before_the_next_frame(page: Page) -> None:
    press_before_the_next_frame(page, "ols.list_o", "Tab")
    expect(page.locator("#editor textarea")).to_have_value("return tools.list_orders{}")
    press_before_the_next_frame(page, "o", "Escape")
    expect(page.locator("#editor textarea")).to_have_value("return too")
    assert page.locator("#choices").is_hidden()


def test_code_is_coloured_in_every_language(page: Page) -> None:
    write(page, "local name = 'ada' -- who\nreturn tools.list_orders{customer = name}")
    behind = page.locator("#editor .behind")
    for kind, text in (("word", "local"), ("string", "'ada'"), ("comment", "-- who"), ("call", "list_orders")):
        expect(behind.locator(f".t-{kind}", has_text=text).first).to_be_visible()
    page.get_by_label("Language").select_option("rhai")
    write(page, 'let name = "ada"; // who')
    for kind, text in (("word", "let"), ("string", '"ada"'), ("comment", "// who")):
        expect(behind.locator(f".t-{kind}", has_text=text).first).to_be_visible()
    page.get_by_label("Language").select_option("python")
    write(page, 'def f():  # who\n    return """a\nlet"""')
    for kind, text in (("word", "def"), ("call", "f"), ("comment", "# who"), ("string", '"""a'), ("string", 'let"""')):
        expect(behind.locator(f".t-{kind}", has_text=text).first).to_be_visible()


def test_light_and_dark_follow_the_system_and_the_button(page: Page, console: Console) -> None:
    def ground() -> str:
        return str(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))

    light, dark = "rgb(246, 247, 249)", "rgb(15, 19, 26)"
    page.emulate_media(color_scheme="dark")
    assert ground() == dark
    page.click("#theme")
    assert ground() == light
    page.goto(console.address("runs"))
    assert ground() == light, "the choice holds for every page"
    page.emulate_media(color_scheme="light")
    page.click("#theme")
    assert ground() == dark


def test_the_keyboard_is_enough(page: Page) -> None:
    page.keyboard.press("Control+e")
    expect(page.locator("#editor textarea")).to_be_focused()
    write(page, "return 6 * 7")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#values")).to_contain_text("42")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.locator("#help")).to_contain_text("Run the script")
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page).to_have_url(re.compile("/console/runs$"))


@only_long
def test_a_large_script_value_and_timeline_stay_usable(page: Page) -> None:
    page.get_by_text("Other limits").click()
    page.locator("#limits input[name=max_tool_calls]").fill("5000")
    page.locator("#limits input[name=timeout]").fill("120")
    lines = "\n".join(f"local v{number} = {number}" for number in range(150))
    page.locator(".behind").evaluate(
        "behind => { window.drawings = 0; new MutationObserver(() => drawings++).observe(behind, {childList: true}); }"
    )
    write(page, lines)
    expect(page.locator(".gutter .number")).to_have_count(150)
    assert page.evaluate("window.drawings") < 50, "many lines are drawn together"
    run(
        page,
        f"{lines}\nfor n = 1, 1000 do tools.list_orders{{customer = 'c', limit = 1}} end\n"
        "local rows = {} for n = 1, 20000 do rows[n] = {id = n, name = 'row ' .. n} end return rows",
    )
    expect(page.locator("#status")).to_contain_text("1,000 calls")
    expect(page.locator("#values")).to_contain_text("20,000 rows")
    rows = page.locator("#values tbody tr:not(.gap)")
    assert 10 < rows.count() < 100
    assert page.locator("#values").evaluate("place => place.offsetHeight") < 1000
    page.get_by_role("region", name="Rows").evaluate("place => { place.scrollTop = place.scrollHeight; }")
    expect(rows.last).to_contain_text("row 20000")
    page.get_by_role("button", name="id", exact=True).click()
    page.get_by_role("button", name="id", exact=True).click()
    expect(rows.first).to_contain_text("row 20000")
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("20,000 rows in the clipboard.")
    lines = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert (len(lines), lines[0], lines[1]) == (20_001, "id\tname", "20000\trow 20000")
    calls = page.locator("#timeline .tl-row")
    assert 10 < calls.count() < 60
    page.locator(".tl-lane").focus()
    page.keyboard.press("End")
    expect(calls.last).to_have_attribute("data-index", "1000")
    expect(calls.last).to_be_focused()
    run(page, "return ('x'):rep(3000000)")
    expect(page.locator("#values")).to_contain_text("The value is too large for this page; its record has it.")


def test_the_timeline_is_zoomed_and_walked_by_keys(page: Page) -> None:
    run(page, "for n = 1, 3 do tools.list_orders{customer = 'c' .. n} end")
    lane = page.locator(".tl-lane")
    before = lane.evaluate("lane => lane.clientWidth")
    page.get_by_role("button", name="Zoom in").click()
    assert abs(lane.evaluate("lane => lane.clientWidth") - 2 * before) < 4
    lane.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".tl-card h3")).to_have_text("2. list_orders")


def test_python_is_run_checked_and_completed(page: Page) -> None:
    page.select_option("#language", "python")
    run(page, "n = 20\nn + 22")
    expect(page.locator("#values")).to_contain_text("42")
    write(page, "def rows():\n    yield 1")
    expect(page.locator(".finding.error")).to_contain_text("scripts cannot have generators (yield)")
    complete_tool(page, "", "tools.list_orders()")
    expect(page.locator("#choices li")).to_have_text(["customerstring · required", "limitinteger · optional"])
    page.keyboard.press("Tab")
    expect(page.locator("#editor textarea")).to_have_value("tools.list_orders(customer=)")
    page.locator("#editor textarea").press("Control+/")
    expect(page.locator("#editor textarea")).to_have_value("# tools.list_orders(customer=)")
