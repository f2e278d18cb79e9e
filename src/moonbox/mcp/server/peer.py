"""The peer: what is known of the client that sent a request, whichever protocol it speaks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import principal_components
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.session import ServerSession
    from mcp_types import ClientCapabilities, RequestId

__all__ = ["LOCAL", "Peer", "owner_of"]

LOCAL = "local"
"""The owner of everything where clients need not say who they are."""
STDIO = "stdio"


@dataclass(frozen=True, slots=True)
class Peer:
    """One client at the time of one request."""

    owner: str
    """Whose runs and state are concerned."""
    session: str | None
    """The conversation that the transport itself knows of; None where it knows none."""
    address: str
    modern: bool
    """It speaks the protocol of 2026-07-28 or later: no sessions, and questions go back as results."""
    capabilities: ClientCapabilities | None
    channel: ServerSession
    request_id: RequestId | None
    wants_progress: bool

    @classmethod
    def of(cls, context: ServerRequestContext[Any, Any]) -> Peer:
        request = context.request
        session: str | None = STDIO
        address = STDIO
        if request is not None:
            session = request.headers.get("mcp-session-id")
            address = request.client.host if request.client is not None else "unknown"
        meta: Any = context.meta or {}
        return cls(
            owner=owner_of(),
            session=session,
            address=address,
            modern=context.protocol_version in MODERN_PROTOCOL_VERSIONS,
            capabilities=context.session.client_capabilities,
            channel=context.session,
            request_id=context.request_id,
            wants_progress=meta.get("progress_token", meta.get("progressToken")) is not None,
        )

    @property
    def client(self) -> str:
        """The same for two peers exactly when they are the same client, as far as can be told."""
        return f"{self.owner}|{self.session or self.address}"

    @property
    def share(self) -> str:
        """Whose share of the limits it uses: opening more sessions does not give more."""
        return f"{self.owner}|{self.address}"

    @property
    def can_be_asked(self) -> bool:
        """Whether any question can reach it during this call."""
        return self.modern or self.channel.can_send_request

    @property
    def elicits(self) -> bool:
        """Whether it can show a person a form. The first clients that could said so with an empty object."""
        offered = None if self.capabilities is None else self.capabilities.elicitation
        if offered is None or not self.can_be_asked:
            return False
        return offered.form is not None or offered.url is None

    @property
    def samples(self) -> bool:
        return self.capabilities is not None and self.capabilities.sampling is not None and self.can_be_asked

    @property
    def has_roots(self) -> bool:
        return self.capabilities is not None and self.capabilities.roots is not None and self.can_be_asked


def owner_of() -> str:
    """Who the present request was made by, as far as it had to say."""
    token = get_access_token()
    return LOCAL if token is None else json.dumps(principal_components(token))
