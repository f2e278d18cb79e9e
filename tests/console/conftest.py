"""A real browser: Chromium, driven by Playwright. Skipped where none is installed."""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from moonbox.http.browser import cookie_name

from .serving import Console, running_console

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import (
        Browser,
        BrowserContext,
        ConsoleMessage,
        Dialog,
        Error,
        Frame,
        Page,
        Request,
        ViewportSize,
    )

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


DESK: ViewportSize = {"width": 1280, "height": 900}
LONGEST_GRACE = 30_000
"""Milliseconds that a page has to show something: a busy machine needs them."""


def chromium() -> str | None:
    """A Chromium of this machine; MOONBOX_CHROMIUM names another."""
    named = os.environ.get("MOONBOX_CHROMIUM")
    return named or next((path for name in BROWSERS if (path := shutil.which(name))), None)


# While Playwright runs, no test in the same process can run asyncio: the browser ends with the tests of this folder.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    path = chromium()
    if path is None:
        pytest.skip("no Chromium is installed; apt-get install chromium, or set MOONBOX_CHROMIUM")
    playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
    with playwright.sync_playwright() as started:
        playwright.expect.set_options(timeout=LONGEST_GRACE)
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
        page.set_default_timeout(2 * LONGEST_GRACE)
        self._listeners: dict[Any, Any] = {
            "pageerror": self._failed,
            "console": self._logged,
            "dialog": self._asked,
            "request": self._requested,
        }
        for event, listener in self._listeners.items():
            page.on(event, listener)
        page.once("framenavigated", self._arrived)
        self.home = ""

    def _arrived(self, _: Frame) -> None:
        """Until the first address of this visit, the window shows the page of an earlier one."""
        self.problems.clear()
        self.elsewhere.clear()

    def _failed(self, error: Error) -> None:
        self.problems.append(f"error: {error}")

    def _logged(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def _asked(self, dialog: Dialog) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _requested(self, request: Request) -> None:
        if not request.url.startswith((self.home, "data:", "blob:", "about:")):
            self.elsewhere.append(request.url)

    def enter(self, console: Console, view: str = "playground") -> Page:
        """A page of that console, signed in to it."""
        self.home = console.url
        cookie = console.browser.redeem(console.browser.one_time_key())
        assert cookie is not None
        address = urlsplit(console.url)
        name = cookie_name({"server": (address.hostname, address.port)})
        self.page.context.add_cookies([{"name": name, "value": cookie, "url": console.url, "httpOnly": True}])
        self.page.goto(console.address(view))
        return self.page

    def leave(self) -> None:
        """Hear what was reported until now, and nothing after it: a page looks for its server when that has ended."""
        self.page.evaluate("0")
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)
        self._listeners.clear()

    def check(self) -> None:
        """No script error, no violation of the policy, no request to anywhere else."""
        wrong = [text for text in self.problems if not any(part in text for part in self.allowed)]
        assert not wrong, wrong
        assert not self.elsewhere, self.elsewhere


def new_context(browser: Browser, **options: Any) -> BrowserContext:
    context = browser.new_context(**{"viewport": DESK, **options})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    return context


@pytest.fixture(scope="package")
def window(browser: Browser) -> Iterator[Page]:
    """The page that all tests open their addresses in: for a new one the browser starts a process each time."""
    context = new_context(browser)
    yield context.new_page()
    context.close()


@pytest.fixture
def visitor(request: pytest.FixtureRequest) -> Iterator[Visitor]:
    """A page that knows nothing of the tests before it."""
    if hasattr(request, "param"):
        context = new_context(request.getfixturevalue("browser"), **request.param)
        visitor = Visitor(context.new_page())
        yield visitor
        context.close()
    else:
        window = request.getfixturevalue("window")
        visitor = Visitor(window)
        yield visitor
        visitor.leave()
        forget(window)
    visitor.check()


def forget(page: Page) -> None:
    """Take back what a test did to the window that it shares with others."""
    for other in page.context.pages:
        if other != page:
            other.close()
    if page.url.startswith("http"):
        page.evaluate("() => { sessionStorage.clear(); localStorage.clear(); }")
    page.unroute_all()
    page.emulate_media(media="null", color_scheme="null", reduced_motion="null")
    page.set_viewport_size(DESK)
    page.mouse.move(0, 0)
    page.context.clear_cookies()


@contextlib.contextmanager
def visiting(visitor: Visitor, view: str, *given: Any, **options: Any) -> Iterator[tuple[Console, Page]]:
    """A page of a console of its own, which is left before the console ends."""
    with running_console(*given, **options) as console:
        yield console, visitor.enter(console, view)
        visitor.leave()


@pytest.fixture(scope="package")
def console() -> Iterator[Console]:
    with running_console() as running:
        yield running


@pytest.fixture
def page(visitor: Visitor, console: Console) -> Page:
    """The playground of the module's console, signed in."""
    return visitor.enter(console)
