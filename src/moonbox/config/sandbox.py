"""The sections [sandbox], [limits] and [audit]: how scripts run, what they may spend, and what is recorded."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar, Literal

from moonbox.config.reader import CLOSED
from moonbox.errors import ConfigError, UsageError
from moonbox.limits import Limits

if TYPE_CHECKING:
    from moonbox.config.file import Config

__all__ = ["AuditSettings", "SandboxSettings", "read_limits"]


@dataclass(frozen=True, kw_only=True)
class SandboxSettings:
    """The section [sandbox]."""

    __pydantic_config__: ClassVar = CLOSED

    language: str = "lua"
    """The language of scripts: `lua` or `rhai`."""
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


@dataclass(frozen=True, kw_only=True)
class AuditSettings:
    """The section [audit]."""

    __pydantic_config__: ClassVar = CLOSED

    enabled: bool = True
    """Whether runs are recorded."""
    path: str | None = None
    """A .db or .jsonl file; by default your own trail, which `moonbox audit` shows."""
    fsync: bool = False
    """Wait for the disk after each run, so that a run survives a loss of power."""
    redact: tuple[str, ...] = ()
    """Names of fields whose values are never recorded."""


def read_limits(config: Config) -> Limits:
    """The section [limits]: a preset, and single limits that differ from it."""
    section = config.section("limits", ["preset", *(item.name for item in fields(Limits))])
    preset = section.pop("preset", "default")
    with config.naming_file():
        try:
            return Limits.preset(preset, **section)
        except UsageError as problem:
            raise ConfigError(f"[limits] {str(problem).removeprefix('Limits.')}") from None
