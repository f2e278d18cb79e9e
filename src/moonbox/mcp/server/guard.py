"""The guard of the MCP endpoint: Host, Origin, and how many requests an address may send."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from moonbox.mcp.server.shares import Rate
from moonbox.net import guard

if TYPE_CHECKING:
    from moonbox.mcp.server.settings import ServeSettings
    from moonbox.net.guard import Refusal, Scope

__all__ = ["guarded"]


def guarded(app: Any, settings: ServeSettings) -> guard.Guard:
    """The application behind its checks. A page of another site does not get past them."""
    callers = guard.Callers(settings.host_names, frozenset(settings.origins))
    rate = Rate(settings.requests_per_minute)

    def check_rate(scope: Scope) -> Refusal | None:
        client = scope.get("client")
        wait = rate.wait(client[0] if client else "unknown")
        if not wait:
            return None
        after = {"Retry-After": str(math.ceil(wait))}
        message = "too many requests from this address; try again later"
        return guard.Refusal(429, "too_many_requests", message, after)

    return guard.Guard(app, callers.check, check_rate)
