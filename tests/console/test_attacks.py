"""Attacks on the pages: whatever scripts, tools, models and documents wrote stays text, in every view."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from moonbox import Run, Tool, ToolError
from moonbox.audit.records import Call, CallError
from moonbox.audit.sinks import MemorySink
from moonbox.errors import ScriptError
from moonbox.knowledge import Item, KnowledgeBase

from .serving import running_console, wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from .conftest import Visitor

CORPUS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(Path(__file__).with_name("attacks").glob("*"))}
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


def payload(name: str) -> str:
    first, _, text = CORPUS[name].partition("\n")
    assert first.startswith("# "), f"{name}: the first line says what it tries"
    return text


def intact(page: Page) -> None:
    assert page.evaluate(UNTOUCHED) == []


def unfold(page: Page) -> None:
    """Open everything that can be opened, level by level."""
    for _ in range(4):
        page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
        page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")


def hostile_tools(text: str) -> list[Tool]:
    def fail(arguments: dict[str, Any]) -> Any:
        raise ToolError(text, code=text[:100] or "x", data={text: text})

    parameters = {
        "type": "object",
        "properties": {text[:300]: {"type": "string", "description": text, "default": text}},
    }
    returns = {"type": "object", "properties": {text[:300]: {"type": "string", "description": text}}}
    made: dict[str, Any] = {"description": text, "parameters": parameters, "returns": returns}
    return [
        Tool.from_schema(name="echo", call=lambda arguments: {"value": text, text: [text]}, **made),
        Tool.from_schema(name="fail", call=fail, **made),
        Tool.from_schema(name="ask", call=lambda arguments: text, policy="approve", **made),
    ]


def hostile_run(text: str, number: int) -> Run:
    calls = (
        Call(1, text, {text: text}, "ok", result=[{text: text, "url": text}], started=1000.0, duration=0.1),
        Call(2, text, {text: text}, "error", error=CallError(text, text), started=1000.2, duration=0.1, approval=text),
    )
    return Run(
        id=f"{number:032x}",
        source=f"{text}\nreturn 1",
        language="lua",
        values=(text, {text: text}, [{text: text}, {text: 1}]),
        output=text,
        calls=calls,
        started=1000.0 + number,
        repl="r",
        error=ScriptError("runtime", text, line=1, hint=text, traceback=text) if number % 2 else None,
    )


@pytest.mark.parametrize("name", CORPUS)
def test_hostile_text_stays_text(name: str, visitor: Visitor, tmp_path: Path) -> None:
    text = payload(name)
    visitor.allowed = ("status of 502",)  # the tool that fails
    trail = MemorySink()
    for number in (1, 2):
        trail.write(hostile_run(text, number))
    diagnosis = _hostile_diagnosis(text)
    with (
        _hostile_knowledge(tmp_path, text) as base,
        running_console(hostile_tools(text), trail=trail, knowledge=base, diagnose=lambda: diagnosis) as console,
    ):
        page = visitor.enter(console)
        _playground(page, text)
        _pages(page, console)
        _approvals(page, console)


def _playground(page: Page, text: str) -> None:
    literal = _lua_string(text)
    page.locator("#editor textarea").fill(
        f"local text = {literal}\nprint(text)\nlocal _, problem = pcall(tools.fail, {{}})\n"
        "local rows = {{[text] = text}}\n"
        "return {text = text, [text] = text, echo = tools.echo{}, problem = tostring(problem), rows = rows}"
    )
    page.click("#run")
    expect(page.locator("#status")).to_contain_text("ok")
    unfold(page)
    page.locator("#timeline .tl-row").first.hover()
    expect(page.locator(".tl-card")).to_be_visible()
    page.get_by_role("tab", name="Model sees").click()
    intact(page)
    page.locator("#editor textarea").fill(f"error({literal})")
    page.click("#run")
    expect(page.locator("#status")).to_contain_text("runtime")
    intact(page)


def _pages(page: Page, console: Any) -> None:
    first, second = f"{1:032x}", f"{2:032x}"
    views = (
        "runs",
        f"runs/{first}",
        f"runs/{second}",
        f"compare?a={first}&b={second}",
        "tools",
        "tools/echo",
        "knowledge?q=needle",
        "doctor?wait=1",
    )
    for view in views:
        page.goto(console.address(view))
        unfold(page)
        intact(page)
    page.goto(console.address("tools/fail"))
    page.click("#send")
    expect(page.locator("#result .bad-text")).to_be_visible()
    intact(page)


def _approvals(page: Page, console: Any) -> None:
    page.goto(console.address("playground"))
    page.locator("#editor textarea").fill("return tools.ask{}")
    page.click("#run")
    expect(page.locator("#questions .question")).to_be_visible()
    intact(page)
    page.goto(console.address("approvals"))
    expect(page.locator("#inbox .question")).to_be_visible()
    intact(page)
    page.locator("#inbox").get_by_role("button", name="Deny…").click()
    page.get_by_label("Reason for the script").fill('<img src=x onerror="window.hacked=1">')
    page.locator("#inbox").get_by_role("button", name="Deny", exact=True).click()
    expect(page.locator("#answered li").first).to_contain_text("denied: <img")
    wait_until(lambda: not console.bench.approvals.pending())
    intact(page)


def _lua_string(text: str) -> str:
    return '"' + "".join(f"\\{byte:03d}" for byte in text.encode()) + '"'


def _hostile_diagnosis(text: str) -> dict[str, Any]:
    check = {"name": text[:200], "active": True, "detail": text}
    return {
        "ok": False,
        "moonbox": text[:100],
        "python": text[:100],
        "machine": text[:100],
        **dict.fromkeys(("isolation", "fork", "interrupt", "native"), check),
        "layers": [check],
        "configuration": [check],
    }


def _hostile_knowledge(folder: Path, text: str) -> KnowledgeBase:
    class Source:
        """One document, all of it hostile."""

        def scan(self, known: Any) -> Any:
            url = f"https://example.invalid/{text[:100]}"
            yield Item(source_id="1", title=f"needle {text}", body=f"needle {text}", source_url=url, author=text[:100])

    base = KnowledgeBase(folder / "knowledge.db", sources={"hostile": Source()})
    base.sync("hostile")
    return base
