"""The announcer: tells clients when the tools have changed, in the form of each protocol."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from typing import TYPE_CHECKING

from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ToolsListChanged

if TYPE_CHECKING:
    from mcp.server.session import ServerSession

    from moonbox.mcp.server.peer import Peer
    from moonbox.mcp.server.shown import Shown
    from moonbox.tools.toolbox import Toolbox

__all__ = ["Announcer"]

_CALM = 0.1
_PATIENCE = 5.0
_MOST_SESSIONS = 500


class Announcer:
    """Watches a toolbox. Clients of the earlier protocol are told on their sessions, others on streams they opened."""

    def __init__(self, toolbox: Toolbox, shown: Shown) -> None:
        self._toolbox = toolbox
        self._shown = shown
        self._sessions: OrderedDict[str, ServerSession] = OrderedDict()
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)
        self._changed = asyncio.Event()

    def listed(self, peer: Peer) -> None:
        """A client has seen the list: it wants to know of changes."""
        if not peer.modern:
            self._sessions[peer.client] = peer.channel
            self._sessions.move_to_end(peer.client)
            if len(self._sessions) > _MOST_SESSIONS:
                self._sessions.popitem(last=False)

    def gone(self, client: str) -> None:
        """A client has ended its session."""
        self._sessions.pop(client, None)

    async def run(self) -> None:
        """Announce until this is cancelled."""
        loop = asyncio.get_running_loop()
        stop = self._toolbox.subscribe(lambda _: self._wake(loop))
        seen = self._fingerprint()
        try:
            while True:
                await self._changed.wait()
                await asyncio.sleep(_CALM)  # servers that start together change the list together
                self._changed.clear()
                now = self._fingerprint()
                if now != seen:
                    seen = now
                    await self._announce()
        finally:
            stop()

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._changed.set)

    async def _announce(self) -> None:
        await self._bus.publish(ToolsListChanged())
        await asyncio.gather(*(self._tell(client, session) for client, session in list(self._sessions.items())))

    async def _tell(self, client: str, session: ServerSession) -> None:
        """One client; whoever has gone, or does not listen, keeps nobody else waiting."""
        try:
            async with asyncio.timeout(_PATIENCE):
                await session.send_tool_list_changed()
        except Exception:  # noqa: BLE001 - whatever a session fails with, it is of no more use
            if self._sessions.get(client) is session:
                del self._sessions[client]

    def _fingerprint(self) -> str:
        """Of what clients see: a tool that changed in nothing that is shown is no news."""
        view = self._shown.view(asks=False, stateless=True, modern=True)
        text = "\n".join(tool.model_dump_json(exclude_none=True) for tool in view.tools)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
