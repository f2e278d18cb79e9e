"""The engine that runs scripts, and what it needs of the host. Only names and JSON values cross between them.

A worker imports this module: it stays without `typing` at runtime.
"""

from __future__ import annotations

TYPE_CHECKING = False  # see worker/protocol.py: a worker starts without `typing`
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Protocol

    class Wire(Protocol):
        """What the engine asks of the host: send this, give me the answer."""

        def exchange(self, calls: bytes) -> Sequence[tuple[int, bool, Any]] | None:
            """Send calls (JSON, may be empty), wait for at least one answer; None when the run must stop."""

        def cancel(self, ids: bytes) -> None:
            """Forget calls that were sent and are not answered yet."""

        def emit(self, text: bytes) -> None:
            """Printed output."""

    from moonbox.languages.lua.vm import LuaVM

    Engine = LuaVM


class EngineReport:
    """How a run ended, in the engine's words."""

    __slots__ = ("cpu", "extra", "frames", "kept", "kind", "limit", "memory", "message", "operations", "values")

    def __init__(self) -> None:
        self.kind = "ok"
        self.values = b"[]"
        self.message = b""
        self.limit = ""
        self.frames = b"[]"
        self.extra = b"{}"
        self.operations: int | None = None
        self.memory = 0
        self.cpu = 0.0
        self.kept = 0
        """What stays in the environment under a name: 1 for the value, 2 for the output, 3 for both."""


def create_engine(native: Any = None) -> Engine:
    """A new engine: Lua's, on which every language of the registry runs. `native` is the native part of a worker."""
    from moonbox.languages.lua.vm import LuaVM

    return LuaVM(native)
