"""Protocols: in which one a server is spoken to, where it speaks both the current and the earlier one.

In the current protocol a question to the client is the result of a call. In the earlier one it is a request of the
server's own, for which a server that was written for the earlier protocol has no way in the current one. So a server
is spoken to in the client's own protocol. If clients differ, it has a second connection for clients of the earlier one.
A stdio server has no second connection, which would be another process with another state: it is spoken to in the
current protocol.
"""

from __future__ import annotations

import asyncio
import contextvars
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import mcp_types as types
from mcp import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from moonbox.mcp.caller import CALLER

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp import ClientSession

    from moonbox.config.mcp import ServerSettings
    from moonbox.mcp.upstreams.upstream import Upstream

Protocol = Literal["current", "earlier"]
Clients = Literal["current", "earlier", "mixed"]
"""The protocol of the clients that the servers work for."""
_RETRY_SECONDS = 60.0


def protocols_for(settings: ServerSettings, clients: Clients) -> tuple[Protocol, ...]:
    """The protocols to try with a server, in their order."""
    if settings.protocol != "auto":
        return (settings.protocol,)
    return ("earlier", "current") if clients == "earlier" else ("current", "earlier")


async def negotiate(session: ClientSession, protocols: tuple[Protocol, ...]) -> None:
    """Agree on the first of these protocols that the server speaks: by discovery, or by the earlier handshake."""
    steps = {"current": session.discover, "earlier": session.initialize}
    failures: dict[str, Exception] = {}
    for _ in range(2):
        for protocol in protocols:
            try:
                await steps[protocol]()
            except (MCPError, ValidationError, RuntimeError) as problem:
                failures[protocol] = problem
            else:
                return
        handshake = failures.get("earlier")
        # A server that was slow to start may have answered the discovery too late, and now accepts nothing else.
        if not isinstance(handshake, MCPError) or handshake.code != types.UNSUPPORTED_PROTOCOL_VERSION:
            break
    failed = failures.get("earlier") or failures[protocols[0]]
    if len(protocols) == 1 and isinstance(failed, MCPError) and failed.code != types.CONNECTION_CLOSED:
        message = f'{failed.message}; the setting protocol = "{protocols[0]}" rules out the other protocol'
        raise MCPError(failed.code, message, failed.data)
    raise failed


class EarlierConnections:
    """The second connections of servers that speak both protocols. Belongs to the event loop of the servers."""

    def __init__(self, make: Callable[[ServerSettings], Upstream]) -> None:
        self._new_upstream = make
        self._starts: dict[str, asyncio.Task[Upstream | None]] = {}
        self._supervisors: list[asyncio.Task[None]] = []
        self.upstreams: list[Upstream] = []

    async def for_caller(self, upstream: Upstream) -> Upstream:
        """The upstream, or the same server in the earlier protocol if the caller's client speaks that one."""
        caller, name = CALLER.get(), upstream.settings.name
        if caller is None or caller.modern or not _needs_another(upstream):
            return upstream
        if name not in self._starts:
            # In an empty context: the connection outlives the call.
            loop = asyncio.get_running_loop()
            self._starts[name] = loop.create_task(self._start(upstream), context=contextvars.Context())
        return await asyncio.shield(self._starts[name]) or upstream

    async def _start(self, upstream: Upstream) -> Upstream | None:
        other = self._new_upstream(replace(upstream.settings, protocol="earlier"))
        other.callbacks.features, other.log_level = upstream.callbacks.features, upstream.log_level
        supervisor = other.begin()
        assert supervisor is not None
        self._supervisors.append(supervisor)
        await other.settled.wait()
        if other.status.state == "ready":
            self.upstreams.append(other)
            return other
        supervisor.cancel()
        asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._starts.pop, upstream.settings.name, None)
        return None

    async def stop(self) -> None:
        tasks = [*self._starts.values(), *self._supervisors]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _needs_another(upstream: Upstream) -> bool:
    settings = upstream.settings
    return (
        upstream.callbacks.features.clients == "mixed"
        and settings.protocol == "auto"
        and settings.questions
        and settings.kind != "stdio"
        and upstream.status.protocol in MODERN_PROTOCOL_VERSIONS
    )
