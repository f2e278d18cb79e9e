"""Notifications to clients that the tools have changed, in the form of each protocol."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING

from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ToolsListChanged

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server.session import ServerSession

    from moonbox.mcp.server.sessions import Client
    from moonbox.tools.toolbox import Toolbox

__all__ = ["ChangeNotifier"]

_SETTLE_SECONDS = 0.1
_SEND_SECONDS = 5.0
_MAX_SESSIONS = 500


class ChangeNotifier:
    """Watches a toolbox. Clients of the earlier protocol are notified on their sessions, others on open streams."""

    def __init__(self, toolbox: Toolbox, fingerprint: Callable[[], str]) -> None:
        self._toolbox = toolbox
        self._fingerprint = fingerprint
        self._sessions: OrderedDict[str, ServerSession] = OrderedDict()
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)
        self._changed = asyncio.Event()

    def add(self, client: Client) -> None:
        """Notify this client from now on: it has listed the tools."""
        if not client.modern:
            self._sessions[client.id] = client.channel
            self._sessions.move_to_end(client.id)
            if len(self._sessions) > _MAX_SESSIONS:
                self._sessions.popitem(last=False)

    def remove(self, client: str) -> None:
        """The client with this id has ended its session."""
        self._sessions.pop(client, None)

    async def run(self) -> None:
        """Notify until this is cancelled."""
        loop = asyncio.get_running_loop()

        def wake(_: Toolbox) -> None:  # called in whichever thread changed the toolbox
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._changed.set)

        unsubscribe = self._toolbox.subscribe(wake)
        before = self._fingerprint()
        try:
            while True:
                await self._changed.wait()
                await asyncio.sleep(_SETTLE_SECONDS)  # servers that start together cause one notification
                self._changed.clear()
                now = self._fingerprint()
                if now != before:
                    before = now
                    await self._notify()
        finally:
            unsubscribe()

    async def _notify(self) -> None:
        await self._bus.publish(ToolsListChanged())
        await asyncio.gather(*(self._send(client, session) for client, session in list(self._sessions.items())))

    async def _send(self, client: str, session: ServerSession) -> None:
        """Notify one session; one that is gone or does not read delays nobody else."""
        try:
            async with asyncio.timeout(_SEND_SECONDS):
                await session.send_tool_list_changed()
        except Exception:  # noqa: BLE001 - however a session fails, it is of no more use
            if self._sessions.get(client) is session:
                del self._sessions[client]
