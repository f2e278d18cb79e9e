"""The pages of tools, knowledge and the doctor in a real browser."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from moonbox import Tool
from moonbox.config.mcp import ServerSettings
from moonbox.console.pages import passage
from moonbox.knowledge import Item, KnowledgeBase
from moonbox.mcp.upstreams.login import LoginStore
from moonbox.mcp.upstreams.manager import Upstreams
from moonbox.mcp.upstreams.status import Timing
from moonbox.project.diagnosis import diagnose
from tests.long import only_long
from tests.mcp.test_mcp_login import login_server
from tests.waiting import wait_until

from .conftest import visiting
from .serving import TOOLS, running_console

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .conftest import Visitor
    from .serving import Console


class Listed:
    """A source of a knowledge base."""

    def __init__(self, count: int) -> None:
        self._count = count

    def scan(self, known: Any) -> Any:
        for number in range(self._count):
            body = f"# Travel\n\nDocument {number} explains how travel expenses are paid back.\n\n{'More text. ' * 50}"
            yield Item(
                source_id=str(number), title=f"Expenses {number}", body=body, source_url="https://example.invalid/"
            )


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    path = tmp_path_factory.mktemp("knowledge") / "knowledge.db"
    with KnowledgeBase(path, sources={"handbook": Listed(300)}) as base:
        base.sync("handbook")
        with running_console(TOOLS, knowledge=base, diagnose=lambda: diagnose().to_dict()) as running:
            running.service.sandbox.run("for n = 1, 3 do tools.list_orders{customer = 'ada'} end")
            yield running


def test_tools_are_listed_with_their_counts_and_latencies(visitor: Visitor, console: Console) -> None:
    page = visitor.enter(console, "tools")
    expect(page.locator(".tool-name")).to_have_count(4)
    row = page.locator("li", has_text="list_orders")
    expect(row).to_contain_text("3 calls")
    expect(row).to_contain_text("median")
    expect(row).to_contain_text("read only")
    expect(page.locator("li", has_text="refund")).to_contain_text("approve")


def test_tools_are_searched_as_scripts_do(visitor: Visitor, console: Console) -> None:
    page = visitor.enter(console, "tools")
    page.keyboard.press("/")
    page.keyboard.type("orders of a customer")
    page.keyboard.press("Enter")
    expect(page.locator(".tool-name").first).to_have_text("list_orders")
    page.goto(console.address("tools?q=zzzz"))
    expect(page.locator("main")).to_contain_text("No tool matches")


def test_a_tool_is_called_from_its_form(visitor: Visitor, console: Console) -> None:
    page = visitor.enter(console, "tools/list_orders")
    expect(page.get_by_role("region", name="Schemas")).to_contain_text("customer")
    page.get_by_label("customer").fill("grace")
    page.get_by_label("limit").fill("2")
    page.get_by_role("button", name="Call").click()
    expect(page.locator("#result tbody tr")).to_have_count(2)
    page.get_by_role("link", name="Open the record").click()
    expect(page.locator(".tl-row")).to_have_count(1)
    page.goto(console.address("tools/refund"))
    page.get_by_label("order_id").fill("1")
    page.get_by_role("button", name="Call").click()
    assert page.get_by_label("amount").evaluate("field => !field.validity.valid")
    expect(page.locator("#result")).to_be_empty()
    page.get_by_label("amount").fill("2")
    page.get_by_role("button", name="Call").click()
    wait_until(lambda: bool(console.bench.approvals.pending()))
    page.goto(console.address("approvals"))
    expect(page.get_by_role("button", name="Allow")).to_be_visible()
    expect(page.get_by_role("button", name="Always…")).to_have_count(0)
    page.locator(".question").press("a")
    expect(page.locator("#answered li").first).to_contain_text("refund allowed by console")


def test_the_shape_of_results_is_learned(visitor: Visitor, console: Console) -> None:
    console.service.sandbox.run("return tools.look_up{key = 'a'}")
    page = visitor.enter(console, "tools/look_up")
    expect(page.get_by_role("region", name="Schemas")).to_contain_text("Learned from its results")
    expect(page.get_by_role("region", name="Schemas")).to_contain_text("found: integer[]")


def test_the_form_and_the_table_follow_the_schema(visitor: Visitor) -> None:
    schema = {
        "type": "object",
        "properties": {
            "who": {"$ref": "#/$defs/Who"},
            "limit": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 9}, {"type": "null"}], "default": 3},
            "tags": {"type": "array", "items": {"type": "string"}, "description": "Any of them."},
        },
        "required": ["who"],
        "$defs": {"Who": {"enum": ["ann", "bob"], "description": "A person."}},
    }
    got = Tool.from_schema(name="got", description="", parameters=schema, call=lambda arguments: arguments)
    with visiting(visitor, "tools/got", [got]) as (_, page):
        rows = page.locator(".parameters tbody tr")
        expect(rows.nth(0)).to_have_text('who"ann" | "bob"requiredA person.')
        expect(rows.nth(1)).to_have_text("limitinteger≥ 1, ≤ 9default 3")
        expect(rows.nth(2)).to_have_text("tagsstring[]optionalAny of them.")
        expect(page.locator("[data-schema]").first).to_be_hidden()
        page.get_by_label("who").select_option("bob")
        page.get_by_label("limit").fill("99")
        page.get_by_role("button", name="Call").click()
        assert page.get_by_label("limit").evaluate("field => field.validity.rangeOverflow")
        page.get_by_label("limit").fill("4")
        page.get_by_role("button", name="Call").click()
        expect(page.locator("#result")).to_contain_text("limit4whobob")


def test_mcp_servers_are_shown_and_tried_again(visitor: Visitor, tmp_path: Path) -> None:
    program = tmp_path / "server.py"
    program.write_text("import sys; sys.exit('no database <b>')")
    settings = ServerSettings(name="crm", command=sys.executable, args=(str(program),))
    with Upstreams([settings], timing=Timing(first_delay=300, max_delay=300)) as servers:
        servers.wait(60)
        with visiting(visitor, "mcp", [], servers=servers) as (_, page):
            server = page.get_by_role("region", name="crm", exact=True)
            expect(server).to_contain_text("crm retrying")
            expect(server.locator("pre")).to_have_text("no database <b>")
            program.write_text("import sys; sys.exit('still none')")
            server.get_by_role("button", name="Retry now").click()
            expect(server.locator("pre")).to_have_text("still none")


def test_logging_in_at_an_mcp_server(visitor: Visitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The button begins a login at a real authorization server, whose page leads back to moonbox."""
    monkeypatch.setenv("MOONBOX_KEYRING", "off")
    options: Any = {"timing": Timing(first_delay=300, max_delay=300), "logins": LoginStore(tmp_path)}
    with login_server(3600) as url, Upstreams([ServerSettings(name="acme", url=url)], **options) as servers:
        servers.wait(60)
        with visiting(visitor, "mcp", [], servers=servers) as (_, page):
            server = page.get_by_role("region", name="acme", exact=True)
            expect(server).to_contain_text("it requires a login")
            server.get_by_role("button", name="Log in").click()
            with page.expect_popup() as opened:
                server.get_by_role("link", name="Open the login page").click()
            expect(opened.value.locator("body")).to_contain_text("You are logged in.")
            expect(server).to_contain_text("acme ready")
            expect(server).to_contain_text("renewed by itself")
            expect(server.get_by_role("link", name="Open the login page")).to_have_count(0)


