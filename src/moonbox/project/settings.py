"""The sections of the configuration that belong to the assembly itself: sandbox, limits, audit, and which servers."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar, Literal

from moonbox.errors import ConfigError, MissingExtra, UsageError
from moonbox.knowledge.contract import CLOSED, suggestion
from moonbox.languages.registry import DEFAULT_LANGUAGE
from moonbox.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moonbox.config.file import Config
    from moonbox.mcp.upstreams.settings import ServerSettings

__all__ = ["AuditSettings", "SandboxSettings", "limits_from_config", "need_mcp", "servers_of"]


@dataclass(frozen=True, kw_only=True)
class SandboxSettings:
    """The `[sandbox]` section."""

    __pydantic_config__: ClassVar = CLOSED

    language: str = DEFAULT_LANGUAGE
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


def servers_of(
    config: Config, mcp_config: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None
) -> list[ServerSettings]:
    """The MCP servers of the configuration and of such files, in this order."""
    section = config.section("mcp")
    files = [mcp_config] if isinstance(mcp_config, str | os.PathLike) else list(mcp_config or ())
    if not section and not files:
        return []
    need_mcp()
    from moonbox.mcp.upstreams.foreign import servers_from_file
    from moonbox.mcp.upstreams.settings import servers_from_config

    found = {settings.name: settings for settings in servers_from_config(config)}
    for file in files:
        for settings in servers_from_file(file):
            if settings.name in found:
                raise ConfigError(f"{file}: there is an MCP server {settings.name!r} already; rename one")
            found[settings.name] = settings
    return list(found.values())


def need_mcp() -> None:
    """MissingExtra where the SDK is not installed."""
    try:
        import mcp  # noqa: F401 - only whether it is there
    except ImportError:
        raise MissingExtra("mcp", "mcp", "talking to MCP servers") from None
