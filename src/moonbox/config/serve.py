"""The section [serve]: who may use the server, how much at a time, and how long it keeps state.

[serve]
host = "0.0.0.0"
port = 8808
token = "${MOONBOX_TOKEN}"
hosts = ["tools.example.com"]

[serve.oauth]                     # instead of, or beside, a token
issuer = "https://login.example.com"
resource = "https://tools.example.com/mcp"
scopes = ["moonbox"]
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic reads the annotation at run time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from moonbox.config.reader import CLOSED, positive
from moonbox.errors import ConfigError, UsageError
from moonbox.net.addresses import LOOPBACK_NAMES, is_loopback

if TYPE_CHECKING:
    from moonbox.config.file import Config

__all__ = ["OAuthSettings", "ServeSettings", "check_url"]

_SHORTEST_TOKEN = 16


@dataclass(frozen=True, kw_only=True)
class OAuthSettings:
    """The table [serve.oauth]: signed JWTs that an authorization server issued for this server."""

    __pydantic_config__: ClassVar = CLOSED

    issuer: str
    """The authorization server; tokens must name it as `iss`."""
    resource: str
    """The public address of this server, with /mcp at the end; tokens must name it as `aud`."""
    scopes: tuple[str, ...] = ()
    """Scopes that a token must have."""
    jwks_url: str | None = None
    """The address of the issuer's keys; by default the one in its metadata."""

    def __post_init__(self) -> None:
        for name in ("issuer", "resource", "jwks_url"):
            url = getattr(self, name)
            if url is not None:
                check_url(name, url)


@dataclass(frozen=True, kw_only=True)
class ServeSettings:
    """The section [serve]."""

    __pydantic_config__: ClassVar = CLOSED

    host: str = "127.0.0.1"
    """The address to listen on."""
    port: int = 8808
    """The port; 0 takes a free one."""
    token: str | None = None
    """Clients send it as `Authorization: Bearer <token>`. Required for any address but a loopback address."""
    tokens: Mapping[str, str] = field(default_factory=dict)
    """One for each client, by the client's name: each has its own runs, state and share of the limits."""
    oauth: OAuthSettings | None = None
    """Accept tokens of an authorization server: the table `[serve.oauth]`."""
    hosts: tuple[str, ...] = ()
    """Further Host headers that are accepted, besides the address itself and the loopback names."""
    origins: tuple[str, ...] = ()
    """Further web origins whose pages may use the server, besides pages that this machine serves itself."""
    max_calls: int = 16
    """Calls of one client at the same time; further ones wait."""
    max_waiting: int = 1_000
    """Calls of one client that may wait; further ones are refused."""
    wait_seconds: float = 30.0
    """How long a call waits for its turn before it is refused."""
    calls_per_minute: int | None = None
    """Calls of tools and scripts of one client in a minute; further ones are refused. No limit by default."""
    seconds_per_minute: float | None = None
    """Seconds that the calls of one client may take in a minute, added up. No limit by default."""
    requests_per_minute: int = 6_000
    """HTTP requests from one address."""
    max_body: int = 4 * 1024 * 1024
    """Bytes of one HTTP request."""
    max_conversations: int = 200
    """The most conversations whose state is kept at the same time."""
    idle_seconds: float = 1_800.0
    """How long a conversation's state is kept after its last call."""
    answer_seconds: float = 600.0
    """How long a person may take to answer a question."""
    resume_seconds: float = 15.0
    """How long the next script of a conversation waits for the answer to a question of the one before."""
    start_wait: float = 10.0
    """How long the first list of tools waits for servers that are still starting."""
    structured: bool = True
    """Send the script's value as structured content too, besides the text."""
    direct_without_asking: bool = True
    """Whether a client that cannot show our question may call tools that need approval directly, and ask by itself."""

    def __post_init__(self) -> None:
        names = ("max_calls", "requests_per_minute", "max_body", "max_conversations", "idle_seconds", "answer_seconds")
        for name in names:
            positive(name, getattr(self, name))
        for name in ("calls_per_minute", "seconds_per_minute"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))
        for name in ("max_waiting", "wait_seconds", "resume_seconds", "start_wait"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must be at least 0, not {getattr(self, name)}")
        if not 0 <= self.port <= 65_535:
            raise ConfigError(f"port must be from 0 to 65535, not {self.port}")
        for token in (self.token, *self.tokens.values()):
            if token is not None and len(token) < _SHORTEST_TOKEN:
                raise ConfigError(f"a token must have at least {_SHORTEST_TOKEN} characters")
        if len(set(self.tokens.values()) | {self.token}) != len(self.tokens) + 1:
            raise ConfigError("two clients must not have the same token")

    @classmethod
    def from_config(cls, config: Config) -> ServeSettings:
        return config.read(cls, "serve")

    @property
    def protected(self) -> bool:
        """Whether clients need a token."""
        return bool(self.token is not None or self.tokens or self.oauth is not None)

    @property
    def host_names(self) -> frozenset[str]:
        """The Host headers that are accepted, without ports; empty where any is."""
        own = {self.host if ":" not in self.host else f"[{self.host.strip('[]')}]"}
        if is_loopback(self.host):
            return frozenset({*LOOPBACK_NAMES, *own, *self.hosts})
        if self.host in ("0.0.0.0", "::"):
            return frozenset({*LOOPBACK_NAMES, *self.hosts}) if self.hosts else frozenset()
        return frozenset({*own, *self.hosts})

    def check_address(self) -> None:
        """Refuse to serve other machines without a token."""
        if not self.protected and not is_loopback(self.host):
            raise UsageError(
                f"serving on {self.host} requires a token: use --token or [serve] token, or serve on 127.0.0.1"
            )


def check_url(name: str, url: str) -> None:
    """Refuse an address that would carry keys or tokens over the network without TLS."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        raise ConfigError(f"{name} must begin with https://, not {url!r}")