@only_long
def test_a_thousand_tools_come_in_pages(visitor: Visitor) -> None:
    tools = [
        Tool.from_schema(name=f"tool_{n}", namespace=f"space{n % 7}", description="Do it.", call=dict)
        for n in range(1000)
    ]
    with visiting(visitor, "tools", tools) as (many, page):
        expect(page.locator(".tool-name")).to_have_count(200)
        expect(page.locator("main")).to_contain_text("page 1 of 5")
        page.get_by_role("link", name="Next").click()
        expect(page.locator("main")).to_contain_text("page 2 of 5")
        page.goto(many.address("playground"))
        page.locator("#editor textarea").press_sequentially("tools.space3.tool_9")
        expect(page.locator("#choices li").first).to_contain_text("tools.space3.tool_9")


def test_what_there_is_not_says_what_to_do(visitor: Visitor) -> None:
    visitor.allowed = ("status of 404",)
    with visiting(visitor, "knowledge", []) as (empty, page):
        expect(page.locator("main")).to_contain_text("No knowledge base is configured.")
        page.goto(empty.address("tools/none"))
        expect(page.locator("main")).to_contain_text("There is no tool of this name.")


def test_knowledge_is_searched_with_marked_words(visitor: Visitor, console: Console) -> None:
    page = visitor.enter(console, "knowledge")
    expect(page.locator("main")).to_contain_text("300 documents")
    expect(page.get_by_role("region", name="Sources").first).to_contain_text("handbook")
    page.get_by_label("Search the documents").fill("travel expenses")
    page.get_by_role("button", name="Search").click()
    expect(page.locator(".hit")).to_have_count(12)
    expect(page.locator(".hit mark").first).to_be_visible()
    page.locator(".hit summary").first.click()
    expect(page.locator(".hit").first).to_contain_text("paid back")
    page.goto(console.address("knowledge?q=zzzzqqq"))
    expect(page.locator("main")).to_contain_text("Nothing found")
    page.goto(console.address("knowledge?q=travel&mode=semantic"))
    expect(page.get_by_role("alert")).to_be_visible()


