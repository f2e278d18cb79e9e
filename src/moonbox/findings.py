"""Findings: what a look at a script shows before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict


class Finding(Struct, frozen=True):
    """One thing that is wrong with a script, or likely to be."""

    severity: Literal["error", "note"]
    """error: it cannot work, and is not run; note: it is likely a mistake."""
    message: str
    line: int
    """0 for a note that a call made while the script ran."""
    column: int | None = None
    hint: str | None = None
    """What to write instead."""
    code: str | None = None
    """syntax: the script does not compile. Of a call that would fail: the code that its error would have."""
    tool: str | None = None
    """Which tool it is about."""
    field: str | None = None
    """The field that the results of tools are not known to have."""

    def __str__(self) -> str:
        hint = f"; {self.hint}" if self.hint else ""
        where = f"line {self.line}: " if self.line else ""
        return f"{where}{self.message}{hint}"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Finding:
        """A finding from its `to_dict`; what it does not know is left out."""
        return cls(**{name: data[name] for name in cls.__struct_fields__ if name in data})
