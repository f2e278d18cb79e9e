"""One script, run in a Sandbox of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moonbox.audit.records import Run

__all__ = ["run"]


def run(source: str, tools: Any = (), **options: Any) -> Run:
    """Run one script and end the worker again; the options are those of Sandbox."""
    from moonbox.sandbox.sandbox import Sandbox

    with Sandbox(tools, **{"min_workers": 0, **options}) as box:
        return box.run(source)
