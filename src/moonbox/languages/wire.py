"""Wire: what an engine needs of the host. Only names and JSON values cross it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Wire"]


class Wire(Protocol):
    """Send this, give me the answer."""

    def exchange(self, calls: bytes) -> Sequence[tuple[int, bool, Any]] | None:
        """Send calls (JSON, may be empty), wait for at least one answer; None when the run must stop."""

    def cancel(self, ids: bytes) -> None:
        """Forget calls that are under way."""

    def emit(self, text: bytes) -> None:
        """Printed output."""
