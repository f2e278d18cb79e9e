"""The newcomer's way with the command itself: what `make console` runs, in a browser, and Ctrl-C at the end."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.programs import program

from ..cli.test_console import EXAMPLES, started

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page

    from .conftest import Visitor

ROOT = EXAMPLES.parent
TOOLS = [f"--tools={EXAMPLES / name}" for name in ("demo.py", "payments.py")]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@contextlib.contextmanager
def made(folder: Path, visitor: Visitor, **environment: str) -> Iterator[tuple[subprocess.Popen[str], Page]]:
    """What `make console` starts, and the page that it opens."""
    told = subprocess.run(
        ["make", "--no-print-directory", "-n", "-o", ".venv/core", "console", "CONSOLE=--no-browser --port 0"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))},
        capture_output=True,
        text=True,
        check=True,
    )
    _, command, *arguments = shlex.split(told.stdout.replace("\\\n", " ").splitlines()[-1])
    arguments = [str(ROOT / each) if each.startswith("examples/") else each for each in arguments]
    (folder / ".venv").mkdir()  # where its journal is
    with started(folder, command, *arguments, env=environment) as (process, address):
        visitor.home = address.partition("/console/")[0]
        visitor.page.goto(address)
        yield process, visitor.page


def run(page: Page) -> None:
    page.get_by_role("button", name="Run", exact=True).click()


def interrupt(process: subprocess.Popen[str], visitor: Visitor) -> None:
    visitor.allowed = ("Failed to load resource", "ERR_")  # the page looks for its server
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    rest = process.stdout.read()
    assert (process.wait(), "Traceback" in rest) == (0, False), rest
    visitor.leave()


def test_run_answer_change_and_stop(visitor: Visitor, tmp_path: Path) -> None:
    with made(tmp_path, visitor) as (process, page):
        run(page)
        question = page.locator("#questions .question")
        expect(question).to_contain_text("pay_back waits for your approval")
        question.get_by_role("button", name="Allow").click()
        expect(page.locator("#status.good")).to_contain_text("7 calls")
        expect(page.locator(".tl-row")).to_have_count(7)
        editor = page.locator("#editor textarea")
        editor.fill(editor.input_value().replace("{1, 2, 3, 4, 5, 6}", "{1, 2, 3}"))
        run(page)
        question.get_by_role("button", name="Deny…").click()
        page.get_by_label("Reason for the script").fill("too much")
        page.keyboard.press("Enter")
        expect(page.locator("#status.bad")).to_contain_text("4 calls")
        expect(page.locator(".tl-row")).to_have_count(4)
        expect(page.locator("#playground")).to_have_attribute("data-state", "idle")
        interrupt(process, visitor)


def test_it_can_show_mcp_servers(visitor: Visitor, tmp_path: Path) -> None:
    """The environment that it makes for itself has the package for them."""
    assert "\nmcp==" in (ROOT / "requirements.lock").read_text(encoding="utf-8")
    (tmp_path / "moonbox.toml").write_text('[mcp.servers.files]\ncommand = "no-such-program"\n')
    with made(tmp_path, visitor, MOONBOX_TRUST="1") as (process, page):
        page.get_by_role("link", name="MCP").click()
        expect(page.locator(".server")).to_contain_text("there is no program 'no-such-program'")
        interrupt(process, visitor)


def test_a_failed_run_of_the_demo_is_walked_and_goes_on_with_another_answer(visitor: Visitor, tmp_path: Path) -> None:
    with made(tmp_path, visitor) as (process, page):
        run(page)
        page.get_by_role("button", name="Deny…").click()
        page.get_by_label("Reason for the script").fill("too much")
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Open the record").click()
        page.get_by_label("Call", exact=True).press("ArrowLeft")
        moment = page.get_by_role("region", name="At this call")
        expect(moment).to_contain_text("At call 7: pay_back")
        expect(moment).to_contain_text("a person declined this call: too much")
        id = page.url.rpartition("/")[2].partition("?")[0]
        moment.get_by_text("Change this answer and go on from here").click()
        moment.get_by_label("Kind of answer").select_option("value")
        moment.get_by_label("Answer", exact=True).fill('"paid later"')
        moment.get_by_role("button", name="Go on, live").click()
        expect(moment.locator(".fork")).to_contain_text("paid later")
        moment.get_by_role("link", name="Compare it with this one").click()
        expect(page.get_by_role("region", name="Calls").first).to_contain_text("The first difference: call 7")
        interrupt(process, visitor)
    replay = program("-m", "moonbox", "replay", id, "--at", "7", "--journal", ".venv/console.db", *TOOLS)
    options: Any = {"cwd": tmp_path, "env": {**os.environ, "MOONBOX_HOME": str(tmp_path)}, "text": True, "check": True}
    shown = subprocess.run([*replay, "--show", "locals"], stdout=subprocess.PIPE, **options).stdout
    assert "pay_back" in shown and "totals" in shown
    answer = ["--answer", '7="paid on Friday"', "--dry"]
    assert "paid on Friday" in subprocess.run([*replay, *answer], stdout=subprocess.PIPE, **options).stdout


@pytest.mark.parametrize("script", ["while true do end", "return tools.pay_back{employee_id = 1, cents = 1}"])
def test_stop_while_a_script_runs_or_waits(script: str, visitor: Visitor, tmp_path: Path) -> None:
    with made(tmp_path, visitor) as (process, page):
        page.locator("#editor textarea").fill(script)
        run(page)
        expect(page.locator("#playground")).to_have_attribute("data-state", "running")
        interrupt(process, visitor)
