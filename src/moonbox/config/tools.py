"""The section [tools]: tool scripts, the folders that they are in, and what each may reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

from moonbox.config.reader import CLOSED, positive, read, table
from moonbox.errors import ConfigError

__all__ = ["DEFAULT_TIMEOUT", "ScriptTable", "ToolsTable"]

DEFAULT_TIMEOUT = 30.0


@dataclass(frozen=True, kw_only=True)
class ScriptTable:
    """One table [tools.script.<name>], or a source with `connector = "lua"`: one script and its grants."""

    __pydantic_config__: ClassVar = CLOSED

    path: Path
    """The script; a relative path is relative to the configuration file."""
    timeout: float = DEFAULT_TIMEOUT
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
    config: Mapping[str, Any] = field(default_factory=dict)
    """Every other key of the table; the script finds it as context.config."""

    def __post_init__(self) -> None:
        positive("timeout", self.timeout)
        if str(self.path) in ("", "."):
            raise ConfigError("path must name a file")

    @classmethod
    def from_dict(cls, data: Any, section: str) -> ScriptTable:
        """Keys that have no meaning here are the script's own configuration."""
        given = table(data, section)
        own = {key: given.pop(key) for key in list(given) if key not in _SCRIPT_KEYS}
        return read(cls, {**given, "config": own}, section)

    @property
    def grants(self) -> dict[str, Any]:
        """What it may reach, as the table says it."""
        return {key: getattr(self, key) for key in GRANT_KEYS}


GRANT_KEYS = ("http", "env", "read", "write", "secrets")
_SCRIPT_KEYS = frozenset(item.name for item in fields(ScriptTable)) - {"config"}


@dataclass(frozen=True, kw_only=True)
class ToolsTable:
    """The section [tools]."""

    __pydantic_config__: ClassVar = CLOSED

    folders: tuple[str, ...] = ()
    """Every `.lua` file in these folders is a tool script."""
    script: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """One table for each tool script with settings of its own: `[tools.script.<name>]`."""
