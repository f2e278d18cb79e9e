"""Starting: upstreams begin when the first client is there, so that they are promised just what it can do."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from mcp_types import ClientCapabilities
from pydantic import ValidationError

from moonbox.mcp.server.peer import Peer
from moonbox.mcp.server.standalone import Standalone
from moonbox.mcp.upstreams.broker import Broker, Offers

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from moonbox.mcp.caller import Caller
    from moonbox.mcp.upstreams.manager import Upstreams

__all__ = ["Starting"]


class Starting:
    """Middleware of the server that sees every request, and starts the upstreams at the first.

    Over stdio there is one client and it is known what it can do. Over HTTP clients differ: `start_for_all` promises
    what a client may be able to do, and a question that a client cannot take is refused when it comes.
    """

    def __init__(self, upstreams: Upstreams | None, patience: float) -> None:
        self._upstreams = upstreams
        self._patience = patience
        self._until: float | None = None
        self._latest: ServerRequestContext[Any, Any] | None = None

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.request_id is not None and ctx.request is None:
            self._latest = ctx
            if self._until is None:
                await self._begin(Broker(_offers(ctx), self._alone))
        return await call_next(ctx)

    async def start_for_all(self) -> None:
        await self._begin(Broker(Offers(sampling=True, elicitation=True)))

    async def wait(self) -> None:
        """Give servers that are still starting their time, once."""
        if self._upstreams is not None and self._until is not None:
            await self._upstreams.await_(max(0.0, self._until - time.monotonic()))

    async def stop(self) -> None:
        """End what was started."""
        if self._upstreams is not None and self._until is not None:
            await self._upstreams.aclose()

    async def _begin(self, broker: Broker) -> None:
        self._until = time.monotonic() + self._patience
        if self._upstreams is not None:
            await self._upstreams.start_here(broker)

    def _alone(self) -> Caller | None:
        """The client of the latest request: over stdio there is only one."""
        return None if self._latest is None else Standalone(Peer.of(self._latest), asyncio.get_running_loop())


def _offers(context: ServerRequestContext[Any, Any]) -> Offers:
    """What the client said it can do: in the handshake, or with the request."""
    capabilities = context.session.client_capabilities
    if context.method == "initialize":
        try:
            said = (context.params or {}).get("capabilities", {})
            capabilities = ClientCapabilities.model_validate(said, by_name=False)
        except ValidationError:
            capabilities = None
    if capabilities is None:
        return Offers()
    return Offers(
        sampling=capabilities.sampling is not None,
        elicitation=capabilities.elicitation is not None,
        roots=capabilities.roots is not None,
    )
