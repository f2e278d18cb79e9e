"""The sections [sandbox], [limits], [audit], [tools], [codemode], [knowledge] and [serve]; [mcp] is in `mcp.py`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field

from moonbox.config.reader import read, settings_model, table
from moonbox.config.variables import unset_problem
from moonbox.errors import ConfigError, UsageError
from moonbox.limits import Limits
from moonbox.net.addresses import LOOPBACK_NAMES, is_loopback
from moonbox.retry import Retry  # noqa: TC001 - pydantic reads the annotation at run time

if TYPE_CHECKING:
    from moonbox.config.file import Config

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
PositiveInt = Annotated[int, Field(gt=0)]
Port = Annotated[int, Field(ge=0, le=65_535)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_SHORTEST_TOKEN = 16
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@*]+")


@settings_model
class SandboxSettings:
    """The section [sandbox]."""

    language: str | None = None
    """The language of scripts: `lua`, which is the default, `rhai` or `python`."""
    isolation: Literal["process", "inline"] = "process"
    """`process`: each Repl in a locked-in process. `inline`: in this process, for scripts that you trust."""
    lua_features: tuple[str, ...] = ()
    """Parts of Lua that are off by default: `coroutines`, `metatables`."""
    min_workers: int = 1
    """Spare workers that are kept ready."""
    max_workers: int = 256
    """The most workers at the same time."""
    allow_nan: bool = False
    """Let NaN and infinity leave a script."""
    failures: Literal["return", "raise"] = "return"
    """Of results that are nothing but a failure: `return` gives scripts the data, `raise` makes an error of it."""
    check: bool = True
    """Look at each script first, and do not run one that cannot work."""
    scripts: Literal["auto", "approve"] = "auto"
    """approve: a person must allow each script before it runs; scripts that are tools are not asked about."""
    require: tuple[str, ...] = ()
    """Layers of the jail without which nothing starts, such as `seccomp`; `moonbox doctor` lists them."""


@settings_model
class ClusterSettings:
    """The section [cluster]."""

    address: str | None = None
    """The Ray cluster whose nodes run the workers: `auto`, `ray://host:port` or `host:port`; otherwise this machine."""
    node_timeout: Positive = 5.0
    """Seconds after which a node that does not answer is left, and its Repls move to others."""
    sleep_after: Positive | None = None
    """Seconds after which an idle Repl gives its worker up until its next run; needs a journal."""


@settings_model
class AuditSettings:
    """The section [audit]."""

    enabled: bool = True
    """Whether runs are recorded."""
    path: str | None = None
    """A .db or .jsonl file; by default your own trail, which `moonbox audit` shows."""
    fsync: bool = False
    """Wait for the disk after each run, so that a run survives a loss of power."""
    redact: tuple[str, ...] = ()
    """Names of fields whose values are not recorded; [redaction](../audit.md#redaction) says where they are hidden."""
    max_bytes: Annotated[int, Field(ge=0)] = 1_000_000_000
    """Past this size the oldest runs are deleted; 0 keeps everything."""
    max_runs: Annotated[int, Field(ge=0)] = 0
    """Past this number the oldest runs are deleted; 0 keeps everything."""
    max_days: Annotated[float, Field(ge=0)] = 0
    """Runs older than this are deleted; 0 keeps everything."""


@settings_model
class JournalSettings:
    """The section [journal]: runs that outlive their process."""

    path: str | None = None
    """A SQLite file; a relative path is relative to the configuration file."""
    url: str | None = None
    """A PostgreSQL database instead of a file: `postgresql://…`."""
    durability: Literal["process", "machine"] = "process"
    """What a file survives: the death of the process, or also that of the machine."""
    wait: Positive = 30.0
    """Seconds that a run waits for a database that is away or full; then it fails and can be resumed."""
    approval_seconds: Positive = 86_400.0
    """How long a question to a person stays open; then it counts as denied."""
    recover: bool = True
    """Whether `moonbox serve` and `moonbox console` continue interrupted runs without a call in doubt."""
    max_days: Annotated[float, Field(ge=0)] = 30
    """Repls that were not used for so long are deleted, except those with a run that has not ended; 0 keeps
    everything."""

    def __post_init__(self) -> None:
        if self.path is not None and self.url is not None:
            raise ConfigError("set either path or url, not both")
        if self.url is not None and self.url.partition("://")[0] not in ("postgresql", "postgres"):
            raise ConfigError("url must begin with postgresql://")


@settings_model
class LlmSettings:
    """The section [llm]: the model that scripts ask with `llm`. The budget is that of the process."""

    provider: Literal["openai", "anthropic", "google", "litellm", "local", "client"]
    """Who answers: a provider, a local server, or, in `moonbox serve`, the MCP client's own model (`client`)."""
    model: str = ""
    """The model's name."""
    url: str | None = None
    """Another address of the provider; of a local server also its name, such as `ollama`."""
    key_env: str | None = None
    """The environment variable that holds the key; by default the one that the provider's package reads."""
    policy: Literal["auto", "approve"] = "auto"
    """`approve`: a person must agree to each call."""
    max_calls: Annotated[int, Field(ge=1)] = 100
    """Requests to the model, repairs included."""
    max_tokens: Annotated[int, Field(ge=1)] = 200_000
    """Tokens, read and written. A request begins only if the rest is enough for its longest possible answer."""
    max_cost: float | None = None
    """Money, in the currency of the price."""
    price: tuple[float, float] | None = None
    """The price of a million tokens that the model reads, and of a million that it writes."""
    max_answer: Annotated[int, Field(ge=1)] = 1_024
    """Tokens of one answer."""
    timeout: Positive = 60.0
    """Seconds for one call."""

    def __post_init__(self) -> None:
        if not self.model and self.provider != "client":
            raise ConfigError("model must name the model")
        if self.max_cost is not None and self.price is None:
            raise ConfigError("max_cost needs the price: price = [0.15, 0.6], for a million tokens read and written")

    def cost(self, read: int, written: int) -> float:
        """What so many tokens cost; 0 without a price."""
        prices = self.price or (0.0, 0.0)
        return (read * prices[0] + written * prices[1]) / 1_000_000


def read_limits(config: Config) -> Limits:
    """The section [limits]: a preset, and single limits that differ from it."""
    section = config.section("limits", ["preset", *(item.name for item in fields(Limits))])
    preset = section.pop("preset", "default")
    with config.naming_file():
        if (unset := unset_problem(section)) is not None or (unset := unset_problem(preset)) is not None:
            raise ConfigError(unset)
        try:
            return Limits.preset(preset, **section)
        except UsageError as problem:
            raise ConfigError(f"[limits] {str(problem).removeprefix('Limits.')}") from None


DEFAULT_TIMEOUT = 30.0


@settings_model
class ScriptTable:
    """One table [tools.script.<name>], or a source with `connector = "lua"`: one script and its grants."""

    path: Path
    """The script; a relative path is relative to the configuration file."""
    timeout: Positive = DEFAULT_TIMEOUT
    """Seconds for one call, host functions included."""
    http: tuple[str, ...] = ()
    """Hosts that it may reach: `api.example.com`, `*.example.com`."""
    env: tuple[str, ...] = ()
    """Environment variables that it may read, and use as secrets."""
    read: tuple[str, ...] = ()
    """Folders that it may read."""
    write: tuple[str, ...] = ()
    """Folders that it may write to; this does not include reading."""
    secrets: Any = ()
    """Environment variables that it may use but not read: a list of names, or a table
    `NAME = { hosts = […], places = ["header"] }`; the places are header, body and query."""
    tools: tuple[str, ...] = ()
    """Tools of the project that it may call, of those in its `tool.uses`: names, or patterns such as `crm.*`."""
    direct: bool = False
    """Whether the model may call it directly too, beside scripts, as `keep_visible` of [codemode] does."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Every other key of the table; the script finds it as context.config."""

    def __post_init__(self) -> None:
        if str(self.path) in ("", "."):
            raise ConfigError("path must name a file")

    @classmethod
    def from_dict(cls, data: Any, section: str) -> ScriptTable:
        """Keys that have no meaning here are the script's own configuration."""
        given = table(data, section)
        own = {key: given.pop(key) for key in list(given) if key not in _SCRIPT_KEYS}
        return read(cls, {**given, "config": own}, section)


_SCRIPT_KEYS = frozenset(item.name for item in fields(ScriptTable)) - {"config"}


@settings_model
class ToolTable:
    """One table [tools.<name>]: a tool, wherever it comes from, by its path, such as [tools."crm.find"]."""

    retry: Retry | None = None
    """When a call of it is tried again: the table [tools.<name>.retry]."""
    undo: str | None = None
    """The tool that takes a call of it back, by its path."""


@settings_model
class ToolsTable:
    """The section [tools]."""

    folders: tuple[str, ...] = ()
    """Every `.lua` file in these folders is a tool script."""
    saved: str | None = None
    """The folder of saved scripts: tool scripts that may call the tools of the project."""
    model_saves: bool = False
    """Offer scripts the tool `save`, with which a model saves a script after a person's approval."""
    python: tuple[str, ...] = ()
    """Python tools: `module:name`, `module`, or `file.py:name`, relative to the configuration file."""
    disabled: tuple[str, ...] = ()
    """Tools that cannot be used, wherever they come from: names, patterns (`github.delete_*`), or `category:admin`."""
    max_risk: Literal["low", "medium", "high"] | None = None
    """Tools of a higher risk cannot be used; those that do not state their risk can."""
    script: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """One table for each tool script with settings of its own: `[tools.script.<name>]`."""

    def __post_init__(self) -> None:
        if self.model_saves and self.saved is None:
            raise ConfigError('model_saves needs a folder for the scripts: saved = "saved"')


_ToolName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]


