"""What clients use besides tools: prompts, resources, completions and log levels, of moonbox and of its servers."""

from __future__ import annotations

import contextlib
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import mcp_types as types
from mcp import MCPError

from moonbox.audit.query import RunSummary
from moonbox.audit.sinks import MemorySink, Trail
from moonbox.closing import during
from moonbox.errors import AuditError, ToolError, UsageError
from moonbox.mcp.caller import CALLER
from moonbox.mcp.server.call import OpenCall
from moonbox.mcp.server.sessions import McpClient
from moonbox.media import PREFIX as MEDIA
from moonbox.threads import in_thread
from moonbox.wording import counted

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from moonbox.config.sections import ServeSettings
    from moonbox.mcp.server.notifications import ChangeNotifier
    from moonbox.mcp.upstreams.catalog import Kind
    from moonbox.mcp.upstreams.manager import Upstreams

    Request = ServerRequestContext[Any, Any]
    Page = types.PaginatedRequestParams | None
    from moonbox.audit.records import Run

T = TypeVar("T")

PAGE = 500
"""Prompts, resources or templates in one answer."""
RUNS = "moonbox://runs/"
SERVERS = "moonbox://servers"
_JSON = "application/json"


@dataclass(eq=False)
class Passthrough:
    """The handlers of these requests. `wait` is awaited first: it gives servers time to start."""

    _upstreams: Upstreams
    _resources: Resources
    _notifier: ChangeNotifier
    _settings: ServeSettings
    _wait: Callable[[], Awaitable[None]]

    def __post_init__(self) -> None:
        self._upstreams.on_offers_changed = self._notifier.offers_changed
        self._upstreams.on_resource_updated = self._notifier.resource_updated

    async def end_session(self, client: str) -> None:
        """Forget what the client followed, so that servers need not tell of it."""
        self._notifier.remove(client)
        with contextlib.suppress(MCPError):
            await self._update_subscriptions()

    # Lists

    async def list_prompts(self, context: Request, params: Page) -> types.ListPromptsResult:
        page, cursor = await self._page(context, params, "prompts")
        return types.ListPromptsResult(prompts=page, next_cursor=cursor)

    async def list_resources(self, context: Request, params: Page) -> types.ListResourcesResult:
        own = self._resources.list_own(McpClient.of(context))
        page, cursor = await self._page(context, params, "resources", own)
        return types.ListResourcesResult(resources=page, next_cursor=cursor)

    async def list_templates(self, context: Request, params: Page) -> types.ListResourceTemplatesResult:
        page, cursor = await self._page(context, params, "templates", _OWN_TEMPLATES)
        return types.ListResourceTemplatesResult(resource_templates=page, next_cursor=cursor)

    async def _page(
        self, context: Request, params: Page, kind: Kind, own: Sequence[Any] = ()
    ) -> tuple[list[Any], str | None]:
        """One page of our own offers and those of the servers, and where the next begins."""
        self._notifier.add(McpClient.of(context))
        await self._wait()
        items = [*own, *self._upstreams.directory.listed(kind)]
        cursor = params.cursor if params is not None else None
        if cursor is not None and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
            raise MCPError(types.INVALID_PARAMS, "invalid cursor")
        start = int(cursor or 0)
        end = start + PAGE
        return items[start:end], str(end) if end < len(items) else None

    # Single items

    async def get_prompt(self, context: Request, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        return await self._ask(context, lambda: self._upstreams.get_prompt(params.name, params.arguments))

    async def read_resource(
        self, context: Request, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        own = await self._resources.read_own(McpClient.of(context), uri)
        if own is not None:
            return own
        return await self._ask(context, lambda: self._upstreams.read_resource(uri), {"uri": uri[:200]})

    async def complete(self, context: Request, params: types.CompleteRequestParams) -> types.CompleteResult:
        if not self._upstreams:
            return types.CompleteResult(completion=types.Completion(values=[], total=0, has_more=False))
        return await self._ask(context, lambda: self._upstreams.complete(params))

    async def _ask(self, context: Request, work: Callable[[], Awaitable[T]], data: Any = None) -> T:
        """Do it as the call of this client: what the server asks or logs in the course of it goes to the client."""
        await self._wait()
        try:
            with during(CALLER, OpenCall(McpClient.of(context), self._settings, script=False)):
                return await work()
        except ToolError as problem:
            cause = problem.__cause__
            if isinstance(cause, MCPError):  # as the server refused it
                raise cause from None
            code = types.INVALID_PARAMS if problem.code.startswith("unknown_") else types.INTERNAL_ERROR
            raise MCPError(code, problem.message, data) from None

    # Subscriptions

    async def subscribe(self, context: Request, params: types.SubscribeRequestParams) -> types.EmptyResult:
        client, uri = McpClient.of(context), str(params.uri)
        self._notifier.subscribe(client, uri)
        await self._wait()
        try:
            await self._update_subscriptions(uri)
        except MCPError:
            self._notifier.unsubscribe(client.id, uri)
            raise
        return types.EmptyResult()

    async def unsubscribe(self, context: Request, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self._notifier.unsubscribe(McpClient.of(context).id, str(params.uri))
        await self._update_subscriptions()
        return types.EmptyResult()

    async def listen(
        self, context: Request, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """A stream of changes, as the current protocol has it."""
        uris = list(params.notifications.resource_subscriptions or ())
        try:
            with self._notifier.stream(McpClient.of(context), uris):
                if uris:
                    await self._wait()
                    await self._update_subscriptions(*uris)
                return await self._notifier.listen(context, params)
        finally:
            if uris:
                await self._update_subscriptions()

    async def _update_subscriptions(self, *own: str) -> None:
        """Tell the servers what clients follow; MCPError where one refuses something of this client's own."""
        try:
            refused = await self._upstreams.subscribe(self._notifier.subscribed())
        except ToolError as problem:
            cause = problem.__cause__
            raise cause if isinstance(cause, MCPError) else MCPError(types.INTERNAL_ERROR, problem.message) from None
        for uri in refused.keys() & own:
            raise refused[uri]

    # Logging

    async def set_level(self, context: Request, params: types.SetLevelRequestParams) -> types.EmptyResult:
        """Each client gets what it asked for; servers are asked for the most verbose level of all clients."""
        lowest = self._notifier.set_level(McpClient.of(context), params.level)
        await self._wait()
        await self._upstreams.set_log_level(lowest)
        return types.EmptyResult()


_LISTED, _REMEMBERED, _MOST_OWNERS = 50, 500, 1_000
_OWN_TEMPLATES = (
    types.ResourceTemplate(
        uri_template=RUNS + "{id}",
        name="run",
        mime_type=_JSON,
        description="The record of a run: script, value, output, calls, usage, error.",
    ),
    types.ResourceTemplate(
        uri_template=MEDIA + "{id}",
        name="media",
        description="An image, audio clip or file that a tool returned.",
    ),
)
_SERVERS = types.Resource(uri=SERVERS, name="servers", mime_type=_JSON, description="The MCP servers behind moonbox.")


class Resources:
    """Each client sees only its own runs, read from the trail if there is one, otherwise from memory."""

    def __init__(self, *, trail: Trail | None, upstreams: Upstreams) -> None:
        self._memory = MemorySink(_REMEMBERED)
        self._trail = self._memory if trail is None else trail
        self._upstreams = upstreams
        self._runs: OrderedDict[str, OrderedDict[str, RunSummary]] = OrderedDict()

    def add_run(self, owner: str, run: Run) -> None:
        """Remember the owner of a run, and the media that the run returned or showed."""
        for medium in run.media:
            self._upstreams.media.keep(medium)
        runs = self._runs.setdefault(owner, OrderedDict())
        self._runs.move_to_end(owner)
        runs[run.id] = RunSummary.of(run)
        if self._trail is self._memory:
            self._memory.write(run)
        if len(runs) > _REMEMBERED:
            runs.popitem(last=False)
        if len(self._runs) > _MOST_OWNERS:
            self._runs.popitem(last=False)

    def list_own(self, client: McpClient) -> list[types.Resource]:
        runs = [_run_resource(summary) for summary in reversed(self._runs.get(client.owner, {}).values())]
        return [*([_SERVERS] if self._upstreams else ()), *runs[:_LISTED]]

    async def read_own(self, client: McpClient, uri: str) -> types.ReadResourceResult | None:
        """A resource of ours; None if it is not one."""
        if uri == SERVERS and self._upstreams:
            states = [status.to_dict() for status in self._upstreams.statuses()]
            for state in states:
                state.pop("said")  # what a process wrote is only for the operator
            text = json.dumps({"servers": states})
            return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=_JSON, text=text)])
        if (medium := self._upstreams.media.owned(uri, client.owner)) is not None:
            blob = types.BlobResourceContents(uri=uri, mime_type=medium.type, blob=medium.base64)
            return types.ReadResourceResult(contents=[blob])
        if uri.startswith(RUNS) and (run := uri.removeprefix(RUNS)) in self._runs.get(client.owner, {}):
            with contextlib.suppress(UsageError, AuditError):
                record = await in_thread(self._trail.get, run)
                contents = types.TextResourceContents(uri=uri, mime_type=_JSON, text=record.without_details().to_json())
                return types.ReadResourceResult(contents=[contents])
        return None


def _run_resource(summary: RunSummary) -> types.Resource:
    ended = f"failed ({summary.kind})" if summary.kind else summary.state
    return types.Resource(
        uri=RUNS + summary.id,
        name=f"run {summary.id[:8]}",
        title=summary.title or None,
        mime_type=_JSON,
        description=f"{ended}, {counted(summary.calls, 'call')}, {summary.wall:.3f} s",
    )
