"""Results of calls as MCP sends them: text, structured content and media."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import mcp_types as types

from moonbox.mcp.server.sessions import META_KEY, STATE
from moonbox.values import to_jsonable

if TYPE_CHECKING:
    from moonbox.audit.records import Run
    from moonbox.codemode.mode import Reply
    from moonbox.mcp.server.sessions import ClientConversation
    from moonbox.media import Media

_CODE_RESULT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "value": {
            "type": ["object", "array", "string", "number", "boolean", "null"],
            "description": "What the script returned.",
        },
        "output": {"type": "string", "description": "What it printed."},
        "run": {"type": "string", "description": "The run's id: moonbox://runs/{run} is its record."},
        "calls": {"type": "integer"},
        "cut": {"type": "boolean", "description": "The value is too long to be here; the text shows its ends."},
        STATE: {"type": "string", "description": "Pass it as `state` to continue with this script's globals."},
    },
    "required": ["run", "calls"],
}
_IN_BACKGROUND: dict[str, Any] = {
    "running": {"type": "boolean", "description": "The script has not ended: there is no value yet."},
    "progress": {
        "type": "object",
        "properties": {"done": {"type": "number"}, "total": {"type": "number"}, "text": {"type": "string"}},
    },
}
RUN_KEY = "moonbox/run"
RELATED_KEY = "io.modelcontextprotocol/related-task"
_MAX_MEDIA = 8


def code_result(*, waits: bool) -> dict[str, Any]:
    """The schema of what scripts return; `waits`: they may continue in the background."""
    properties = {**_CODE_RESULT["properties"], **(_IN_BACKGROUND if waits else {})}
    return {**_CODE_RESULT, "properties": properties}


def script_result(
    reply: Reply, conversation: ClientConversation, *, structured: bool, max_chars: int
) -> types.CallToolResult:
    """The result of a script."""
    text = reply.text
    meta: dict[str, Any] = {}
    if conversation.note:
        text += f"\n[{conversation.note}]"
    if conversation.handle is not None:
        text += f'\n[to continue with these globals, pass {STATE} = "{conversation.handle}"]'
        meta[META_KEY] = conversation.handle
    run = reply.run
    data = _run_data(run, conversation, max_chars) if structured and run is not None and not reply.is_error else None
    return _result(text, reply, meta, data)


def direct_result(
    reply: Reply, *, structured: bool, upstream: types.CallToolResult | None = None
) -> types.CallToolResult:
    """The result of a tool that the client called itself; an `upstream` server's is passed on as it came."""
    run = reply.run
    if upstream is not None and run is not None and upstream.is_error != run.ok:
        meta = {**(upstream.meta or {}), RUN_KEY: run.id}
        return upstream.model_copy(update={"meta": meta})
    data = to_jsonable(run.value) if structured and run is not None and not reply.is_error else None
    return _result(reply.text, reply, {}, data)


def error_result(message: str) -> types.CallToolResult:
    """The result of a call that was not run."""
    return types.CallToolResult(content=[types.TextContent(text=f"error: {message}")], is_error=True)


def _result(text: str, reply: Reply, meta: dict[str, Any], data: Any) -> types.CallToolResult:
    """With what the script returned or showed of images, audio and files."""
    if reply.run is not None:
        meta = {**meta, RUN_KEY: reply.run.id}
    structured = {} if data is None else {"structured_content": data}
    content = [types.TextContent(text=text), *map(media_block, reply.media[:_MAX_MEDIA])]
    return types.CallToolResult(content=content, is_error=reply.is_error, _meta=meta or None, **structured)


def _run_data(run: Run, conversation: ClientConversation, max_chars: int) -> dict[str, Any]:
    data: dict[str, Any] = {"run": run.id, "calls": len(run.calls)}
    if run.values:
        value = to_jsonable(run.value if len(run.values) == 1 else list(run.values))
        if len(json.dumps(value, ensure_ascii=False)) <= max_chars:
            data["value"] = value
        else:
            data["cut"] = True
    if run.output:
        data["output"] = run.output[:max_chars]
    if conversation.handle is not None:
        data[STATE] = conversation.handle
    return data


def media_block(medium: Media) -> types.ContentBlock:
    """A medium as MCP sends it."""
    match medium.kind:
        case "image":
            return types.ImageContent(data=medium.base64, mime_type=medium.type)
        case "audio":
            return types.AudioContent(data=medium.base64, mime_type=medium.type)
    contents = types.BlobResourceContents(uri=medium.address, mime_type=medium.type, blob=medium.base64)
    return types.EmbeddedResource(resource=contents)
