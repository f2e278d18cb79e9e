"""Settings of code mode: a closed contract, from Python, a dict or TOML."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from moonbox.errors import ConfigError
from moonbox.suggest import suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Settings"]

Mode = Literal["always", "auto", "never"]
_MODES = ("always", "auto", "never")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_LEAST = {"catalog_tokens": 1, "description_chars": 200, "max_chars": 500}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the model is shown its tools."""

    keep_visible: tuple[str, ...] = ()
    """Tools that stay direct although scripts could reach them."""
    full_schemas: bool = False
    """Add each tool's JSON Schema to the catalog."""
    mode: Mode = "always"
    """always: the code tool; never: every tool direct; auto: whichever definition is smaller."""
    approvals: bool = False
    """Let scripts reach tools that need a person's approval: the script waits."""
    name: str | None = None
    """The code tool's name; by default lua_repl or rhai_repl."""
    parameter: str | None = None
    """The name of its one parameter; by default source_code."""
    description: str | None = None
    """Replaces the code tool's description; the catalog still follows it."""
    system_prompt: str | None = None
    """Replaces the system prompt addition."""
    catalog_tokens: int | None = 8000
    """Past this the catalog shows less: signatures, then names, then only how to search."""
    description_chars: int | None = None
    """The longest description that the provider takes (1024 for some); the code tool's parameter then says the rest."""
    max_chars: int = 50_000
    """The longest answer to the model."""

    def __post_init__(self) -> None:
        for item in fields(self):
            problem = _problem(item.name, getattr(self, item.name))
            if problem:
                raise ConfigError(problem)
        object.__setattr__(self, "keep_visible", tuple(self.keep_visible))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Settings:
        """Refuses unknown keys and wrong types with exact messages."""
        return cls(**cls.checked(data))

    @classmethod
    def checked(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        """The data, if every key in it is a setting."""
        if not hasattr(data, "keys"):
            raise ConfigError(f"the code mode settings must be a table, not {data!r}")
        known = [item.name for item in fields(cls)]
        for key in data:
            if key not in known:
                near = suggestion(str(key), known)
                raise ConfigError(f"code mode has no setting {key!r}{near}; the settings are: {', '.join(known)}")
        return dict(data)

    @staticmethod
    def schema() -> dict[str, Any]:
        """The contract as JSON Schema."""
        text, flag = {"type": ["string", "null"]}, {"type": "boolean"}
        name = {**text, "pattern": f"^{_NAME.pattern}$"}
        kinds: dict[str, dict[str, Any]] = {
            "keep_visible": {"type": "array", "items": {"type": "string"}},
            "full_schemas": flag,
            "mode": {"enum": list(_MODES)},
            "approvals": flag,
            "name": name,
            "parameter": name,
            "description": text,
            "system_prompt": text,
            **{name: {"type": ["integer", "null"], "minimum": least} for name, least in _LEAST.items()},
            "max_chars": {"type": "integer", "minimum": _LEAST["max_chars"]},
        }
        defaults = Settings()
        properties = {}
        for item in fields(Settings):
            default = getattr(defaults, item.name)
            properties[item.name] = {
                **kinds[item.name],
                "default": list(default) if isinstance(default, tuple) else default,
            }
        return {"type": "object", "properties": properties, "additionalProperties": False}


def _problem(name: str, value: Any) -> str | None:
    match name:
        case "keep_visible":
            if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
                return f"keep_visible must be a list of tool names, not {value!r}"
        case "full_schemas" | "approvals":
            if not isinstance(value, bool):
                return f"{name} must be true or false, not {value!r}"
        case "mode":
            if value not in _MODES:
                return f"mode must be one of {', '.join(_MODES)}, not {value!r}"
        case "name" | "parameter":
            if value is not None and not (isinstance(value, str) and _NAME.fullmatch(value)):
                return f"{name} must be at most 64 letters, digits and _, the first no digit; not {value!r}"
        case "description" | "system_prompt":
            if value is not None and not isinstance(value, str):
                return f"{name} must be text, not {value!r}"
        case "catalog_tokens" | "description_chars":
            least = _LEAST[name]
            if value is not None and not _is_whole(value, least):
                return f"{name} must be a whole number of at least {least}, or nothing; not {value!r}"
        case "max_chars":
            if not _is_whole(value, _LEAST[name]):
                return f"max_chars must be a whole number of at least {_LEAST[name]}, not {value!r}"
    return None


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
