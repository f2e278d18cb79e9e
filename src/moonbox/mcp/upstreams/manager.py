"""Upstreams: all servers of a configuration, on one event loop, for blocking and async callers alike."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import time
from typing import TYPE_CHECKING, Any

from moonbox.errors import ClosedError, ToolError, UsageError
from moonbox.mcp.upstreams.results import unwrap
from moonbox.mcp.upstreams.upstream import Upstream
from moonbox.sandbox.threads import LoopThread
from moonbox.suggest import suggestion
from moonbox.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from mcp_types import CallToolResult
    from mcp_types import Tool as Listed

    from moonbox.mcp.media import Media
    from moonbox.mcp.upstreams.broker import Broker
    from moonbox.mcp.upstreams.listing import Listings
    from moonbox.mcp.upstreams.settings import ServerSettings
    from moonbox.mcp.upstreams.status import Status

__all__ = ["Upstreams"]

_LOOK = 0.02
_CLOSE_SECONDS = 15.0


class Upstreams:
    """Starts the servers side by side, keeps them running, and offers their tools as `<server>.<tool>`.

    A server that is slow, broken or gone costs its own tools and nothing else. They live on an event loop in a thread
    of their own, or on the caller's (`start_here`), which saves each call two changes of thread.
    """

    def __init__(
        self, servers: Iterable[ServerSettings], *, listings: Listings | None = None, media: Media | None = None
    ) -> None:
        self._media = media
        self._thread = LoopThread()
        self._home: asyncio.AbstractEventLoop | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._started = False
        self._closed = False
        self._validators: dict[str, tuple[Listed | None, Any]] = {}
        self._upstreams: dict[str, Upstream] = {}
        self.toolbox = Toolbox()
        """The tools of every server, in the order of the configuration, whichever was up first."""
        for settings in servers:
            if settings.name in self._upstreams:
                raise UsageError(f"there are two MCP servers named {settings.name!r}; rename one")
            upstream = Upstream(settings, invoke=self._invoke, listings=listings)
            self._upstreams[settings.name] = upstream
            self.toolbox.follow(upstream.toolbox)
            if settings.enabled:
                upstream.recall()

    # Life

    def start(self, broker: Broker | None = None) -> Upstreams:
        """Start every server that is not lazy; returns at once. `broker` answers what servers ask back."""
        if self._begins():
            self._thread.submit(self._start(broker)).result()
        return self

    async def start_here(self, broker: Broker | None = None) -> Upstreams:
        """The same on the running event loop; whoever uses it must end it with `aclose`, on the same loop."""
        if self._begins():
            await self._start(broker)
        return self

    def _begins(self) -> bool:
        if self._closed:
            raise ClosedError("the MCP servers were closed")
        begins, self._started = not self._started and bool(self._upstreams), True
        return begins

    async def _start(self, broker: Broker | None) -> None:
        self._home = asyncio.get_running_loop()
        for upstream in self._upstreams.values():
            upstream.under_way.broker = broker
            if upstream.settings.enabled:
                upstream.begin()
                # In a context of its own: the servers belong to nobody's request.
                task = self._home.create_task(upstream.run(), context=contextvars.Context())
                self._tasks.append(task)

    def wait(self, seconds: float) -> bool:
        """Wait until each server is up, or has failed once; whether all were in time."""
        until = time.monotonic() + seconds
        while not self.settled:
            if time.monotonic() > until:
                return False
            time.sleep(_LOOK)
        return True

    async def await_(self, seconds: float) -> bool:
        """The same, awaited."""
        until = time.monotonic() + seconds
        while not self.settled:
            if time.monotonic() > until:
                return False
            await asyncio.sleep(_LOOK)
        return True

    @property
    def settled(self) -> bool:
        """Whether each server is up, has failed once, or has tools that are known from the last time."""
        return all(upstream.settled for upstream in self._upstreams.values())

    def close(self) -> None:
        """End every server."""
        if self._closed:
            return
        self._closed = True
        if self._home is not None and not self._home.is_closed():
            with contextlib.suppress(TimeoutError):
                asyncio.run_coroutine_threadsafe(self._stop(), self._home).result(_CLOSE_SECONDS)
        with contextlib.suppress(TimeoutError):
            self._thread.close()

    async def aclose(self) -> None:
        """The same, awaited."""
        if self._home is asyncio.get_running_loop() and not self._closed:
            self._closed = True
            await self._stop()
        else:
            await asyncio.to_thread(self.close)

    async def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def __enter__(self) -> Upstreams:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Looking

    def __len__(self) -> int:
        return len(self._upstreams)

    @property
    def servers(self) -> tuple[ServerSettings, ...]:
        return tuple(upstream.settings for upstream in self._upstreams.values())

    def statuses(self) -> tuple[Status, ...]:
        """How each server is, in the order of the configuration."""
        return tuple(upstream.status for upstream in self._upstreams.values())

    def status(self, name: str) -> Status:
        return self._find(name).status

    def pid(self, name: str) -> int | None:
        """The process of a server that has one (diagnostics)."""
        return self._find(name).pid

    def _find(self, name: str) -> Upstream:
        if name not in self._upstreams:
            known = ", ".join(self._upstreams) or "none"
            raise UsageError(f"there is no MCP server {name!r}{suggestion(name, self._upstreams)}; there are: {known}")
        return self._upstreams[name]

    # Calling

    def call(self, path: str, arguments: dict[str, Any] | None = None) -> Any:
        """Call `<server>.<tool>` and return its data; raises ToolError. For use without a Sandbox."""
        return asyncio.run_coroutine_threadsafe(self._called(path, arguments), self._running()).result()

    async def acall(self, path: str, arguments: dict[str, Any] | None = None) -> Any:
        """The same, awaited."""
        return await self._called(path, arguments)

    async def _called(self, path: str, arguments: dict[str, Any] | None) -> Any:
        tool = self.toolbox.resolve(path)
        return tool.convert_result(await tool.call(tool.bind(arguments or {})))

    async def _invoke(self, upstream: Upstream, tool: Listed, arguments: dict[str, Any]) -> Any:
        """Carry a call over to the servers' loop; what it costs to understand the result is paid here."""
        home, work = self._running(), upstream.call(tool, arguments)
        result: CallToolResult
        if home is asyncio.get_running_loop():
            result = await work
        else:
            # The task over there inherits our context, and with it the caller; cancelling here cancels it there.
            result = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, home))
        self._check(upstream, tool, result)
        return unwrap(result, tool.output_schema, self._media)

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._home is None or self._closed or self._home.is_closed():
            raise ToolError("the MCP servers are not running", code="unavailable")
        return self._home

    def _check(self, upstream: Upstream, tool: Listed, result: CallToolResult) -> None:
        """A result must keep to the schema that its tool declared: scripts were written by it."""
        if tool.output_schema is None or result.is_error:
            return
        name = f"{upstream.settings.name}.{tool.name}"
        if result.structured_content is None:
            raise ToolError(f"{name} declares a result schema and returned no data to fit it", code="bad_result")
        validator = self._validator(name, tool)
        problem = next(validator.iter_errors(result.structured_content), None) if validator is not None else None
        if problem is not None:
            raise ToolError(
                f"the result of {name} does not fit the schema that it declares: {problem.message[:300]}",
                code="bad_result",
            )

    def _validator(self, name: str, tool: Listed) -> Any:
        import jsonschema_rs

        known, made = self._validators.get(name, (None, None))
        if known is not tool:  # another listing, perhaps another schema
            try:
                schema = tool.output_schema or {}
                made = jsonschema_rs.validator_for(schema, validate_formats=False, retriever=_refuse)
            except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError, TypeError):
                made = None  # a schema that cannot be read cannot be held against anybody
            self._validators[name] = (tool, made)
        return made


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} is not fetched")
