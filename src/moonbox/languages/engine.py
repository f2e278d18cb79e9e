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
        """Runs the scripts of one Repl, one after another."""

        is_native: bool
        """Whether the native part of a worker runs it."""
        polling: str
        """Why running code is checked all the time; empty where it need not be."""
        warm_up: bytes | None
        """A script for a zygote to run, so that its workers share what a run needs; None where it can run none."""

        def connect(self, wire: Wire) -> None: ...
        def configure(self, config: Mapping[str, Any]) -> None:
            """Build the environment: tools, functions, values, and what the language adds (`Language.describe`)."""

        def set_limits(self, limits: Mapping[str, Any]) -> None: ...
        def set_inputs(self, inputs: list[tuple[str, Any]]) -> None: ...
        def run(self, source: bytes, number: int, seed: int) -> EngineReport: ...
        def check(self, source: bytes) -> EngineReport:
            """Compile a script, and check its types where the language has them, without running it."""

        def interrupt(self, number: int, reason: int) -> bool:
            """From another thread: stop that run."""

        def interrupt_any(self, reason: int) -> None: ...
        def halt(self, reason: int) -> None:
            """The run under way must stop for that reason as soon as the host call it is in returns."""

        def globals(self) -> bytes: ...
        def inspect(self, call: int, number: int) -> bytes:
            """While the run `number` waits for that call: its frames and globals as JSON; empty where that fails."""

        @property
        def output_cut(self) -> int: ...
        def start(self, program: str) -> int:
            """Start its program, where it has one, in a process beside the worker; the number of the process."""


class EngineReport:
    """How a run ended, in the engine's words."""

    __slots__ = ("cpu", "extra", "frames", "kept", "kind", "last", "limit", "memory", "message", "operations", "values")

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
        self.last = False
        """The engine can run nothing after this: the worker ends."""


class EngineLost(Exception):
    """The engine has ended in the middle of a run."""


DEFAULT_ENGINE = "lua.vm:LuaVM"


def create_engine(native: Any = None, name: str = DEFAULT_ENGINE) -> Engine:
    """A new engine, by its module and class below `moonbox.languages`. `native` is the native part of a worker."""
    from importlib import import_module

    module, _, made = name.partition(":")
    engine: Engine = getattr(import_module(f"moonbox.languages.{module}"), made)(native)
    return engine
