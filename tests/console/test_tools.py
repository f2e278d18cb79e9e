"""The pages of tools, knowledge and the doctor in a real browser."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from moonbox import Tool
from moonbox.config.mcp import ServerSettings
from moonbox.knowledge import Item, KnowledgeBase
from moonbox.mcp.upstreams.manager import Upstreams
from moonbox.mcp.upstreams.status import Timing
from moonbox.project.diagnosis import diagnose

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
    with running_console([got]) as console:
        page = visitor.enter(console, "tools/got")
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
        visitor.leave()


def test_mcp_servers_are_shown_and_tried_again(visitor: Visitor, tmp_path: Path) -> None:
    program = tmp_path / "server.py"
    program.write_text("import sys; sys.exit('no database <b>')")
    settings = ServerSettings(name="crm", command=sys.executable, args=(str(program),))
    with Upstreams([settings], timing=Timing(first_delay=300, max_delay=300)) as servers:
        servers.wait(60)
        with running_console([], servers=servers) as console:
            page = visitor.enter(console, "mcp")
            server = page.get_by_role("region", name="crm", exact=True)
            expect(server).to_contain_text("crm retrying")
            expect(server.locator("pre")).to_have_text("no database <b>")
            program.write_text("import sys; sys.exit('still none')")
            server.get_by_role("button", name="Retry now").click()
            expect(server.locator("pre")).to_have_text("still none")
            visitor.leave()


def test_a_thousand_tools_come_in_pages(visitor: Visitor) -> None:
    tools = [
        Tool.from_schema(name=f"tool_{n}", namespace=f"space{n % 7}", description="Do it.", call=dict)
        for n in range(1000)
    ]
    with running_console(tools) as many:
        page = visitor.enter(many, "tools")
        expect(page.locator(".tool-name")).to_have_count(200)
        expect(page.locator("main")).to_contain_text("page 1 of 5")
        page.get_by_role("link", name="Next").click()
        expect(page.locator("main")).to_contain_text("page 2 of 5")
        page.goto(many.address("playground"))
        page.locator("#editor textarea").press_sequentially("tools.space3.tool_9")
        expect(page.locator("#choices li").first).to_contain_text("tools.space3.tool_9")
        visitor.leave()


def test_no_tools_and_no_knowledge_say_what_to_do(visitor: Visitor) -> None:
    visitor.allowed = ("status of 404",)
    with running_console([]) as empty:
        page = visitor.enter(empty, "tools")
        expect(page.locator("main")).to_contain_text("There are no tools.")
        page.goto(empty.address("knowledge"))
        expect(page.locator("main")).to_contain_text("No knowledge base is configured.")
        page.goto(empty.address("tools/none"))
        expect(page.locator("main")).to_contain_text("There is no tool of this name.")
        visitor.leave()


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

    with running_console([], diagnose=diagnose) as console:
        page = visitor.enter(console, "doctor")
        expect(page.get_by_text("Each protection is being tried.")).to_be_visible()
        tried.set()
        expect(page.locator("main .head .state")).to_have_text("scripts are isolated")
        expect(page).to_have_url(console.address("doctor"))
        visitor.leave()


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
        "layers": [],
        "configuration": [],
        **changes,
    }


HOSTILE = "<img src=x onerror=alert(1)>{{7*7}}</td></table>\u202e"


STATES: dict[str, tuple[dict[str, Any], str, int]] = {
    "empty": ({}, "scripts are isolated", 4),
    "without isolation": (
        {"ok": False, "isolation": {"name": "process", "active": False, "detail": "no fork"}},
        "scripts are not isolated",
        4,
    ),
    "large": (
        {
            "ok": False,
            "configuration": [
                {"name": f"script{number}.lua", "active": False, "detail": "x" * 2000} for number in range(500)
            ],
        },
        "scripts are isolated, the configuration needs attention",
        504,
    ),
    "hostile": (
        {
            "ok": False,
            "machine": HOSTILE,
            "configuration": [{"name": HOSTILE, "active": False, "detail": HOSTILE}],
            "layers": [{"name": HOSTILE, "active": False, "detail": HOSTILE}],
        },
        "scripts are isolated, the configuration needs attention",
        6,
    ),
}
"""What differs from a usual diagnosis, the verdict, and the number of rows."""


def test_the_doctor_in_other_states(visitor: Visitor) -> None:
    changes: dict[str, Any] = {}
    with running_console([], diagnose=lambda: diagnosis(**changes)) as console:
        for state, (differs, verdict, rows) in STATES.items():
            changes = differs
            page = visitor.enter(console, "doctor")
            expect(page.locator("main .head .state")).to_have_text(verdict)
            expect(page.locator("main tbody tr")).to_have_count(rows)
            assert page.locator("main img").count() == 0
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{state}: it is too wide"
        expect(page.locator("main tbody tr").last).to_contain_text("<img src=x onerror=alert(1)>{{7*7}}</td>")
        visitor.leave()
