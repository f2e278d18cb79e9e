"""Clients of the server: who sent a request, and which conversation it belongs to."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import mcp_types as types
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import principal_components
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from moonbox.runs.options import digest, label_text
from moonbox.schema.learned import LOCAL

if TYPE_CHECKING:
    from collections.abc import Container

    from mcp.server.context import ServerRequestContext
    from mcp.server.session import ServerSession

LOG_LEVELS: tuple[str, ...] = get_args(types.LoggingLevel)
"""From debug to emergency."""
META_KEY = "moonbox/conversation"
"""In a request's `_meta`: the client's own name for the conversation. In a result's: the handle that we chose."""
STATE = "state"
"""The code tool's argument that continues a conversation, for clients without a session."""
_STDIO = f"stdio-{secrets.token_hex(4)}"
"""The one session of a process that serves over stdio."""


@dataclass(frozen=True, slots=True)
class McpClient:
    """One client at the time of one request, whichever protocol it speaks."""

    owner: str
    """Who owns its runs and its state."""
    session: str | None
    """The transport's session; None if it has none."""
    address: str
    modern: bool
    """It speaks the protocol of 2026-07-28 or later: no sessions, and questions go back as results."""
    capabilities: types.ClientCapabilities | None
    channel: ServerSession
    """For notifications and requests to it."""
    request_id: types.RequestId | None
    wants_progress: bool
    log_level: str | None = None
    """The lowest level of log messages that it wants."""

    @classmethod
    def of(cls, context: ServerRequestContext[Any, Any]) -> McpClient:
        request = context.request
        session: str | None = _STDIO
        address = _STDIO
        if request is not None:
            session = request.headers.get("mcp-session-id")
            address = request.client.host if request.client is not None else "unknown"
        meta: Any = context.meta or {}
        return cls(
            owner=current_owner(),
            session=session,
            address=address,
            modern=context.protocol_version in MODERN_PROTOCOL_VERSIONS,
            capabilities=context.session.client_capabilities,
            channel=context.session,
            request_id=context.request_id,
            wants_progress=meta.get("progress_token", meta.get("progressToken")) is not None,
            log_level=meta.get(types.LOG_LEVEL_META_KEY),
        )

    def wants_log(self, level: str) -> bool:
        """Whether a log message of this level is for it; in the current protocol only if its request asks for it."""
        if self.log_level is None:
            return not self.modern
        return LOG_LEVELS.index(level) >= LOG_LEVELS.index(self.log_level) if self.log_level in LOG_LEVELS else False

    @property
    def id(self) -> str:
        """The same for two requests exactly if they come from the same client, as far as that is known."""
        return f"{self.owner}|{self.session or self.address}"

    @property
    def share(self) -> str:
        """Whose share of the limits it uses: more sessions do not give more, and with a token neither do addresses."""
        return share_of(self.owner, self.address)

    @property
    def labels(self) -> dict[str, str]:
        """For whom its runs are, where its token says who it is."""
        return {} if self.owner == LOCAL else {"client": label_text(owner_name(self.owner))}

    def supports(self, method: str, mode: str = "form") -> bool:
        """Whether a request of this kind can be put to the client now. Elicitation has the modes form and url."""
        capabilities = self.capabilities
        if capabilities is None or not (self.modern or self.channel.can_send_request):
            return False
        if method == "sampling/createMessage":
            return capabilities.sampling is not None
        if method == "roots/list":
            return capabilities.roots is not None
        elicitation = capabilities.elicitation
        if elicitation is None:
            return False
        if mode == "url":
            return elicitation.url is not None
        return elicitation.form is not None or elicitation.url is None  # the first clients sent an empty object

    @property
    def elicits(self) -> bool:
        """Whether it can show a form to a person."""
        return self.supports("elicitation/create")


def current_owner() -> str:
    """Who sent the current request, according to its token."""
    token = get_access_token()
    return LOCAL if token is None else json.dumps(principal_components(token))


def owner_named(name: str | None) -> str:
    """The owner whose token has this name in the configuration; without a name, the owner of clients without tokens."""
    return LOCAL if name is None else json.dumps((name, None, None))


def share_of(owner: str, address: str) -> str:
    return owner if owner != LOCAL else f"{owner}|{address}"


@dataclass(frozen=True, slots=True)
class ClientConversation:
    """The conversation that a script belongs to; its globals are kept under `key`."""

    key: str
    handle: str | None = None
    """What the client must send to continue; None if the transport or the client itself identifies it."""
    note: str = ""

    @property
    def label(self) -> str:
        """What the trail has: the key contains what a client needs to continue."""
        return digest(self.key)


def conversation_of(
    client: McpClient, name: str | None, state: str | None, known: Container[str]
) -> ClientConversation:
    """The conversation of a request: named by the client, continued by its state, of the session, or new.

    `known` has the keys of the conversations that exist.
    """
    if name:
        return ClientConversation(_key(client.owner, "named", name))
    if client.session is not None and not state:
        return ClientConversation(session_key(client.owner, client.session))
    note = ""
    if state:
        key = _key(client.owner, "state", state)
        if key in known:
            return ClientConversation(key, state)
        note = f"the state {state[:40]!r} no longer exists; this script started with new globals"
    handle = secrets.token_hex(6)
    return ClientConversation(_key(client.owner, "state", handle), handle, note)


def session_key(owner: str, session: str) -> str:
    """The key of the conversation of a transport's session."""
    return _key(owner, "session", session)


def _key(owner: str, kind: str, name: str) -> str:
    return f"{owner}|{kind}|{digest(name)}"  # of any name, however long


def owner_name(owner: str) -> str:
    """The owner in words for the trail: the name of its token, or who the authorization server says it is."""
    return owner if owner == LOCAL else " ".join(part for part in json.loads(owner) if part)


def owner_of(key: str) -> str:
    """Who owns the conversation of that key."""
    return key.rsplit("|", 2)[0]
