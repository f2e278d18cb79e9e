"""A failed run is corrected in its page, and its calls are taken back there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from moonbox import tool

from .serving import running_console
from .test_access import page_key, signed_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .conftest import Visitor
    from .serving import Console

WRONG = 'local a = tools.book{seat = "7a"}\nerror("typo")'
RIGHT = 'local a = tools.book{seat = "7a"}\nreturn a.id'
LONG = RIGHT + "\n-- " + "x" * 100_000
booked: list[str] = []


def cancel(id: str) -> None:
    booked.remove(id)


@tool(undo=cancel)
def book(seat: str) -> dict[str, str]:
    """Book a seat."""
    booked.append(f"b-{seat}")
    return {"id": f"b-{seat}"}


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with running_console(journal=tmp_path_factory.mktemp("correct") / "journal.db") as running:
        running.service.sandbox.toolbox.add(book)
        yield running


def test_a_failed_run_is_corrected_and_taken_back(visitor: Visitor, console: Console) -> None:
    journal, failed = console.service.sandbox.journal, console.service.sandbox.run(WRONG)
    page = visitor.enter(console, f"runs/{failed.id}")
    page.locator("#correct summary").click()
    page.get_by_label("Corrected script").fill(LONG)
    page.get_by_role("button", name="Continue with this script").click()
    expect(page.locator("#correct")).to_have_count(0)
    assert (journal.known(failed.id).state, journal.known(failed.id).source, booked) == ("ok", LONG, ["b-7a"])
    page.locator("#undo summary").click()
    expect(page.locator("#undo")).to_contain_text("call 1: book by undo_book {'id': 'b-7a'}")
    page.get_by_role("button", name="Take these calls back").click()
    expect(page.locator("#undo")).to_have_count(0)
    assert (journal.known(failed.id).undone, booked) == ("yes", [])


def test_a_script_that_differs_changes_nothing(console: Console) -> None:
    journal, failed = console.service.sandbox.journal, console.service.sandbox.run(WRONG)
    with signed_in(console) as browser:
        form = {"key": page_key(browser), "source": 'return tools.book{seat = "8b"}'}
        headers = {"origin": console.url}
        answer = browser.post(f"/console/runs/{failed.id}/patch", data=form, headers=headers)
        assert answer.status_code == 409 and "it differs at call 1" in answer.text
        assert journal.known(failed.id).state == "runtime"
        assert browser.post(f"/console/runs/{failed.id}/other", data=form, headers=headers).status_code == 404
        without = {"source": RIGHT}
        assert browser.post(f"/console/runs/{failed.id}/patch", data=without, headers=headers).status_code == 403
        found = browser.get("/journal", params={"tool": "book", "state": "failed", "limit": 1}).json()
        assert found["runs"][0]["id"] == failed.id
        assert browser.get("/journal", params={"state": "fialed"}).status_code == 400
    booked.clear()
