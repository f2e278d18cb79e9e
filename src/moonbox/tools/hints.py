"""Hints about what a tool does, following MCP's annotations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypedDict

from moonbox.errors import ToolDefinitionError
from moonbox.suggest import unknown

RISKS = ("low", "medium", "high")


if TYPE_CHECKING:

    class HintOptions(TypedDict, total=False):
        """Hints as a dictionary: `{"read_only": True}`."""

        read_only: bool | None
        destructive: bool | None
        idempotent: bool | None
        cpu_bound: bool | None
        client_side: bool | None
        open_world: bool | None
        risk: str | None
        category: str | None

else:  # Python would compile each of its annotations
    HintOptions = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What a tool says about itself; None means that it does not say."""

    read_only: bool | None = None
    """It changes nothing."""
    destructive: bool | None = None
    """It may delete or overwrite."""
    idempotent: bool | None = None
    """Calling it again with the same arguments changes nothing more."""
    cpu_bound: bool | None = None
    """It computes for long, so that it should not share a script's time."""
    client_side: bool | None = None
    """The client answers it, not the host."""
    open_world: bool | None = None
    """It reaches things outside the host, the web for example."""
    risk: str | None = None
    """How much harm a wrong call can do: `low`, `medium` or `high`."""
    category: str | None = None
    """What it belongs to, in one word: `files`, `mail`, `admin`."""

    def __post_init__(self) -> None:
        for name, value in self.to_dict().items():
            fits, wanted = isinstance(value, bool), "True, False or None"
            if name == "risk":
                fits, wanted = value in RISKS, "low, medium or high"
            elif name == "category":
                fits, wanted = isinstance(value, str) and value != "", "a word"
            if not fits:
                raise ToolDefinitionError(f"hint {name!r} must be {wanted}, not {value!r}")

    @property
    def repeatable(self) -> bool:
        """Whether it may be called twice with the same arguments."""
        return bool(self.read_only or self.idempotent)

    @classmethod
    def of(cls, value: Hints | HintOptions | Mapping[str, Any] | None) -> Hints:
        """Hints from a mapping such as {"read_only": True}; an unknown key is an error."""
        if isinstance(value, Hints):
            return value
        if value is None:
            return cls()
        if not isinstance(value, Mapping):
            raise ToolDefinitionError(f"hints must be a Hints or a mapping, not {type(value).__name__}")
        known = [field.name for field in fields(cls)]
        for key in value:
            if key not in known:
                raise ToolDefinitionError(unknown("hint", str(key), known))
        return cls(**value)

    @classmethod
    def from_mcp(cls, annotations: Any) -> Hints:
        """Hints from an MCP server's tool annotations, a mapping or an object; what is not a boolean is ignored."""
        hints: dict[str, Any] = {}
        for name, theirs in _MCP.items():
            if isinstance(annotations, Mapping):
                value = annotations.get(theirs)
            else:
                value = getattr(annotations, theirs, getattr(annotations, f"{name}_hint", None))
            if isinstance(value, bool):
                hints[name] = value
        return cls(**hints)

    def to_mcp(self) -> dict[str, bool]:
        """MCP tool annotations; what MCP has no word for is left out."""
        pairs = ((theirs, getattr(self, name)) for name, theirs in _MCP.items())
        return {theirs: value for theirs, value in pairs if value is not None}

    def to_dict(self) -> dict[str, bool | str]:
        """The hints that are given."""
        pairs = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in pairs if value is not None}


_MCP = {
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open_world": "openWorldHint",
}
