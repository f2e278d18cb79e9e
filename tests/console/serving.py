"""A real console on loopback, in a thread, with a few tools; driven over HTTP or by a real browser."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moonbox import Limits, Sandbox, ToolError, tool
from moonbox.audit.sinks import MemorySink
from moonbox.console.app import OPEN_PATHS, PREFIX, console_routes
from moonbox.http.app import Service, create_app
from moonbox.http.browser import BrowserAccess, SignInKey
from moonbox.http.guard import Access
from moonbox.http.workbench import Workbench
from tests.http_api.conftest import serving

if TYPE_CHECKING:
    from collections.abc import Iterator


@tool(hints={"read_only": True})
def list_orders(customer: str, limit: int = 3) -> list[dict[str, Any]]:
    """Orders of one customer.

    The latest come first.
    """
    return [{"id": number, "customer": customer, "total": number * 12.5} for number in range(1, limit + 1)]


@tool(policy="approve", hints={"destructive": True})
def refund(order_id: int, amount: float) -> str:
    """Refund an order."""
    return f"refunded {amount:.2f} for order {order_id}"


@tool
def look_up(key: str):  # its result's shape is to be learned
    """Look something up."""
    return {"key": key, "found": [1, 2]}


@tool
def flaky(key: str) -> str:
    """Fail always."""
    raise ToolError(f"no luck with {key}", code="unlucky", retryable=True)


TOOLS = [list_orders, refund, flaky, look_up]


@dataclass(slots=True)
class Console:
    """A running console."""

    url: str
    service: Service
    browser: BrowserAccess
    bench: Workbench
    trail: Any

    def address(self, page: str = "") -> str:
        return f"{self.url}{PREFIX}/{page}"

    def sign_in_address(self) -> str:
        return f"{self.url}{PREFIX}/open?key={self.browser.one_time_key()}"


@contextlib.contextmanager
def running_console(
    tools: Any = TOOLS,
    *,
    trail: Any = None,
    token: str | None = None,
    public: bool = False,
    script: str = "",
    knowledge: Any = None,
    diagnose: Any = None,
    port: int = 0,
    servers: Any = None,
    journal: Any = None,
    key: SignInKey | None = None,
) -> Iterator[Console]:
    """A console whose tools, trail and knowledge base are given."""
    bench = Workbench(timeout=600.0)
    kept = MemorySink() if trail is None else trail
    sink = bench.sink(kept)

    def make(language: str) -> Sandbox:
        return Sandbox(box.toolbox, limits=box.limits, language=language, audit=sink, min_workers=0, **bench.hooks)

    options: Any = {**bench.hooks, "journal": journal}
    with Sandbox(tools, limits=Limits(timeout=20), audit=sink, min_workers=1, **options) as box:
        bench.attach(
            box, trail=kept, make=make, languages=("lua", "rhai", "python"), knowledge=knowledge, diagnose=diagnose
        )
        service = Service(box, trail=kept, workbench=bench, servers=servers)
        browser = BrowserAccess(token, public=public, key=key)
        access = Access(token=token, browser=browser, open_paths=OPEN_PATHS)
        app = create_app(service, access, more=console_routes(service, browser, script=script))
        with serving(app, port) as url, contextlib.closing(bench):  # which ends the streams that the server waits for
            yield Console(url, service, browser, bench, kept)
