"""A project: everything that one configuration describes, made, tied together, and served."""

from __future__ import annotations

from moonbox.project.assembly import Assembly, assemble

__all__ = ["Assembly", "assemble"]
