"""Settings of tool scripts: what [tools] in moonbox.toml says about each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moonbox.errors import ConfigError
from moonbox.scripts.hostapi.grants import GRANT_KEYS, Grants
from moonbox.suggest import suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from moonbox.config.file import Config

__all__ = ["ScriptSettings", "ToolsSettings"]

DEFAULT_TIMEOUT = 30.0
_KEYS = ("folders", "script")


@dataclass(frozen=True, slots=True)
class ScriptSettings:
    """One tool script: where it is, what it may spend and reach, and its own configuration."""

    name: str
    path: Path
    timeout: float = DEFAULT_TIMEOUT
    grants: Grants = field(default_factory=Grants)
    config: Mapping[str, Any] = field(default_factory=dict)
    """Every further key; scripts find it as context.config."""

    @classmethod
    def from_dict(cls, name: str, data: Any, folder: Path, *, where: str = "") -> ScriptSettings:
        where = where or f"[tools.script.{name}]"
        if not isinstance(data, dict):
            raise ConfigError(f"{where} must be a table with a path, not {data!r}")
        rest = dict(data)
        path = rest.pop("path", None)
        if not isinstance(path, str) or not path:
            raise ConfigError(f'{where} needs path = "….lua"')
        timeout = rest.pop("timeout", DEFAULT_TIMEOUT)
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < float("inf"):
            raise ConfigError(f"{where} timeout must be a number of seconds above 0, not {timeout!r}")
        granted = {key: rest.pop(key) for key in GRANT_KEYS if key in rest}
        try:
            grants = Grants.from_dict(granted, folder)
        except ConfigError as problem:
            raise ConfigError(f"{where} {problem}") from None
        return cls(name, (folder / path).resolve(), float(timeout), grants, rest)


@dataclass(frozen=True, slots=True)
class ToolsSettings:
    """The [tools] section: single scripts, and folders of them."""

    scripts: tuple[ScriptSettings, ...] = ()
    folders: tuple[Path, ...] = ()

    @classmethod
    def from_config(cls, config: Config) -> ToolsSettings:
        return cls.from_dict(config.section("tools"), config.folder)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], folder: Path) -> ToolsSettings:
        for key in data:
            if key not in _KEYS:
                raise ConfigError(f"[tools] has no setting {key!r}{suggestion(key, _KEYS)}; it has: {', '.join(_KEYS)}")
        folders = data.get("folders", [])
        if not isinstance(folders, list) or not all(isinstance(item, str) for item in folders):
            raise ConfigError(f"[tools] folders must be a list of folders, not {folders!r}")
        scripts = data.get("script", {})
        if not isinstance(scripts, dict):
            raise ConfigError("[tools.script.<name>] must be a table for each script")
        return cls(
            tuple(ScriptSettings.from_dict(name, item, folder) for name, item in scripts.items()),
            tuple((folder / item).resolve() for item in folders),
        )
