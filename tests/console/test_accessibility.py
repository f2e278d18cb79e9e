"""Accessibility of every view, in light and dark, on a desk and on a phone: checked by axe-core."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from moonbox import Sandbox
from moonbox.project.diagnosis import diagnose
from moonbox.project.python_tools import load_tools
from tests.long import LONG

from .conftest import DESK, visiting
from .serving import TOOLS, running_console
from .test_approvals import Started

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

    from .conftest import Visitor
    from .serving import Console

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """print('hello')
local orders = tools.list_orders{customer = 'ada'}
pcall(tools.flaky, {key = 'x'})
tools.refund{order_id = 1, amount = 2}
return orders"""
TAGS = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
EXPERIMENTAL = ("label-content-name-mismatch", "scrollable-region-focusable")
"""Rules beside those of the tags."""
COLOURS: dict[str, Any] = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
"""The rules for which colours count: elements are the same in light and dark, and colours on a desk and a phone."""


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    journal = tmp_path_factory.mktemp("axe") / "journal.db"
    with running_console(TOOLS, script=SCRIPT, diagnose=lambda: diagnose().to_dict(), journal=journal) as running:
        for source in ("return {1, 2, 3}", "return nil + 1", "return tools.list_orders{customer = 'a'}"):
            running.service.sandbox.run(source)
        yield running


def audit(page: Page, where: str) -> None:
    """As the page is now: light and dark on a desk, then in a long run on a phone."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)
    problems = violations(page, f"{where}, light", TAGS)
    page.emulate_media(color_scheme="dark")
    problems += violations(page, f"{where}, dark", COLOURS)
    page.emulate_media(color_scheme="light")
    if LONG:
        page.set_viewport_size({"width": 390, "height": 844})
        problems += violations(page, f"{where}, phone", TAGS, colours=False)
        page.set_viewport_size(DESK)
    assert not problems, "\n".join(problems)


def violations(page: Page, where: str, rules: dict[str, Any], *, colours: bool = True) -> list[str]:
    options = {
        "runOnly": rules,
        "rules": {
            **{name: {"enabled": colours} for name in COLOURS["values"]},
            **({name: {"enabled": True} for name in EXPERIMENTAL} if rules is TAGS else {}),
        },
        "resultTypes": ["violations"],
        "selectors": False,
        "preload": False,
    }
    found = page.evaluate("async options => (await axe.run(options)).violations", options)
    return [
        f"{where}: {rule['id']}: {rule['help']}: {[node['html'][:160] for node in rule['nodes'][:3]]}" for rule in found
    ]


def test_every_view_passes_the_audit(page: Page, console: Console) -> None:
    audit(page, "playground, empty")
    page.click("#run")
    expect(page.locator(".question")).to_be_visible()
    audit(page, "playground, asking")
    page.goto(console.address("approvals"))
    expect(page.locator(".question")).to_be_visible()
    page.get_by_role("button", name="Edit…").click()
    audit(page, "approvals")
    page.get_by_role("button", name="Allow with these").click()
    expect(page.locator("#answered li")).to_have_count(1)
    page.go_back()
    expect(page.locator("#status")).to_contain_text("ok")
    page.locator(".tl-row").first.click()
    expect(page.locator(".tl-card")).to_be_visible()
    audit(page, "playground, done")
    for name in ("Plot", "Table"):
        page.get_by_role("button", name=name).click()
        audit(page, f"playground, {name}")
    runs = [summary.id for summary in console.trail.list(4)]
    views = (
        "runs",
        *(f"runs/{id}" for id in runs[: 3 if LONG else 1]),
        f"compare?a={runs[0]}&b={runs[1]}",
        "tools",
        "tools/refund",
        "mcp",
        "knowledge",
        "doctor?wait=1",
    )
    for view in views:
        page.goto(console.address(view))
        audit(page, view)
    page.goto(console.address(f"runs/{runs[0]}?at=2"))
    page.get_by_text("Change this answer and go on from here").click()
    audit(page, "a run at its second call")
    page.goto(console.address(f"compare?a={runs[0]}&b={runs[1]}"))
    page.locator("#first button").click()
    expect(page.locator("tr.whole .tree")).to_have_count(2)
    audit(page, "comparison, a call as a whole")


