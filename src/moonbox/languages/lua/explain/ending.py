"""How a run ended, in the engine's words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["Ending"]


@dataclass(frozen=True, slots=True)
class Ending:
    """What the engine reports of a run that failed."""

    kind: str
    """ "syntax", "runtime", "tool" or "stop"."""
    message: str = ""
    """As Lua wrote it, with the chunk and line in front: `script:3: attempt to …`."""
    limit: str = ""
    """For a stop: "time", "calls", "cancelled", "operations", "memory", "output", "string", "array", "depth" or ""."""
    frames: tuple[tuple[str, int, str], ...] = ()
    """(chunk, line, function), innermost first."""
    data: Any = None
    """Of a tool's error its fields; of a table that the script raised, its data."""
    names: Collection[str] = ()
    """Globals that exist, where the message speaks of a nil value."""
