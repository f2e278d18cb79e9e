"""Upstream: one server of others, kept running, and its tools."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from moonbox.audit.terminal import visible
from moonbox.errors import ToolError
from moonbox.mcp.upstreams.broker import Offers
from moonbox.mcp.upstreams.connection import Connection, connect
from moonbox.mcp.upstreams.faults import Lost, is_lost, of_call, sentence, unavailable
from moonbox.mcp.upstreams.process import ServerProcess
from moonbox.mcp.upstreams.status import Status
from moonbox.mcp.upstreams.tools import make_tools, placeholder
from moonbox.mcp.upstreams.underway import UnderWay
from moonbox.mcp.upstreams.web import WebServer
from moonbox.tools.hints import Hints
from moonbox.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.shared.dispatcher import ProgressFnT
    from mcp_types import CallToolResult
    from mcp_types import Tool as Listed

    from moonbox.config.mcp import ServerSettings
    from moonbox.mcp.caller import Caller
    from moonbox.mcp.upstreams.listing import Listings

__all__ = ["Upstream"]

log = logging.getLogger("moonbox.mcp")

FIRST_DELAY, LONGEST_DELAY = 0.5, 30.0
MOST_ATTEMPTS = 6
WORTH_WAITING = 2.0
"""Seconds that a call waits for an attempt that is due soon, instead of failing at once."""
_CALM, _LONGEST_CALM = 0.1, 10.0
"""Seconds between a change of the tools and listing them anew."""
_HEALTH_SECONDS = 5.0
_STEADY_SECONDS = 10.0
"""A server that held this long starts afresh with its attempts."""


class Upstream:
    """The supervisor of one server. Everything but `status` and `toolbox` belongs to the loop that runs it."""

    def __init__(
        self,
        settings: ServerSettings,
        *,
        invoke: Callable[[Upstream, Listed, dict[str, Any]], Awaitable[Any]],
        listings: Listings | None = None,
    ) -> None:
        self.settings = settings
        self.toolbox = Toolbox()
        state: Any = "idle" if settings.enabled else "off"
        self.status = Status(settings.name, state, settings.where)
        self.under_way = UnderWay(settings.name)
        self._invoke = invoke
        self._listings = listings
        self._listed: list[Listed] | None = None
        self._recalled = False
        self._connection: Connection | None = None
        self._transport: Any = None
        self._wanted = asyncio.Event()
        self._moved = asyncio.Event()

    @property
    def settled(self) -> bool:
        """Whether waiting gains nothing: its first attempt is over, or its tools are known from the last time."""
        return self._recalled or self.status.settled

    @property
    def pid(self) -> int | None:
        """Its process, where it is one of ours."""
        return self._transport.pid if isinstance(self._transport, ServerProcess) else None

    # Running

    def recall(self) -> None:
        """Offer the tools of the last time, until the server itself has spoken."""
        listed = self._listings.get(self.settings) if self._listings is not None else None
        if listed is not None:
            self._recalled = True
            self._publish(listed)

    def begin(self) -> None:
        """Say what `run` will do first."""
        self._move("idle" if self._waits else "starting")

    @property
    def _waits(self) -> bool:
        return self.settings.lazy and self._listed is not None

    async def run(self) -> None:
        """Keep the server running until this is cancelled."""
        if self._waits:
            await self._wanted.wait()
        attempts = 0
        try:
            while True:
                began = time.monotonic()
                reason = await self._live(attempts)
                if time.monotonic() - began > _STEADY_SECONDS and self.status.state == "ready":
                    attempts = 0
                attempts += 1
                log.warning("the MCP server '%s' is not available: %s", self.settings.name, reason)
                await self._pause(attempts, reason)
        finally:
            self._connection = None
            self._move("closed")

    async def _live(self, attempts: int) -> str:
        """One start and what follows it; returns why it is over."""
        self._wanted.clear()
        began = time.monotonic()
        self._move("starting", attempts=attempts, retry_at=None)
        try:
            async with contextlib.AsyncExitStack() as stack:
                async with asyncio.timeout(self.settings.start_timeout):
                    broker = self.under_way.broker
                    offers = Offers() if broker is None or not self.settings.questions else broker.offers
                    connection = await stack.enter_async_context(
                        connect(self.settings, offers, self.under_way.answer, self._note_transport)
                    )
                    listed = await connection.tools()
                self._publish(listed)
                self._connection = connection
                self._move(
                    "ready",
                    reason="",
                    attempts=0,
                    protocol=connection.protocol,
                    server=connection.server,
                    seconds=round(time.monotonic() - began, 3),
                )
                await self._keep(listed)
                await self._serve(connection)
                return str(connection.transport.obituary())
        except TimeoutError:
            return self._said(f"it did not answer within {self.settings.start_timeout:g} s")
        except Lost as problem:
            return str(problem)
        except Exception as problem:  # noqa: BLE001 - whatever a stranger's server makes of the SDK costs only itself
            if isinstance(self._transport, ServerProcess) and self._transport.ended.is_set():
                return self._transport.obituary()
            return self._said(sentence(problem, self._refusal))
        finally:
            self._connection = None

    async def _serve(self, connection: Connection) -> None:
        """Follow the tools of a live connection until it ends."""
        tasks = [asyncio.create_task(self._refresh(connection)), asyncio.create_task(connection.follow())]
        try:
            await connection.ended()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _refresh(self, connection: Connection) -> None:
        """List the tools again when they changed; a server that says so without end is asked ever more seldom."""
        calm, looked = _CALM, time.monotonic()
        while True:
            await connection.changed.wait()
            calm = min(_LONGEST_CALM, calm * 2) if time.monotonic() - looked < 2 * calm else _CALM
            await asyncio.sleep(calm)
            connection.changed.clear()
            looked = time.monotonic()
            try:
                async with asyncio.timeout(self.settings.start_timeout):
                    listed = await connection.tools()
            except Exception as problem:  # noqa: BLE001 - the old list stays; a lost connection is noticed elsewhere
                log.warning("the MCP server '%s' does not list its tools: %s", self.settings.name, sentence(problem))
                continue
            self._publish(listed)
            await self._keep(listed)

    async def _keep(self, listed: list[Listed]) -> None:
        """For the next time."""
        if self._listings is not None:
            await asyncio.to_thread(self._listings.put, self.settings, listed)

    async def _pause(self, attempts: int, reason: str) -> None:
        """Wait before the next attempt: longer each time, then until somebody asks."""
        said = self._transport.tail.text() if isinstance(self._transport, ServerProcess) else ""
        restarts = self.status.restarts + (self.status.state == "ready")
        self._wanted.clear()
        if attempts >= MOST_ATTEMPTS:
            self._move("failed", reason=reason, attempts=attempts, retry_at=None, said=said, restarts=restarts)
            self._offer_placeholder()
            await self._wanted.wait()
            return
        delay = min(LONGEST_DELAY, FIRST_DELAY * 2 ** (attempts - 1)) * random.uniform(0.8, 1.2)
        until = time.monotonic() + delay
        self._move("retrying", reason=reason, attempts=attempts, retry_at=until, said=said, restarts=restarts)
        self._offer_placeholder()
        await asyncio.sleep(delay)

    # Calling

    async def call(self, tool: Listed, arguments: dict[str, Any]) -> CallToolResult:
        """Call one of its tools; ToolError says why that did not work."""
        seconds = self.settings.timeout_of(tool.name)
        try:
            async with asyncio.timeout(seconds) as timer:
                connection = await self._ready()
                with self.under_way.call(timer) as caller:
                    return await self._asked(connection, tool, arguments, caller)
        except TimeoutError:
            self._suspect()
            raise ToolError(
                f"the MCP server '{self.settings.name}' did not answer {tool.name} within {seconds:g} s",
                code="timeout",
                retryable=True,
            ) from None

    async def _asked(
        self, connection: Connection, tool: Listed, arguments: dict[str, Any], caller: Caller | None
    ) -> CallToolResult:
        report = _reporter(caller, f"{self.settings.name}.{tool.name}")
        try:
            return await connection.call(tool, arguments, report)
        except Exception as problem:
            if not is_lost(problem):
                raise of_call(problem, self.settings.name, self._refusal) from problem
            connection.broken.set()
            raise self._died(connection, problem, tool) from problem

    async def _ready(self) -> Connection:
        """The live connection, waited for where that makes sense."""
        while self._connection is None or self._connection.broken.is_set():
            status = self.status
            soon = status.retry_at is not None and status.retry_at - time.monotonic() <= WORTH_WAITING
            if status.state in ("closed", "off") or (status.state == "retrying" and not soon):
                raise unavailable(status.why(), retryable=status.state == "retrying")
            if status.state == "failed" and self._wanted.is_set():
                raise unavailable(status.why())
            if status.state in ("idle", "failed"):
                self._wanted.set()
            await self._moved.wait()
            if self.status.state in ("retrying", "failed") and status.state in ("starting", "failed", "idle"):
                raise unavailable(self.status.why())
        return self._connection

    def _died(self, connection: Connection, problem: BaseException, tool: Listed) -> ToolError:
        hints = Hints.from_mcp(tool.annotations)
        harmless = bool(hints.read_only or hints.idempotent)
        how = connection.transport.obituary() if connection.transport.ended.is_set() else sentence(problem)
        effect = "" if harmless else "; the call may have taken effect"
        return unavailable(
            f"the MCP server '{self.settings.name}' was lost during this call: {how}{effect}", retryable=harmless
        )

    def _suspect(self) -> None:
        """After a call without an answer: see whether the server answers anything at all; if not, start it anew."""
        connection = self._connection
        if connection is not None and not connection.broken.is_set():
            self._checking = asyncio.create_task(self._check(connection))

    async def _check(self, connection: Connection) -> None:
        try:
            async with asyncio.timeout(_HEALTH_SECONDS):
                await connection.tools()
        except Exception:  # noqa: BLE001 - any failure to answer is the finding
            if isinstance(connection.transport, ServerProcess):
                connection.transport.how = "it did not answer any more"
            connection.broken.set()

    # What others see

    def _publish(self, listed: list[Listed]) -> None:
        async def invoke(tool: Listed, arguments: dict[str, Any]) -> Any:
            return await self._invoke(self, tool, arguments)

        self._listed = listed
        offer = make_tools(listed, self.settings, invoke)
        self.toolbox.set_namespace(self.settings.name, offer.tools)
        self.status = replace(self.status, tools=len(offer.tools), problems=offer.problems)

    def _offer_placeholder(self) -> None:
        if self._listed is None and not len(self.toolbox):
            loop = asyncio.get_running_loop()

            def refuse() -> ToolError:
                loop.call_soon_threadsafe(self._wanted.set)  # one that was given up is tried once more
                return unavailable(self.status.why())

            self.toolbox.set_namespace(self.settings.name, [placeholder(refuse)])

    def _move(self, state: Any, **changes: Any) -> None:
        self.status = replace(self.status, state=state, **changes)
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    @property
    def _refusal(self) -> str:
        return self._transport.refusal if isinstance(self._transport, WebServer) else ""

    def _note_transport(self, transport: Any) -> None:
        self._transport = transport

    def _said(self, reason: str) -> str:
        last = self._transport.tail.last_line() if isinstance(self._transport, ServerProcess) else ""
        return f"{reason}; it said: {last}" if last else reason


def _reporter(caller: Caller | None, name: str) -> ProgressFnT | None:
    if caller is None or not caller.wants_progress:
        return None

    async def report(progress: float, total: float | None, message: str | None) -> None:
        far = f"{progress:g}" + (f"/{total:g}" if total else "")
        caller.progress(f"{name}: {far}" + (f" {visible(message[:200], keep='')}" if message else ""))

    return report
