"""The engine that runs scripts, and what it needs of the host. Only names and JSON values cross between them.

A worker imports this module: it stays without `typing` at runtime.
"""

from __future__ import annotations

TYPE_CHECKING = False  # see worker/protocol.py: a worker starts without `typing`
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Protocol

    class Wire(Protocol):
        """What the engine asks of the host: send this, give me the answer."""

        def exchange(self, calls: bytes) -> Sequence[tuple[int, bool, Any]] | None:
            """Send calls (JSON, may be empty), wait for at least one answer; None when the run must stop."""

        def cancel(self, ids: bytes) -> None:
            """Forget calls that were sent and are not answered yet."""

        def emit(self, text: bytes) -> None:
            """Printed output."""

    class Engine(Protocol):
        """One state in which scripts run one after another; `interrupt` may be called from another thread."""

        @property
        def polling(self) -> str:
            """Why running code has to be polled to be stopped; empty when it need not."""

        @property
        def output_cut(self) -> int:
            """Bytes printed past the limit in the last run."""

        @property
        def is_native(self) -> bool:
            """Whether scripts run and call without entering Python."""

        def connect(self, wire: Wire) -> None: ...
        def configure(self, config: Mapping[str, Any]) -> None: ...
        def set_limits(self, limits: Mapping[str, Any]) -> None: ...
        def set_inputs(self, inputs: list[tuple[str, Any]]) -> None:
            """Globals of the next run only."""

        def run(self, source: bytes, number: int, seed: int) -> EngineReport: ...
        def check(self, source: bytes) -> EngineReport:
            """Compile only: "ok", or what running it would report of its syntax."""

        def interrupt(self, number: int, reason: int) -> bool: ...
        def interrupt_any(self, reason: int) -> None: ...
        def halt(self, reason: int) -> None: ...
        def globals(self) -> bytes: ...


__all__ = ["EngineReport", "create_engine"]


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
