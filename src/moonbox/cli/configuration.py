"""Whether a moonbox.toml is understood, section by section."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moonbox.errors import MoonboxError

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.config.file import Config

__all__ = ["READERS", "problems"]


def problems(config: Config) -> dict[str, str]:
    """What is wrong with the sections that are there, each read as the part of moonbox reads it that it is for."""
    found = {}
    for name in config.data:
        try:
            READERS[name](config)
        except MoonboxError as problem:
            found[name] = str(problem)
    return found


def _sandbox(config: Config) -> Any:
    from moonbox.knowledge.contract import read
    from moonbox.project.settings import SandboxSettings

    return read(SandboxSettings, config.section("sandbox"), "[sandbox]")


def _limits(config: Config) -> Any:
    from moonbox.project.settings import limits_from_config

    return limits_from_config(config)


def _audit(config: Config) -> Any:
    from moonbox.knowledge.contract import read
    from moonbox.project.settings import AuditSettings

    return read(AuditSettings, config.section("audit"), "[audit]")


def _tools(config: Config) -> Any:
    from moonbox.scripts.settings import ToolsSettings

    return ToolsSettings.from_config(config)


def _codemode(config: Config) -> Any:
    from moonbox.codemode.settings import Settings

    return Settings.from_dict(config.section("codemode"))


def _knowledge(config: Config) -> Any:
    from moonbox.knowledge.config import KnowledgeConfig, builtin_connectors
    from moonbox.languages.registry import DEFAULT_LANGUAGE
    from moonbox.scripts.connector import ScriptConnectorKind

    kinds = {**builtin_connectors(), DEFAULT_LANGUAGE: ScriptConnectorKind()}
    return KnowledgeConfig.from_dict(config.section("knowledge"), config.folder, connectors=kinds)


def _mcp(config: Config) -> Any:
    from moonbox.mcp.upstreams.settings import servers_from_config

    return servers_from_config(config)


def _serve(config: Config) -> Any:
    from moonbox.mcp.server.settings import ServeSettings

    return ServeSettings.from_config(config)


READERS: dict[str, Callable[[Config], Any]] = {
    "audit": _audit,
    "codemode": _codemode,
    "knowledge": _knowledge,
    "limits": _limits,
    "mcp": _mcp,
    "sandbox": _sandbox,
    "serve": _serve,
    "tools": _tools,
}
