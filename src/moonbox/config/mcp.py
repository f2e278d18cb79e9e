"""The section [mcp]: one table [mcp.servers.<name>] for each server, and which of its tools are offered.

[mcp.servers.github]
command = "npx"
args = ["-y", "@modelcontextprotocol/server-github"]
env = { GITHUB_TOKEN = "${GITHUB_TOKEN}" }
exclude = ["delete_*"]
tools = { create_issue = { policy = "approve" } }

[mcp.servers.docs]
url = "https://example.com/mcp"
headers = { Authorization = "Bearer ${DOCS_TOKEN}" }
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path  # noqa: TC003 - pydantic reads the annotation at run time
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit

from moonbox.config.file import Config, resolve_path
from moonbox.config.reader import read, settings_model, table
from moonbox.config.sections import Port, Positive, PositiveInt, check_url
from moonbox.config.variables import unset_problem
from moonbox.errors import ConfigError
from moonbox.failures import Failures  # noqa: TC001 - pydantic reads the annotation at run time
from moonbox.retry import Retry  # noqa: TC001 - as above

Policy = Literal["auto", "approve", "direct"]
Transport = Literal["stdio", "http", "sse"]
MIB = 1024 * 1024
_PREFIX = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


@settings_model
class ToolRule:
    """The table [mcp.servers.<name>.tools.<tool>]."""

    policy: Policy | None = None
    """auto: scripts may call it; approve: a person approves each call; direct: only the client may call it."""
    timeout: Positive | None = None
    """Seconds for one call."""
    failures: Failures | None = None
    """return: a result that is nothing but a failure, such as `{"error": "…"}`, is data; raise: it is an error."""
    retry: Retry | None = None
    """When a call is tried again. The server must call the tool read-only or idempotent."""
    enabled: bool = True
    """Whether it is offered at all."""


@settings_model
class LoginSettings:
    """The table [mcp.servers.<name>.oauth]: how moonbox logs in to a server. Most servers need no such table."""

    grant: Literal["authorization_code", "client_credentials"] = "authorization_code"
    """authorization_code: a person logs in with a browser; client_credentials: a machine, without a person."""
    client_id: str | None = None
    """The client that was registered by hand; by default moonbox registers itself."""
    client_secret: str | None = None
    """Its secret; requires issuer."""
    private_key: str | None = None
    """Its private key as PEM, instead of a secret, for client_credentials."""
    algorithm: str = "RS256"
    """How the private key signs."""
    client_metadata_url: str | None = None
    """The address of a client ID metadata document that describes this client."""
    issuer: str | None = None
    """The authorization server that the client belongs to: its secret is sent nowhere else. May be in your network."""
    scopes: tuple[str, ...] = ()
    """Scopes to ask for with client_credentials; with a person the server says which are needed."""
    redirect_port: Port = 0
    """The port of the loopback address that the browser returns to; 0 takes a free one."""

    def __post_init__(self) -> None:
        if self.grant == "client_credentials":
            if self.client_id is None or (self.client_secret is None) == (self.private_key is None):
                raise ConfigError("client_credentials requires client_id, and either client_secret or private_key")
        elif self.private_key is not None:
            raise ConfigError('private_key requires grant = "client_credentials"')
        elif self.client_secret is not None and self.client_id is None:
            raise ConfigError("client_secret requires client_id")
        if self.issuer is None and (self.client_secret is not None or self.private_key is not None):
            which = "client_secret" if self.client_secret is not None else "private_key"
            raise ConfigError(
                f"{which} requires issuer: the address of the authorization server that gave it to you, such as "
                'issuer = "https://login.example.com"; it is sent nowhere else'
            )
        for name in ("client_metadata_url", "issuer"):
            check_url(name, getattr(self, name))


@settings_model
class ServerSettings:
    """One server: how to reach it, how long it may take, and which of its tools are offered."""

    problem: ClassVar[str] = ""

    name: str = ""
    command: str | None = None
    """A program that speaks MCP on its standard input and output."""
    args: tuple[str, ...] = ()
    """The program's arguments."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Its environment, besides a few safe variables such as PATH and HOME. Nothing else is passed on."""
    cwd: Path | None = None
    """The folder it runs in; the configuration's own by default."""
    url: str | None = None
    """The address of a server that speaks MCP over HTTP."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """HTTP headers that are sent with each request."""
    oauth: LoginSettings | None = None
    """How to log in to it, where that needs more than `moonbox mcp login`: the table `[mcp.servers.<name>.oauth]`."""
    transport: Transport | None = None
    """stdio, http (streamable HTTP) or sse (its predecessor); by default stdio for a command and http for a url."""
    protocol: Literal["auto", "current", "earlier"] = "auto"
    """current (since 2026), or earlier (with a handshake); auto: the client's own, where the server speaks both."""
    enabled: bool = True
    """Whether the server is used at all."""
    lazy: bool = False
    """Start it at the first call. Its tools are remembered from the last time; the first time it starts at once."""
    idle_seconds: Positive | None = None
    """Stop a lazy server when it was not called for this long; the next call starts it again. It loses its state."""
    start_timeout: Positive = 30.0
    """Seconds that it may take to start and list its tools."""
    timeout: Positive = 60.0
    """Seconds for one call."""
    max_message: PositiveInt = 16 * MIB
    """The largest message from it, in bytes; with the transport sse at most 1 MiB."""
    questions: bool = True
    """Whether its own requests (sampling, elicitation, roots) are passed on to the client."""
    sampling: bool = False
    """Whether its requests for answers of the client's model are passed on too: these cost the user's tokens."""
    prefix: str | None = None
    """Before the names of its tools and prompts, instead of the server's name; empty: the names stay as they are."""
    prompts: bool = True
    """Whether its prompts are offered to clients."""
    resources: bool = True
    """Whether its resources are offered to clients."""
    scripts: tuple[Literal["resources", "prompts"], ...] = ()
    """What scripts may read of it: "resources" with mcp.read(uri), "prompts" with mcp.prompt(name, arguments)."""
    policy: Policy | None = None
    """For every tool that has no rule of its own."""
    failures: Failures | None = None
    """The same, for results that are nothing but a failure: return or raise; by default as [sandbox] says."""
    retry: Retry | None = None
    """The same, for calls that fail for a moment: of the tools that the server calls read-only or idempotent."""
    include: tuple[str, ...] = ("*",)
    """Globs of the tools to offer."""
    exclude: tuple[str, ...] = ()
    """Globs of the tools to leave out."""
    tools: Mapping[str, ToolRule] = field(default_factory=dict)
    """Rules for single tools, by name."""

    def __post_init__(self) -> None:
        if self.idle_seconds is not None and not self.lazy:
            raise ConfigError("idle_seconds requires lazy = true")
        if (self.command is None) == (self.url is None):
            raise ConfigError("set either command or url" + (", not both" if self.command is not None else ""))
        if self.command is not None and not self.command.strip():
            raise ConfigError("command must not be empty")
        if self.prefix and _PREFIX.fullmatch(self.prefix) is None:
            raise ConfigError(f"prefix may contain letters, digits, _ and - only, not {self.prefix!r}")
        kind = self.kind
        if (kind == "stdio") != (self.command is not None):
            needs = "command" if kind == "stdio" else "url"
            raise ConfigError(f'transport = "{kind}" requires {needs}')
        if self.url is not None:
            self._check_url(self.url)
            if self.args or self.env or self.cwd is not None:
                raise ConfigError("args, env and cwd are for a command, not for a url")
            self._check_headers(self.headers)
        elif self.headers or self.oauth is not None:
            raise ConfigError("headers and oauth are for a url, not for a command")

    @staticmethod
    def _check_url(url: str) -> None:
        try:
            parts = urlsplit(url)
            _ = parts.port  # ValueError if it is out of range
        except ValueError as problem:
            raise ConfigError(f"url is invalid: {problem}") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"url must begin with http:// or https://, not {url!r}")

    @staticmethod
    def _check_headers(headers: Mapping[str, str]) -> None:
        """Messages show the name alone: the value may be a secret."""
        for name, value in headers.items():
            if _HEADER_NAME.fullmatch(name) is None:
                raise ConfigError(f"invalid header name {name!r}")
            if not value.isascii() or not value.isprintable() or value != value.strip():
                raise ConfigError(
                    f"the value of the header '{name}' is invalid: it must be ASCII, without line breaks and without "
                    "spaces at either end"
                )

    @classmethod
    def from_dict(cls, name: str, data: Any, folder: Path | None = None) -> ServerSettings:
        """From a table of the configuration; unknown keys are refused."""
        section = f"mcp.servers.{name}"
        if isinstance(data, Mapping) and "name" in data:
            raise ConfigError(f"[{section}] the table is the name; remove the key 'name'")
        settings = replace(read(cls, data, section), name=name)
        if folder is not None and settings.command is not None:
            settings = settings.within(folder)
        return settings

    def within(self, folder: Path) -> ServerSettings:
        """With its cwd, and a command that is a path, resolved against this folder."""
        command = self.command or ""
        if "/" in command and not command.startswith("/"):
            command = str(resolve_path(folder, command))
        cwd = folder if self.cwd is None else resolve_path(folder, self.cwd)
        return replace(self, command=command, cwd=cwd)

    @property
    def kind(self) -> Transport:
        """The transport: the given one, or the one that fits."""
        if self.transport is not None:
            return self.transport
        return "stdio" if self.command is not None else "http"

    @property
    def namespace(self) -> str:
        """What stands before the names of its tools and prompts; may be empty."""
        return self.name if self.prefix is None else self.prefix

    @property
    def where(self) -> str:
        """Its command or address as people may see it: without arguments, password and query, which may be secret."""
        if self.command is not None:
            return self.command
        parts = urlsplit(self.url or "")
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"

    def offers(self, tool: str) -> bool:
        """Whether the tool is offered."""
        rule = self.tools.get(tool)
        if rule is not None:
            return rule.enabled
        return _any(tool, self.include) and not _any(tool, self.exclude)

    def setting_of(self, tool: str, name: str) -> Any:
        """The policy, timeout, failures or retry of a tool: its own rule, or else what holds for the server."""
        own = getattr(self.tools.get(tool), name, None)
        return getattr(self, name) if own is None else own


