"""The `[mcp.servers.<name>]` tables: which servers there are, and what of them is offered.

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
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from urllib.parse import urlsplit

from moonbox.errors import ConfigError, ToolDefinitionError
from moonbox.knowledge.contract import CLOSED, positive, read, suggestion
from moonbox.tools.naming import check_name
from moonbox.tools.tool import Policy  # noqa: TC001 - pydantic reads the annotation at run time

if TYPE_CHECKING:
    from moonbox.config.file import Config

__all__ = ["ServerSettings", "ToolRule", "servers_from_config"]

Transport = Literal["stdio", "http", "sse"]
MIB = 1024 * 1024
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


@dataclass(frozen=True, kw_only=True)
class ToolRule:
    """What the configuration says about one tool."""

    __pydantic_config__: ClassVar = CLOSED

    policy: Policy | None = None
    """auto: scripts may call it; approve: a person must agree to each call; direct: only the client may call it."""
    timeout: float | None = None
    """Seconds for one call."""
    enabled: bool = True
    """Whether it is offered at all."""

    def __post_init__(self) -> None:
        positive("timeout", self.timeout)


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """One server: how it is reached, how long it may take, and which of its tools are offered."""

    __pydantic_config__: ClassVar = CLOSED

    name: str = ""
    command: str | None = None
    """A program that speaks MCP on its standard input and output."""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    """Its environment, beside a few safe variables such as PATH and HOME. Nothing else is passed on."""
    cwd: Path | None = None
    """The folder it runs in; the configuration's own by default."""
    url: str | None = None
    """The address of a server that speaks MCP over HTTP."""
    headers: Mapping[str, str] = field(default_factory=dict)
    transport: Transport | None = None
    """stdio, http (streamable HTTP) or sse (its predecessor); follows from command and url."""
    enabled: bool = True
    lazy: bool = False
    """Start it at the first call. Its tools are known from the last time; the very first time it starts at once."""
    start_timeout: float = 30.0
    """Seconds until it must have answered with its tools."""
    timeout: float = 60.0
    """Seconds for one call."""
    max_message: int = 16 * MIB
    """Bytes of one message from it."""
    questions: bool = True
    """Whether what it asks back (sampling, elicitation, roots) is passed on to the client."""
    policy: Policy | None = None
    """For every tool that has no rule of its own."""
    include: tuple[str, ...] = ("*",)
    """Globs of the tools to offer."""
    exclude: tuple[str, ...] = ()
    """Globs of the tools to leave out."""
    tools: Mapping[str, ToolRule] = field(default_factory=dict)
    """Rules for single tools, by name."""

    def __post_init__(self) -> None:
        for item in ("start_timeout", "timeout", "max_message"):
            positive(item, getattr(self, item))
        if (self.command is None) == (self.url is None):
            have = "neither" if self.command is None else "both"
            raise ConfigError(f"give either command or url; there is {have}")
        if self.command is not None and not self.command.strip():
            raise ConfigError("command must name a program")
        kind = self.kind
        if (kind == "stdio") != (self.command is not None):
            needs = "command" if kind == "stdio" else "url"
            raise ConfigError(f'transport = "{kind}" needs {needs}')
        if self.url is not None:
            self._check_url(self.url)
            if self.args or self.env or self.cwd is not None:
                raise ConfigError("args, env and cwd belong to command, not to url")
            self._check_headers(self.headers)
        elif self.headers:
            raise ConfigError("headers belong to url, not to command")

    @staticmethod
    def _check_url(url: str) -> None:
        try:
            parts = urlsplit(url)
        except ValueError as problem:
            raise ConfigError(f"url is not an address: {problem}") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"url must begin with http:// or https://, not {url!r}")

    @staticmethod
    def _check_headers(headers: Mapping[str, str]) -> None:
        """The value may be a secret, so that only the name is told."""
        for name, value in headers.items():
            if _HEADER_NAME.fullmatch(name) is None:
                raise ConfigError(f"{name!r} is not the name of a header")
            if not value.isascii() or not value.isprintable() or value != value.strip():
                raise ConfigError(
                    f"the value of the header {name} has a line break, white space at an end, or a character that is "
                    "not ASCII"
                )

    @classmethod
    def from_dict(cls, name: str, data: Any, folder: Path | None = None) -> ServerSettings:
        """From a table of the configuration; unknown keys are refused."""
        where = f"[mcp.servers.{name}]"
        if not isinstance(data, Mapping):
            raise ConfigError(f"{where} must be a table, not {data!r}")
        if "name" in data:
            raise ConfigError(f"{where} is named by its table; take out the key 'name'")
        try:
            check_name(name, "server name")
        except ToolDefinitionError as problem:
            raise ConfigError(f"{where}: {problem}") from None
        settings = replace(read(cls, data, where), name=name)
        if folder is not None and settings.command is not None:
            settings = settings.within(folder)
        return settings

    def within(self, folder: Path) -> ServerSettings:
        """With its folder, and a command that is a path, taken relative to this one."""
        command = self.command or ""
        if "/" in command and not command.startswith("/"):
            command = str(folder / Path(command).expanduser())
        cwd = folder if self.cwd is None else folder / self.cwd.expanduser()
        return replace(self, command=command, cwd=cwd)

    @property
    def kind(self) -> Transport:
        """The transport, given or found out."""
        if self.transport is not None:
            return self.transport
        return "stdio" if self.command is not None else "http"

    @property
    def where(self) -> str:
        """How it is reached, for people: without arguments, password and query, which may hold secrets."""
        if self.command is not None:
            return self.command
        parts = urlsplit(self.url or "")
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"

    def offers(self, tool: str) -> bool:
        """Whether the tool is wanted."""
        rule = self.tools.get(tool)
        if rule is not None:
            return rule.enabled
        return _any(tool, self.include) and not _any(tool, self.exclude)

    def policy_of(self, tool: str) -> Policy | None:
        """What is configured; None when nothing is."""
        rule = self.tools.get(tool)
        return rule.policy if rule is not None and rule.policy is not None else self.policy

    def timeout_of(self, tool: str) -> float:
        rule = self.tools.get(tool)
        return rule.timeout if rule is not None and rule.timeout is not None else self.timeout

    def with_direct(self, tools: list[str]) -> ServerSettings:
        """With these tools kept direct, unless a rule of their own says otherwise."""
        rules = dict(self.tools)
        for tool in tools:
            rule = rules.get(tool, ToolRule())
            if rule.policy is None:
                rules[tool] = replace(rule, policy="direct")
        return replace(self, tools=rules)


def servers_from_config(config: Config) -> tuple[ServerSettings, ...]:
    """Every server of the `[mcp]` section, in its order."""
    section = config.section("mcp")
    for key in section:
        if key != "servers":
            raise ConfigError(f"[mcp] has no setting {key!r}; {suggestion(key, ['servers'])}")
    tables = section.get("servers", {})
    if not isinstance(tables, Mapping):
        raise ConfigError(f"[mcp.servers] must be a table of tables, not {tables!r}")
    return tuple(ServerSettings.from_dict(name, table, config.folder) for name, table in tables.items())


def _any(name: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name, glob) for glob in globs)
