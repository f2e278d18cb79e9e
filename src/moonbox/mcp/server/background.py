"""Scripts in the background: what a client is told that cannot wait longer, and the tool that gives it the result."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

import mcp_types as types
import msgspec

from moonbox.mcp.server.results import RELATED_KEY, RUN_KEY

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from moonbox.mcp.server.call import Call
    from moonbox.mcp.server.sessions import Client
    from moonbox.sandbox.recorded import PendingCall

_LONGEST_ID = 64
_LONGEST_ARGUMENTS = 500


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, or one like it that no other tool has."""
    while name in taken:
        name += "_"
    return name


def wait_tool(
    name: str, code_tool: str, result: dict[str, Any] | None, seconds: float, *, journaled: bool = False
) -> types.Tool:
    """The tool as clients see it; `result` is the schema of the code tool's result."""
    properties = {
        "run_id": {"type": "string", "description": f"The run's id, from the answer of {code_tool}."},
        "seconds": {"type": "number", "minimum": 0, "description": f"How long to wait; at most {seconds:g}."},
        "cancel": {"type": "boolean", "description": "Stop the script instead."},
    }
    if journaled:
        properties["in_flight"] = {
            "enum": ["retry", "fail"],
            "description": "After a restart of the server: make calls in doubt again, or let them fail.",
        }
    return types.Tool(
        name=name,
        title="Wait for a script",
        description=(
            f"Waits for a script that {code_tool} left running, and returns its result once it has ended. "
            "Until then it returns how far the script is."
        ),
        input_schema={"type": "object", "properties": properties, "required": ["run_id"]},
        output_schema=result,
        annotations=types.ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False),
    )


class WaitArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the tool is called with."""

    run_id: str
    seconds: Annotated[float, msgspec.Meta(ge=0)] | None = None
    cancel: bool | None = None
    in_flight: Literal["retry", "fail"] | None = None


def still_running(call: Call, client: Client, *, structured: bool) -> types.CallToolResult:
    """The answer in place of a result that is not there yet."""
    progress = call.script_progress
    data: dict[str, Any] = {"run": call.id, "calls": call.calls_made, "running": True}
    if progress is not None:
        shown = {"done": progress.done, "total": progress.total, "text": progress.text or None}
        data["progress"] = {name: value for name, value in shown.items() if value is not None}
    text = (
        f"The script has not ended; it continues as run {call.id}.\n"
        f"Progress: {call.progress_text()}.\n"
        f'For its result, call {call.wait_tool} with run_id = "{call.id}"; with cancel = true it is stopped.'
    )
    meta: dict[str, Any] = {RUN_KEY: call.id}
    if not client.modern:
        meta[RELATED_KEY] = {"taskId": call.id}
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content=data if structured else None, _meta=meta
    )


def stopped(run_id: str, calls: int = 0, *, structured: bool) -> types.CallToolResult:
    """The answer where there will be no result."""
    text = types.TextContent(text=f"The run {run_id} was stopped.")
    data = {"run": run_id, "calls": calls} if structured else None
    return types.CallToolResult(content=[text], structured_content=data, _meta={RUN_KEY: run_id})


def in_doubt(call: Call, pending: Iterable[PendingCall]) -> str:
    """What the model is told of calls that a restart of the server cut off, and what it can do."""
    lines = [f"  {each.tool} {json.dumps(each.arguments, default=str)[:_LONGEST_ARGUMENTS]}" for each in pending]
    said = "the server was restarted while this script made the calls below; whether they took effect is not known."
    choice = (
        f'The script waits. Find out what you can, then call {call.wait_tool} with run_id = "{call.id}" and '
        'in_flight = "retry" to make these calls again, or in_flight = "fail" to let them fail with code in_doubt.'
    )
    return "\n".join((said, *lines, choice))


def not_in_background(run_id: str) -> str:
    shown = run_id if len(run_id) <= _LONGEST_ID else run_id[:_LONGEST_ID] + "…"
    return (
        f"no run {shown!r} is in the background: its result was given before, or was not asked for in time. "
        "If it has ended, the resource moonbox://runs/ID is its record."
    )