def test_passages_have_no_marks_of_markdown() -> None:
    found = passage("# Refunds ## By \ue000hand\ue001 ```python pay(`a`) **now** C# #1")
    assert found == [(False, "Refunds By "), (True, "hand"), (False, "  pay(a) now C# #1")]
    found = passage("See [\ue000refunds\ue001](\ue000refunds\ue001.md#by) | | a | b||c | |---|:-:| | [x](y…")
    assert found == [(False, "See "), (True, "refunds"), (False, " · a · b||c · x")]


def test_the_doctor_says_what_each_layer_means(visitor: Visitor, console: Console) -> None:
    page = visitor.enter(console, "doctor")
    jail = page.get_by_role("region", name="The workers' jail").first
    expect(jail).to_contain_text("seccomp")
    expect(jail).to_contain_text("no files, no network, no programs")
    for row in jail.locator("tbody tr").all():
        assert row.locator("td").nth(2).inner_text().strip(), row.inner_text()


def test_the_doctor_comes_at_once_and_shows_the_rest_when_it_knows_it(visitor: Visitor) -> None:
    tried = threading.Event()

    def diagnose() -> dict[str, Any]:
        assert tried.wait(60)
        return diagnosis()

    with visiting(visitor, "doctor", [], diagnose=diagnose) as (console, page):
        expect(page.get_by_text("Each protection is being tried.")).to_be_visible()
        tried.set()
        expect(page.locator("main .head .state")).to_have_text("scripts are isolated")
        expect(page).to_have_url(console.address("doctor"))


def diagnosis(**changes: Any) -> dict[str, Any]:
    """What `moonbox doctor --json` says, in short."""

    def check(name: str) -> dict[str, Any]:
        return {"name": name, "active": True, "detail": "it works"}

    return {
        "ok": True,
        "moonbox": "1",
        "python": "CPython",
        "machine": "Linux",
        "isolation": check("process"),
        "fork": check("fork"),
        "interrupt": check("interrupt"),
        "native": check("native"),
        "chores": check("chores"),
        "layers": [],
        "configuration": [],
        **changes,
    }


def test_the_doctor_paints_only_real_problems(visitor: Visitor) -> None:
    """Other states are in test_views."""
    layers = [
        {"name": "seccomp", "active": True, "detail": "it works"},
        {"name": "landlock", "active": False, "detail": "the kernel has none"},
        {"name": "namespaces", "active": False, "detail": "not needed beside seccomp"},
        {"name": "cgroup", "active": False, "detail": "not asked for"},
    ]
    isolation = {"name": "process", "active": False, "detail": "no fork"}
    found = diagnosis(ok=False, isolation=isolation, layers=layers)
    with visiting(visitor, "doctor?wait=1", [], diagnose=lambda: found) as (console, page):
        expect(page.locator("main .head .state.bad")).to_have_text("scripts are not isolated")
        expect(page.locator("tr:has(.state.warn) td:nth-child(2)")).to_have_text(["process", "landlock"])
        plain = page.locator("tbody .state:not(.good, .warn, .bad)")
        expect(plain).to_have_text(["not needed", "not needed"])
        amber, others = (
            place.first.evaluate("each => getComputedStyle(each).color")
            for place in (page.locator("tbody .state.warn"), plain)
        )
        assert amber != others
        found = diagnosis(ok=False, configuration=[{"name": "a.lua", "active": False, "detail": "no"}])
        page.goto(console.address("doctor?wait=1"))
        verdict = "scripts are isolated, the configuration needs attention"
        expect(page.locator("main .head .state.bad")).to_have_text(verdict)


def test_a_call_that_needs_approval_is_answered_on_its_page(visitor: Visitor, console: Console) -> None:
    page = visitor.enter(console, "tools/refund")
    page.get_by_label("order_id").fill("3")
    page.get_by_label("amount").fill("2")
    page.get_by_role("button", name="Call", exact=True).click()
    expect(page.locator("#asked .question")).to_contain_text("refund waits for your approval")
    page.goto(console.address("runs"))
    row = page.locator("#runs tbody tr").first
    expect(row).to_contain_text("waits for you")
    expect(row).to_contain_text("direct")
    page.reload()
    expect(row.get_by_role("link", name="waits for you")).to_be_visible()
    page.go_back()
    expect(page.get_by_label("order_id", exact=True)).to_have_value("3")
    expect(page.get_by_label("amount", exact=True)).to_have_value("2")
    page.locator("#asked").get_by_role("button", name="Allow").click()
    page.locator("#result").get_by_role("link", name="Open the record of this call").click()
    expect(page.locator("#values")).to_contain_text("refunded 2.00 for order 3")
    page.goto(console.address("tools/refund"))
    page.get_by_role("button", name="Call", exact=True).click()
    page.locator("#asked").get_by_role("button", name="Allow").click()
    expect(page.locator("#result")).to_contain_text("refunded 2.00 for order 3")
    assert not console.bench.going()