@settings_model
class CodeModeSettings:
    """The section [codemode], and the keyword arguments of CodeMode."""

    keep_visible: tuple[str, ...] = ()
    """Tools that the model calls directly too, beside scripts: names, or patterns such as `bash*`."""
    full_schemas: bool = False
    """Add each tool's JSON Schema to the catalog."""
    learned_shapes: bool = False
    """Show in the catalog what tools have returned that do not fully say it, as far as it was known at the start."""
    mode: Literal["always", "auto", "never"] = "always"
    """always: the code tool; never: every tool direct; auto: the code tool where that is smaller, or else both."""
    approvals: bool = False
    """Let scripts call tools that need a person's approval: the script waits."""
    name: _ToolName | None = None
    """The code tool's name; by default lua_repl or rhai_repl."""
    parameter: _ToolName | None = None
    """The name of its one parameter; by default source_code."""
    description: str | None = None
    """Replaces the code tool's description; the catalog still follows it."""
    system_prompt: str | None = None
    """Replaces the system prompt addition."""
    catalog_tokens: Annotated[int, Field(ge=1)] | None = 8000
    """Above this size the catalog shows less: no facts of fields, no sentences, only names, then only how to search."""
    description_chars: Annotated[int, Field(ge=200)] | None = None
    """The longest description that the provider takes (1024 for some); the code tool's parameter holds the rest."""
    max_chars: Annotated[int, Field(ge=500)] = 20_000
    """The longest answer to the model, in characters: about 5,000 tokens. An answer that is cut keeps its value."""
    reply: Literal["text", "json"] = "text"
    """text: an answer that reads well; json: `{"result": …, "output": "…"}`, and `error` where the script failed."""


