"""Every view in a real browser with a normal, an empty, a large and a hostile case, on a desk and on a phone."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from moonbox import Run, Tool
from moonbox.audit.records import Call, Usage
from moonbox.audit.sinks import MemorySink
from moonbox.console.pages import PAGES
from moonbox.durable.store import open_journal
from moonbox.errors import UsageError
from moonbox.knowledge import Item, KnowledgeBase
from moonbox.mcp.upstreams.status import Status
from moonbox.runs.decisions import Decision
from moonbox.values import pack
from tests.long import LONG
from tests.waiting import wait_until

from .serving import TOOLS, running_console
from .test_access import page_key, signed_in
from .test_approvals import Started
from .test_attacks import (
    EVERYTHING,
    PAYLOADS,
    TABLE,
    hostile_diagnosis,
    hostile_knowledge,
    hostile_runs,
    hostile_tools,
    intact,
    lua_string,
    readable,
    unfold,
)
from .test_tools import diagnosis

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .conftest import Visitor
    from .serving import Console

HOSTILE = PAYLOADS["script_tag"]
ADDRESSES = {
    "/playground": "playground",
    "/playground/{session}": "playground/{session}",
    "/runs": "runs",
    "/runs/{id}": "runs/{run}",
    "/compare": "compare?a={run}&b={other}",
    "/approvals": "approvals",
    "/durable": "durable",
    "/tools": "tools",
    "/tools/{path:path}": "tools/{tool}",
    "/mcp": "mcp",
    "/knowledge": "knowledge?q={word}",
    "/doctor": "doctor",
}
EXPECTED = {
    "normal": {
        "/playground": ("#status", "ready"),
        "/playground/{session}": ("#values tbody tr", "ada"),
        "/runs": ("#runs tbody tr", "return tools.list_orders"),
        "/runs/{id}": (".tl-note", "1 call"),
        "/compare": (".diff ins", "another script"),
        "/approvals": (".question", "refund waits for your approval"),
        "/durable": ("main tbody tr", "ada"),
        "/tools": (".tool-name", "list_orders"),
        "/tools/{path:path}": ("#fields", "customer"),
        "/mcp": (".server", "crm ready"),
        "/knowledge": (".hit mark", "travel"),
        "/doctor": ("main", "scripts are isolated"),
    },
    "empty": {
        "/playground": ("#timeline", "Each call of a tool becomes a bar here."),
        "/playground/{session}": ("#values", "no value returned"),
        "/runs": ("#nothing", "There are no runs yet."),
        "/runs/{id}": ("#values", "The script returned no value."),
        "/compare": ("main", "Neither run made a call."),
        "/approvals": ("#nothing", "Nothing waits for approval."),
        "/durable": ("main", "This server keeps no journal"),
        "/tools": ("main", "There are no tools."),
        "/tools/{path:path}": ("main", "This tool has no parameters."),
        "/mcp": ("main", "No MCP servers are configured."),
        "/knowledge": ("main", "Nothing found for"),
        "/doctor": ("main", "scripts are isolated"),
    },
    "large": {
        "/playground": ("#status", "ready"),
        "/playground/{session}": ("#values", "20,000 rows"),
        "/runs": ("#runs tbody tr:nth-child(50)", "-- run"),
        "/runs/{id}": (".tl-note", "2,000 calls"),
        "/compare": ("main", "more calls are the same or not shown"),
        "/approvals": (".question:nth-child(40)", "refund waits for your approval"),
        "/durable": ("main tbody tr:nth-child(100)", "lua"),
        "/tools": ("main", "page 1 of 5"),
        "/tools/{path:path}": ("#fields .field:nth-child(200)", "field_199"),
        "/mcp": (".server:nth-child(100)", "server99"),
        "/knowledge": (".hit", "Show the document"),
        "/doctor": ("main tbody tr:nth-child(500)", "script499.lua"),
    },
    "hostile": {
        "/playground": ("#status", "ready"),
        "/playground/{session}": ("#output", HOSTILE[:20]),
        "/runs": ("#runs tbody tr", HOSTILE[:20]),
        "/runs/{id}": ("pre.source", HOSTILE[:20]),
        "/compare": ("main", HOSTILE[:20]),
        "/approvals": (".question", HOSTILE[:20]),
        "/durable": ("main tbody tr", HOSTILE[:20]),
        "/tools": (".tool-list", HOSTILE[:20]),
        "/tools/{path:path}": ("main", HOSTILE[:20]),
        "/mcp": (".server", HOSTILE[:20]),
        "/knowledge": (".hit", HOSTILE[:20]),
        "/doctor": ("main", HOSTILE[:20]),
    },
}


def serving(*statuses: Status) -> Any:
    """MCP servers in these states."""
    return SimpleNamespace(statuses=lambda: statuses)


@dataclass(frozen=True, slots=True)
class World:
    """A console, and what stands in the addresses of its pages; `bare` has not even that."""

    console: Console
    session: str
    run: str
    other: str
    tool: str
    word: str
    bare: Console | None = None

    def console_of(self, view: str) -> Console:
        return self.console if self.bare is None or "{" in ADDRESSES[view] else self.bare

    def address(self, view: str) -> str:
        names = {name: getattr(self, name) for name in ("session", "run", "other", "tool", "word")}
        return ADDRESSES[view].format(**names)


def test_every_view_has_its_four_cases() -> None:
    assert set(ADDRESSES) == set(PAGES)
    assert {kind: set(views) for kind, views in EXPECTED.items()} == {kind: set(PAGES) for kind in WORLDS}


@pytest.fixture(scope="module", params=["normal", "empty", "large", "hostile"] if LONG else ["normal", "hostile"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def world(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with WORLDS[kind](tmp_path_factory.mktemp(kind)) as made:
        yield made


@pytest.mark.parametrize("view", ADDRESSES)
def test_a_view(world: World, kind: str, view: str, visitor: Visitor) -> None:
    page = visitor.enter(world.console_of(view), world.address(view))
    where, text = EXPECTED[kind][view]
    expect(page.locator(where).filter(has_text=text).first).to_be_visible()
    unfold(page)
    if kind == "hostile" and view != "/playground":
        readable(page)
    intact(page)
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator(where).filter(has_text=text).first).to_be_visible()
    intact(page)


@contextlib.contextmanager
def normal(folder: Path) -> Iterator[World]:
    with (
        documents(folder, 20, "All about travel.") as base,
        running(TOOLS, base, diagnosis(), serving(Status("crm", "ready", tools=3)), journal(folder, "ada")) as console,
        asking(console, "return tools.refund{order_id = 1, amount = 2}", 1),
    ):
        session = ran(console, "return tools.list_orders{customer = 'ada'}")
        latest = console.trail.list(1)[0]
        console.trail.write(record(0, source="-- another script\nreturn 1"))
        yield World(console, session, latest.id, record(0).id, "list_orders", "travel")


@contextlib.contextmanager
def empty(folder: Path) -> Iterator[World]:
    nothing = Tool.from_schema(name="nothing", description="", call=dict)
    with (
        documents(folder, 0, "") as base,
        running([nothing], base, diagnosis()) as console,
        running([], base, diagnosis()) as bare,
    ):
        session = ran(console, "")
        latest = console.trail.list(1)[0].id
        yield World(console, session, latest, latest, "nothing", "anything", bare)


@contextlib.contextmanager
def large(folder: Path) -> Iterator[World]:
    fields = {f"field_{number}": {"type": "string", "description": "x" * 200} for number in range(200)}
    wide = Tool.from_schema(
        name="wide", description="y" * 5000, parameters={"type": "object", "properties": fields}, call=dict
    )
    many = [
        Tool.from_schema(name=f"tool_{n}", namespace=f"space{n % 7}", description="Do it.", call=dict)
        for n in range(1000 - len(TOOLS) - 1)
    ]
    scripts = [{"name": f"script{number}.lua", "active": False, "detail": "x" * 300} for number in range(500)]
    with (
        documents(folder, 30, "About travel. " * 3000) as base,
        running(
            [*TOOLS, wide, *many],
            base,
            diagnosis(ok=False, configuration=scripts),
            serving(*(Status(f"server{n}", "failed", reason="r" * 500, said="said\n" * 200) for n in range(100))),
            journal(folder, *("x" * 200 for _ in range(300))),
        ) as console,
    ):
        for number in range(300):
            console.trail.write(record(number))
        calls = "parallel.map(ids, function(n) return tools.refund{order_id = n, amount = n} end)"
        source = f"local ids = {{}} for n = 1, 40 do ids[n] = n end return {calls}"
        with asking(console, source, 40):
            rows = "local rows = {} for n = 1, 20000 do rows[n] = {id = n, name = 'row ' .. n} end return rows"
            session = ran(console, rows)
            huge = record(1000, source="\n".join(f"local v{n % 150} = {n}" for n in range(3000)), calls=2000)
            console.trail.write(huge)
            yield World(console, session, huge.id, record(1).id, "wide", "travel")


@contextlib.contextmanager
def hostile(folder: Path) -> Iterator[World]:
    runs = hostile_runs()
    servers = serving(*(Status(text, "failed", text, text, problems=(text,), said=text) for text in PAYLOADS.values()))
    kept = journal(folder, *PAYLOADS.values())
    with (
        hostile_knowledge(folder) as base,
        running(hostile_tools(), base, hostile_diagnosis(), servers, kept) as console,
    ):
        for each in runs:
            console.trail.write(each)
        call = f"parallel.map({TABLE}, function(each) return tools['ask_' .. each[1]]{{}} end)"
        with asking(console, f"-- {HOSTILE}\nreturn {call}", len(PAYLOADS)):
            session = ran(console, f"print({lua_string(EVERYTHING)}) return tools.echo{{}}")
            yield World(console, session, runs[-2].id, runs[-1].id, "echo", "needle")


WORLDS = {"normal": normal, "empty": empty, "large": large, "hostile": hostile}


@contextlib.contextmanager
def running(
    tools: Any,
    base: KnowledgeBase,
    found: dict[str, Any],
    servers: Any = None,
    journal: Path | None = None,
) -> Iterator[Console]:
    with running_console(
        tools, trail=MemorySink(), knowledge=base, diagnose=lambda: found, servers=servers, journal=journal
    ) as console:
        yield console


def journal(folder: Path, *users: str) -> Path:
    """A journal with Repls of these users."""
    place = folder / "journal.db"
    kept = open_journal(place)
    for number, user in enumerate(users):
        kept.create(f"repl-{number}", "lua", {"user": user})
    kept.close()
    return place


@contextlib.contextmanager
def documents(folder: Path, count: int, text: str) -> Iterator[KnowledgeBase]:
    class Source:
        """Documents that are all alike."""

        def scan(self, known: Any) -> Any:
            for number in range(count):
                yield Item(source_id=str(number), title=f"needle {number} {text[:200]}", body=f"needle {text}")

    with KnowledgeBase(folder / "knowledge.db", sources={"notes": Source()}) as base:
        base.sync("notes")
        yield base


@contextlib.contextmanager
def asking(console: Console, source: str, questions: int) -> Iterator[None]:
    """While a script waits for so many answers."""
    script = Started(console, source)
    wait_until(lambda: len(console.bench.approvals.pending()) == questions)
    yield
    for question in console.bench.approvals.pending():
        with contextlib.suppress(UsageError):  # the first denial ends the script, and its other questions with it
            console.bench.approvals.answer(question.id, Decision("deny"))
    script.result()


def ran(console: Console, source: str) -> str:
    """A session in which a script has run."""
    with signed_in(console) as client:
        client.headers["x-moonbox-key"] = page_key(client)
        session = str(client.post("/sessions", json={}).json()["id"])
        client.post(f"/sessions/{session}/run", json={"source_code": source})
        wait_until(lambda: client.get(f"/sessions/{session}").json()["state"] == "idle")
    return session


def record(number: int, source: str = "", calls: int = 3) -> Run:
    made = tuple(
        Call(
            index,
            "list_orders",
            {"n": index},
            "ok",
            packed=pack([index] * 50),
            started=1000 + index / 100,
            duration=0.005,
        )
        for index in range(1, calls + 1)
    )
    return Run(
        id=f"{number + 1:032x}",
        source=source or f"-- run {number}\n-- run {number}: look\nreturn {number} -- run",
        values=([{"id": row, "text": "z" * 100} for row in range(5 * calls)],),
        output="printed\n" * 2 * calls,
        calls=made,
        usage=Usage(wall=calls / 100, calls=calls),
        started=1000.0 + number,
        repl="r",
        number=number + 1,
    )
