"""One upstream server: kept running by a supervisor task, with its status and its calls.

In the current protocol a question to the client is the result of a call. In the earlier one it is a request of the
server's own, for which a server that was written for the earlier protocol has no way in the current one. So a server
is spoken to in the client's own protocol. If clients differ, it has a second connection for clients of the earlier one.
A stdio server has no second connection, which would be another process with another state: it is spoken to in the
current protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import anyio
import mcp_types as types
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from moonbox.errors import ToolError
from moonbox.mcp.caller import CALLER, Callbacks, ClientFeatures, is_set_within, redacted
from moonbox.mcp.upstreams.browser import ServerLogin
from moonbox.mcp.upstreams.catalog import ServerCatalog
from moonbox.mcp.upstreams.connection import Connection, connect, make_transport
from moonbox.mcp.upstreams.login import LoginRequired
from moonbox.mcp.upstreams.status import (
    Status,
    call_error,
    describe,
    is_lost,
    lost_during_call,
    server_icons,
    start_failure,
    unavailable,
)
from moonbox.mcp.upstreams.tools import UNAVAILABLE, result_value
from moonbox.threads import in_thread, own_thread
from moonbox.tools.hints import Hints

if TYPE_CHECKING:
    from mcp import MCPError

    from moonbox.config.mcp import ServerSettings
    from moonbox.mcp.upstreams.manager import Upstreams
    from moonbox.mcp.upstreams.transport import Transport

log = logging.getLogger("moonbox.mcp")
server_log = logging.getLogger("moonbox.mcp.stderr")
T = TypeVar("T")
Until = Literal["settled", "offers", "started"]
"""How far a server is.

