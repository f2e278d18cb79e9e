"""The parts of an assembly, each from its section of the configuration."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moonbox.errors import ConfigError, ToolDefinitionError, UsageError
from moonbox.knowledge.contract import read
from moonbox.project.settings import AuditSettings, SandboxSettings, limits_from_config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from moonbox.audit.sinks import Sink
    from moonbox.codemode.mode import CodeMode
    from moonbox.config.file import Config
    from moonbox.knowledge.base import KnowledgeBase
    from moonbox.mcp.media import Media
    from moonbox.mcp.upstreams.manager import Upstreams
    from moonbox.mcp.upstreams.settings import ServerSettings
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.scripts.library import ScriptLibrary
    from moonbox.tools.tool import Tool

__all__ = [
    "built_in_tools",
    "make_upstreams",
    "named",
    "open_knowledge",
    "open_mode",
    "open_sandbox",
    "open_scripts",
    "open_trail_sink",
    "readable",
    "routing",
]


def open_sandbox(
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


def open_trail_sink(config: Config) -> Sink | None:
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


def readable(sink: Sink | None) -> Any:
    return sink if hasattr(sink, "get") and hasattr(sink, "list") else None


def open_knowledge(config: Config, closing: contextlib.ExitStack) -> KnowledgeBase | None:
    section = config.section("knowledge")
    if not section:
        return None
    from moonbox.knowledge.base import KnowledgeBase
    from moonbox.knowledge.config import KnowledgeConfig, builtin_connectors
    from moonbox.languages.registry import DEFAULT_LANGUAGE
    from moonbox.scripts.connector import ScriptConnectorKind

    kinds = {**builtin_connectors(), DEFAULT_LANGUAGE: ScriptConnectorKind()}
    settings = KnowledgeConfig.from_dict(section, config.folder, connectors=kinds)
    return closing.enter_context(KnowledgeBase.from_config(settings))


def built_in_tools(knowledge: KnowledgeBase | None) -> list[Tool]:
    if knowledge is None:
        return []
    from moonbox.knowledge.tools import knowledge_tools

    return knowledge_tools(knowledge)


def open_scripts(
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


def make_upstreams(
    servers: list[ServerSettings], closing: contextlib.ExitStack
) -> tuple[Upstreams | None, Media | None]:
    if not servers:
        return None, None
    from moonbox.mcp.media import Media
    from moonbox.mcp.upstreams.listing import Listings, default_folder
    from moonbox.mcp.upstreams.manager import Upstreams

    media = Media()
    upstreams = Upstreams(servers, listings=Listings(default_folder()), media=media)
    closing.callback(upstreams.close)
    return upstreams, media


def routing(config: Config, servers: list[ServerSettings]) -> tuple[dict[str, Any], list[ServerSettings]]:
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


def open_mode(sandbox: Sandbox, settings: Mapping[str, Any]) -> CodeMode:
    from moonbox.codemode.mode import CodeMode

    # Whoever serves decides which conversations end: it knows which of them are running.
    try:
        return CodeMode.from_config(sandbox, settings, idle_seconds=None, max_conversations=100_000)
    except ConfigError as problem:
        raise ConfigError(f"[codemode]: {problem}") from None


@contextlib.contextmanager
def named(section: str) -> Iterator[None]:
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
