"""A project: everything that one configuration describes, made, tied together, and served."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moonbox.project.assembly import Assembly, assemble

__all__ = ["Assembly", "assemble"]


if not TYPE_CHECKING:  # checkers read the imports above; with this they would accept any name

    def __getattr__(name: str) -> Any:
        """Loaded on first use: commands that need a part of this package do not need all of it."""
        if name in __all__:
            from moonbox.project import assembly

            return getattr(assembly, name)
        raise AttributeError(f"module 'moonbox.project' has no attribute {name!r}")
