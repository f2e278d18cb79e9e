"""The sections of a project's configuration, each read as the part of moonbox that it belongs to reads it."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moonbox.audit.files import Retention
from moonbox.audit.sinks import Sink, default_path, open_sink, parse_place
from moonbox.config import Config
from moonbox.config import sections as models
from moonbox.config.file import resolve_path
from moonbox.config.reader import read
from moonbox.config.sources import OpenApiSettings, SqlSettings, tables_of
from moonbox.config.variables import unset_problem
from moonbox.errors import ConfigError, MissingExtra, MoonboxError, ToolError, UsageError
from moonbox.languages.registry import DEFAULT_LANGUAGE
from moonbox.tools.naming import check_name
from moonbox.tools.tool import Tool
from moonbox.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from moonbox.audit.metrics import Metrics
    from moonbox.config.mcp import ServerSettings
    from moonbox.durable.store import Journal
    from moonbox.knowledge.config import ConnectorKind, KnowledgeConfig
    from moonbox.scripts.configured import ToolsSettings

    McpConfig = str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None
    """Files with the `mcpServers` of other clients."""


_LOG = logging.getLogger("moonbox.sources")
_SOURCES: dict[str, type[Any]] = {"openapi": OpenApiSettings, "sql": SqlSettings}


def open_metrics() -> Metrics | None:
    """None where the package for them is not installed."""
    from moonbox.audit.metrics import Metrics

    try:
        return Metrics()
    except MissingExtra:
        return None


def read_trail(config: Config) -> str | None:
    """Where [audit] says that runs are recorded, as `open_sink` takes it; None where they are not."""
    settings = config.read(models.AuditSettings, "audit")
    if not settings.enabled:
        return None
    if settings.path is None:
        return str(default_path())
    with in_section(config, "audit"):
        kind, path = parse_place(settings.path)
    return kind if kind == "memory" else f"{kind}:{config.folder / path}"


def open_trail(config: Config) -> Sink | None:
    """The trail that [audit] describes, with its retention."""
    place, settings = read_trail(config), config.read(models.AuditSettings, "audit")
    if place is None:
        return None
    retention = Retention(
        max_age=settings.max_days * 86_400 or None,
        max_runs=settings.max_runs or None,
        max_bytes=settings.max_bytes or None,
    )
    with in_section(config, "audit"):
        return open_sink(place, fsync=settings.fsync, retention=retention)


_JOURNALS = ("", ".db", ".sqlite", ".sqlite3")


def open_journal(config: Config, *, create: bool = True) -> Journal | None:
    """The journal of a configuration, with its retention; None where the configuration has none."""
    settings = config.read(models.JournalSettings, "journal")
    place = settings.url or (settings.path and str(resolve_path(config.folder, settings.path)))
    if not place:
        return None
    if settings.url is None and not Path(place).exists():
        if not create:
            raise UsageError(f"there is no journal '{settings.path}'")
        if Path(place).suffix not in _JOURNALS:
            raise UsageError(f"the journal '{settings.path}' must be a .db file or a postgresql:// address")
    from moonbox.durable.store import open_journal as open_place

    with in_section(config, "journal"):
        return open_place(
            place, durability=settings.durability, create=create, max_days=settings.max_days, wait=settings.wait
        )


def read_sandbox(config: Config) -> dict[str, Any]:
    """The arguments of a Sandbox that the section [sandbox] describes."""
    from moonbox.sandbox.options import SandboxOptions, check_options

    settings = dict(vars(config.read(models.SandboxSettings, "sandbox")))
    settings["language"] = settings["language"] or DEFAULT_LANGUAGE
    settings["approve_script"] = settings.pop("scripts") == "approve"
    with in_section(config, "sandbox"):
        check_options(SandboxOptions(**settings))
    return settings


def sandbox_options(config: Config, language: str | None = None) -> dict[str, Any]:
    """The arguments of a Sandbox that the sections [sandbox], [limits], [audit] and [journal] describe."""
    settings = read_sandbox(config)
    if language is not None:
        settings["language"] = language
        settings["lua_features"] = settings["lua_features"] if language == DEFAULT_LANGUAGE else ()
    settings["limits"] = models.read_limits(config)
    settings["redact"] = config.read(models.AuditSettings, "audit").redact or None
    settings["approval_seconds"] = config.read(models.JournalSettings, "journal").approval_seconds
    return {**settings, "journal": open_journal(config)}


def read_cluster(config: Config) -> models.ClusterSettings:
    """The section [cluster], which may need a [journal]."""
    settings, journal = config.read(models.ClusterSettings, "cluster"), config.read(models.JournalSettings, "journal")
    with config.naming_file():
        if settings.sleep_after is not None and not (journal.path or journal.url):
            raise ConfigError('[cluster] sleep_after needs a journal: write path = "state.db" under [journal]')
    return settings


def with_journal(config: Config, place: str | None) -> Config:
    """The configuration with another journal, where one is given: a path, or `postgresql://…`."""
    if not place:
        return config
    if "://" in place:
        read(models.JournalSettings, {"url": place}, "")  # an invalid option is not an error in the file
        return config.with_changes(journal={"url": place, "path": None})
    return config.with_changes(journal={"url": None, "path": os.path.relpath(place, config.folder)})


def without_records(config: Config) -> Config:
    """The configuration without trail, journal and cluster, for commands that need nothing but its tools."""
    off: dict[str, Any] = {"audit": {"enabled": False}, "journal": {"path": None, "url": None}}
    return config.with_changes(cluster={"address": None, "sleep_after": None}, **off)


def read_tools(config: Config) -> ToolsSettings:
    from moonbox.scripts.configured import ToolsSettings

    return ToolsSettings.from_config(config)


def read_knowledge(config: Config) -> KnowledgeConfig:
    from moonbox.knowledge.config import KnowledgeConfig

    with config.naming_file():
        return KnowledgeConfig.from_dict(config.section("knowledge"), config.folder, connectors=connector_kinds(config))


def connector_kinds(config: Config | None = None) -> dict[str, ConnectorKind]:
    """Every kind of source that a configuration may name."""
    from moonbox.knowledge.config import builtin_connectors
    from moonbox.scripts.configured import protected_paths
    from moonbox.scripts.connector import ScriptConnectorKind

    kind = ScriptConnectorKind()
    if config is not None:
        kind = ScriptConnectorKind(protected_paths(config), config.secrets, read_sandbox(config)["require"])
    return {**builtin_connectors(), DEFAULT_LANGUAGE: kind}


def read_servers(config: Config, mcp_config: McpConfig = None) -> list[ServerSettings]:
    """The MCP servers of the configuration, then those of files that other clients keep."""
    files = _files(mcp_config)
    if not config.section("mcp") and not files:
        return []
    need_mcp()
    from moonbox.config.mcp import servers_from_config
    from moonbox.mcp.imports import servers_from_file

    servers = {settings.name: settings for settings in servers_from_config(config)}
    for name in servers:
        with in_section(config, f"mcp.servers.{name}"):
            check_name(name, "server name")
    for file in files:
        for settings in servers_from_file(file):
            if settings.name in servers:
                raise ConfigError(f"{file}: an MCP server '{settings.name}' is configured already; rename one of them")
            with in_section(Config(), f"mcp.servers.{settings.name}"):
                check_name(settings.name, "server name")
            servers[settings.name] = settings
    return list(servers.values())


def read_secrets(config: Config, mcp_config: McpConfig = None) -> dict[str, str]:
    """Secret values of variables, of the configuration and of files that other clients keep."""
    secrets = dict(config.secrets)
    for file in _files(mcp_config):
        from moonbox.mcp.imports import secrets_in_file

        secrets.update(secrets_in_file(file))
    return secrets


def _files(mcp_config: McpConfig) -> list[str | os.PathLike[str]]:
    return [mcp_config] if isinstance(mcp_config, str | os.PathLike) else list(mcp_config or ())


def used_servers(
    servers: list[ServerSettings], sources: Sequence[str] | None, known: Container[str]
) -> list[ServerSettings]:
    """The servers whose tools these scripts, if they are known, may call; `known` are the names that are other tools.

    All of them where a script does not say which tools it means: `pairs(tools)`, `tools[name]`, a misspelled name.
    """
    if not servers or sources is None:
        return servers
    text = "\n".join(sources)
    names = {a or b for a, b in _TOOL_NAME.findall(text)}
    words = {word for server in servers for word in (server.namespace, server.name)}
    if "docs" in text or len(_TOOL_NAME.findall(text)) < len(_TOOLS.findall(text)):
        return servers
    if any(name not in known and name not in words for name in names):
        return servers
    read = _MCP.search(text) is not None
    return [
        server for server in servers if server.namespace in names or server.name in names or (read and server.scripts)
    ]


_MCP = re.compile(r"\bmcp\b")
"""`mcp.read` and `mcp.prompt`, which say a URI or a name, not a server."""
_TOOLS = re.compile(r"\btools\b")
_TOOL_NAME = re.compile(r"""\btools\s*(?:\.\s*(\w+)|\[\s*["'](\w+)["']\s*\])""")


def need_mcp() -> None:
    """MissingExtra where the MCP SDK is not installed."""
    if importlib.util.find_spec("mcp") is None:  # importing it takes most of a second
        raise MissingExtra("mcp", "mcp", "talking to MCP servers")


def read_sources(config: Config, section: str) -> dict[str, Any]:
    """The settings of one of the sections, by name; without those that have a variable that is not set."""
    tables = {name: data for name, data in tables_of(config, section).items() if unset_problem(data) is None}
    with config.naming_file():
        return {name: read(_SOURCES[section], data, f"{section}.{name}") for name, data in tables.items()}


def add_sources(config: Config, toolbox: Toolbox) -> None:
    """Add the tools of all sources. One that cannot be used now costs its own tools and nothing else."""
    for section in _SOURCES:
        read_sources(config, section)
        for name in config.section(section):
            source = open_source(config, section, name)
            for problem in source.problems:  # that of a variable names its table
                _LOG.warning("%s", problem if problem.startswith("[") else f"[{section}.{name}] {problem}")
            toolbox.merge(source, namespace=name)


def add_model(config: Config, toolbox: Toolbox) -> None:
    """Add the tool `llm`, if the configuration has a model."""
    if not config.section("llm"):
        return
    from moonbox.adapters.llm import model_tool

    settings, ask = config.read(models.LlmSettings, "llm"), None
    if settings.provider == "client":
        need_mcp()
        from moonbox.mcp.caller import sample

        ask = partial(sample, max_tokens=settings.max_answer)
    with in_section(config, "llm"):
        toolbox.add(model_tool(settings, ask=ask, secrets=config.secrets))


def open_source(config: Config, section: str, name: str) -> Toolbox:
    """The tools of one source; where it cannot be used, one that says why."""
    data = dict(tables_of(config, section)[name])
    try:
        if (unset := unset_problem(data)) is not None:
            raise ConfigError(unset)
        place = data.pop("spec" if section == "openapi" else "url")
        if section == "openapi":
            return Toolbox.from_openapi(place, folder=config.folder, **data)
        return Toolbox.from_sql(place, folder=config.folder, later=True, **data)
    except MoonboxError as problem:
        reason = str(problem)

        def unavailable(_: dict[str, Any]) -> Any:
            raise ToolError(reason, code="unavailable", retryable=True)

        text = f"This source of tools is configured, but cannot be used: {reason}"
        box = Toolbox([Tool.from_schema(name="unavailable", description=text, call=unavailable)])
        box.problems = (reason,)
        return box


def problems(config: Config) -> dict[str, str]:
    """What is wrong with the sections that the configuration has, by section."""
    wrong = {}
    for name in config.data:
        try:
            READERS[name](config)
        except MoonboxError as problem:
            wrong[name] = str(problem)
    return wrong


READERS: dict[str, Callable[[Config], Any]] = {
    "audit": read_trail,
    "cluster": read_cluster,
    "codemode": lambda config: config.read(models.CodeModeSettings, "codemode"),
    "journal": lambda config: config.read(models.JournalSettings, "journal"),
    "knowledge": read_knowledge,
    "limits": models.read_limits,
    "llm": lambda config: config.read(models.LlmSettings, "llm"),
    "mcp": read_servers,
    "openapi": lambda config: read_sources(config, "openapi"),
    "sandbox": read_sandbox,
    "serve": lambda config: config.read(models.ServeSettings, "serve"),
    "sql": lambda config: read_sources(config, "sql"),
    "tools": read_tools,
}


@contextlib.contextmanager
def in_section(config: Config, section: str) -> Iterator[None]:
    """What is wrong with a setting that only its part can judge, as an error in the configuration."""
    with config.naming_file():
        try:
            yield
        except MissingExtra:
            raise
        except UsageError as problem:
            raise ConfigError(f"[{section}] {problem}") from None
