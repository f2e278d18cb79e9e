"""Authentication: who a client is, by a configured token or by a JWT of an authorization server."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import time
from typing import TYPE_CHECKING, Any

from mcp.server.auth.provider import AccessToken

from moonbox.config.sections import check_url
from moonbox.net.addresses import NetError, parse_target
from moonbox.net.client import Client, PublicAddresses, Request
from moonbox.threads import in_thread

if TYPE_CHECKING:
    from moonbox.config.sections import OAuthSettings, ServeSettings

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