@dataclass(frozen=True, kw_only=True)
class UnusableServer(ServerSettings):
    """A server with a setting that cannot be read now; its calls fail with the reason, and it costs nothing else."""

    problem: str = ""  # type: ignore[misc]  # what is the same for all others is a field here

    @classmethod
    def of(cls, name: str, data: Mapping[str, Any], problem: str) -> UnusableServer:
        """`data` is its table, of which only what is shown to people counts."""
        prefix, enabled = data.get("prefix"), data.get("enabled")
        return cls(
            name=name,
            command=str(data.get("command") or data.get("url") or name),
            prefix=prefix if isinstance(prefix, str) and _PREFIX.fullmatch(prefix) else None,
            enabled=enabled is not False,
            problem=problem,
        )


def server_from_table(name: str, data: Any, folder: Path | None = None) -> ServerSettings:
    """A server's settings; where a variable in them is not set, one that says so."""
    if isinstance(data, Mapping) and (unset := unset_problem(data)) is not None:
        return UnusableServer.of(name, data, unset)
    return ServerSettings.from_dict(name, data, folder)


def servers_from_config(config: Config) -> tuple[ServerSettings, ...]:
    """Every server of the section, in its order."""
    servers = config.section("mcp", ["servers"]).get("servers", {})
    with config.naming_file():
        tables = table(servers, "mcp.servers")
        return tuple(server_from_table(name, data, config.folder) for name, data in tables.items())


def _any(name: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name, glob) for glob in globs)
