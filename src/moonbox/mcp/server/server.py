"""MoonboxServer: an MCP server that offers a CodeMode, on any transport and in every protocol version."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server import NotificationOptions, Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from pydantic import ValidationError

from moonbox._version import __version__
from moonbox.config.sections import ServeSettings
from moonbox.errors import MoonboxError
from moonbox.mcp.caller import ClientFeatures
from moonbox.mcp.server.call import OpenCall
from moonbox.mcp.server.calls import OpenCalls, TaskCalls
from moonbox.mcp.server.notifications import ChangeNotifier
from moonbox.mcp.server.passthrough import Passthrough, Resources
from moonbox.mcp.server.sessions import McpClient, session_key
from moonbox.mcp.server.tools import ToolRunner, ToolViews
from moonbox.mcp.upstreams.manager import Upstreams
from moonbox.threads import in_thread

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.models import InitializationOptions

    from moonbox.audit.sinks import Trail
    from moonbox.codemode.mode import CodeMode
    from moonbox.mcp.server.call import Outcome
    from moonbox.mcp.upstreams.upstream import Until

    Request = ServerRequestContext[Any, Any]

log = logging.getLogger("moonbox.mcp")

NAME = "moonbox"
CACHED_KEY = "moonbox/cached"
"""In the `_meta` of a list of tools: the servers that have not listed theirs yet, and are shown as they were before."""
_REFRESH_SECONDS = 1.0
_SWEEP_SECONDS = 1.0


class MoonboxServer:
    """Connects the protocol with a CodeMode. `app` is the SDK's server; run it inside of `running()`.

    mode        what clients are shown
    upstreams   the servers behind it, started with the first request
    trail       where runs can be read; without one the latest are kept in memory
    refresh     called each second: picks up changed files
    on_ready    called in a thread once the servers behind it are ready, or could not be started
    """

    def __init__(
        self,
        mode: CodeMode,
        *,
        settings: ServeSettings | None = None,
        upstreams: Upstreams | None = None,
        trail: Trail | None = None,
        refresh: Callable[[], object] | None = None,
        on_ready: Callable[[], object] = lambda: None,
    ) -> None:
        self.settings = settings or ServeSettings()
        self._mode = mode
        self._refresh, self._on_ready = refresh, on_ready
        upstreams = Upstreams(()) if upstreams is None else upstreams
        self._cached = upstreams.cached
        self.requests = Requests(upstreams, self.settings)
        self._resources = Resources(trail=trail, upstreams=upstreams)
        self._views = ToolViews(mode, self.settings)
        journal = mode.sandbox.journal if mode.sandbox.has_journal else None
        self._calls = OpenCalls(self.settings, self._views.direct_name, journal)
        self._runner = ToolRunner(mode, self.settings, self._calls, self._resources.add_run)
        self._calls.recover = self._runner.recover
        self.turn = self._runner.turn
        self._notifier = ChangeNotifier(mode.sandbox.toolbox, lambda: self._views.view().tools)
        self._offers = offers = Passthrough(
            upstreams, self._resources, self._notifier, self.settings, partial(self.requests.wait, "offers")
        )
        self.app = self._sdk_server(offers)
        self.end_streams: Callable[[], None] = lambda: None
        """Ends the streams of the transport on which no request waits."""

    def _sdk_server(self, offers: Passthrough) -> _SdkServer:
        app = _SdkServer(
            NAME,
            version=__version__,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_prompts=offers.list_prompts,
            on_get_prompt=offers.get_prompt,
            on_completion=offers.complete,
            on_list_resources=offers.list_resources,
            on_list_resource_templates=offers.list_templates,
            on_read_resource=offers.read_resource,
            on_subscribe_resource=offers.subscribe,
            on_unsubscribe_resource=offers.unsubscribe,
            on_subscriptions_listen=offers.listen,
            get_tool_input_schema=self._views.header_schema,
        )
        # Not an argument: the newest protocol has no log levels, and the SDK warns of them.
        app.add_request_handler("logging/setLevel", types.SetLevelRequestParams, offers.set_level)
        app.describe = lambda: self._mode.system_prompt
        security = RequestStateSecurity.ephemeral(ttl=self.settings.answer_seconds)
        # Replaces the SDK's tracing: moonbox records its own spans, with scripts, calls and limits.
        boundary = RequestStateBoundary(security, default_audience=NAME)
        tasks = TaskCalls(self._begin, self.requests.wait, self._views, self._calls)
        tasks.register(app)
        app.middleware[:] = [self.requests, boundary, tasks]
        return app

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[MoonboxServer]:
        """While this lasts, clients are notified of changes and idle state ends; then all calls are stopped."""
        background = (self._notifier.run(), self._sweep(), self._refresh_files(), self._report_ready())
        tasks = [asyncio.create_task(work) for work in background]
        try:
            yield self
        finally:
            self._notifier.listen.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._mode.sandbox.has_journal:  # scripts in the background continue after the next start
                self._mode.sandbox.journal.suspended.update(self._calls.suspended())
            await self._calls.close()
            await self.requests.stop()

    async def wind_down(self, seconds: float) -> None:
        """End what waits for news of this server at once, and after these seconds every request that is still open."""
        self._notifier.listen.close()
        self.end_streams()
        await asyncio.sleep(seconds)
        self.requests.end()

    async def end_session(self, owner: str, session: str) -> None:
        """The session of a client has ended: its state ends too."""
        self._mode.sessions.end(session_key(owner, session), unless_used=True)
        await self._offers.end_session(f"{owner}|{session}")

    # Requests

    async def _list_tools(self, context: Request, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        client = McpClient.of(context)
        await self.requests.wait()
        self._notifier.add(client)
        cached = self._cached()
        meta: Any = {CACHED_KEY: list(cached)} if cached else None
        return types.ListToolsResult(tools=list(self._views.of(client).tools), _meta=meta)

    async def _call_tool(self, context: Request, params: types.CallToolRequestParams) -> Outcome:
        client = McpClient.of(context)
        if not client.modern and (level := self._notifier.level_of(client)) is not None:
            client = replace(client, log_level=level)
        if params.request_state is not None:
            call = self._calls.find(params.request_state, client)
            if call is None:
                raise MCPError(
                    types.INVALID_PARAMS, "the call that asked for this input has ended; call the tool again"
                )
            call.take_answers(params.input_responses)
            return await self._calls.resume(call, client)
        wait_tool = self._views.of(client).wait_tool
        if params.name == wait_tool:
            return await self._calls.wait(client, params.arguments or {}, wait_tool)
        await self.requests.wait()
        return await self._calls.resume(self._begin(client, params), client)

    def _begin(self, client: McpClient, params: types.CallToolRequestParams) -> OpenCall:
        """Start a call of a tool."""
        view = self._views.of(client)
        script = params.name == view.code_tool
        run = partial(self._runner.run, client=client, params=params, view=view)
        return self._calls.start(client, run, script=script, wait_tool=view.wait_tool if script else None)

    # In the background

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(min(_SWEEP_SECONDS, self.settings.idle_seconds / 2))
            self._calls.sweep()
            try:
                await self._calls.stop_given_up()
            except MoonboxError as problem:
                log.warning("scripts in the background: %s", problem)
            self._mode.sessions.end_idle()

    async def _report_ready(self) -> None:
        try:
            await self.requests.first_start()
            await in_thread(self._on_ready)
        except MoonboxError as problem:
            log.warning("interrupted runs are not continued: %s", problem)

    async def _refresh_files(self) -> None:
        while self._refresh is not None:
            await asyncio.sleep(_REFRESH_SECONDS)
            try:
                await in_thread(self._refresh)
            except Exception as problem:  # noqa: BLE001 - a folder that cannot be read now may be readable later
                log.warning("tool scripts: %s", problem)


class Requests:
    """Middleware: logs requests, starts the upstreams with the first one, and ends those that are open with an error.

    The upstreams are told what the client supports. Over stdio there is one client, whose features are known. Over HTTP
    clients differ: `start_for_all` announces what a client may support, and a question that a client does not support
    is refused when it comes.
    """

    def __init__(self, upstreams: Upstreams, settings: ServeSettings) -> None:
        self._upstreams = upstreams
        self._settings = settings
        self._wait_until: float | None = None
        self._begun = asyncio.Event()
        self._latest: Request | None = None
        self._open: set[anyio.CancelScope] = set()

    async def __call__(self, ctx: Request, call_next: CallNext) -> HandlerResult:
        method, began, result = getattr(ctx, "method", None) or "unknown", time.monotonic(), "failed"
        log.debug("request begins", extra={"fields": {"method": method}})
        scope = anyio.CancelScope()
        self._open.add(scope)
        try:
            with scope:
                if ctx.request_id is not None and ctx.request is None:
                    self._latest = ctx
                    if self._wait_until is None:
                        await self._start(_client_features(ctx, self._standalone_caller))
                answer = await call_next(ctx)
                result = "ok"
                return answer
            raise MCPError(types.INTERNAL_ERROR, "the server is being stopped, and the request with it")
        finally:
            self._open.discard(scope)
            ms = round((time.monotonic() - began) * 1000)
            log.info("request", extra={"fields": {"method": method, "result": result, "ms": ms}})

    def end(self) -> None:
        for scope in self._open:
            scope.cancel()

    async def start_for_all(self, *, owners: bool) -> None:
        """`owners`: clients are told apart by their tokens."""
        await self._start(ClientFeatures(sampling=True, elicitation=True, roots=True, shared=owners, clients="mixed"))

    async def wait(self, until: Until = "settled") -> None:
        """Give servers that are still starting some time, counted from the first request."""
        seconds = 0.0 if self._wait_until is None else max(0.0, self._wait_until - time.monotonic())
        await self._upstreams.async_wait(seconds, until)

    async def first_start(self) -> None:
        """Wait until each server is ready or could not be started: over stdio, the first request starts them."""
        if self._upstreams:
            await self._begun.wait()
        await self._upstreams.async_wait(None, "started")

    async def stop(self) -> None:
        if self._upstreams and self._wait_until is not None:
            await self._upstreams.aclose()

    async def _start(self, features: ClientFeatures) -> None:
        self._wait_until = time.monotonic() + self._settings.start_wait
        await self._upstreams.start_here(features)
        self._begun.set()

    def _standalone_caller(self) -> OpenCall | None:
        """The client of the latest request, outside of any call: over stdio there is only one."""
        if self._latest is None:
            return None
        client = replace(McpClient.of(self._latest), request_id=None, log_level=None, wants_progress=False)
        return OpenCall(client, self._settings, script=False)


def _client_features(context: Request, caller: Callable[[], OpenCall | None]) -> ClientFeatures:
    """What the client supports, according to the handshake or to its request."""
    known = context.session.client_capabilities or types.ClientCapabilities()
    if context.method == "initialize":
        declared = (context.params or {}).get("capabilities", {})
        with contextlib.suppress(ValidationError):
            known = types.ClientCapabilities.model_validate(declared, by_name=False)
    return ClientFeatures(
        sampling=known.sampling is not None,
        elicitation=known.elicitation is not None,
        roots=known.roots is not None,
        caller=caller,
        clients="current" if McpClient.of(context).modern else "earlier",
    )


class _SdkServer(Server[Any]):
    """The SDK's server, announcing list changes and tasks, with instructions that follow the tools."""

    describe: Callable[[], str]

    def create_initialization_options(self, *_: Any, **__: Any) -> InitializationOptions:
        changing = NotificationOptions(tools_changed=True, prompts_changed=True, resources_changed=True)
        options = super().create_initialization_options(changing)
        # Made for the handshake alone: the protocol without one leaves tasks to an extension.
        declared: dict[str, Any] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
        tasks = types.ServerTasksCapability.model_validate(declared)
        capabilities = options.capabilities.model_copy(update={"tasks": tasks})
        return options.model_copy(update={"capabilities": capabilities})

    @property
    def instructions(self) -> str | None:
        return self.describe() or None

    @instructions.setter
    def instructions(self, _: str | None) -> None:
        """Set by the SDK's constructor; ours are made when they are read."""