def test_questions_pass_the_audit(page: Page, console: Console) -> None:
    page.goto(console.address("approvals"))
    calls = [f"function() return tools.refund{{order_id = {n}, amount = {n}}} end" for n in range(3)]
    script = Started(console, f"return #parallel{{{', '.join(calls)}}}")
    cards = page.locator(".question")
    expect(cards).to_have_count(3)
    cards.first.get_by_role("button", name="Always…").click()
    page.get_by_label("Rule for amount").first.select_option("at most")
    audit(page, "questions of one run, with a rule")
    page.get_by_role("button", name="Allow all 3").click()
    assert script.result().value == 3
    page.locator("#answered summary").first.click()
    audit(page, "answered")
    box = console.service.sandbox
    options: Any = {"approve_script": True, "min_workers": 0, **console.bench.hooks}
    with Sandbox(box.toolbox, **options) as asking:
        ran = threading.Thread(target=lambda: asking.run(SCRIPT), daemon=True)
        ran.start()
        page.get_by_role("button", name="Edit…").click()
        audit(page, "a script")
        page.get_by_role("button", name="Deny…").click()
        page.keyboard.press("Enter")
        ran.join(30)


def test_the_shipped_examples_pass_the_audit(visitor: Visitor) -> None:
    """What `make console` shows."""
    tools = load_tools([str(ROOT / "examples" / name) for name in ("demo.py", "payments.py")])
    script = (ROOT / "examples" / "console.lua").read_text(encoding="utf-8")
    with visiting(visitor, "playground", tools, script=script) as (console, page):
        audit(page, "the example")
        page.click("#run")
        page.get_by_role("button", name="Allow", exact=True).click()
        expect(page.locator("#status")).to_contain_text("ok")
        page.locator(".tl-row").nth(2).click()
        expect(page.locator(".tl-card")).to_be_visible()
        audit(page, "the example, done")
        for view in ("runs", f"runs/{console.trail.list(1)[0].id}", "approvals", "durable", "tools/get_expenses"):
            page.goto(console.address(view))
            audit(page, f"the example, {view}")


def test_the_sign_in_page_passes_the_audit(visitor: Visitor) -> None:
    visitor.allowed = ("status of 401",)
    with running_console([], token="a-token-of-some-length") as guarded:
        visitor.home = guarded.url
        page = visitor.page
        page.goto(guarded.address("runs"))
        audit(page, "sign in")
        page.get_by_label("The server's token").fill("a-token-of-some-length")
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator("h1")).to_have_text("Runs")
        visitor.leave()


def test_titles_are_in_one_place_and_tables_fit_a_phone(visitor: Visitor, console: Console) -> None:
    middle = "h1 => Math.round((h1.getBoundingClientRect().top + h1.getBoundingClientRect().bottom) / 2)"
    page = visitor.enter(console)
    run = console.trail.list(1)[0].id
    places = {}
    for view in (
        "playground",
        "runs",
        f"runs/{run}",
        "approvals",
        "tools",
        "tools/refund",
        "knowledge",
        "doctor?wait=1",
    ):
        page.goto(console.address(view))
        places[view] = page.locator("h1").evaluate(middle)
    assert max(places.values()) - min(places.values()) <= 1, places
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.get_by_text("Data of strangers")).to_be_visible()
    for view in ("doctor?wait=1", f"compare?a={run}&b={run}"):
        page.goto(console.address(view))
        wide = "boxes => boxes.filter(box => box.scrollWidth > box.clientWidth).map(box => box.ariaLabel)"
        assert page.locator(".scroll").evaluate_all(wide) == [], view
    page.goto(console.address("playground"))
    line = "tabs => tabs.map(tab => tab.clientHeight / parseFloat(getComputedStyle(tab).fontSize))"
    assert max(page.get_by_role("tab").evaluate_all(line)) < 3, "a name has one line"


def test_focus_is_always_visible(visitor: Visitor, console: Console) -> None:
    for view in ("playground", "runs", "tools/refund"):
        page = visitor.enter(console, view)
        for _ in range(12):
            page.keyboard.press("Tab")
            seen = page.evaluate(
                """() => {
                  const element = document.activeElement, style = getComputedStyle(element);
                  const ring = parseFloat(style.outlineWidth) > 0 && style.outlineStyle !== "none";
                  return ring || element.closest(".editor") !== null || element === document.body;
                }"""
            )
            assert seen, page.evaluate("document.activeElement.outerHTML")
