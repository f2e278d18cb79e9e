"""Time travel in a run's page: each call with the script's line and variables, and another answer to go on with."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from playwright.sync_api import expect

from moonbox import Sandbox
from moonbox.audit.sinks import MemorySink
from moonbox.runs.events import Begin, CallsAsked

from .conftest import visiting
from .serving import TOOLS, running_console
from .test_access import client, page_key, signed_in
from .test_approvals import Started
from .test_attacks import EVERYTHING, intact, lua_string

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page

    from .conftest import Visitor
    from .serving import Console

SCRIPT = """local total = 0
local function add(name)
  for _, order in ipairs(tools.list_orders{customer = name}) do
    total = total + order.total
  end
  print(name, total)
end
for _, name in ipairs{'ada', 'bob'} do add(name) end
found = tools.flaky{key = 'x'}
return found .. ': ' .. tools.refund{order_id = 1, amount = total}"""


ORDER = ["arguments", "order_id", "amount"]
"""The names in the tree of a call of `refund`: the alphabet would have another order."""


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with running_console(journal=tmp_path_factory.mktemp("walk") / "journal.db") as running:
        yield running


def recorded(console: Console, source: str = SCRIPT) -> str:
    return console.service.sandbox.run(source).id


def fork(page: Page, kind: str, answer: str, how: str) -> None:
    page.get_by_label("Kind of answer").select_option(kind)
    page.get_by_label("Answer", exact=True).fill(answer)
    page.get_by_role("button", name=how).click()


def test_a_failed_run_is_walked(visitor: Visitor, console: Console) -> None:
    page = visitor.enter(console, f"runs/{recorded(console)}")
    moment = page.get_by_role("region", name="At this call")
    expect(page.locator("#walk output")).to_have_text("as it ended")
    expect(moment).to_be_hidden()
    page.get_by_label("Call", exact=True).press("ArrowLeft")
    expect(moment).to_contain_text("At call 3: flaky")
    expect(page.locator("#L9")).to_have_class(re.compile("now"))
    page.keyboard.press("p")
    expect(moment).to_contain_text("At call 2: list_orders")
    expect(page.locator(".line.now")).to_contain_text("tools.list_orders")
    expect(moment).to_contain_text("add · line 3")
    expect(moment.locator(".tree", has_text="name").first).to_contain_text("bob")
    expect(moment.get_by_role("region", name="Printed so far")).to_have_text("ada\t75.0\n")
    expect(page.locator(".tl-row.later")).to_have_attribute("data-index", "3")
    expect(page).to_have_url(re.compile(r"\?at=2$"))
    page.reload()
    expect(moment).to_contain_text("At call 2: list_orders")
    page.locator(".tl-row").first.click()
    expect(moment).to_contain_text("At call 1: list_orders")
    for _ in range(3):
        page.keyboard.press("n")
    expect(page.locator("#walk output")).to_have_text("as it ended")
    expect(moment).to_be_hidden()
    expect(page.locator(".line.now")).to_have_count(0)


def test_an_answer_is_changed_and_the_run_goes_on(visitor: Visitor, console: Console) -> None:
    id = recorded(console)
    page = visitor.enter(console, f"runs/{id}?at=3")
    page.get_by_text("Change this answer and go on from here").click()
    expect(page.get_by_label("Kind of answer")).to_have_value("error")
    expect(page.get_by_label("Answer", exact=True)).to_have_value("no luck with x")
    form = page.locator(".fork")
    fork(page, "value", '"K1', "Go on, dry")
    expect(form.get_by_role("alert")).to_contain_text("The answer is not valid JSON")
    fork(page, "value", '"K1"', "Go on, dry")
    expect(form).to_contain_text("It stops at call 4: nothing is recorded that answers refund with these arguments.")
    expect(form.locator(".tree .inside").last).to_have_text("order_id1amount150.0")  # in the order of the schema
    fork(page, "error", "out of luck", "Go on, dry")
    expect(form).to_contain_text("failed: tool")
    expect(form).to_contain_text("out of luck")
    runs = len(list(console.trail.runs()))
    fork(page, "value", '"K1"', "Go on, live")
    form.locator(".question").get_by_role("button", name="Allow").click()
    expect(form).to_contain_text("valueK1: refunded 150.00 for order 1")
    assert len(list(console.trail.runs())) == runs + 1, "a dry fork is kept nowhere"
    form.get_by_role("link", name="Compare it with this one").click()
    expect(page).to_have_url(re.compile(rf"/console/compare\?a={id}&b=\w+$"))


def test_arguments_stand_in_the_order_of_the_schema(visitor: Visitor, console: Console) -> None:
    page, ids = visitor.enter(console, "approvals"), []
    for n in (1, 2):
        script = Started(console, f"return tools.refund{{order_id = {n}, amount = {n}}}")
        page.get_by_role("button", name="Allow", exact=True).click()
        ids.append(script.result().id)
    page.goto(console.address(f"runs/{ids[0]}"))
    page.locator(".tl-row").hover()
    expect(page.locator(".tl-card .key").locator("visible=true")).to_have_text([*ORDER, "result"])
    page.get_by_label("Call", exact=True).press("ArrowLeft")
    expect(page.locator("#moment .tree").first.locator(".key")).to_have_text(ORDER)
    page.goto(console.address(f"compare?a={ids[0]}&b={ids[1]}"))
    page.locator("#first button").click()
    expect(page.locator("tr.whole .tree").first).to_contain_text('{"order_id":1,"amount":1}')


def test_what_scripts_hold_stays_text(visitor: Visitor, console: Console) -> None:
    text = lua_string(EVERYTHING)
    source = f"text = {text} local here = {{[{text}] = {text}}} print(text) return tools.look_up{{key = text}}, here"
    page = visitor.enter(console, f"runs/{recorded(console, source)}?at=1")
    expect(page.locator("#moment")).to_contain_text("At call 1: look_up")
    intact(page)


def test_the_call_at_which_a_record_ends_says_so(visitor: Visitor, tmp_path: Path) -> None:
    """A run that a crash cut off while it called, and one of another version, in which scripts had a further global."""
    trail, journal = MemorySink(), tmp_path / "journal.db"
    with Sandbox(TOOLS, audit=trail, journal=journal, globals={"key": "a"}) as box:
        changed = box.run("tools.look_up{key = 'b'} return tools.look_up{key = key}")
        run = box.run("tools.look_up{key = 'b'} return tools.look_up{key = 'c'}")
        records = [record for event in box.journal.read(run.repl) for record in event]
        asked = [place for place, record in enumerate(records) if isinstance(record, CallsAsked)]
        cut = [replace(each, run="cut") if isinstance(each, Begin) else each for each in records[: asked[1] + 1]]
        box.journal.append(box.journal.create("cutoff", "lua", {}), 0, "cut", cut)
    trail.write(replace(run, id="cut"))
    with visiting(visitor, "runs/cut?at=2", TOOLS, trail=trail, journal=journal) as (console, page):
        moment = page.get_by_role("region", name="At this call")
        expect(moment).to_contain_text("The record has no answer to this call.")
        page.get_by_text("Change this answer and go on from here").click()
        fork(page, "value", '"K1"', "Go on, dry")
        expect(page.locator(".fork")).to_contain_text("valueK1")
        visitor.allowed = ("status of 409",)
        page.goto(console.address(f"runs/{changed.id}?at=2"))
        expect(moment).to_contain_text("it can be followed up to call 1 of 2")
        page.keyboard.press("p")
        expect(moment).to_contain_text("At call 1: look_up")
        expect(moment).to_contain_text("Locals")


def test_what_is_not_recorded_says_so(console: Console) -> None:
    with Sandbox(console.service.sandbox.toolbox, audit=console.trail, min_workers=0) as elsewhere:
        unrecorded = elsewhere.run("return tools.look_up{key = 'a'}").id
    id = recorded(console)
    with signed_in(console) as browser:
        headers = {"x-moonbox-key": page_key(browser), "origin": console.url}
        assert 'id="walk"' in browser.get(f"/console/runs/{id}").text
        assert 'id="walk"' not in browser.get(f"/console/runs/{unrecorded}").text
        for place in (f"{unrecorded}/moments/1", f"{id}/moments/9", f"{id}/moments/0"):
            assert browser.get(f"/runs/{place}").status_code == 409, place
        answer = browser.get(f"/runs/{id}/moments/9").json()["error"]
        assert answer == {"code": "unavailable", "message": f"run '{id}' made 3 calls"}
        for body, status in (
            ({}, 400),
            ({"at": True}, 400),
            ({"at": 3, "answers": [{"id": 3, "kind": "none"}]}, 400),
            ({"at": 3, "dry": 1}, 400),
            ({"at": 3, "answers": [{"id": 1, "kind": "value"}]}, 409),
            ({"at": 9}, 409),
        ):
            assert browser.post(f"/runs/{id}/forks", json=body, headers=headers).status_code == status, body
        assert browser.post(f"/runs/{id}/forks", json={"at": 3, "dry": True}).status_code == 401, "without the key"
    with client(console) as stranger:
        assert stranger.get(f"/runs/{id}/moments/1").status_code == 401
        assert stranger.post(f"/runs/{id}/forks", json={"at": 3}).status_code == 401
