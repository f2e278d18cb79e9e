"""A real browser: Chromium, driven by Playwright. Skipped where none is installed."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from .serving import Console, running_console

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
"""The first is the same browser without windows, which takes half of the processor time."""
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--renderer-process-limit=1",  # a new process takes longer than a page
)


PATIENCE = 30_000
"""Milliseconds that a page has to show something: a busy machine needs them."""


def chromium() -> str | None:
    """A Chromium of this machine; MOONBOX_CHROMIUM names another."""
    named = os.environ.get("MOONBOX_CHROMIUM")
    return named or next((path for name in BROWSERS if (path := shutil.which(name))), None)


@pytest.fixture(scope="module")  # while Playwright runs, no test in the same process can run asyncio
def browser() -> Iterator[Browser]:
    path = chromium()
    if path is None:
        pytest.skip("no Chromium is installed; apt-get install chromium, or set MOONBOX_CHROMIUM")
    playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
    with playwright.sync_playwright() as started:
        playwright.expect.set_options(timeout=PATIENCE)
        instance = started.chromium.launch(executable_path=path, args=list(QUIET))
        yield instance
        instance.close()


class Visitor:
    """A browser window that remembers everything that went wrong in its pages."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.problems: list[str] = []
        self.elsewhere: list[str] = []
        self.allowed: tuple[str, ...] = ()
        page.set_default_timeout(2 * PATIENCE)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("console", self._logged)
        page.on("dialog", self._asked)
        page.on("request", lambda request: self._request(request.url))
        self.home = ""

    def _logged(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def _asked(self, dialog: Dialog) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, url: str) -> None:
        if not url.startswith((self.home, "data:", "blob:", "about:")):
            self.elsewhere.append(url)

    def enter(self, console: Console) -> Page:
        """Sign in through the printed address."""
        self.home = console.url
        self.page.goto(console.sign_in_address())
        return self.page

    def check(self) -> None:
        """No script error, no violation of the policy, no request to anywhere else."""
        wrong = [text for text in self.problems if not any(part in text for part in self.allowed)]
        assert not wrong, wrong
        assert not self.elsewhere, self.elsewhere


def new_context(browser: Browser, **options: Any) -> BrowserContext:
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    return context


@pytest.fixture(scope="module")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """The module's window with the usual settings: a new one takes the browser longer than a page does."""
    context = new_context(browser)
    context.new_page()  # keeps the window open between two tests
    yield context
    context.close()


@pytest.fixture
def visitor(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Visitor]:
    """A page that knows nothing of the pages before it."""
    if hasattr(request, "param"):
        context = new_context(browser, **request.param)
        visitor = Visitor(context.new_page())
        yield visitor
        context.close()
    else:
        context = request.getfixturevalue("context")
        visitor = Visitor(context.new_page())
        yield visitor
        for page in context.pages[1:]:
            page.close()
        devtools = context.new_cdp_session(context.pages[0])
        devtools.send("Storage.clearDataForOrigin", {"origin": visitor.home, "storageTypes": "all"})
        devtools.detach()
        context.clear_cookies()
    visitor.check()


@pytest.fixture(scope="module")
def console() -> Iterator[Console]:
    with running_console() as running:
        yield running


@pytest.fixture
def page(visitor: Visitor, console: Console) -> Page:
    """A signed-in window on the module's console."""
    return visitor.enter(console)
