"""Tables in a real browser: rows of one line, whole values at the side, and widths that a person sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from .test_playground import run

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROWS = """local rows = {}
for n = 1, %d do
  local date, note = '2026-11-18T12:00:00.000Z', ('many words '):rep(n %% 9)
  rows[n] = {id = n, date = date, note = note, lines = 'a\\nb', deep = {1, {2}}}
end
return rows"""
ROW = ".grid tbody tr:not(.gap)"
HEIGHTS = f"place => [...new Set([...place.querySelectorAll('{ROW}')].map(row => row.offsetHeight))]"
"""In one step: rows that a locator had found may be replaced before they are measured."""


def inner(page: Page, work: str) -> Any:
    return page.get_by_role("region", name="Rows").evaluate(work)


@pytest.mark.parametrize("count", [50, 10_000])
def test_each_row_has_one_line(page: Page, count: int) -> None:
    run(page, ROWS % count)
    rows = page.locator(ROW)
    for _ in range(3):
        assert inner(page, HEIGHTS) == [28]
        inner(page, "place => { place.scrollTop += 999; place.scrollLeft = 0; }")
    inner(page, "place => { place.scrollTop = place.scrollHeight; }")
    expect(rows.last.locator("td").first).to_have_text(str(count))
    assert inner(page, HEIGHTS) == [28]
    # The last row stands at the end, and every number and date can be read.
    bottom = "place => place.getBoundingClientRect().top + place.clientTop + place.clientHeight"
    assert abs(rows.last.evaluate("row => row.getBoundingClientRect().bottom") - inner(page, bottom)) <= 1
    expect(page.locator(".virtual .grid:not(.fixed)")).to_have_count(0)
    for cell in (0, 1):
        assert rows.last.locator("td").nth(cell).evaluate("td => td.scrollWidth <= td.clientWidth")


def test_the_wheel_moves_by_what_it_says(page: Page) -> None:
    run(page, ROWS % 3000)
    page.get_by_role("region", name="Rows").hover()
    for turn in range(1, 5):
        page.mouse.wheel(0, 700)
        page.wait_for_function(f"() => document.querySelector('.rows').scrollTop === {700 * turn}")


def test_a_value_is_shown_whole_at_the_side(page: Page) -> None:
    run(page, ROWS % 300)
    row = page.locator(".grid tbody tr").nth(7)
    row.get_by_role("button", name="many words").click()
    side = page.get_by_role("complementary")
    expect(side).to_contain_text("many words " * 8)
    side.get_by_role("button", name="Copy").click()
    expect(page.locator(".toast")).to_contain_text("The value is in the clipboard.")
    assert page.evaluate("navigator.clipboard.readText()") == "many words " * 8
    page.keyboard.press("Escape")
    expect(side).to_have_count(0)
    expect(row.get_by_role("button", name="many words")).to_be_focused()
    row.get_by_role("button", name="[1,[2]]").click()
    expect(side.locator(".tree")).to_contain_text("[2]")
    side.get_by_role("button", name="Close").click()
    expect(side).to_have_count(0)


def test_columns_are_made_wider_and_narrower(page: Page) -> None:
    run(page, ROWS % 300)
    expect(page.locator(".grid.fixed")).to_be_visible()
    head = page.locator(".grid th").nth(1)
    width = head.evaluate("head => head.offsetWidth")
    others = page.locator(".grid th").nth(2).evaluate("head => head.offsetWidth")
    grip = head.locator(".grip").bounding_box()
    assert grip is not None
    page.mouse.move(grip["x"] + 4, grip["y"] + 5)
    page.mouse.down()
    page.mouse.move(grip["x"] + 104, grip["y"] + 5)
    page.mouse.up()
    assert head.evaluate("head => head.offsetWidth") == width + 100
    assert page.locator(".grid th").nth(2).evaluate("head => head.offsetWidth") == others
    head.get_by_role("button").press("Shift+ArrowLeft")
    assert head.evaluate("head => head.offsetWidth") == width + 60
    for _ in range(12):
        head.get_by_role("button").press("Shift+ArrowLeft")
    assert head.evaluate("head => head.offsetWidth") == 48
    # What has no room any more is shown at the side, too.
    cell = page.locator(".grid tbody tr").nth(3).locator("td").nth(1)
    cell.click()
    expect(page.get_by_role("complementary")).to_contain_text(cell.inner_text())
