"""MoonboxServer: an MCP server that offers a CodeMode, whatever transport and protocol a client comes by."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any

from mcp import MCPError
from mcp.server import NotificationOptions, Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp_types import INVALID_PARAMS, ListToolsResult

from moonbox._version import __version__
from moonbox.codemode.mode import Reply
from moonbox.config.serve import ServeSettings
from moonbox.errors import MoonboxError
from moonbox.mcp.media import Media
from moonbox.mcp.server import answers
from moonbox.mcp.server.announcer import Announcer
from moonbox.mcp.server.conversations import META_KEY, STATE, Busy, Conversations, Place, session_key
from moonbox.mcp.server.ongoing import Ongoing, OngoingCalls, Rules
from moonbox.mcp.server.peer import Peer
from moonbox.mcp.server.resources import Resources
from moonbox.mcp.server.shares import Shares, TooMany
from moonbox.mcp.server.shown import Shown, View
from moonbox.mcp.server.starting import Starting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from mcp.server.context import ServerRequestContext
    from mcp.server.models import InitializationOptions
    from mcp_types import (
        CallToolRequestParams,
        CallToolResult,
        InputRequiredResult,
        ListResourcesResult,
        ListResourceTemplatesResult,
        PaginatedRequestParams,
        ReadResourceRequestParams,
        ReadResourceResult,
    )

    from moonbox.audit.sinks import Trail
    from moonbox.codemode.mode import CodeMode
    from moonbox.mcp.upstreams.manager import Upstreams

    Request = ServerRequestContext[Any, Any]

__all__ = ["MoonboxServer"]

log = logging.getLogger("moonbox.mcp")

NAME = "moonbox"
_LOOK_AT_FILES = 1.0
_SWEEP = 5.0


class MoonboxServer:
    """Ties the protocol to a CodeMode. `app` is the SDK's server; run it inside `running()`.

    mode        what clients are shown
    upstreams   the servers behind it, started when the first client is there (or by whoever made them)
    trail       where runs can be read; without one the latest are kept in memory
    media       what upstream tools returned beside text
    refresh     called each second: takes up changed files
    """

    def __init__(
        self,
        mode: CodeMode,
        *,
        settings: ServeSettings | None = None,
        upstreams: Upstreams | None = None,
        trail: Trail | None = None,
        media: Media | None = None,
        refresh: Callable[[], object] | None = None,
    ) -> None:
        self.mode = mode
        self.settings = settings or ServeSettings()
        self._media = media or Media()
        self._refresh = refresh
        self._shown = Shown(mode, structured=self.settings.structured)
        self.starting = Starting(upstreams, self.settings.start_wait)
        self.resources = Resources(trail=trail, media=self._media, upstreams=upstreams)
        self.conversations = Conversations(
            mode.end, idle_seconds=self.settings.idle_seconds, most=self.settings.max_conversations
        )
        self._ongoing = OngoingCalls(
            Rules(
                self.settings.answer_seconds,
                self.settings.resume_seconds,
                self.settings.direct_without_asking,
                self._direct_name,
            )
        )
        self._shares = Shares(self.settings.max_calls, self.settings.max_waiting)
        self._announcer = Announcer(mode.sandbox.toolbox, self._shown)
        self.app = _Server(
            NAME,
            version=__version__,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscriptions_listen=self._announcer.listen,
            get_tool_input_schema=lambda name: self._shown.view(asks=False, stateless=True, modern=True).schema(name),
        )
        self.app.describe = lambda: mode.system_prompt
        security = RequestStateSecurity.ephemeral(ttl=self.settings.answer_seconds)
        # In place of the SDK's own, which records spans that moonbox records better: with scripts, calls and limits.
        self.app.middleware[:] = [RequestStateBoundary(security, default_audience=NAME), self.starting]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[MoonboxServer]:
        """While this lasts, changes are announced and what is idle ends; then every call is stopped."""
        tasks = [asyncio.create_task(work) for work in (self._announcer.run(), self._sweep(), self._look_at_files())]
        try:
            yield self
        finally:
            self._announcer.listen.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._ongoing.close()
            await self.starting.stop()

    def end_session(self, owner: str, session: str) -> None:
        """A client has ended its session: its state ends too."""
        self.conversations.end(session_key(owner, session))
        self._announcer.gone(f"{owner}|{session}")

    # Tools

    async def _list_tools(self, context: Request, _: PaginatedRequestParams | None) -> ListToolsResult:
        peer = Peer.of(context)
        await self.starting.wait()
        self._announcer.listed(peer)
        return ListToolsResult(tools=list(self._shown.to(peer).tools))

    async def _call_tool(self, context: Request, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        peer = Peer.of(context)
        if params.request_state is not None:
            ongoing = self._ongoing.resume(params.request_state, peer)
            if ongoing is None:
                raise MCPError(INVALID_PARAMS, "the call that waited for this answer is over; call the tool again")
            ongoing.answered(params.input_responses)
            return await self._ongoing.go_on(ongoing, peer)
        await self.starting.wait()
        view = self._shown.to(peer)
        return await self._ongoing.answer(
            peer, lambda ongoing: self._work(ongoing, peer, params, view), script=params.name == view.code
        )

    async def _work(self, ongoing: Ongoing, peer: Peer, params: CallToolRequestParams, view: View) -> CallToolResult:
        """Carry a call out, when it is the client's turn."""
        try:
            async with self._shares.slot(peer.share):
                if params.name == view.code:
                    return await self._run_script(ongoing, peer, params)
                return await self._call_direct(peer, params, view)
        except (TooMany, Busy) as problem:
            return answers.refused(str(problem))
        except MoonboxError as problem:
            log.exception("a call of %s failed", params.name)
            return answers.refused(str(problem))

    async def _run_script(self, ongoing: Ongoing, peer: Peer, params: CallToolRequestParams) -> CallToolResult:
        arguments = dict(params.arguments or {})
        meta: Any = params.meta or {}
        named, state = meta.get(META_KEY), None
        if peer.session is None:
            state = arguments.pop(STATE, None)
        place = self.conversations.place(peer, _text(named), _text(state))
        await self._ongoing.make_way(place.key)
        ongoing.conversation = place.key
        with self.conversations.using(place.key):
            reply = await self.mode.areply(params.name, arguments, conversation=place.key)
            if place.handle is not None and not await self._has_globals(place):
                place = Place(place.key, None, place.note)
        if place.handle is None and peer.session is None and named is None:
            self.conversations.end(place.key)
        self._note(peer, reply)
        return answers.of_code(
            reply,
            place,
            self._media,
            structured=self.settings.structured,
            max_chars=self.mode.settings.max_chars,
        )

    async def _has_globals(self, place: Place) -> bool:
        """Whether there is anything to go on with: else the client need not hear of it."""
        with contextlib.suppress(MoonboxError):
            return bool(await asyncio.to_thread(self.mode.repl(place.key).globals))
        return False

    async def _call_direct(self, peer: Peer, params: CallToolRequestParams, view: View) -> CallToolResult:
        needing = view.needing.get(params.name)
        if needing is not None:
            run = await self.mode.sandbox.acall(needing.path, params.arguments or {})
            reply = Reply(run.for_model(self.mode.settings.max_chars), not run.ok, run)
        else:
            reply = await self.mode.areply(params.name, params.arguments or {})
        self._note(peer, reply)
        listed = next((tool for tool in view.tools if tool.name == params.name), None)
        has_schema = listed is not None and listed.output_schema is not None
        return answers.of_direct(reply, self._media, has_schema=has_schema)

    def _note(self, peer: Peer, reply: Reply) -> None:
        if reply.run is not None:
            self.resources.note(peer.owner, reply.run)

    def _direct_name(self, path: str) -> str | None:
        return self._shown.view(asks=False).names.get(path)

    # Resources

    async def _list_resources(self, context: Request, _: PaginatedRequestParams | None) -> ListResourcesResult:
        return self.resources.list(Peer.of(context))

    async def _list_templates(self, _: Request, __: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        return self.resources.templates()

    async def _read_resource(self, context: Request, params: ReadResourceRequestParams) -> ReadResourceResult:
        return await self.resources.read(Peer.of(context), str(params.uri))

    # In the background

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(min(_SWEEP, self.settings.idle_seconds / 2))
            self._ongoing.sweep()
            self.conversations.sweep()

    async def _look_at_files(self) -> None:
        while self._refresh is not None:
            await asyncio.sleep(_LOOK_AT_FILES)
            try:
                await asyncio.to_thread(self._refresh)
            except Exception as problem:  # noqa: BLE001 - a folder that cannot be read now may be read later
                log.warning("tool scripts: %s", problem)


class _Server(Server[Any]):
    """The SDK's server, which says what changes it announces, and whose instructions follow the tools."""

    describe: Callable[[], str]
    """Makes the instructions."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        options = notification_options or NotificationOptions(tools_changed=True)
        made = super().create_initialization_options(options, experimental_capabilities, extensions)
        return made.model_copy(update={"instructions": self.describe() or None})

    @property
    def instructions(self) -> str | None:
        return self.describe() or None

    @instructions.setter
    def instructions(self, _: str | None) -> None:
        """Set by the SDK's constructor; ours are made when they are asked for."""


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
