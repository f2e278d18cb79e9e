"""The form on a run's page that makes a tool of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from moonbox.scripts.configured import ToolsSettings
from moonbox.scripts.library import ScriptLibrary

from .serving import running_console
from .test_access import client, page_key, signed_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .conftest import Visitor
    from .serving import Console

TOTALS = """local who = "ann"
local sum = 0
for _, order in ipairs(tools.list_orders{customer = who}) do sum = sum + order.total end
return sum"""


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    """A console of a project that has a folder for saved scripts."""
    with running_console() as running:
        box = running.service.sandbox
        with (
            box.sibling() as own,
            ScriptLibrary(ToolsSettings(saved=tmp_path / "saved"), own, tools=box.toolbox) as library,
        ):
            box.toolbox.follow(library.toolbox)
            running.service.scripts = library
            yield running


def test_a_run_becomes_a_tool_by_a_form_on_its_page(visitor: Visitor, console: Console, tmp_path: Path) -> None:
    box = console.service.sandbox
    page = visitor.enter(console, f"runs/{box.run(TOTALS).id}")
    page.get_by_text("Save as a tool").click()
    page.get_by_label("Name").fill("order_total")
    page.get_by_label("What it does").fill("Sums the orders of a customer.")
    page.get_by_label("Parameters").fill("who")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page).to_have_url(console.address("tools/order_total"))
    expect(page.locator("main")).to_contain_text("Sums the orders of a customer.")
    assert 'uses = { "list_orders" }' in (tmp_path / "saved" / "order_total.lua").read_text()
    assert box.run("return tools.order_total('bob')").value == 75
    page.goto(console.address(f"runs/{box.run('error(1)').id}"))
    expect(page.get_by_text("Save as a tool")).to_have_count(0)
    visitor.leave()


def test_what_cannot_be_saved_says_why_and_strangers_save_nothing(console: Console, tmp_path: Path) -> None:
    place, origin = f"/console/runs/{console.service.sandbox.run(TOTALS).id}", {"origin": console.url}
    form = {"name": "refund", "description": "x"}
    with signed_in(console) as browser:
        form["key"] = page_key(browser)
        taken = browser.post(place, data=form, headers=origin)
        assert (taken.status_code, "there is a tool &#39;refund&#39; already" in taken.text) == (409, True)
        assert browser.post("/console/runs/none", data=form, headers=origin).status_code == 404
        assert browser.post(place, data={**form, "key": "0" * 64}, headers=origin).status_code == 403
        assert browser.post(place, data=form).status_code == 403, "not from a page of the console"
    with client(console) as stranger:
        assert stranger.post(place, data=form, headers=origin).status_code == 403
    assert not (tmp_path / "saved").exists()
