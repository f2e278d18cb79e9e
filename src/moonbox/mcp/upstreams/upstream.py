"""One upstream server: kept running by a supervisor task, with its tools and its status."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from moonbox.audit.terminal import visible
from moonbox.errors import ToolError
from moonbox.mcp.upstreams.callbacks import Callbacks, ClientFeatures
from moonbox.mcp.upstreams.connection import Connection, connect, make_transport
from moonbox.mcp.upstreams.errors import call_error, describe, is_lost, unavailable
from moonbox.mcp.upstreams.status import Status
from moonbox.mcp.upstreams.tools import convert_tools, placeholder
from moonbox.tools.hints import Hints
from moonbox.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.shared.dispatcher import ProgressFnT
    from mcp_types import CallToolResult
    from mcp_types import Tool as McpTool

    from moonbox.config.mcp import ServerSettings
    from moonbox.mcp.caller import Caller
    from moonbox.mcp.upstreams.connection import Transport
    from moonbox.mcp.upstreams.tools import ToolCache

__all__ = ["RelistDelay", "Timing", "Upstream"]

log = logging.getLogger("moonbox.mcp")

MAX_ATTEMPTS = 6
_STABLE_SECONDS = 10.0
"""A server that ran this long begins to count its failed starts anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long a supervisor waits, in seconds."""

    first_delay: float = 0.5
    """Before the second start; doubled for each further one."""
    max_delay: float = 30.0
    worth_waiting: float = 2.0
    """A call waits for a start that is due this soon, instead of failing at once."""
    health_check: float = 5.0
    """For an answer after a call timed out; without one the server is restarted."""


class RelistDelay:
    """How long to wait after a change before the tools are listed again; it doubles while the changes do not stop."""

    first, longest = 0.1, 10.0

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seconds = self.first
        self._listed_at = clock()

    def next(self) -> float:
        """The seconds to wait now."""
        soon = self._clock() - self._listed_at < 2 * self._seconds
        self._seconds = min(self.longest, self._seconds * 2) if soon else self.first
        return self._seconds

    def listed(self) -> None:
        """The tools are being listed again."""
        self._listed_at = self._clock()


class Upstream:
    """The supervisor of one server. All but `status` and `toolbox` belongs to the event loop that runs it."""

    def __init__(
        self,
        settings: ServerSettings,
        *,
        invoke: Callable[[Upstream, McpTool, dict[str, Any]], Awaitable[Any]],
        cache: ToolCache | None = None,
        timing: Timing | None = None,
    ) -> None:
        self.settings = settings
        self.toolbox = Toolbox()
        self.status = Status(settings.name, "idle" if settings.enabled else "off", settings.where)
        self.callbacks = Callbacks(settings.name)
        self.settled = asyncio.Event()
        """Set when waiting gains nothing: the first start is over, or the tools are known from an earlier run."""
        self._invoke = invoke
        self._cache = cache
        self._timing = timing or Timing()
        self._listed: list[McpTool] | None = None
        self._connection: Connection | None = None
        self._transport: Transport | None = None
        self._start_requested = asyncio.Event()
        self._status_changed = asyncio.Event()
        self._health_check: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The server's process, if we started one."""
        return None if self._transport is None else self._transport.pid

    # The supervisor

    def load_cached_tools(self) -> None:
        """Offer the tools of an earlier run until the server has listed its own."""
        listed = self._cache.get(self.settings) if self._cache is not None else None
        if listed is not None:
            self._publish(listed)
            self.settled.set()

    def begin(self) -> asyncio.Task[None] | None:
        """Start the supervisor task on the running loop; None if the server is switched off."""
        if not self.settings.enabled:
            self.settled.set()
            return None
        lazy = self.settings.lazy and self._listed is not None
        self._set_state("idle" if lazy else "starting")
        return asyncio.get_running_loop().create_task(self._supervise(lazy))

    async def _supervise(self, lazy: bool) -> None:
        """Keep the server running until this is cancelled."""
        if lazy:
            await self._start_requested.wait()
        attempts = 0
        try:
            while True:
                began = time.monotonic()
                reason = await self._run_once(attempts)
                if time.monotonic() - began > _STABLE_SECONDS and self.status.state == "ready":
                    attempts = 0
                attempts += 1
                log.warning("the MCP server '%s' is not available: %s", self.settings.name, reason)
                await self._wait_for_next_start(attempts, reason)
        finally:
            self._connection = None
            self._set_state("closed")

    async def _run_once(self, attempts: int) -> str:
        """Start the server and serve until it is lost; returns the reason."""
        self._start_requested.clear()
        began = time.monotonic()
        self._set_state("starting", attempts=attempts, retry_at=None)
        self._transport = transport = make_transport(self.settings)
        features = self.callbacks.features if self.settings.questions else ClientFeatures()
        try:
            async with contextlib.AsyncExitStack() as stack:
                async with asyncio.timeout(self.settings.start_timeout):
                    connecting = connect(transport, features, self.callbacks.answer)
                    connection = await stack.enter_async_context(connecting)
                    listed = await connection.tools()
                self._publish(listed)
                self._connection = connection
                self._set_state(
                    "ready",
                    reason="",
                    attempts=0,
                    protocol=connection.protocol,
                    server=connection.server,
                    seconds=round(time.monotonic() - began, 3),
                )
                await self._save(listed)
                await self._follow(connection)
                return transport.end_reason()
        except TimeoutError:
            return self._with_output(f"it did not answer within {self.settings.start_timeout:g} s")
        except Exception as problem:  # noqa: BLE001 - whatever a server makes the SDK raise costs only that server
            if transport.ended.is_set():
                return transport.end_reason()
            return self._with_output(describe(problem, transport.refusal))
        finally:
            self._connection = None

    def _with_output(self, reason: str) -> str:
        last = self._transport.output.last_line() if self._transport is not None else ""
        return f"{reason}; its last output: {last}" if last else reason

    async def _follow(self, connection: Connection) -> None:
        """Keep the tools of a live connection up to date until it ends."""
        tasks = [asyncio.create_task(self._relist(connection)), asyncio.create_task(connection.follow())]
        try:
            await connection.wait_ended()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _relist(self, connection: Connection) -> None:
        """List the tools again when they changed; less and less often if the server never stops to say so."""
        delay = RelistDelay()
        while True:
            await connection.tools_changed.wait()
            await asyncio.sleep(delay.next())
            connection.tools_changed.clear()
            delay.listed()
            try:
                async with asyncio.timeout(self.settings.start_timeout):
                    listed = await connection.tools()
            except Exception as problem:  # noqa: BLE001 - the old list stays; a lost connection is noticed elsewhere
                log.warning("the MCP server '%s' failed to list its tools: %s", self.settings.name, describe(problem))
                continue
            self._publish(listed)
            await self._save(listed)

    async def _save(self, listed: list[McpTool]) -> None:
        if self._cache is not None:
            await asyncio.to_thread(self._cache.put, self.settings, listed)

    async def _wait_for_next_start(self, attempts: int, reason: str) -> None:
        """Wait longer each time; after the last attempt, until a call asks for the server."""
        output = self._transport.output.text() if self._transport is not None else ""
        restarts = self.status.restarts + (self.status.state == "ready")
        changes: dict[str, Any] = {"reason": reason, "attempts": attempts, "said": output, "restarts": restarts}
        self._start_requested.clear()
        if attempts >= MAX_ATTEMPTS:
            self._set_state("failed", retry_at=None, **changes)
            self._offer_placeholder()
            await self._start_requested.wait()
            return
        delay = min(self._timing.max_delay, self._timing.first_delay * 2 ** (attempts - 1)) * random.uniform(0.8, 1.2)
        self._set_state("retrying", retry_at=time.monotonic() + delay, **changes)
        self._offer_placeholder()
        await asyncio.sleep(delay)

    def _set_state(self, state: Any, **changes: Any) -> None:
        self.status = replace(self.status, state=state, **changes)
        if state != "starting":
            self.settled.set()
        # Each change has an event of its own, so that no waiting call can miss a short-lived state.
        changed, self._status_changed = self._status_changed, asyncio.Event()
        changed.set()

    # The toolbox, which scripts in other threads read

    def _publish(self, listed: list[McpTool]) -> None:
        async def invoke(tool: McpTool, arguments: dict[str, Any]) -> Any:
            return await self._invoke(self, tool, arguments)

        self._listed = listed
        converted = convert_tools(listed, self.settings, invoke)
        self.toolbox.set_namespace(self.settings.name, converted.tools)
        self.status = replace(self.status, tools=len(converted.tools), problems=converted.problems)

    def _offer_placeholder(self) -> None:
        if self._listed is None and not len(self.toolbox):
            loop = asyncio.get_running_loop()

            def error() -> ToolError:
                loop.call_soon_threadsafe(self._start_requested.set)  # called in the thread of the script
                return unavailable(self.status.why())

            self.toolbox.set_namespace(self.settings.name, [placeholder(error)])

    # Calls

    async def call(self, tool: McpTool, arguments: dict[str, Any]) -> CallToolResult:
        """Call one of its tools; ToolError says why that failed."""
        seconds = self.settings.timeout_of(tool.name)
        try:
            async with asyncio.timeout(seconds) as timer:
                connection = await self._ready_connection()
                with self.callbacks.call(timer) as caller:
                    return await self._call_on(connection, tool, arguments, caller)
        except TimeoutError:
            self._start_health_check()
            raise ToolError(
                f"the MCP server '{self.settings.name}' did not answer {tool.name} within {seconds:g} s",
                code="timeout",
                retryable=True,
            ) from None

    async def _call_on(
        self, connection: Connection, tool: McpTool, arguments: dict[str, Any], caller: Caller | None
    ) -> CallToolResult:
        try:
            on_progress = _progress_reporter(caller, f"{self.settings.name}.{tool.name}")
            return await connection.call(tool, arguments, on_progress)
        except Exception as problem:
            if not is_lost(problem):
                raise call_error(problem, self.settings.name, connection.transport.refusal) from problem
            connection.broken.set()
            raise self._lost_during_call(connection, problem, tool) from problem

    async def _ready_connection(self) -> Connection:
        """The live connection; a start that is in progress or due soon is waited for."""
        while self._connection is None or self._connection.broken.is_set():
            status = self.status
            soon = status.retry_at is not None and status.retry_at - time.monotonic() <= self._timing.worth_waiting
            if status.state in ("closed", "off") or (status.state == "retrying" and not soon):
                raise unavailable(status.why(), retryable=status.state == "retrying")
            if status.state == "failed" and self._start_requested.is_set():
                raise unavailable(status.why())
            if status.state in ("idle", "failed"):
                self._start_requested.set()
            await self._status_changed.wait()
            if self.status.state in ("retrying", "failed") and status.state in ("starting", "failed", "idle"):
                raise unavailable(self.status.why())
        return self._connection

    def _lost_during_call(self, connection: Connection, problem: BaseException, tool: McpTool) -> ToolError:
        hints = Hints.from_mcp(tool.annotations)
        harmless = bool(hints.read_only or hints.idempotent)
        transport = connection.transport
        reason = transport.end_reason() if transport.ended.is_set() else describe(problem)
        effect = "" if harmless else "; the call may have taken effect"
        return unavailable(
            f"the MCP server '{self.settings.name}' was lost during this call: {reason}{effect}", retryable=harmless
        )

    def _start_health_check(self) -> None:
        connection = self._connection
        if connection is not None and not connection.broken.is_set():
            self._health_check = asyncio.create_task(self._check_health(connection))

    async def _check_health(self, connection: Connection) -> None:
        """After a call without an answer: restart the server if it answers nothing else either."""
        try:
            async with asyncio.timeout(self._timing.health_check):
                await connection.tools()
        except Exception:  # noqa: BLE001 - any failure to answer counts
            connection.transport.end("it stopped answering")
            connection.broken.set()


def _progress_reporter(caller: Caller | None, name: str) -> ProgressFnT | None:
    if caller is None or not caller.wants_progress:
        return None

    async def report(progress: float, total: float | None, message: str | None) -> None:
        amount = f"{progress:g}" + (f"/{total:g}" if total else "")
        caller.progress(f"{name}: {amount}" + (f" {visible(message[:200], keep='')}" if message else ""))

    return report
