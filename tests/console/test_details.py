"""Small things that make pages look finished: sizes, places and words, each measured in the browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from moonbox import Tool
from moonbox.project.diagnosis import diagnose

from .conftest import new_context, visiting
from .serving import TOOLS, running_console
from .test_approvals import Started

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page

    from .conftest import Visitor
    from .serving import Console

PHONE = {"width": 390, "height": 844}
WRONG = "local x = 1\nreturn tools.flaky{key = 'x'}"
REFUND = "return tools.refund{order_id = 1, amount = 2}"
TWO = ", ".join([f"function() {REFUND} end"] * 2)


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """Three runs of one session, the middle one failed."""
    journal = tmp_path_factory.mktemp("details") / "journal.db"
    with running_console(TOOLS, diagnose=lambda: diagnose().to_dict(), journal=journal) as running:
        with running.service.sandbox.repl() as repl:
            for source in ("return 1", WRONG, "return string.rep('a long answer ', 1000)"):
                repl.run(source)
        yield running


def failed_run(console: Console) -> str:
    return [str(run.id) for run in console.trail.list(50) if run.kind][-1]


def box(place: Locator) -> dict[str, Any]:
    found = place.first.bounding_box()
    assert found is not None
    return {**found, "right": found["x"] + found["width"], "bottom": found["y"] + found["height"]}


def style(place: Locator, name: str) -> str:
    return str(place.first.evaluate("(element, name) => getComputedStyle(element)[name]", name))


def pixels(place: Locator, name: str) -> float:
    return float(style(place, name).removesuffix("px"))


def test_letters_of_buttons_take_no_room(visitor: Visitor, console: Console) -> None:
    page = visitor.enter(console, "approvals")
    script = Started(console, REFUND)
    button = page.get_by_role("button", name="Allow", exact=True)
    before = box(button)
    expect(button.locator("kbd")).to_be_hidden()
    assert style(button, "paddingLeft") == style(button, "paddingRight")
    page.keyboard.press("j")
    expect(button.locator("kbd")).to_be_visible()
    assert box(button) == before, "what is clicked stays in its place"
    page.keyboard.press("a")
    assert script.result().ok


def test_a_destructive_call_says_so_once_with_room_around_it(visitor: Visitor, console: Console) -> None:
    page = visitor.enter(console, "approvals")
    script = Started(console, REFUND)
    heading = page.locator(".question h2")
    expect(heading).to_contain_text("refund waits for your approval")
    assert page.locator(".question").inner_text().count("destructive") == 1
    words = """h2 => {
      const range = document.createRange();
      range.selectNode(h2.childNodes[1]);
      return range.getBoundingClientRect().right;
    }"""
    assert box(heading.locator(".state"))["x"] - float(heading.evaluate(words)) >= 6
    page.get_by_role("button", name="Allow", exact=True).click()
    assert script.result().ok


def test_the_label_of_the_sign_in_is_centred_in_its_button(visitor: Visitor) -> None:
    visitor.allowed = ("status of 401",)
    with running_console([], token="a-token-of-some-length") as guarded:
        visitor.home = guarded.url
        page = visitor.page
        page.goto(guarded.address("runs"))
        button = page.get_by_role("button", name="Sign in")
        assert (style(button, "justifyContent"), style(button, "alignItems")) == ("center", "center")
        assert box(button)["width"] == pytest.approx(box(page.get_by_label("The server's token"))["width"], abs=1)
        assert style(page.locator("label"), "fontFamily") == style(page.locator("body"), "fontFamily")
        visitor.leave()


def test_titles_are_the_largest_words_of_a_page_and_stand_on_one_line(visitor: Visitor, console: Console) -> None:
    for view in ("tools/refund", f"runs/{failed_run(console)}", "approvals"):
        page = visitor.enter(console, view)
        title = pixels(page.locator("h1, h1 code").last, "fontSize")
        assert all(title > pixels(head, "fontSize") for head in page.locator("h2").all()), view
        expect(page.get_by_role("link", name="Compare")).to_have_count(1 if "runs" in view else 0)
        assert box(page.locator(".head"))["height"] < 45, f"{view}: all of it on one line"


def test_the_editor_stands_below_its_toolbar_and_an_error_in_one_panel(visitor: Visitor, console: Console) -> None:
    page = visitor.enter(console)
    assert box(page.locator("#editor"))["y"] - box(page.locator(".bar"))["bottom"] < 15
    page.locator("#editor textarea").fill(WRONG)
    page.click("#run")
    expect(page.locator("#values")).to_have_text("line 2: no luck with x")
    assert page.locator("#main").inner_text().count("no luck with x") == 1
    assert page.locator("#main").inner_text().count("failed: tool") == 1


def test_a_failed_run_shows_its_script_before_tracebacks(visitor: Visitor, tmp_path: Path) -> None:
    def broken() -> None:
        raise ValueError("it broke")

    tool = Tool.from_schema(name="broken", description="", call=lambda _: broken())
    with visiting(visitor, "runs", [tool]) as (console, page):
        run = console.service.sandbox.run("return tools.broken{}")
        page.goto(console.address(f"runs/{run.id}"))
        trace = page.get_by_role("region", name="Traceback of call 1")
        expect(trace).to_contain_text("ValueError: it broke")
        assert box(page.get_by_role("region", name="Script"))["bottom"] < box(trace)["y"]


def test_text_for_the_model_scrolls_in_its_place(visitor: Visitor, console: Console) -> None:
    latest = console.trail.list(1)[0].id
    page = visitor.enter(console, f"compare?a={failed_run(console)}&b={latest}")
    for answer in page.get_by_role("region", name="Answer").locator("pre").all():
        assert box(answer)["height"] <= 0.62 * 900 + 1


def test_tables_of_the_doctor_have_the_same_columns(visitor: Visitor, console: Console) -> None:
    page = visitor.enter(console, "doctor?wait=1")
    for column in ("Name", "What it means"):
        heads = page.get_by_role("columnheader", name=column).all()
        assert len({round(box(head)["x"]) for head in heads}) == 1, column


def test_cells_of_a_column_have_one_look(page: Page) -> None:
    page.locator("#editor textarea").fill("return {{a = 'short'}, {a = ('long '):rep(30)}}")
    page.click("#run")
    texts = page.locator("#values td .v-string")
    expect(texts).to_have_count(2)
    looks = {tuple(style(text, name) for name in ("fontFamily", "fontSize", "color")) for text in texts.all()}
    assert len(looks) == 1


def test_long_texts_of_a_result_fold(page: Page) -> None:
    page.locator("#editor textarea").fill("return {text = ('a line of it\\n'):rep(100) .. 'its' .. ' end'}")
    page.click("#run")
    values = page.locator("#values")
    values.get_by_role("button", name="more characters").click()
    expect(values).to_contain_text("its end")
    values.get_by_role("button", name="less").click()
    expect(values).not_to_contain_text("its end")


def test_a_plot_has_round_numbers_and_the_size_of_its_place(page: Page) -> None:
    page.locator("#editor textarea").fill("local t = {} for n = 1, 50 do t[n] = n * 12.5 end return t")
    page.click("#run")
    page.get_by_role("button", name="Plot").click()
    beside = page.locator("#values .plot-text[text-anchor=end]")
    expect(beside).to_have_text(["0", "200", "400", "600", "800"])
    plot = page.locator("#values svg.plot")
    before, letters = box(plot), box(beside)["height"]
    page.get_by_role("button", name="Maximise").click()
    expect(beside).to_have_count(5)
    assert box(plot)["height"] > 2 * before["height"] and box(beside)["height"] == letters
    page.keyboard.press("Escape")


def test_a_phone_has_the_list_in_its_first_half_and_nothing_of_keys(browser: Browser, console: Console) -> None:
    context = new_context(browser, viewport=PHONE, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(console.sign_in_address())
    expect(page.locator("#status")).to_be_visible()
    for place in (page.locator("#editor-keys"), page.get_by_role("button", name="Shortcuts")):
        expect(place).to_be_hidden()
    page.goto(console.address("runs"))
    expect(page.locator("#runs tbody tr").first).to_be_visible()
    assert box(page.locator("#runs"))["y"] < PHONE["height"] / 2
    assert box(page.locator("[data-search]"))["right"] == pytest.approx(box(page.locator("#runs"))["right"], abs=1)
    script = Started(console, f"return #parallel{{{TWO}}}")
    badge = page.locator("#approvals-badge")
    expect(badge).to_be_visible()
    assert box(badge)["x"] > box(page.locator('nav a[href$="approvals"] svg'))["x"] + 10, "the picture is not covered"
    page.goto(console.address("approvals"))
    expect(page.locator(".question")).to_have_count(2)
    buttons = page.locator(".question").first.locator(".actions > .row:first-child > .button")
    assert len({box(button)["y"] for button in buttons.all()}) == 1
    page.get_by_role("button", name="Allow all 2").click()
    assert script.result().ok
    context.close()
