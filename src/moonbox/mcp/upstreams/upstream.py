"""One upstream server: kept running by a supervisor task, with its tools and its status."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import secrets
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from mcp_types import ElicitRequest, ElicitRequestURLParams, ElicitResult
from pydantic import BaseModel

from moonbox.errors import ToolError
from moonbox.mcp.caller import CALLER
from moonbox.mcp.upstreams.browser import browser
from moonbox.mcp.upstreams.callbacks import Callbacks, ClientFeatures
from moonbox.mcp.upstreams.connection import Connection, connect, make_transport
from moonbox.mcp.upstreams.errors import call_error, describe, is_lost, unavailable
from moonbox.mcp.upstreams.login import LoginRequired, make_auth
from moonbox.mcp.upstreams.offers import EMPTY, Offers
from moonbox.mcp.upstreams.status import Status
from moonbox.mcp.upstreams.tools import convert_tools, placeholder
from moonbox.secrets import SecretRedactor
from moonbox.tools.hints import Hints
from moonbox.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.dispatcher import ProgressFnT
    from mcp_types import CallToolResult, LoggingLevel, LoggingMessageNotificationParams
    from mcp_types import Tool as McpTool

    from moonbox.config.mcp import ServerSettings
    from moonbox.mcp.caller import Caller
    from moonbox.mcp.upstreams.connection import Transport
    from moonbox.mcp.upstreams.login import Login, LoginStore
    from moonbox.mcp.upstreams.tools import ToolCache

__all__ = ["RelistDelay", "Timing", "Upstream"]

log = logging.getLogger("moonbox.mcp")
server_log = logging.getLogger("moonbox.mcp.stderr")

T = TypeVar("T")

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
        offers_changed: Callable[[], None] = lambda: None,
        resource_updated: Callable[[Upstream, str], None] = lambda _, __: None,
        cache: ToolCache | None = None,
        timing: Timing | None = None,
        logins: LoginStore | None = None,
        hide: SecretRedactor | None = None,
    ) -> None:
        self.settings = settings
        self._hide = hide or SecretRedactor()
        self._logins = logins
        self._login: Login | None = None
        self._login_required = False
        self._logging_in = asyncio.Lock()
        self._retry_now = asyncio.Event()
        self.toolbox = Toolbox()
        self.status = Status(settings.name, "idle" if settings.enabled else "off", settings.where)
        self.callbacks = Callbacks(settings.name)
        self.settled = asyncio.Event()
        """Set when waiting gains nothing: the first start is over, or the tools are known from an earlier run."""
        self.offers: Offers = EMPTY
        """Its prompts, resources and templates, as far as they are known."""
        self.offers_known = asyncio.Event()
        """Set when waiting for its offers gains nothing."""
        self.has_resources = False
        self.log_level: LoggingLevel | None = None
        """The most verbose level that a client asked for."""
        self._subscribed: set[str] = set()
        self._offers_changed = offers_changed
        self._resource_updated = resource_updated
        self._invoke = invoke
        self._cache = cache
        self._timing = timing or Timing()
        self._listed: list[McpTool] | None = None
        self._connection: Connection | None = None
        self._transport: Transport | None = None
        self._start_requested = asyncio.Event()
        self._status_changed = asyncio.Event()
        self._health_check: asyncio.Task[None] | None = None
        self._used_at = 0.0
        self._stopped_idle = False

    @property
    def pid(self) -> int | None:
        """The server's process, if we started one."""
        return None if self._transport is None else self._transport.pid

    # The supervisor

    def load_cached_tools(self) -> None:
        """Offer the tools of an earlier run until the server has listed its own."""
        listed = self._cache.get(self.settings) if self._cache is not None else None
        if listed is not None:
            self._publish(listed, cached=True)
            self.settled.set()
            offers = None if self._cache is None else self._cache.get_offers(self.settings)
            if offers is not None:
                self._take_offers(offers)

    def begin(self) -> asyncio.Task[None] | None:
        """Start the supervisor task on the running loop; None if the server is switched off."""
        if not self.settings.enabled:
            self.settled.set()
            self.offers_known.set()
            return None
        if self.settings.problem:
            log.warning("the MCP server '%s' is not available: %s", self.settings.name, self.settings.problem)
            self._set_state("failed", reason=self.settings.problem)
            self._offer_placeholder()
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
                reason = self._hide(await self._run_once(attempts))
                if self._stopped_idle:
                    attempts = 0
                    await self._wait_for_call()
                    continue
                if time.monotonic() - began > _STABLE_SECONDS and self.status.state == "ready":
                    attempts = 0
                attempts += 1
                log.warning("the MCP server '%s' is not available: %s", self.settings.name, reason)
                await self._wait_for_next_start(attempts, reason)
        finally:
            self._connection = None
            self._set_state("closed")

    async def _wait_for_call(self) -> None:
        """Nobody needed the server for a while, and it was stopped."""
        log.info("server stopped", extra={"fields": {"server": self.settings.name, "idle": self.settings.idle_seconds}})
        self._stopped_idle, self._transport = False, None
        self._start_requested.clear()
        self._set_state("idle", reason="")
        await self._start_requested.wait()

    async def _run_once(self, attempts: int) -> str:
        """Start the server and serve until it is lost; returns the reason."""
        self._start_requested.clear()
        began = time.monotonic()
        self._set_state("starting", attempts=attempts, retry_at=None)
        self._login_required = False
        self._transport = transport = make_transport(self.settings, await asyncio.to_thread(self._auth))
        transport.output.on_line = self._log_line
        features = self.callbacks.features if self.settings.questions else ClientFeatures()
        if not self.settings.sampling:
            features = replace(features, sampling=False)
        try:
            async with contextlib.AsyncExitStack() as stack:
                async with asyncio.timeout(self.settings.start_timeout):
                    connecting = connect(transport, features, self.callbacks.answer, self._log)
                    connection = await stack.enter_async_context(connecting)
                    listed = await connection.tools()
                self._publish(listed)
                await self._save(listed)  # before it is ready: whoever waited for it may close at once
                self._connection = connection
                self._set_state(
                    "ready",
                    reason="",
                    attempts=0,
                    protocol=connection.protocol,
                    server=connection.server,
                    login=self._login,
                    seconds=round(time.monotonic() - began, 3),
                )
                about = {"server": self.settings.name, "tools": self.status.tools, "seconds": self.status.seconds}
                log.info("server ready", extra={"fields": about})
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

    def _auth(self) -> OAuthClientProvider | None:
        """The tokens of an earlier login; read in a thread, because a keyring may take its time."""
        if self._logins is None or self.settings.url is None:
            return None
        self._login = self._logins.login(self.settings)
        return make_auth(self.settings, self._logins, on_required=self._require_login)

    def _require_login(self) -> None:
        self._login_required = True

    def _with_output(self, reason: str) -> str:
        if self._login_required or (self._transport is not None and " 401 " in f"{self._transport.refusal} "):
            self._login_required = True
            return str(LoginRequired(self.settings.name))
        last = self._transport.output.last_line() if self._transport is not None else ""
        return f"{reason}; its last output: {last}" if last else reason

    async def _follow(self, connection: Connection) -> None:
        """Keep the tools of a live connection up to date until it ends."""
        connection.resource_updated = lambda uri: self._resource_updated(self, uri)
        work = (
            self._relist(connection),
            connection.follow(),
            self._follow_offers(connection),
            self._settle(connection),
            self._stop_when_idle(connection),
        )
        tasks = [asyncio.create_task(item) for item in work]
        try:
            await connection.wait_ended()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _stop_when_idle(self, connection: Connection) -> None:
        """End the connection of a lazy server that nobody needs."""
        seconds = self.settings.idle_seconds
        if seconds is None:
            return
        self._used_at = time.monotonic()
        while (rest := self._used_at + seconds - time.monotonic()) > 0 or self.callbacks.calls or self._subscribed:
            await asyncio.sleep(max(rest, 0.05))
        self._stopped_idle = True
        connection.broken.set()  # from here on a call waits for the next start

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

    async def _follow_offers(self, connection: Connection) -> None:
        """List prompts and resources now, and again when they changed."""
        delay = RelistDelay()
        while True:
            connection.offers_changed.clear()
            delay.listed()
            try:
                async with asyncio.timeout(self.settings.start_timeout):
                    offers = await connection.offers()
            except Exception as problem:  # noqa: BLE001 - the old list stays; a lost connection is noticed elsewhere
                reason = describe(problem)
                log.warning("the MCP server '%s' failed to list what it offers: %s", self.settings.name, reason)
                self.offers_known.set()
            else:
                capabilities = connection.session.server_capabilities
                self.has_resources = capabilities is not None and capabilities.resources is not None
                self._take_offers(offers)
                await self._save(self._listed or [])
            await connection.offers_changed.wait()
            await asyncio.sleep(delay.next())

    def _take_offers(self, offers: Offers) -> None:
        changed, self.offers = offers != self.offers, offers
        self.offers_known.set()
        if changed:
            self._offers_changed()

    async def _settle(self, connection: Connection) -> None:
        """Tell a new connection what clients asked for before."""
        try:
            async with asyncio.timeout(self.settings.start_timeout):
                if self.log_level is not None:
                    await connection.set_log_level(self.log_level)
                if self._subscribed:
                    await connection.subscribe(self._subscribed)
        except Exception as problem:  # noqa: BLE001 - a server that refuses these is of use without them
            log.warning("the MCP server '%s' refused a setting: %s", self.settings.name, describe(problem))

    def _log(self, params: LoggingMessageNotificationParams) -> None:
        name = self.settings.namespace
        if name:
            logger = f"{name}.{params.logger}" if params.logger else name
            params = params.model_copy(update={"logger": logger})
        self.callbacks.log(self._cleaned(params))

    def _log_line(self, line: str) -> None:
        """What the server's process wrote to its standard error."""
        server_log.info("%s", self._hide(line), extra={"fields": {"server": self.settings.name}})

    def _cleaned(self, model: T) -> T:
        """What a server sent, without secrets."""
        if not self._hide or not isinstance(model, BaseModel):
            return model
        data = model.model_dump(mode="json", by_alias=True)
        clean = self._hide(data)
        return model if clean is data else type(model).model_validate(clean, by_name=False)

    async def _save(self, listed: list[McpTool]) -> None:
        if self._cache is not None:
            await asyncio.to_thread(self._cache.put, self.settings, listed, self.offers)

    async def _wait_for_next_start(self, attempts: int, reason: str) -> None:
        """Wait longer each time; after the last attempt, until a call asks for the server."""
        output = self._hide(self._transport.output.text()) if self._transport is not None else ""
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
        self._retry_now.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await self._retry_now.wait()

    def _set_state(self, state: Any, **changes: Any) -> None:
        self.status = replace(self.status, state=state, **changes)
        if state != "starting":
            self.settled.set()
        if state not in ("starting", "ready"):
            self.offers_known.set()
        # Each change has an event of its own, so that no waiting call can miss a short-lived state.
        changed, self._status_changed = self._status_changed, asyncio.Event()
        changed.set()

    # The toolbox, which scripts in other threads read

    def _publish(self, listed: list[McpTool], *, cached: bool = False) -> None:
        async def invoke(tool: McpTool, arguments: dict[str, Any]) -> Any:
            return await self._invoke(self, tool, arguments)

        self._listed = listed
        converted = convert_tools(listed, self.settings, invoke)
        if not self.settings.namespace:
            self.toolbox.set_namespace(self.settings.name, ())  # where the placeholder was
        self.toolbox.set_namespace(self.settings.namespace or None, converted.tools)
        self.status = replace(self.status, tools=len(converted.tools), problems=converted.problems, cached=cached)

    def _offer_placeholder(self) -> None:
        if self._listed is None and not len(self.toolbox):
            loop = asyncio.get_running_loop()

            def error() -> ToolError:
                loop.call_soon_threadsafe(self._start_requested.set)  # called in the thread of the script
                return unavailable(self.status.why())

            instead = placeholder(error, self.settings.problem)
            self.toolbox.set_namespace(self.settings.namespace or self.settings.name, [instead])

    # Calls

    async def call(self, tool: McpTool, arguments: dict[str, Any]) -> CallToolResult:
        """Call one of its tools; ToolError says why that failed."""
        hints = Hints.from_mcp(tool.annotations)

        async def work(connection: Connection, caller: Caller | None) -> CallToolResult:
            on_progress = _progress_reporter(caller, f"{self.settings.name}.{tool.name}")
            level = None if caller is None else caller.log_level
            return await connection.call(tool, arguments, on_progress, level)

        seconds, harmless = self.settings.timeout_of(tool.name), bool(hints.read_only or hints.idempotent)
        try:
            return await self._perform(work, tool.name, seconds, harmless=harmless)
        except ToolError:
            if not self._login_required or not await self._log_in():
                raise
        return await self._perform(work, tool.name, seconds, harmless=harmless)

    async def _log_in(self) -> bool:
        """Ask the person behind the client to log in, by an address that the client opens; whether that worked.

        Only over stdio: the browser returns to this machine, and the login is this person's own.
        """
        if self._logins is None or self.callbacks.features.caller() is None:
            return False
        async with self._logging_in:
            if not self._login_required:
                return True
            try:
                async with browser(self._show_address) as person:
                    auth = await asyncio.to_thread(make_auth, self.settings, self._logins, person)
                    transport = make_transport(self.settings, auth)
                    async with connect(transport, ClientFeatures(), self.callbacks.answer) as connection:
                        await connection.tools()
            except Exception as problem:  # noqa: BLE001 - the call fails with the reason that it had
                log.warning("the login at the MCP server '%s' failed: %s", self.settings.name, describe(problem))
                return False
            self._login_required = False
            if self._connection is not None:
                self._connection.broken.set()
            self._set_state("starting")
            self._retry_now.set()
            self._start_requested.set()
            return True

    async def _show_address(self, address: str) -> None:
        message = f"Log in to use the MCP server '{self.settings.name}'."
        params = ElicitRequestURLParams(message=message, url=address, elicitation_id=secrets.token_hex(8))
        caller = CALLER.get() or self.callbacks.features.caller()
        answer = None if caller is None else await caller.forward(ElicitRequest(params=params))
        if not isinstance(answer, ElicitResult) or answer.action != "accept":
            raise LoginRequired(self.settings.name)

    async def request(self, what: str, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Ask it for something that changes nothing; ToolError says why that failed."""
        return await self._perform(lambda connection, _: work(connection), what, self.settings.timeout, harmless=True)

    async def subscribe(self, uris: set[str]) -> None:
        """Be told about changes of exactly these resources, also after a restart."""
        before, self._subscribed = self._subscribed, set(uris)
        try:
            if self._connection is not None or uris:
                await self.request("a subscription", lambda connection: connection.subscribe(self._subscribed))
        except ToolError:
            self._subscribed = before
            raise

    async def set_log_level(self, level: LoggingLevel) -> None:
        """Ask for log messages of this level, also after a restart."""
        self.log_level = level
        if self._connection is not None:
            await self.request("a log level", lambda connection: connection.set_log_level(level))

    async def _perform(
        self,
        work: Callable[[Connection, Caller | None], Awaitable[T]],
        what: str,
        seconds: float,
        *,
        harmless: bool,
    ) -> T:
        try:
            async with asyncio.timeout(seconds) as timer:
                connection = await self._ready_connection()
                self._used_at = time.monotonic()
                with self.callbacks.call(timer) as caller:
                    try:
                        return self._cleaned(await work(connection, caller))
                    except Exception as problem:
                        if self._login_required:
                            connection.broken.set()
                            reason = f"the MCP server '{self.settings.name}': {LoginRequired(self.settings.name)}"
                            raise ToolError(reason, code="login_required") from problem
                        if not is_lost(problem):
                            raise call_error(problem, self.settings.name, connection.transport.refusal) from problem
                        connection.broken.set()
                        raise self._lost_during_call(connection, problem, harmless) from problem
                    finally:
                        self._used_at = time.monotonic()
        except TimeoutError:
            self._start_health_check()
            raise ToolError(
                f"the MCP server '{self.settings.name}' did not answer {what} within {seconds:g} s",
                code="timeout",
                retryable=True,
            ) from None

    async def _ready_connection(self) -> Connection:
        """The live connection; a start that is in progress or due soon is waited for."""
        while self._connection is None or self._connection.broken.is_set():
            status = self.status
            soon = status.retry_at is not None and status.retry_at - time.monotonic() <= self._timing.worth_waiting
            hopeless = status.state in ("closed", "off") or bool(self.settings.problem)
            if hopeless or (status.state == "retrying" and not soon):
                raise unavailable(status.why(), retryable=status.state == "retrying")
            if status.state == "failed" and self._start_requested.is_set():
                raise unavailable(status.why())
            if status.state in ("idle", "failed"):
                self._start_requested.set()
            await self._status_changed.wait()
            if self.status.state in ("retrying", "failed") and status.state in ("starting", "failed", "idle"):
                raise unavailable(self.status.why())
        return self._connection

    def _lost_during_call(self, connection: Connection, problem: BaseException, harmless: bool) -> ToolError:
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
        caller.progress(name, progress, total, message)

    return report