settled   its first start is over, or its tools are known from an earlier run
offers    its prompts and resources are known, or cannot be now
started   it is ready, or its first attempt to start has failed or taken its `start_timeout`
"""

MAX_ATTEMPTS = 6
_RETRY_SECONDS = 60.0
_STABLE_SECONDS = 10.0
"""A server that ran this long begins to count its failed starts anew."""


class Upstream:
    """The supervisor of one of the `servers`. All but `status` and `toolbox` belongs to the event loop that runs it."""

    def __init__(self, settings: ServerSettings, servers: Upstreams, *, spare: bool = False) -> None:
        self.settings = settings
        self.servers = servers
        self.spare = spare
        """It is the second connection to a server, whose catalog is that of the first."""
        self._hide, self._timing = servers.hide, servers.timing
        self._login = ServerLogin(settings, servers.logins)
        self.status = Status(settings.name, "idle" if settings.enabled else "off", settings.where)
        self.callbacks = Callbacks(settings.name)
        self.reached: dict[Until, asyncio.Event] = {name: asyncio.Event() for name in get_args(Until)}
        self.catalog = ServerCatalog(self)
        self.toolbox = self.catalog.toolbox
        self.log_level: types.LoggingLevel | None = None
        """The most verbose level that a client asked for."""
        self.subscribed: set[str] = set()
        """The resources that clients want to be told about."""
        self._second: asyncio.Task[Upstream | None] | None = None
        self._connection: Connection | None = None
        self._transport: Transport | None = None
        self._start_requested = asyncio.Event()
        self._status_changed = asyncio.Event()
        self._health_check: asyncio.Task[None] | None = None
        self._used_at, self._stopped_idle, self._lost = 0.0, False, False

    @property
    def pid(self) -> int | None:
        return None if self._transport is None else self._transport.pid

    # The supervisor

    def load_cached(self) -> None:
        """Offer what it had at an earlier start until the server has listed its own."""
        if self.catalog.load_cached():
            self.reached["settled"].set()

    def begin(self) -> asyncio.Task[None] | None:
        """Start the supervisor task on the running loop; None if the server is switched off."""
        if not self.settings.enabled:
            for event in self.reached.values():
                event.set()
            return None
        if self.settings.problem:
            self._log_lost(self.settings.problem)
            self._set_state("failed", reason=self.settings.problem)
            self.catalog.offer_placeholder(login=self._login.required)
            return None
        lazy = self.settings.lazy and self.catalog.known
        self._set_state("idle" if lazy else "starting")
        return asyncio.get_running_loop().create_task(self._supervise(lazy))

    async def _supervise(self, lazy: bool) -> None:
        if self.catalog.known:  # its tools are listed already, so that waiting for the list comes first
            await is_set_within(self._start_requested, None if lazy else self._timing.head_start)
        attempts = 0
        try:
            while True:
                began, renewals = time.monotonic(), self._login.renewals
                reason = self._hide(await self._run_once(attempts))
                if self._stopped_idle:
                    attempts = 0
                    await self._wait_for_call()
                    continue
                if self._login.renewals != renewals:  # refused with older tokens: the person who logged in waits
                    continue
                if time.monotonic() - began > _STABLE_SECONDS and self.status.state == "ready":
                    attempts = 0
                attempts += 1
                self._log_lost(reason)
                await self._wait_for_next_start(attempts, reason)
        finally:
            self._connection = None
            self._set_state("closed")

    async def _wait_for_call(self) -> None:
        """The server was not needed for a while, and it was stopped."""
        about = {"server": self.settings.name, "idle": self.settings.idle_seconds}
        log.info("server stopped", extra={"fields": about})
        self._stopped_idle, self._transport = False, None
        self._start_requested.clear()
        self._set_state("idle", reason="")
        await self._start_requested.wait()

    async def _run_once(self, attempts: int) -> str:
        """Start the server and serve until it is lost; returns the reason."""
        self._start_requested.clear()
        began = time.monotonic()
        self._set_state("starting", attempts=attempts, retry_at=None)
        self._login.required = False
        self._transport = transport = make_transport(self.settings, await in_thread(self._login.auth, start=own_thread))
        transport.output.on_line = self._log_line
        features = self.callbacks.features if self.settings.questions else ClientFeatures()
        if not self.settings.sampling:
            features = replace(features, sampling=False)
        try:
            async with contextlib.AsyncExitStack() as stack:
                async with asyncio.timeout(self.settings.start_timeout):
                    connecting = connect(transport, features, self.callbacks.answer, self._log)
                    connection = await stack.enter_async_context(connecting)
                    await stack.enter_async_context(connection.following())  # before listing, to miss no change
                    listed = await connection.tools()
                await self.catalog.take(listed)  # before it is ready: a caller that waited for it may close at once
                self._connection = connection
                transport.output.private = self.callbacks.features.shared  # from here on it handles calls
                self._set_state(
                    "ready",
                    reason="",
                    attempts=0,
                    protocol=connection.protocol,
                    server=connection.server,
                    icons=server_icons(connection.session.server_info),
                    login=self._login.kept,
                    seconds=round(time.monotonic() - began, 3),
                )
                self._log_ready()
                await self._follow(connection)
                return transport.end_reason()
        except Exception as problem:  # noqa: BLE001 - whatever a server makes the SDK raise costs only that server
            if not transport.ended.is_set() and (self._login.required or " 401 " in f"{transport.refusal} "):
                self._login.required = True
                return str(LoginRequired(self.settings.name))
            return start_failure(problem, transport, self.settings.start_timeout)
        finally:
            self._connection = None

    async def _follow(self, connection: Connection) -> None:
        """Keep the tools of a live connection up to date until it ends."""
        if not self.spare:
            connection.resource_updated = partial(self.servers.resource_updated, self)
        async with anyio.create_task_group() as tasks:
            for work in (self.catalog.follow, self._settle, self._stop_when_idle):
                tasks.start_soon(work, connection)
            await connection.transport.ended.wait()
            tasks.cancel_scope.cancel()

    async def _stop_when_idle(self, connection: Connection) -> None:
        seconds = self.settings.idle_seconds
        if seconds is None:
            return
        self._used_at = time.monotonic()
        while (rest := self._used_at + seconds - time.monotonic()) > 0 or self.callbacks.calls or self.subscribed:
            await asyncio.sleep(max(rest, 0.05))
        self._stopped_idle = True
        connection.transport.end()  # from here on a call waits for the next start

    async def _settle(self, connection: Connection) -> None:
        """Tell a new connection what clients asked for before."""
        try:
            async with asyncio.timeout(self.settings.start_timeout):
                if self.log_level is not None:
                    await connection.set_log_level(self.log_level)
                if self.subscribed:
                    for refusal in (await connection.subscribe(self.subscribed)).values():
                        raise refusal
        except Exception as problem:  # noqa: BLE001 - a server that refuses these is of use without them
            log.warning("the MCP server '%s' refused a setting: %s", self.settings.name, describe(problem))

    def _log(self, params: types.LoggingMessageNotificationParams) -> None:
        """With the server's name before the logger's."""
        logger = ".".join(filter(None, (self.settings.namespace, params.logger)))
        self.callbacks.log(redacted(params.model_copy(update={"logger": logger or None}), self._hide))

    def _log_line(self, line: str) -> None:
        server_log.info("%s", self._hide(line), extra={"fields": {"server": self.settings.name}})

    async def _wait_for_next_start(self, attempts: int, reason: str) -> None:
        """Wait longer each time; after the last attempt, until a call asks for the server."""
        given_up = attempts >= MAX_ATTEMPTS
        delay = min(self._timing.max_delay, self._timing.first_delay * 2 ** (attempts - 1)) * random.uniform(0.8, 1.2)
        self._start_requested.clear()
        self._set_state(
            "failed" if given_up else "retrying",
            reason=reason,
            attempts=attempts,
            retry_at=None if given_up else time.monotonic() + delay,
            restarts=self.status.restarts + (self.status.state == "ready"),
            said=self._hide(self._transport.output.text()) if self._transport is not None else "",
        )
        self.catalog.offer_placeholder(login=self._login.required)
        await is_set_within(self._start_requested, None if given_up else delay)

    def _log_ready(self) -> None:
        about = {"server": self.settings.name, "tools": self.status.tools, "seconds": self.status.seconds}
        log.info("server ready", extra={"fields": about})
        if self._lost and not self.spare:
            log.warning("the MCP server '%s' is available again", self.settings.name)
            self._lost = False

    def _log_lost(self, reason: str) -> None:
        """Warn once, however often it is tried before it is back."""
        level = logging.DEBUG if self._lost or self.spare else logging.WARNING
        log.log(level, "the MCP server '%s' is not available: %s", self.settings.name, reason)
        self._lost = True

    def _set_state(self, state: Any, **changes: Any) -> None:
        self.status = replace(self.status, state=state, **changes)
        if state != "starting":
            self.reached["settled"].set()
            self.reached["started"].set()
        if state not in ("starting", "ready"):
            self.reached["offers"].set()
        # Each change has an event of its own, so that no waiting call can miss a short-lived state.
        changed, self._status_changed = self._status_changed, asyncio.Event()
        changed.set()

    def note_tools(self, count: int, problems: tuple[str, ...], *, cached: bool) -> None:
        self.status = replace(self.status, tools=count, problems=problems, cached=cached)

    async def _answer_placeholder(self) -> str:
        """Log in, where that is what the server waits for; otherwise ToolError says why it is not available."""
        if self.status.state == "starting":
            await is_set_within(self._status_changed, self._timing.worth_waiting)
        if self._login.required:
            if not await self._log_in():
                raise self._login.error()
            await self._ready_connection()
        elif self._connection is None:
            if self.status.state == "failed":
                self._start_requested.set()
            raise unavailable(self.status.why())
        names = ", ".join(tool.path for tool in self.toolbox)
        return f"the MCP server '{self.settings.name}' is available now; its tools are: {names}"

    # Calls

    async def invoke(self, tool: types.Tool, arguments: dict[str, Any]) -> Any:
        """Call one of its tools for the current caller, from any loop, on which the result is converted."""
        result = await self.servers.perform(lambda: self.call(tool, arguments))
        if (caller := CALLER.get()) is not None:
            caller.received(result)
        return result_value(result, tool.output_schema, self.servers.media)

    async def _for_caller(self) -> Upstream:
        """This one, or the same server in the earlier protocol if the caller's client speaks that one."""
        caller, settings = CALLER.get(), self.settings
        mixed = self.callbacks.features.clients == "mixed" and settings.protocol == "auto" and settings.kind != "stdio"
        current = self.status.protocol in MODERN_PROTOCOL_VERSIONS
        if caller is None or caller.modern or not (mixed and current and settings.questions):
            return self
        if self._second is None:  # in an empty context: the connection outlives the call
            self._second = asyncio.get_running_loop().create_task(self._start_second(), context=contextvars.Context())
            self.servers.tasks.append(self._second)
        return await asyncio.shield(self._second) or self

    async def _start_second(self) -> Upstream | None:
        second = Upstream(replace(self.settings, protocol="earlier"), self.servers, spare=True)
        second.callbacks.features, second.log_level = self.callbacks.features, self.log_level
        supervisor = second.begin()
        assert supervisor is not None
        self.servers.tasks.append(supervisor)
        await second.reached["settled"].wait()
        if second.status.state == "ready":
            return second
        supervisor.cancel()
        asyncio.get_running_loop().call_later(_RETRY_SECONDS, setattr, self, "_second", None)
        return None

    async def call(self, tool: types.Tool, arguments: dict[str, Any]) -> types.CallToolResult:
        """Call one of its tools; ToolError says why that failed."""
        if (other := await self._for_caller()) is not self:
            return await other.call(tool, arguments)
        if tool is UNAVAILABLE:
            return types.CallToolResult(content=[types.TextContent(text=await self._answer_placeholder())])
        caller, on_progress = CALLER.get(), None
        if caller is not None and caller.wants_progress:
            on_progress = partial(caller.progress, f"{self.settings.name}.{tool.name}")

        async def work(connection: Connection) -> types.CallToolResult:
            return await connection.call(tool, arguments, on_progress, None if caller is None else caller.log_level)

        seconds = self.settings.setting_of(tool.name, "timeout")
        harmless = Hints.from_mcp(tool.annotations).repeatable
        try:
            return await self._perform(work, tool.name, seconds, harmless=harmless)
        except ToolError as problem:
            if not self._login.required:
                raise
            if not await self._log_in():
                raise self._login.error() from problem
        return await self._perform(work, tool.name, seconds, harmless=harmless)

    async def _log_in(self) -> bool:
        """Ask the person behind the client to log in; whether that worked, and the server is being started again."""
        return await self._login.ask(self.callbacks.features.caller()) and self.restart()

    async def log_in(self, show: Callable[[str], Awaitable[None]]) -> bool:
        """Let a person log in at the address that `show` gets; whether that worked."""
        return await self._login.log_in(show) and self.restart()

    def restart(self) -> bool:
        """Connect anew, without waiting for the next attempt."""
        if self._connection is not None:
            self._connection.transport.end()
        self._set_state("starting")
        self._start_requested.set()
        return True

    async def request(self, what: str, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Ask it for something that changes nothing; ToolError says why that failed."""
        if (other := await self._for_caller()) is not self:
            return await other.request(what, work)
        return await self._perform(work, what, self.settings.timeout, harmless=True)

    async def subscribe(self, uris: set[str]) -> dict[str, MCPError]:
        """Be told about changes of exactly these resources, also after a restart; why the server refused some."""
        refused: dict[str, MCPError] = {}
        before, self.subscribed = self.subscribed, set(uris)
        try:
            if self._connection is not None or uris:
                refused = await self.request("a subscription", lambda connection: connection.subscribe(uris))
        except BaseException:  # also if the client disconnects: the next client tries again
            self.subscribed = before
            raise
        self.subscribed -= refused.keys()
        return refused

    async def set_log_level(self, level: types.LoggingLevel) -> None:
        """Ask for log messages of this level, also after a restart."""
        self.log_level = level
        if self._second is not None and (second := await asyncio.shield(self._second)) is not None:
            await second.set_log_level(level)
        if self._connection is not None:
            await self.request("a log level", lambda connection: connection.set_log_level(level))

    async def _perform(
        self, work: Callable[[Connection], Awaitable[T]], what: str, seconds: float, *, harmless: bool
    ) -> T:
        try:
            async with asyncio.timeout(seconds) as timer:
                connection = await self._ready_connection()
                self._used_at = time.monotonic()
                with self.callbacks.call(timer):
                    try:
                        return redacted(await work(connection), self._hide)
                    except Exception as problem:
                        raise self._failure(connection, problem, harmless=harmless) from problem
                    finally:
                        self._used_at = time.monotonic()
        except TimeoutError:
            if (live := self._connection) is not None and not live.transport.ended.is_set():
                self._health_check = asyncio.create_task(live.end_unless_healthy(self._timing.health_check))
            message = f"the MCP server '{self.settings.name}' did not answer {what} within {seconds:g} s"
            raise ToolError(message, code="timeout", retryable=True) from None

    def _failure(self, connection: Connection, problem: Exception, *, harmless: bool) -> ToolError:
        """The error of a call; a connection that is of no more use is ended."""
        transport = connection.transport
        if self._login.required:
            error = self._login.error()
        elif is_lost(problem):
            error = lost_during_call(self.settings.name, transport, problem, harmless=harmless)
        else:
            return call_error(problem, self.settings.name, transport.refusal)
        transport.end()
        return error

    async def _ready_connection(self) -> Connection:
        """The live connection; a start that is in progress or due soon is waited for."""
        while self._connection is None or self._connection.transport.ended.is_set():
            status = self.status
            soon = status.retry_at is not None and status.retry_at - time.monotonic() <= self._timing.worth_waiting
            hopeless = status.state in ("closed", "off") or bool(self.settings.problem)
            if hopeless or (status.state == "retrying" and not soon):
                raise unavailable(status.why(), retryable=status.state == "retrying")
            if status.state == "failed" and self._start_requested.is_set():
                raise unavailable(status.why())
            if status.state in ("idle", "starting", "failed"):
                self._start_requested.set()
            await self._status_changed.wait()
            if self.status.state in ("retrying", "failed") and status.state in ("starting", "failed", "idle"):
                raise unavailable(self.status.why())
        return self._connection
