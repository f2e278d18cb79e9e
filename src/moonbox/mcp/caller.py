"""The caller: the call of a client for which a tool runs, known in every thread that runs for it."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import mcp_types as types

from moonbox.errors import Denied, ToolError
from moonbox.media import MediaStore

if TYPE_CHECKING:
    from moonbox.mcp.server.call import OpenCall
    from moonbox.media import Media
    from moonbox.runs.call_entry import CallEntry
    from moonbox.runs.decisions import ToolCall


CALLER: ContextVar[OpenCall | None] = ContextVar("moonbox_mcp_caller", default=None)


class OwnedMedia(MediaStore):
    """The media that calls returned. Each can be read by the owners of these calls."""

    def __init__(self) -> None:
        super().__init__()
        self._owners: dict[str, set[str]] = {}

    def keep(self, medium: Media) -> None:
        super().keep(medium)
        caller = CALLER.get()
        with self._lock:
            self._owners = {address: owners for address, owners in self._owners.items() if address in self.kept}
            if caller is not None:
                self._owners.setdefault(medium.address, set()).add(caller.owner)

    def owned(self, address: str, owner: str) -> Media | None:
        return self.get(address) if owner in self._owners.get(address, ()) else None


class _Asked:
    """Who is asked for approval: the current caller."""

    @property
    def answers_in_journal(self) -> bool:
        """There is no caller for a run that goes on by itself: only people answer, through the journal."""
        return CALLER.get() is None

    async def approve(self, call: ToolCall) -> Any:
        caller = CALLER.get()
        if caller is None:
            raise Denied(
                f"the tool '{call.tool}' needs approval, and there is nobody to ask; continue without it",
                code="approval_unavailable",
            )
        return await caller.approve(call)


approve = _Asked().approve
"""For `Sandbox(approve=…)`."""


def watch(entry: CallEntry) -> None:
    """For `Sandbox(on_call=…)`: informs the current caller."""
    caller = CALLER.get()
    if caller is not None:
        caller.call_changed(entry)


def sample(prompt: str, system: str, max_tokens: int) -> str:
    """What the client's model answers; ToolError where it cannot be asked. For the thread of a tool."""
    caller = CALLER.get()
    if caller is None:
        raise ToolError("there is no client whose model could be asked", code="unavailable")
    message = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
    params = types.CreateMessageRequestParams(messages=[message], system_prompt=system or None, max_tokens=max_tokens)
    answer = asyncio.run(caller.forward(types.CreateMessageRequest(params=params)))
    if isinstance(answer, types.ErrorData):
        raise ToolError(f"the client's model did not answer: {answer.message}", code="unavailable")
    if not isinstance(answer, types.CreateMessageResult) or not isinstance(answer.content, types.TextContent):
        raise ToolError("the client's model did not answer with text", code="unavailable")
    return answer.content.text
