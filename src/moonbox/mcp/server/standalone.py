"""The only client of a stdio server, as the one to ask when no call of its is under way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mcp_types import INVALID_REQUEST, ErrorData

from moonbox.errors import Denied

if TYPE_CHECKING:
    from mcp_types import InputRequest, InputResponse

    from moonbox.mcp.server.peer import Peer
    from moonbox.sandbox.decisions import Decision, ToolCall
    from moonbox.sandbox.record import CallEntry

__all__ = ["Standalone"]

_SECONDS = 60.0


class Standalone:
    """A Caller without a call. Only the earlier protocol lets a server ask out of the blue."""

    wants_progress = False

    def __init__(self, peer: Peer, loop: asyncio.AbstractEventLoop) -> None:
        self._peer = peer
        self._loop = loop
        self.client = peer.client

    async def forward(self, request: InputRequest) -> InputResponse | ErrorData:
        if self._peer.modern:
            return ErrorData(code=INVALID_REQUEST, message=f"{request.method} is possible only during a call")
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._ask(request), self._loop))

    async def _ask(self, request: InputRequest) -> InputResponse | ErrorData:
        from dataclasses import replace

        from moonbox.mcp.server.ongoing import put

        return await put(replace(self._peer, request_id=None), request, _SECONDS)

    async def approve(self, call: ToolCall) -> Decision:
        raise Denied(f"the tool '{call.name}' was called on nobody's behalf", code="approval_unavailable")

    def progress(self, message: str) -> None:
        """Nobody waits."""

    def call_changed(self, entry: CallEntry) -> None:
        """Nobody waits."""
