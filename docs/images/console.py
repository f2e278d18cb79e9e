"""Makes the pictures of the console: `make screenshots`. It needs Chromium and the packages of the group `dev`."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars"]
DESK = {"viewport": {"width": 1280, "height": 880}}
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "has_touch": True, "is_mobile": True}
SCRIPT = (ROOT / "examples" / "console.lua").read_text(encoding="utf-8")
KNOWLEDGE = """[knowledge]
path = "knowledge.db"

[knowledge.sources.docs]
connector = "filesystem"
path = "docs"
"""


def main() -> None:
    browser_path = os.environ.get("MOONBOX_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with console() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=ARGUMENTS)
        context = browser.new_context(**DESK, color_scheme="light")
        page = context.new_page()
        page.goto(address)
        state = context.storage_state()
        story(page)
        tour(page)
        take_all(browser, page.url.split("/console/")[0], state)
        browser.close()


def story(page: Page) -> None:
    """The newcomer's way: run, answer, change, run again."""
    page.click("#run")
    page.wait_for_selector(".question")
    save(page, "approval")
    page.get_by_role("button", name="Allow", exact=False).first.click()
    page.wait_for_selector("#status.good")
    save(page, "playground")
    page.locator("#editor textarea").fill("local a = 1\nreturn tools.get_expense{employee_id = a}")
    page.wait_for_selector(".gutter .number.error")
    save(page, "check")
    for source in ("return nothing.here", "return {1, 2, 3}", "return tools.get_expenses{employee_id = 3}[1]"):
        page.locator("#editor textarea").fill(source)
        page.click("#run")
        page.wait_for_selector("#status.good, #status.bad")
        page.wait_for_selector('#playground[data-state="idle"]')


def tour(page: Page) -> None:
    """The pictures of the tour: a run, a question that is denied, and the failed run that is walked and goes on."""
    page.locator("#editor textarea").fill(SCRIPT)
    page.click("#run")
    page.wait_for_selector(".question")
    save(page, "tour-1-asked")
    page.get_by_role("button", name="Deny…").click()
    page.get_by_label("Reason for the script").fill("not before Friday")
    page.keyboard.press("Enter")
    page.wait_for_selector("#status.bad")
    save(page, "tour-2-failed")
    page.goto(page.url.split("/playground")[0] + "/runs")
    page.locator("td.title a").first.click()
    page.get_by_label("Call", exact=True).press("ArrowLeft")
    page.get_by_text("Change this answer and go on from here").wait_for()
    save(page, "tour-3-walked")
    page.get_by_text("Change this answer and go on from here").click()
    page.get_by_label("Kind of answer").select_option("value")
    page.get_by_label("Answer", exact=True).fill('"paid, on Friday"')
    page.get_by_role("button", name="Go on, live").click()
    page.get_by_role("link", name="Compare it with this one").wait_for()
    page.locator(".fork").scroll_into_view_if_needed()
    page.evaluate("scrollBy(0, document.querySelector('.fork').getBoundingClientRect().top - 420)")
    save(page, "tour-4-other-answer")
    page.get_by_role("link", name="Compare it with this one").click()
    page.wait_for_selector("#compared .tree")
    save(page, "tour-5-compared")


def take_all(browser: Browser, home: str, state: Any) -> None:
    """Every view in light and dark, and the main ones on a phone."""
    for look in ("light", "dark"):
        with window(browser, state, color_scheme=look, **DESK) as page:
            take(page, home, "runs", f"runs-{look}")
            page.locator("td.title a").last.click()
            page.wait_for_selector(".tl-row")
            save(page, f"run-{look}")
            page.get_by_label("Call", exact=True).press("ArrowLeft")
            page.wait_for_selector(".fork")
            save(page, f"moment-{look}")
            take(page, home, "tools", f"tools-{look}")
            take(page, home, "knowledge?q=approval", f"knowledge-{look}")
            take(page, home, "doctor?wait=1", f"doctor-{look}")
            if look == "dark":
                take(page, home, "playground", "playground-dark")
    with window(browser, state, color_scheme="dark", **PHONE) as page:
        page.goto(f"{home}/console/playground")
        page.locator("#editor textarea").fill(SCRIPT)
        page.click("#run")
        page.wait_for_selector(".question")
        page.goto(f"{home}/console/approvals")
        page.wait_for_selector(".question")
        save(page, "phone-approvals")
        page.get_by_role("button", name="Allow", exact=False).first.click()
        page.wait_for_selector(".question", state="detached")
        take(page, home, "runs", "phone-runs")
        page.locator("#runs a").first.click()
        page.wait_for_selector(".tl-row")
        save(page, "phone-run")


def take(page: Page, home: str, view: str, name: str) -> None:
    page.goto(f"{home}/console/{view}")
    page.wait_for_selector('html[data-live="live"]')
    save(page, name)


def save(page: Page, name: str) -> None:
    page.mouse.move(0, 0)
    page.wait_for_timeout(250)  # fonts and layout
    page.screenshot(path=HERE / f"console-{name}.png")


@contextlib.contextmanager
def window(browser: Browser, state: Any, **options: Any) -> Iterator[Page]:
    context = browser.new_context(storage_state=state, **options)
    yield context.new_page()
    context.close()


@contextlib.contextmanager
def console() -> Iterator[str]:
    """The address of a console with the demo's tools and these docs as its knowledge base."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "moonbox.toml").write_text(KNOWLEDGE, encoding="utf-8")
        shutil.copytree(ROOT / "docs", Path(folder) / "docs", ignore=shutil.ignore_patterns("images", "gen"))
        environment = {**os.environ, "MOONBOX_HOME": folder, "MOONBOX_TRUST": "1"}
        moonbox = [sys.executable, "-m", "moonbox.cli"]
        subprocess.run([*moonbox, "sync"], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        examples = ROOT / "examples"
        tools = [f"--tools={examples / name}" for name in ("demo.py", "payments.py")]
        command = [*moonbox, "console", str(examples / "console.lua"), *tools, "--no-browser", "--port", "0"]
        command += ["--journal", "console.db"]
        with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
            timer = threading.Timer(60, process.kill)
            timer.start()
            try:
                assert process.stdout is not None
                line = process.stdout.readline().strip()
                assert re.match("http://127", line), line
                timer.cancel()
                yield line
            finally:
                timer.cancel()
                process.terminate()


if __name__ == "__main__":
    main()
