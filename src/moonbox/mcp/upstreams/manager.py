"""Upstreams: all servers of a configuration, on one event loop, for blocking and async callers alike."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeVar

from moonbox.errors import ClosedError, ToolError, UsageError
from moonbox.mcp.caller import ClientFeatures, OwnedMedia
from moonbox.mcp.upstreams.catalog import NAMESPACE, Directory, ToolCache
from moonbox.mcp.upstreams.status import Status, Timing
from moonbox.mcp.upstreams.upstream import Upstream
from moonbox.secrets import SecretRedactor
from moonbox.suggest import unknown
from moonbox.threads import LoopThread, on_loop, soon, unbroken, wait_on_loop
from moonbox.tools.toolbox import Toolbox

if TYPE_CHECKING:
    import mcp_types as types
    from mcp import MCPError

    from moonbox.config.mcp import ServerSettings
    from moonbox.mcp.upstreams.login import LoginStore
    from moonbox.mcp.upstreams.upstream import Until

_CLOSE_SECONDS = 15.0

T = TypeVar("T")


class Upstreams:
    """Starts the servers side by side, keeps them running, and offers their tools as `<server>.<tool>`.

    A server that is slow, broken or gone costs its own tools and nothing else. The servers live on an event loop in a
    thread of their own (`start`), or on the caller's loop (`start_here`), which saves two thread switches per call.
    `secrets` are values that nothing from a server may contain, by name.
    """

    def __init__(
        self,
        servers: Iterable[ServerSettings],
        *,
        cache: ToolCache | None = None,
        timing: Timing | None = None,
        logins: LoginStore | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        self.media = OwnedMedia()
        """Where images, audio and files are kept."""
        self.cache, self.timing, self.logins, self.hide = cache, timing or Timing(), logins, SecretRedactor(secrets)
        self._thread = LoopThread()
        self._home: asyncio.AbstractEventLoop | None = None
        self.tasks: list[asyncio.Task[Any]] = []
        """What keeps the servers running."""
        self._started = False
        self._closed = False
        self._upstreams: dict[str, Upstream] = {}
        self.toolbox = Toolbox()
        """The tools of all servers, in the order of the configuration."""
        self.on_offers_changed: Callable[[], None] = lambda: None
        """Called on the servers' loop when prompts or resources have changed."""
        self.on_resource_updated: Callable[[str], None] = lambda _: None
        """Called on the servers' loop with the public address of a resource that has changed."""
        for settings in servers:
            if settings.name in self._upstreams:
                raise UsageError(f"there are two MCP servers named '{settings.name}'; rename one")
            upstream = Upstream(settings, self)
            self._upstreams[settings.name] = upstream
            self.toolbox.follow(upstream.toolbox)
        # Only now: of equal names the first server's counts, while following a toolbox that has one would be an error.
        for upstream in self._upstreams.values():
            if upstream.settings.enabled and not upstream.settings.problem:
                upstream.load_cached()

    # Starting and closing

    def start(self, features: ClientFeatures | None = None) -> Upstreams:
        """Start all servers that are not lazy; returns at once. `features` is what they may ask clients for."""
        self._check_open()
        if self._upstreams and not self._started:
            self._thread.submit(lambda: self.start_here(features)).result()
        return self

    async def start_here(self, features: ClientFeatures | None = None) -> Upstreams:
        """The same on the running event loop, on which `aclose` must be awaited at the end."""
        self._check_open()
        if self._upstreams and not self._started:
            self._started, self._home = True, asyncio.get_running_loop()
            for upstream in self._upstreams.values():
                upstream.callbacks.features = features or ClientFeatures()
                # In an empty context: the server outlives the request during which it is started.
                task = contextvars.Context().run(upstream.begin)
                if task is not None:
                    self.tasks.append(task)
        return self

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the MCP servers are closed")

    def wait(self, seconds: float | None, until: Until = "settled") -> bool:
        """Wait until every server has reached this; whether that happened in time."""
        if self._home is None or self._home.is_closed():
            return True
        return wait_on_loop(self._home, self.async_wait(seconds, until))

    async def async_wait(self, seconds: float | None, until: Until = "settled") -> bool:
        """The same, awaited."""

        async def wait() -> bool:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    for upstream in self._upstreams.values():
                        await upstream.reached[until].wait()
                return True
            return False

        return self._home is None or self._home.is_closed() or await self._at_home(wait())

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._home is not None and not self._home.is_closed():
            with contextlib.suppress(TimeoutError):
                wait_on_loop(self._home, self._stop(), _CLOSE_SECONDS)
        with contextlib.suppress(TimeoutError):
            self._thread.close()

    async def aclose(self) -> None:
        """The same, awaited."""
        if self._home is asyncio.get_running_loop() and not self._closed:
            self._closed = True
            await self._stop()
        else:
            await unbroken(self.close)

    async def _stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def __enter__(self) -> Upstreams:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    # Status

    def __len__(self) -> int:
        return len(self._upstreams)

    def statuses(self) -> tuple[Status, ...]:
        return tuple(self._status(upstream) for upstream in self._upstreams.values())

    def status(self, name: str) -> Status:
        return self._status(self._find(name))

    def cached(self) -> tuple[str, ...]:
        """The servers whose tools are those of an earlier start, because they have not listed them yet."""
        return tuple(name for name, upstream in self._upstreams.items() if upstream.status.cached)

    def _status(self, upstream: Upstream) -> Status:
        """With the tools and prompts that cannot be reached: an earlier server of the configuration has their names."""
        status, hidden = upstream.status, self._hidden_by_others(upstream)
        return replace(status, problems=(*status.problems, *hidden)) if hidden else status

    def _hidden_by_others(self, upstream: Upstream) -> list[str]:
        hidden = []
        for earlier in takewhile(lambda other: other is not upstream, self._upstreams.values()):
            if earlier.settings.namespace == upstream.settings.namespace:
                taken, server = set(_offered_names(earlier)), earlier.settings.name
                hidden += [
                    f"its {name} is not offered: the server '{server}' has that name"
                    for name in _offered_names(upstream)
                    if name in taken
                ]
        return hidden

    def retry(self, name: str) -> None:
        """Start a server that is not ready, without waiting for its next attempt."""
        upstream = self._find(name)
        if upstream.status.state in ("retrying", "failed", "idle") and not upstream.settings.problem:
            soon(self._running_home(), upstream.restart)

    async def log_in(self, name: str, show: Callable[[str], Awaitable[None]]) -> bool:
        """Let a person log in at a server. `show` gets the address to open, on the servers' loop."""
        self._running_home()
        return await self._at_home(self._find(name).log_in(show))

    def pid(self, name: str) -> int | None:
        """The process of a server that has one (diagnostics)."""
        return self._find(name).pid

    def _find(self, name: str) -> Upstream:
        if name not in self._upstreams:
            raise UsageError(unknown("MCP server", name, self._upstreams))
        return self._upstreams[name]

    # Prompts and resources

    @cached_property
    def directory(self) -> Directory:
        """The prompts and resources of all servers; made anew after they have changed."""
        return Directory(self._upstreams)

    async def get_prompt(
        self, name: str, arguments: dict[str, str] | None, *, granted: bool = False
    ) -> types.GetPromptResult:
        """A prompt by its public name; `granted`: only if scripts may have it."""
        upstream, own = self.directory.find("prompts", name, granted=granted)
        return await self._at_home(upstream.request(own, lambda connection: connection.get_prompt(own, arguments)))

    async def read_resource(self, uri: str, *, granted: bool = False) -> types.ReadResourceResult:
        """A resource by its public address; `granted`: only if scripts may have it."""
        upstream, own = self.directory.find("resources", uri, granted=granted)
        result = await self._at_home(upstream.request(own, lambda connection: connection.read_resource(own)))
        if own == uri:
            return result
        contents = [
            item.model_copy(update={"uri": NAMESPACE + f"{upstream.settings.name}/{item.uri}"})
            for item in result.contents
        ]
        return result.model_copy(update={"contents": contents})

    async def complete(self, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Completions of an argument of a prompt or a template."""
        ref = params.ref
        if ref.type == "ref/prompt":
            upstream, own = self.directory.find("prompts", ref.name)
            ref = ref.model_copy(update={"name": own})
        else:
            upstream, own = self.directory.find("templates", ref.uri)
            ref = ref.model_copy(update={"uri": own})
        params = params.model_copy(update={"ref": ref, "meta": None})
        return await self._at_home(upstream.request("a completion", lambda connection: connection.complete(params)))

    async def subscribe(self, uris: Iterable[str]) -> dict[str, MCPError]:
        """Be told about changes of exactly these resources, by their public addresses; why servers refused some."""
        refused: dict[str, MCPError] = {}
        wanted: dict[str, dict[str, str]] = {name: {} for name in self._upstreams}
        for uri in uris:
            with contextlib.suppress(ToolError):  # no server has it
                upstream, inner = self.directory.find("resources", uri)
                wanted[upstream.settings.name][inner] = uri
        for name, own in wanted.items():
            if own.keys() != self._upstreams[name].subscribed:
                problems = await self._at_home(self._upstreams[name].subscribe(set(own)))
                refused |= {own[inner]: problem for inner, problem in problems.items()}
        return refused

    async def set_log_level(self, level: types.LoggingLevel) -> None:
        """Ask all servers for log messages of this level and above."""
        for upstream in self._upstreams.values():
            upstream.log_level = level
        if self._home is not None:
            work = (self._at_home(upstream.set_log_level(level)) for upstream in self._upstreams.values())
            await asyncio.gather(*work, return_exceptions=True)

    def offers_changed(self) -> None:
        self.__dict__.pop("directory", None)
        self.on_offers_changed()

    def resource_updated(self, upstream: Upstream, uri: str) -> None:
        self.on_resource_updated(uri)
        self.on_resource_updated(f"{NAMESPACE}{upstream.settings.name}/{uri}")

    # Calls

    def call(self, path: str, arguments: dict[str, Any] | None = None) -> Any:
        """Call `<server>.<tool>` and return its data; raises ToolError. For use without a Sandbox."""
        return wait_on_loop(self._running_home(), self.acall(path, arguments))

    async def acall(self, path: str, arguments: dict[str, Any] | None = None) -> Any:
        """The same, awaited."""
        tool = self.toolbox.resolve(path)
        return tool.convert_result(await tool.call(tool.bind(arguments or {})))

    async def perform(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Await this on the servers' loop, from any loop; ToolError if they are not running."""
        return await on_loop(self._running_home(), work())

    def _running_home(self) -> asyncio.AbstractEventLoop:
        if self._home is None or self._closed or self._home.is_closed():
            raise ToolError("the MCP servers are not running", code="unavailable")
        return self._home

    async def _at_home(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._home is not None
        return await on_loop(self._home, work)


def _offered_names(upstream: Upstream) -> list[str]:
    prompts = upstream.catalog.offers.prompts if upstream.settings.prompts else ()
    return [*(f"tool '{tool.path}'" for tool in upstream.toolbox), *(f"prompt '{prompt.name}'" for prompt in prompts)]
