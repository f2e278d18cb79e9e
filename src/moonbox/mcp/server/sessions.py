"""Clients of the server: who sent a request, and which conversation it belongs to."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import secrets
import time
from collections.abc import Container
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import mcp_types as types
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken, principal_components
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from moonbox.config.sections import OAuthSettings, ServeSettings, check_url
from moonbox.net.addresses import NetError, parse_target
from moonbox.net.client import Client, PublicAddresses, Request
from moonbox.runs.options import digest, label_text
from moonbox.schema.learned import LOCAL
from moonbox.threads import in_thread

if TYPE_CHECKING:
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
    session: str | None
    address: str
    modern: bool
    """It speaks the protocol of 2026-07-28 or later: no sessions, and questions go back as results."""
    capabilities: types.ClientCapabilities | None
    channel: ServerSession
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


def conversation_of(client: McpClient, name: object, state: object, known: Container[str]) -> ClientConversation:
    """The conversation of a request: named by the client, continued by its state, of the session, or new.

    `known` has the keys of the conversations that exist.
    """
    state = state if isinstance(state, str) else ""
    if isinstance(name, str) and name:
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
    return _key(owner, "session", session)


def _key(owner: str, kind: str, name: str) -> str:
    return f"{owner}|{kind}|{digest(name)}"  # of any name, however long


def owner_name(owner: str) -> str:
    """The owner in words for the trail: the name of its token, or who the authorization server says it is."""
    return owner if owner == LOCAL else " ".join(part for part in json.loads(owner) if part)


def owner_of(key: str) -> str:
    return key.rsplit("|", 2)[0]


log = logging.getLogger("moonbox.mcp")

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""Asymmetric signatures only: with a shared secret, every verifier of tokens could also issue them."""
_METADATA = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")
_MAX_TOKEN = 16_384
_TIMEOUT_SECONDS = 10.0
_MAX_ANSWER = 1_000_000
_REFETCH_SECONDS = 10.0


def configured_tokens(settings: ServeSettings) -> dict[str, str]:
    """The token of each client that the configuration names."""
    return {**settings.tokens, **({"token": settings.token} if settings.token is not None else {})}


class Verifier:
    """Tokens from the configuration, each with the name of its client, and those of an authorization server."""

    def __init__(self, settings: ServeSettings) -> None:
        self._digests = {name: _digest(token) for name, token in configured_tokens(settings).items()}
        self._oauth = settings.oauth
        self._jwt = None if settings.oauth is None else JwtVerifier(settings.oauth)

    def name_of(self, token: str) -> str | None:
        """The client that the configuration names for this token."""
        given = _digest(token)
        match = None
        for name, wanted in self._digests.items():  # always all of them, so that the time taken reveals nothing
            if hmac.compare_digest(given, wanted):
                match = name
        return match

    async def verify_token(self, token: str) -> AccessToken | None:
        match = self.name_of(token)
        if match is None:
            return None if self._jwt is None else await self._jwt.verify_token(token)
        scopes, resource = ([], None) if self._oauth is None else (list(self._oauth.scopes), self._oauth.resource)
        return AccessToken(token=token, client_id=match, scopes=scopes, resource=resource)


class JwtVerifier:
    """Signed tokens of one issuer, issued for this server and not expired."""

    def __init__(self, settings: OAuthSettings, *, timeout: float = _TIMEOUT_SECONDS) -> None:
        self._settings = settings
        self._timeout = timeout
        self._keys: dict[str, Any] = {}
        self._fetched = -_REFETCH_SECONDS
        self._fetching = asyncio.Lock()

    async def verify_token(self, token: str) -> AccessToken | None:
        import jwt

        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                await self._key(token),
                algorithms=ALGORITHMS,
                audience=self._settings.resource,
                issuer=self._settings.issuer,
                options={"require": ["exp", "iss", "aud"]},
                leeway=10,
            )
        except (jwt.PyJWTError, ValueError, OSError) as problem:
            log.warning("invalid token: %s", type(problem).__name__)
            return None
        client = claims.get("client_id") or claims.get("azp") or claims.get("sub") or "unknown"
        return AccessToken(
            token=token,
            client_id=str(client),
            scopes=_scopes(claims),
            expires_at=int(claims["exp"]),
            resource=self._settings.resource,
            subject=None if claims.get("sub") is None else str(claims["sub"]),
            claims={"iss": claims["iss"]},
        )

    async def _key(self, token: str) -> Any:
        """The issuer's key that the token names; unknown names cannot make us fetch the keys more often."""
        import jwt

        if len(token) > _MAX_TOKEN:
            raise ValueError("too long")
        name = str(jwt.get_unverified_header(token).get("kid"))
        if name not in self._keys:
            async with self._fetching:
                if name not in self._keys and time.monotonic() - self._fetched >= _REFETCH_SECONDS:
                    self._fetched = time.monotonic()
                    self._keys = await in_thread(self._fetch)
        if name not in self._keys:
            raise ValueError("unknown key")
        return self._keys[name]

    def _fetch(self) -> dict[str, Any]:
        import jwt

        # The issuer is configured and may be anywhere, but its answers are bounded in time and size.
        with Client(PublicAddresses(allow_private=True), extra="mcp", purpose="[serve.oauth]") as client:
            url = self._settings.jwks_url or self._jwks_url(client)
            data = self._get(client, url)
        keys = jwt.PyJWKSet.from_dict(data).keys
        return {str(key.key_id): key.key for key in keys if key.key_id and key.public_key_use in ("sig", None)}

    def _jwks_url(self, client: Client) -> str:
        """From the issuer's metadata, which must name the same issuer."""
        for ending in _METADATA:
            data = self._get(client, self._settings.issuer.rstrip("/") + ending)
            if data.get("issuer") == self._settings.issuer and data.get("jwks_uri"):
                check_url("jwks_uri", str(data["jwks_uri"]))
                return str(data["jwks_uri"])
        raise ValueError(f"the metadata of {self._settings.issuer} contains no keys")

    def _get(self, client: Client, url: str) -> dict[str, Any]:
        """What is there, empty where nothing is; ValueError where it cannot be read."""
        try:
            request = Request(parse_target(url))
            answer = client.send(request, timeout=self._timeout, max_bytes=_MAX_ANSWER, redirects=0)
            data = json.loads(answer.body) if answer.status == 200 else {}
        except (NetError, RecursionError) as problem:
            raise ValueError(f"{url} cannot be read: {problem}") from problem
        return data if isinstance(data, dict) else {}


def _scopes(claims: dict[str, Any]) -> list[str]:
    scopes = claims.get("scope", claims.get("scp", ""))
    return scopes.split() if isinstance(scopes, str) else [str(item) for item in scopes or ()]


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
