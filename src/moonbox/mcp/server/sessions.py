"""Clients of the server: who sent a request, and which conversation it belongs to."""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import principal_components
from mcp_types import LOG_LEVEL_META_KEY, LoggingLevel
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from moonbox.mcp.server.limits import TooMany

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp.server.context import ServerRequestContext
    from mcp.server.session import ServerSession
    from mcp_types import ClientCapabilities, RequestId

__all__ = [
    "LOG_LEVELS",
    "META_KEY",
    "STATE",
    "Client",
    "Conversation",
    "Conversations",
    "current_owner",
    "session_key",
]

LOG_LEVELS: tuple[str, ...] = get_args(LoggingLevel)
"""From debug to emergency."""
META_KEY = "moonbox/conversation"
"""In a request's `_meta`: the client's own name for the conversation. In a result's: the handle that we chose."""
STATE = "state"
"""The code tool's argument that continues a conversation, for clients without a session."""
_LOCAL = "local"
"""The owner of everything if clients need not authenticate."""
_STDIO = "stdio"
_MAX_HANDLE = 128
_MAX_BLANK, _MAX_BLANK_EACH = 64, 16
"""Blank conversations that are kept, in all and for each client."""


@dataclass(frozen=True, slots=True)
class Client:
    """One client at the time of one request, whichever protocol it speaks."""

    owner: str
    """Who owns its runs and its state."""
    session: str | None
    """The transport's session; None if it has none."""
    address: str
    modern: bool
    """It speaks the protocol of 2026-07-28 or later: no sessions, and questions go back as results."""
    capabilities: ClientCapabilities | None
    channel: ServerSession
    """For notifications and requests to it."""
    request_id: RequestId | None
    wants_progress: bool
    log_level: str | None = None
    """The lowest level of log messages that it wants."""

    @classmethod
    def of(cls, context: ServerRequestContext[Any, Any]) -> Client:
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
            log_level=meta.get(LOG_LEVEL_META_KEY),
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
        return self.owner if self.owner != _LOCAL else f"{self.owner}|{self.address}"

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
    return _LOCAL if token is None else json.dumps(principal_components(token))


@dataclass(frozen=True, slots=True)
class Conversation:
    """The conversation that a script belongs to; its globals are kept under `key`."""

    key: str
    handle: str | None = None
    """What the client must send to continue; None if the transport or the client itself identifies it."""
    note: str = ""


@dataclass(slots=True)
class _Usage:
    last_used: float
    running: int = 0


class Conversations:
    """Keeps track of conversations in use; `end` is called with the key of each that is over."""

    def __init__(
        self,
        end: Callable[[str], object],
        *,
        idle_seconds: float,
        max_count: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._end = end
        self._idle_seconds = idle_seconds
        self._max_count = max_count
        self._clock = clock
        self._usage: dict[str, _Usage] = {}
        self._blank: dict[str, tuple[Conversation, str]] = {}

    def find(self, client: Client, name: str | None, state: str | None) -> Conversation:
        """The conversation of a request: named by the client, continued by its state, of the session, or new."""
        if name:
            return Conversation(_key(client.owner, "named", name))
        if state:
            key = _key(client.owner, "state", state)
            if key in self._usage:
                return Conversation(key, state)
            new = self._new(client)
            note = f"the state {state[:40]!r} no longer exists; this script started with new globals"
            return Conversation(new.key, new.handle, note)
        if client.session is not None:
            return Conversation(session_key(client.owner, client.session))
        return self._new(client)

    def keep_blank(self, conversation: Conversation, client: Client) -> bool:
        """Use it for the next new conversation of the same client: nothing is left in it, and nobody knows its handle.

        A new worker costs more than most scripts. Whether there was room for it.
        """
        whose = _whose(client)
        each = sum(of == whose for _, of in self._blank.values())
        if len(self._blank) >= _MAX_BLANK or each >= _MAX_BLANK_EACH or conversation.key not in self._usage:
            return False
        self._blank[conversation.key] = conversation, whose
        return True

    def _new(self, client: Client) -> Conversation:
        whose = _whose(client)
        for key, (conversation, of) in reversed(self._blank.items()):
            if of == whose:
                del self._blank[key]
                return conversation
        handle = secrets.token_hex(6)
        return Conversation(_key(client.owner, "state", handle), handle)

    @contextlib.contextmanager
    def using(self, key: str) -> Iterator[None]:
        """While a script of the conversation runs, it cannot end."""
        if key not in self._usage:
            self._make_room()
        usage = self._usage.setdefault(key, _Usage(self._clock()))
        usage.running += 1
        try:
            yield
        finally:
            usage.running -= 1
            usage.last_used = self._clock()

    def end(self, key: str) -> None:
        """End it, unless a script of it is running."""
        usage = self._usage.get(key)
        if usage is not None and not usage.running:
            del self._usage[key]
            self._blank.pop(key, None)
            self._end(key)

    def end_idle(self) -> None:
        """End all that were not used for `idle_seconds`."""
        oldest = self._clock() - self._idle_seconds
        for key in [key for key, usage in self._usage.items() if not usage.running and usage.last_used < oldest]:
            self.end(key)

    def __len__(self) -> int:
        return len(self._usage)

    def _make_room(self) -> None:
        if len(self._usage) < self._max_count:
            return
        idle = [(usage.last_used, key) for key, usage in self._usage.items() if not usage.running]
        if not idle:
            raise TooMany(f"all {self._max_count} conversations are in use; try again later")
        # The owner with the most conversations loses the one that was unused for longest.
        owned = Counter(_owner(key) for key in self._usage)
        self.end(min(idle, key=lambda item: (-owned[_owner(item[1])], item[0]))[1])


def _whose(client: Client) -> str:
    return f"{client.owner}|{client.address}"


def session_key(owner: str, session: str) -> str:
    """The key of the conversation of a transport's session."""
    return _key(owner, "session", session)


def _key(owner: str, kind: str, name: str) -> str:
    return f"{owner}|{kind}|{name[:_MAX_HANDLE].replace('|', '/')}"


def _owner(key: str) -> str:
    return key.rsplit("|", 2)[0]
