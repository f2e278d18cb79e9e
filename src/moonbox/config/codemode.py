"""The section [codemode]: how the model is shown its tools."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from moonbox.config.reader import CLOSED, read, schema
from moonbox.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CodeModeSettings"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_Name = Annotated[str, Field(json_schema_extra={"pattern": f"^{_NAME.pattern}$"})]


@dataclass(frozen=True, kw_only=True)
class CodeModeSettings:
    """The section [codemode], and the keyword arguments of CodeMode."""

    __pydantic_config__: ClassVar = CLOSED

    keep_visible: tuple[str, ...] = ()
    """Tools that stay direct although scripts could call them."""
    full_schemas: bool = False
    """Add each tool's JSON Schema to the catalog."""
    mode: Literal["always", "auto", "never"] = "always"
    """always: the code tool; never: every tool direct; auto: whichever definition is smaller."""
    approvals: bool = False
    """Let scripts call tools that need a person's approval: the script waits."""
    name: _Name | None = None
    """The code tool's name; by default lua_repl or rhai_repl."""
    parameter: _Name | None = None
    """The name of its one parameter; by default source_code."""
    description: str | None = None
    """Replaces the code tool's description; the catalog still follows it."""
    system_prompt: str | None = None
    """Replaces the system prompt addition."""
    catalog_tokens: Annotated[int, Field(ge=1)] | None = 8000
    """Above this size the catalog shows less: signatures, then names, then only how to search."""
    description_chars: Annotated[int, Field(ge=200)] | None = None
    """The longest description that the provider takes (1024 for some); the code tool's parameter holds the rest."""
    max_chars: Annotated[int, Field(ge=500)] = 50_000
    """The longest answer to the model."""

    def __post_init__(self) -> None:
        for key in ("name", "parameter"):
            value = getattr(self, key)
            if value is not None and not _NAME.fullmatch(value):
                raise ConfigError(
                    f"{key} must be 1 to 64 letters, digits and underscores, not beginning with a digit; not {value!r}"
                )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], section: str = "codemode") -> CodeModeSettings:
        """Refuses unknown keys and wrong types."""
        return read(cls, data, section)

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """The JSON Schema of the section."""
        return schema(cls)
