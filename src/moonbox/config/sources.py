"""The sections [openapi.<name>] and [sql.<name>]: a specification or a database whose tools are `<name>.<tool>`.

[openapi.github]
spec = "github.yaml"
base_url = "https://api.github.com"
auth = { bearer = "${GITHUB_TOKEN}" }
include = ["tag:issues", "GET /search/*"]

[sql.shop]
url = "sqlite:///shop.db"
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from moonbox.config.mcp import MIB, Policy
from moonbox.config.reader import settings_model, table
from moonbox.config.sections import NotNegative, Positive, PositiveInt, check_url
from moonbox.errors import ConfigError
from moonbox.retry import Retry  # noqa: TC001 - pydantic reads the annotation at run time

if TYPE_CHECKING:
    from moonbox.config.file import Config

_KEY_PLACE = re.compile(r"(header|query|cookie):[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}", re.ASCII)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


@settings_model
class ApiCredentials:
    """The table [openapi.<name>.auth]: one way to authenticate. It is sent to base_url and nowhere else."""

    bearer: str | None = None
    """A token."""
    basic: str | None = None
    """`user:password` of HTTP Basic."""
    api_key: str | None = None
    """A key."""
    api_key_in: str | None = None
    """Where the key is sent: `header:<name>`, `query:<name>` or `cookie:<name>`."""
    client_id: str | None = None
    """The client of OAuth client credentials; requires client_secret and token_url."""
    client_secret: str | None = None
    """The client's secret."""
    token_url: str | None = None
    """Where the client's tokens are requested; its secret is sent nowhere else."""
    scopes: tuple[str, ...] = ()
    """The scopes to request."""

    def __post_init__(self) -> None:
        if [self.bearer, self.basic, self.api_key, self.client_id].count(None) != 3:
            raise ConfigError("write exactly one of bearer, basic, api_key and client_id")
        if len({self.client_id is None, self.client_secret is None, self.token_url is None}) != 1:
            raise ConfigError("client_id, client_secret and token_url belong together")
        if self.api_key is not None and not _KEY_PLACE.fullmatch(self.api_key_in or ""):
            raise ConfigError("api_key_in must be 'header:<name>', 'query:<name>' or 'cookie:<name>'")
        check_url("token_url", self.token_url)


@settings_model
class OpenApiSettings:
    """The section [openapi.<name>], and the keyword arguments of `Toolbox.from_openapi`."""

    spec: str
    """The specification: a JSON or YAML file, or its address."""
    base_url: str | None = None
    """Where requests go; by default to the first server that the specification names."""
    auth: ApiCredentials | None = None
    """How to authenticate: the table `[openapi.<name>.auth]`; requires base_url."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further headers of each request, sent to base_url only."""
    include: tuple[str, ...] = ()
    """The operations to offer, all by default: names (`list_*`), `tag:<tag>`, paths (`/repos/*`), or with a method
    (`GET /repos/*`)."""
    exclude: tuple[str, ...] = ()
    """The operations to leave out, in the same form."""
    policy: Mapping[str, Policy] = field(default_factory=dict)
    """Policies by operations, in the same form; the last match counts. By default GET and HEAD are auto, all others
    approve."""
    allow_private: bool = False
    """Whether host names may lead to private addresses; an address or localhost in base_url always may."""
    timeout: Positive = 30.0
    """Seconds for one request."""
    max_wait: NotNegative = 60.0
    """Seconds that one call may wait because of rate limits; never longer than its run may take."""
    max_bytes: PositiveInt = 8 * MIB
    """The largest response, in bytes."""
    retry: Retry | None = None
    """When a call is tried again, of GET, HEAD, PUT and DELETE: the table `[openapi.<name>.retry]`."""

    def __post_init__(self) -> None:
        if self.base_url is None and (self.auth is not None or self.headers):
            raise ConfigError("auth and headers require base_url: they are sent there and nowhere else")
        if self.auth is not None:
            check_url("base_url", self.base_url or "")


@settings_model
class SqlSettings:
    """The section [sql.<name>], and the keyword arguments of `Toolbox.from_sql`."""

    url: str
    """The database: `sqlite:///shop.db`, `duckdb:///sales.duckdb`, `duckdb://` (files alone), `postgresql://…`."""
    execute: bool = False
    """Whether there is a tool `execute`, which changes data; a person approves each call."""
    folders: tuple[str, ...] = ()
    """Folders whose CSV, Parquet and JSON files DuckDB may read."""
    include: tuple[str, ...] = ()
    """Tables that queries may name: `orders`, `crm.*`, and so on. Empty: all."""
    exclude: tuple[str, ...] = ()
    """Tables that they may not name."""
    functions: tuple[str, ...] = ()
    """Further functions that queries may call: those of extensions, or your own."""
    timeout: Positive = 10.0
    """Seconds for one statement."""
    max_rows: PositiveInt = 10_000
    """The most rows of one result."""
    max_bytes: PositiveInt = 8 * MIB
    """The largest result, in bytes."""


def tables_of(config: Config, section: str) -> dict[str, dict[str, Any]]:
    """The tables of one of the sections, by name."""
    with config.naming_file():
        tables = {name: table(data, f"{section}.{name}") for name, data in config.section(section).items()}
        for name in tables:
            if not _NAME.fullmatch(name):
                raise ConfigError(f"[{section}.{name}] the name may have letters, digits and _ only: it is a namespace")
        return tables
