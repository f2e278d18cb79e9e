"""The caller: on whose behalf a tool runs, known to whatever runs for it, in any thread."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from mcp_types import ErrorData, InputRequest, InputResponse

    from moonbox.sandbox.decisions import Decision, ToolCall
    from moonbox.sandbox.record import CallEntry

__all__ = ["CALLER", "Caller", "approve", "watch"]


class Caller(Protocol):
    """The client whose call is being answered. Every method may be called in any thread or loop."""

    @property
    def client(self) -> str:
        """The same for two callers exactly when they are the same client."""

    @property
    def wants_progress(self) -> bool: ...

    def progress(self, message: str) -> None:
        """Tell the client how far its call is."""

    def call_changed(self, entry: CallEntry) -> None:
        """A call of its script began or ended."""

    async def approve(self, call: ToolCall) -> Decision:
        """Ask the person behind the client; raises Denied where that cannot be."""

    async def forward(self, request: InputRequest) -> InputResponse | ErrorData:
        """Pass a question of an upstream on to the client."""


CALLER: ContextVar[Caller | None] = ContextVar("moonbox_mcp_caller", default=None)


async def approve(call: ToolCall) -> Any:
    """For `Sandbox(approve=…)`: asks whoever the call is made for."""
    from moonbox.errors import Denied

    caller = CALLER.get()
    if caller is None:
        raise Denied(
            f"the tool '{call.name}' needs a person's approval and nobody can be asked here; do without it",
            code="approval_unavailable",
        )
    return await caller.approve(call)


def watch(entry: CallEntry) -> None:
    """For `Sandbox(on_call=…)`: tells whoever the call is made for."""
    caller = CALLER.get()
    if caller is not None:
        caller.call_changed(entry)
