"""The assembly: everything that one configuration describes, made and tied together.

[sandbox]  [limits]  [audit]     the Sandbox and its trail
[tools]                          tool scripts
[knowledge]                      the tools search, get and sources
[mcp.servers.<name>]             servers of others
[codemode]                       what the model is shown
[serve]                          how it is served
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from moonbox.config import Config
from moonbox.errors import ConfigError, MissingExtra, ToolDefinitionError, UsageError
from moonbox.knowledge.contract import CLOSED, read, suggestion
from moonbox.limits import Limits

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from moonbox.audit.sinks import Sink
    from moonbox.codemode.mode import CodeMode
    from moonbox.knowledge.base import KnowledgeBase
    from moonbox.mcp.media import Media
    from moonbox.mcp.upstreams.manager import Upstreams
    from moonbox.mcp.upstreams.settings import ServerSettings
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.scripts.library import ScriptLibrary
    from moonbox.tools.tool import Tool

__all__ = ["Assembly", "AuditSettings", "SandboxSettings", "assemble", "limits_from_config", "servers_of"]


@dataclass(frozen=True, kw_only=True)
class SandboxSettings:
    """The `[sandbox]` section."""

    __pydantic_config__: ClassVar = CLOSED

    language: str = "lua"
    isolation: Literal["process", "inline"] = "process"
    lua_features: tuple[str, ...] = ()
    """Any of coroutines, metatables."""
    min_workers: int = 1
    """Spare workers that wait ready-made."""
    max_workers: int = 256
    allow_nan: bool = False


@dataclass(frozen=True, kw_only=True)
class AuditSettings:
    """The `[audit]` section."""

    __pydantic_config__: ClassVar = CLOSED

    enabled: bool = True
    path: str | None = None
    """A .db or .jsonl file; by default the user's own trail, which `moonbox audit` shows."""
    fsync: bool = False
    redact: tuple[str, ...] = ()
    """Names of fields whose values are never kept."""


@dataclass(slots=True)
class Assembly:
    """The parts, open. Close it, or use it as a context manager."""

    config: Config
    sandbox: Sandbox
    mode: CodeMode
    upstreams: Upstreams | None
    scripts: ScriptLibrary | None
    knowledge: KnowledgeBase | None
    media: Media | None
    trail: Any
    """The audit trail, readable; None where none is written."""
    _closing: contextlib.ExitStack

    @property
    def builtin(self) -> tuple[str, ...]:
        """The tools that come with moonbox."""
        return ("search", "get", "sources") if self.knowledge is not None else ()

    def start(self, seconds: float = 0.0) -> Assembly:
        """Start the MCP servers, with nobody to answer what they ask back, and wait so long for them."""
        if self.upstreams is not None:
            self.upstreams.start()
            self.upstreams.wait(seconds)
        return self

    def refresh(self) -> bool:
        """Take up changed tool scripts; whether there were any."""
        return self.scripts is not None and self.scripts.refresh()

    def close(self) -> None:
        self._closing.close()

    def __enter__(self) -> Assembly:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def assemble(
    config: Config | None = None,
    *,
    tools: Any = (),
    mcp_config: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
    approve: Callable[..., Any] | None = None,
    on_call: Callable[..., None] | None = None,
) -> Assembly:
    """Make what the configuration describes, with these Python tools beside it.

    `mcp_config` names files with the `mcpServers` of other clients. ConfigError says what is wrong with which setting.
    """
    config = config or Config()
    with contextlib.ExitStack() as closing:
        sink = _sink(config)
        servers = servers_of(config, mcp_config)
        mode_settings, servers = _routing(config, servers)
        sandbox = closing.enter_context(_sandbox(config, tools, sink, approve, on_call))
        toolbox = sandbox.toolbox
        knowledge = _knowledge(config, closing)
        built_in = _knowledge_tools(knowledge)
        with _named("[knowledge]"):
            toolbox.add(built_in)
        scripts = _scripts(config, sink, built_in, closing)
        if scripts is not None:
            with _named("[tools]"):
                toolbox.follow(scripts.toolbox)
        upstreams, media = _upstreams(servers, closing)
        if upstreams is not None:
            with _named("[mcp.servers]"):
                toolbox.follow(upstreams.toolbox)
        mode = closing.enter_context(_mode(sandbox, mode_settings))
        return Assembly(config, sandbox, mode, upstreams, scripts, knowledge, media, _readable(sink), closing.pop_all())
    raise AssertionError