STATE_FOLDER = Path(".moonbox")
"""What a project keeps from one start to the next, beside its moonbox.toml."""
DEFAULT_STORE = STATE_FOLDER / "knowledge.db"
SOURCE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@settings_model
class KnowledgeTable:
    """The section [knowledge]; its providers and connectors read their own tables with the same reader."""

    path: Path = DEFAULT_STORE
    """The file of the store."""
    embeddings: Mapping[str, Any] | None = None
    """What turns texts into vectors: the table `[knowledge.embeddings]`. Without it, search is by keywords."""
    sources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """One table for each source: `[knowledge.sources.<name>]`."""

    def __post_init__(self) -> None:
        if str(self.path) in ("", "."):
            raise ConfigError("path must name a file")
        for name in self.sources:
            if not SOURCE_NAME.fullmatch(name):
                raise ConfigError(
                    f"the source name '{name}' is invalid: use 1 to 64 letters, digits, - and _, "
                    "beginning with a letter or digit"
                )


@settings_model
class OAuthSettings:
    """The table [serve.oauth]: signed JWTs that an authorization server issued for this server."""

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
            check_url(name, getattr(self, name))


@settings_model
class ServeSettings:
    """The section [serve]."""

    host: str = "127.0.0.1"
    """The address to listen on."""
    port: Port = 8808
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
    """Web origins whose pages may use the server (CORS), such as `http://localhost:5173`; they need tokens as usual."""
    max_calls: PositiveInt = 16
    """Calls of one client at the same time; further ones wait."""
    max_waiting: Annotated[int, Field(ge=0)] = 1_000
    """Calls of one client that may wait; further ones are refused."""
    wait_seconds: NotNegative = 30.0
    """How long a call waits for its turn before it is refused."""
    calls_per_minute: PositiveInt | None = None
    """Calls of tools and scripts of one client in a minute; further ones are refused. No limit by default."""
    seconds_per_minute: Positive | None = None
    """Seconds that the calls of one client may take in a minute, added up. No limit by default."""
    requests_per_minute: PositiveInt = 6_000
    """HTTP requests from one address."""
    max_body: PositiveInt = 4 * 1024 * 1024
    """Bytes of one HTTP request."""
    max_conversations: PositiveInt = 200
    """The most conversations whose state is kept at the same time; with a journal, further ones sleep."""
    idle_seconds: Positive = 1_800.0
    """How long a conversation's state is kept after its last call."""
    answer_seconds: Positive = 600.0
    """How long a person may take to answer a question."""
    resume_seconds: NotNegative = 15.0
    """How long the next script of a conversation waits for the answer to a question of the one before."""
    start_wait: NotNegative = 10.0
    """How long the first list of tools waits for servers that are still starting."""
    answer_within: Positive | None = None
    """Seconds after which a client is told that its script goes on, and comes back for the result. Off by default."""
    structured: bool = True
    """Send the script's value as structured content too, besides the text."""
    direct_without_asking: bool = True
    """Whether a client that cannot show our question may call tools that need approval directly, and ask by itself."""

    def __post_init__(self) -> None:
        for origin in self.origins:
            if not _ORIGIN.fullmatch(origin):
                raise ConfigError(f"origins: {origin!r} must be an origin such as 'https://app.example:8443'")
        for token in (self.token, *self.tokens.values()):
            if token is not None and len(token) < _SHORTEST_TOKEN:
                raise ConfigError(f"a token must have at least {_SHORTEST_TOKEN} characters")
        if len(set(self.tokens.values()) | {self.token}) != len(self.tokens) + 1:
            raise ConfigError("two clients must not have the same token")

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
        needs_token = self.token is not None or self.tokens or self.oauth is not None
        if not needs_token and not is_loopback(self.host):
            raise UsageError(
                f"serving on {self.host} requires a token: use --token or [serve] token, or serve on 127.0.0.1"
            )


def check_url(name: str, url: str | None) -> None:
    """Refuse an address that would carry keys or tokens over the network without TLS."""
    if url is None:
        return
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        raise ConfigError(f"{name} must begin with https://, not {url!r}")
