"""The assembly: one configuration, made into everything it describes."""

from __future__ import annotations

from moonbox.project.assembly import Assembly, assemble

__all__ = ["Assembly", "assemble"]