def servers_of(
    config: Config, mcp_config: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None
) -> list[ServerSettings]:
    """The MCP servers of the configuration and of such files, in this order."""
    section = config.section("mcp")
    files = (
        []
        if mcp_config is None
        else [mcp_config]
        if isinstance(mcp_config, str) or _is_path(mcp_config)
        else mcp_config
    )
    if not section and not files:
        return []
    _need_mcp()
    from moonbox.mcp.upstreams.foreign import servers_from_file
    from moonbox.mcp.upstreams.settings import servers_from_config

    found = {settings.name: settings for settings in servers_from_config(config)}
    for file in files:
        for settings in servers_from_file(file):  # type: ignore[arg-type]  # told apart above
            if settings.name in found:
                raise ConfigError(f"{file}: there is an MCP server {settings.name!r} already; rename one")
            found[settings.name] = settings
    return list(found.values())


def limits_from_config(config: Config) -> Limits:
    """The `[limits]` section: a preset, and single limits that differ from it."""
    section = config.section("limits")
    preset = section.pop("preset", "default")
    known = [item.name for item in fields(Limits)]
    for key in section:
        if key not in known:
            raise ConfigError(f"[limits]: unknown key {key!r}; {suggestion(key, ['preset', *known])}")
    try:
        return Limits.preset(preset, **section)
    except UsageError as problem:
        raise ConfigError(f"[limits]: {problem}") from None


def _sandbox(
    config: Config,
    tools: Any,
    sink: Sink | None,
    approve: Callable[..., Any] | None,
    on_call: Callable[..., None] | None,
) -> Sandbox:
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.tools.toolbox import Toolbox

    settings = read(SandboxSettings, config.section("sandbox"), "[sandbox]")
    toolbox = Toolbox()
    toolbox.follow(Toolbox.of(tools))  # ours to add to, theirs to change
    try:
        return Sandbox(
            toolbox,
            limits=limits_from_config(config),
            language=settings.language,
            isolation=settings.isolation,
            lua_features=settings.lua_features,
            min_workers=settings.min_workers,
            max_workers=settings.max_workers,
            allow_nan=settings.allow_nan,
            approve=approve,
            on_call=on_call,
            audit=sink,
            redact=_audit(config).redact or None,
        )
    except ConfigError:
        raise
    except UsageError as problem:
        raise ConfigError(f"[sandbox]: {problem}") from None


def _audit(config: Config) -> AuditSettings:
    return read(AuditSettings, config.section("audit"), "[audit]")


def _sink(config: Config) -> Sink | None:
    from moonbox.audit.sinks import default_path, open_sink

    settings = _audit(config)
    if not settings.enabled:
        return None
    if settings.path is None:
        return open_sink(default_path(), fsync=settings.fsync)
    kind, colon, rest = settings.path.partition(":")
    prefix, path = (f"{kind}:", rest) if colon and kind in ("sqlite", "jsonl") else ("", settings.path)
    try:
        if settings.path == "memory":
            return open_sink("memory")
        return open_sink(f"{prefix}{config.folder / path}", fsync=settings.fsync)
    except UsageError as problem:
        raise ConfigError(f"[audit]: {problem}") from None


def _readable(sink: Sink | None) -> Any:
    return sink if hasattr(sink, "get") and hasattr(sink, "list") else None


