"""Many tabs of one browser: one connection for live events, whichever tab has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect

from moonbox.runs.decisions import Decision
from tests.waiting import wait_until

from .conftest import visiting
from .test_playground import run, write

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from .conftest import Visitor


def live(page: Page) -> None:
    expect(page.locator("html")).to_have_attribute("data-live", "live")


def test_twelve_tabs_share_one_connection(visitor: Visitor) -> None:
    with visiting(visitor, "playground") as (console, first):
        live(first)
        tabs = [first]
        for number in range(11):
            tab = first.context.new_page()
            tab.goto(console.address("playground" if number == 10 else "approvals"))
            live(tab)
            tabs.append(tab)
        streams = console.bench.events
        wait_until(lambda: streams.watching == 1)
        last = tabs[-1]
        for tab in (first, last):  # each playground follows a session of its own
            write(tab, f"print('tab {tabs.index(tab)}') return tools.refund{{order_id = 1, amount = 1}}")
            tab.click("#run")
        for tab in (first, last):
            expect(tab.locator("#output")).to_have_text(f"tab {tabs.index(tab)}")
            expect(tab.locator("#questions .question")).to_have_count(1)
        for tab in tabs:
            expect(tab.locator("#approvals-badge")).to_have_text("2")
        assert streams.watching == 1
        first.goto("about:blank")  # the tab with the connection goes: another one listens
        last.locator("#questions").get_by_role("button", name="Allow").click()
        expect(last.locator("#values")).to_contain_text("refunded 1.00")
        for tab in tabs[1:]:
            expect(tab.locator("#approvals-badge")).to_have_text("1")
        run(last, "print('again') return 'still live'")
        expect(last.locator("#values")).to_contain_text("still live")
        expect(last.locator("#output")).to_have_text("again\n")
        wait_until(lambda: streams.watching == 1)
        for tab in tabs[1:]:
            tab.close()
        for question in console.bench.approvals.pending():
            console.bench.approvals.answer(question.id, Decision("deny"))
