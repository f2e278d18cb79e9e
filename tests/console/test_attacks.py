"""Attacks on the pages: whatever scripts, tools, models and documents wrote stays text, in every view.

The views themselves are visited by test_views.py, with what is made here; the rest is what a person does in them.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from moonbox import Run, Tool, ToolError
from moonbox.audit.records import Call, CallError
from moonbox.errors import ScriptError
from moonbox.knowledge import Item, KnowledgeBase
from moonbox.values import pack
from tests.waiting import wait_until

from .serving import running_console

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

    from .conftest import Visitor
    from .serving import Console

HITS = 12
"""How many documents a page of search results has."""
UNTOUCHED = r"""() => {
  const wrong = [];
  if (window.hacked !== undefined) wrong.push("a script ran");
  if (document.getElementById("hacked")) wrong.push("markup was parsed");
  if (document.querySelector("iframe, object, embed, base")) wrong.push("a frame was made");
  for (const link of document.querySelectorAll("a[href]"))
    if (!["http:", "https:"].includes(new URL(link.href).protocol)) wrong.push("a link to " + link.href);
  if (/\b49\b/.test(document.title)) wrong.push("a template ran");
  if (({}).hacked !== undefined) wrong.push("a prototype was changed");
  if (document.documentElement.scrollWidth > innerWidth + 1) wrong.push("the page is wider than the window");
  return wrong;
}"""


def payload(path: Path) -> str:
    first, _, text = path.read_text(encoding="utf-8").partition("\n")
    assert first.startswith("# "), f"{path.name}: the first line says what it tries"
    return text


PAYLOADS = {path.stem: payload(path) for path in sorted(Path(__file__).with_name("attacks").glob("*"))}
EVERYTHING = "\n".join(PAYLOADS.values())


def intact(page: Page) -> None:
    assert page.evaluate(UNTOUCHED) == []


def readable(page: Page, *names: str) -> None:
    """The beginning of every payload is on the page, as text."""
    text = _printable(page.evaluate("document.body.textContent"))
    missing = [name for name in names or PAYLOADS if _printable(PAYLOADS[name].splitlines()[0])[:40] not in text]
    assert not missing


def _printable(text: str) -> str:
    """Without spaces and all that is not ASCII; documents lose the colours of terminals, so that none are compared."""
    return re.sub(r"[^!-~]+", "", re.sub(r"\x1b\[\d*m", "", text))


def unfold(page: Page) -> None:
    """Open everything that can be opened, level by level."""
    for _ in range(4):
        page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
        page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")


def hostile_tools() -> list[Tool]:
    """For each payload three tools, and three that have all of them; and some with schemas that are none."""
    tools = [tool for name, text in PAYLOADS.items() for tool in _tools(f"_{name}", [text], text)]
    broken: list[dict[str, Any]] = [{"properties": 5}, {"$defs": [], "$ref": "#/$defs/x"}, {"items": {"$ref": 5}}]
    for number, returns in enumerate(broken):
        made: dict[str, Any] = {"description": "", "parameters": {"type": "object"}, "returns": returns}
        tools.append(Tool.from_schema(name=f"broken_{number}", call=lambda _: None, **made))
    return [*tools, *_tools("", list(PAYLOADS.values()), EVERYTHING)]


def _tools(suffix: str, texts: list[str], all_of_them: str) -> list[Tool]:
    def fail(arguments: dict[str, Any]) -> Any:
        raise ToolError(all_of_them, code=all_of_them[:100], data={text: text for text in texts})

    def echo(arguments: dict[str, Any]) -> Any:
        return {"value": all_of_them, **{text: [text] for text in texts}}

    given = {text[:300]: {"type": "string", "description": text, "default": text} for text in texts}
    returned = {text[:300]: {"type": "string", "description": text} for text in texts}
    made: dict[str, Any] = {
        "description": all_of_them,
        "parameters": {"type": "object", "properties": given},
        "returns": {"type": "object", "properties": returned},
    }
    return [
        Tool.from_schema(name=f"echo{suffix}", call=echo, **made),
        Tool.from_schema(name=f"fail{suffix}", call=fail, **made),
        Tool.from_schema(name=f"ask{suffix}", call=lambda arguments: all_of_them, policy="approve", **made),
    ]


def hostile_runs() -> list[Run]:
    """A run for each payload; the last two, of which one failed, have all of them."""
    texts = list(PAYLOADS.values())
    runs = [_run(number, [text], f"{text}\nreturn 1") for number, text in enumerate(texts)]
    runs.append(_run(len(runs), texts, f"{EVERYTHING}\nreturn 1", failed=True))
    runs.append(_run(len(runs), texts, "\n".join(["return 1", *reversed(texts)])))
    return runs


def _run(number: int, texts: list[str], source: str, *, failed: bool = False) -> Run:
    calls = [
        call
        for at, text in enumerate(texts)
        for call in (
            Call(2 * at + 1, text, {text: text}, "ok", packed=pack([{text: text, "url": text}]), started=1000.0),
            Call(2 * at + 2, text, {text: text}, "error", error=CallError(text, text), started=1000.2, approval=text),
        )
    ]
    text = "\n".join(texts)
    return Run(
        id=f"{number + 1:032x}",
        source=source,
        language="lua",
        values=tuple(value for text in texts for value in (text, {text: text}, [{text: text}, {text: 1}])),
        output=text,
        calls=tuple(calls),
        started=1000.0 + number,
        repl="r",
        error=ScriptError("runtime", text, line=1, hint=text, traceback=text) if failed else None,
    )


def hostile_diagnosis() -> dict[str, Any]:
    checks = [{"name": text[:200], "active": False, "detail": text} for text in PAYLOADS.values()]
    one = {"name": EVERYTHING[:200], "active": True, "detail": EVERYTHING}
    return {
        "ok": False,
        **dict.fromkeys(("moonbox", "python", "machine"), EVERYTHING),
        **dict.fromkeys(("isolation", "fork", "interrupt", "native", "chores"), one),
        "layers": checks,
        "configuration": checks,
    }


@contextlib.contextmanager
def hostile_knowledge(folder: Path) -> Iterator[KnowledgeBase]:
    """As many documents as a search finds at once, and all payloads in them."""

    class Source:
        """Documents that are hostile in all that they have."""

        def scan(self, known: Any) -> Any:
            for number in range(min(HITS, len(PAYLOADS))):
                text = "needle " + " ".join(list(PAYLOADS.values())[number::HITS])
                url = f"https://example.invalid/{text[:100]}" if number else "https://[broken"
                yield Item(source_id=str(number), title=text, body=text, source_url=url, author=text[:100])

    with KnowledgeBase(folder / "knowledge.db", sources={"hostile": Source()}) as base:
        base.sync("hostile")
        yield base


def lua_string(text: str) -> str:
    return '"' + "".join(f"\\{byte:03d}" for byte in text.encode()) + '"'


TABLE = "{" + ", ".join(f"{{{lua_string(name)}, {lua_string(text)}}}" for name, text in PAYLOADS.items()) + "}"
"""All payloads with their names, as a script writes them."""


@pytest.fixture(scope="module")
def console() -> Iterator[Console]:
    with running_console(hostile_tools()) as running:
        yield running


def run(page: Page, source: str) -> None:
    page.locator("#editor textarea").fill(source)
    page.click("#run")


def test_what_a_script_prints_calls_and_returns_stays_text(page: Page) -> None:
    run(
        page,
        f"local result = {{}}\nfor index, each in ipairs({TABLE}) do\n  local name, text = each[1], each[2]\n"
        "  print(text)\n  local _, problem = pcall(tools['fail_' .. name], {})\n"
        "  result[index] = {text = text, [text] = text, echo = tools['echo_' .. name]{}, problem = tostring(problem),"
        " rows = {{[text] = text}}}\nend\nreturn result",
    )
    expect(page.locator("#status")).to_contain_text("ok")
    unfold(page)
    readable(page)
    body = page.locator("#timeline .tl-body")
    for number, name in enumerate(PAYLOADS):
        body.evaluate("(body, top) => { body.scrollTop = top; }", 2 * number * 24)  # which draws the rows around it
        page.locator(f'#timeline .tl-row[data-index="{2 * number + 1}"]').hover()
        expect(page.locator(".tl-card h3")).to_have_text(f"{2 * number + 1}. fail_{name}")
        readable(page, name)
    page.get_by_role("tab", name="Model sees").click()
    intact(page)


def test_what_a_script_fails_with_stays_text(page: Page) -> None:
    for name, text in PAYLOADS.items():
        run(page, f"error({lua_string(text)})")
        expect(page.locator("#status")).to_contain_text("runtime")
        readable(page, name)
        intact(page)


def test_what_a_tool_fails_with_stays_text(visitor: Visitor, console: Console) -> None:
    visitor.allowed = ("status of 502",)
    page = visitor.enter(console, "tools/fail")
    page.click("#send")
    expect(page.locator("#result .bad-text")).to_be_visible()
    readable(page)
    intact(page)


def test_what_is_to_be_approved_and_why_it_is_denied_stays_text(page: Page, console: Console) -> None:
    run(page, f"return parallel.map({TABLE}, function(each) return tools['ask_' .. each[1]]{{}} end)")
    for view, place in (("", "#questions"), ("approvals", "#inbox")):
        if view:
            page.goto(console.address(view))
        expect(page.locator(f"{place} .question")).to_have_count(len(PAYLOADS))
        unfold(page)
        readable(page)
        intact(page)
    first = page.locator("#inbox .question").first
    first.get_by_role("button", name="Deny…").click()
    first.get_by_label("Reason for the script").fill('<img src=x onerror="window.hacked=1">')
    first.get_by_role("button", name="Deny", exact=True).click()
    expect(page.locator("#answered li", has_text="denied by console: <img")).to_be_visible()
    wait_until(lambda: not console.bench.approvals.pending())
    intact(page)