def _knowledge(config: Config, closing: contextlib.ExitStack) -> KnowledgeBase | None:
    section = config.section("knowledge")
    if not section:
        return None
    from moonbox.knowledge.base import KnowledgeBase
    from moonbox.knowledge.config import KnowledgeConfig, builtin_connectors
    from moonbox.scripts.connector import LuaConnectorKind

    kinds = {**builtin_connectors(), "lua": LuaConnectorKind()}
    settings = KnowledgeConfig.from_dict(section, config.folder, connectors=kinds)
    return closing.enter_context(KnowledgeBase.from_config(settings))


def _knowledge_tools(knowledge: KnowledgeBase | None) -> list[Tool]:
    if knowledge is None:
        return []
    from moonbox.knowledge.tools import knowledge_tools

    return knowledge_tools(knowledge)


def _scripts(
    config: Config, sink: Sink | None, built_in: list[Tool], closing: contextlib.ExitStack
) -> ScriptLibrary | None:
    from moonbox.scripts.library import ScriptLibrary
    from moonbox.scripts.settings import ToolsSettings

    settings = ToolsSettings.from_config(config)
    if not settings.scripts and not settings.folders:
        return None
    # Workers of their own: scripts that wait for tool scripts must not hold the workers that these need.
    context = {tool.name: _function(tool) for tool in built_in}
    return closing.enter_context(ScriptLibrary(settings, audit=_shared(sink), context=context))


def _function(tool: Tool) -> Callable[..., Any]:
    """A built-in tool as `context.<name>(value, options)`."""
    first = next(iter(tool.parameters.get("properties", {})), None)

    def called(value: Any = None, options: Mapping[str, Any] | None = None) -> Any:
        arguments = {} if first is None or value is None else {first: value}
        return tool.call(tool.bind({**(options or {}), **arguments}))

    return called


def _upstreams(servers: list[ServerSettings], closing: contextlib.ExitStack) -> tuple[Upstreams | None, Media | None]:
    if not servers:
        return None, None
    from moonbox.mcp.media import Media
    from moonbox.mcp.upstreams.listing import Listings, default_folder
    from moonbox.mcp.upstreams.manager import Upstreams

    media = Media()
    upstreams = Upstreams(servers, listings=Listings(default_folder()), media=media)
    closing.callback(upstreams.close)
    return upstreams, media


def _routing(config: Config, servers: list[ServerSettings]) -> tuple[dict[str, Any], list[ServerSettings]]:
    """Tools of servers are not known yet: `keep_visible` becomes a rule of the server that will have them."""
    settings = config.section("codemode")
    kept = settings.get("keep_visible")
    if not isinstance(kept, list) or not all(isinstance(name, str) for name in kept):
        return settings, servers
    changed = []
    for server in servers:
        mine = [name for name in kept if name.startswith(f"{server.name}.")]
        kept = [name for name in kept if name not in mine]
        changed.append(server.with_direct([name.removeprefix(f"{server.name}.") for name in mine]) if mine else server)
    return {**settings, "keep_visible": kept}, changed


def _mode(sandbox: Sandbox, settings: Mapping[str, Any]) -> CodeMode:
    from moonbox.codemode.mode import CodeMode

    # Whoever serves decides which conversations end: it knows which of them are running.
    try:
        return CodeMode.from_config(sandbox, settings, idle_seconds=None, max_conversations=100_000)
    except ConfigError as problem:
        raise ConfigError(f"[codemode]: {problem}") from None


@contextlib.contextmanager
def _named(section: str) -> Any:
    try:
        yield
    except ToolDefinitionError as problem:
        raise ConfigError(f"{section}: {problem}") from None


def _shared(sink: Sink | None) -> Sink | None:
    return None if sink is None else _Shared(sink)


@dataclass(frozen=True, slots=True)
class _Shared:
    """A sink that another closes."""

    inner: Sink

    def write(self, run: Any) -> None:
        self.inner.write(run)

    def close(self) -> None:
        """Not ours to close."""


def _is_path(value: Any) -> bool:
    return hasattr(value, "__fspath__")


def _need_mcp() -> None:
    try:
        import mcp  # noqa: F401 - only whether it is there
    except ImportError:
        raise MissingExtra("mcp", "mcp", "talking to MCP servers") from None
