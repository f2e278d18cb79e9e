"""Configured tool scripts: what [tools] describes, with paths resolved and grants checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moonbox.config.reader import read
from moonbox.config.sections import DEFAULT_TIMEOUT, ScriptTable, ToolsTable
from moonbox.errors import ConfigError
from moonbox.scripts.hostapi.grants import Grants

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from moonbox.config import Config

__all__ = ["ScriptSettings", "ToolsSettings"]


@dataclass(frozen=True, slots=True)
class ScriptSettings:
    """One script: where it is, what it may spend and reach, and its own configuration."""

    name: str
    path: Path
    timeout: float = DEFAULT_TIMEOUT
    grants: Grants = field(default_factory=Grants)
    config: Mapping[str, Any] = field(default_factory=dict)
    """Every further key of its table; scripts find it as context.config."""
    configured: bool = False
    """It has a table of its own, whose name is the tool's; otherwise the script's own name counts."""

    @classmethod
    def from_dict(cls, name: str, data: Any, folder: Path, *, section: str = "") -> ScriptSettings:
        section = section or f"tools.script.{name}"
        table = ScriptTable.from_dict(data, section)
        try:
            grants = Grants.from_dict(table.grants, folder)
        except ConfigError as problem:
            raise ConfigError(f"[{section}] {problem}") from None
        return cls(name, (folder / table.path).resolve(), table.timeout, grants, table.config, configured=True)


@dataclass(frozen=True, slots=True)
class ToolsSettings:
    """The section [tools]: single scripts, and folders of them."""

    scripts: tuple[ScriptSettings, ...] = ()
    folders: tuple[Path, ...] = ()
    python: tuple[str, ...] = ()
    """Python tools by reference, as `--tools` takes them."""

    @classmethod
    def from_config(cls, config: Config) -> ToolsSettings:
        with config.naming_file():
            return cls.from_dict(config.section("tools"), config.folder)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], folder: Path) -> ToolsSettings:
        table = read(ToolsTable, data, "tools")
        return cls(
            tuple(ScriptSettings.from_dict(name, item, folder) for name, item in table.script.items()),
            tuple((folder / item).resolve() for item in table.folders),
            table.python,
        )
