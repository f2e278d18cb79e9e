"""Answers: what a run came to, as the result of a client's call."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcp_types import AudioContent, CallToolResult, ImageContent, TextContent

from moonbox.mcp.media import PREFIX
from moonbox.mcp.server.conversations import META_KEY, STATE
from moonbox.values import to_jsonable

if TYPE_CHECKING:
    from mcp_types import ContentBlock

    from moonbox.audit.records import Run
    from moonbox.codemode.mode import Reply
    from moonbox.mcp.media import Media
    from moonbox.mcp.server.conversations import Place

__all__ = ["RUN_KEY", "of_code", "of_direct", "refused"]

RUN_KEY = "moonbox/run"
_MOST_MEDIA = 4
_MOST_LOOKED_AT = 5_000


def of_code(reply: Reply, place: Place, media: Media, *, structured: bool, max_chars: int) -> CallToolResult:
    """For a script."""
    text = reply.text
    if place.note:
        text += f"\n[{place.note}]"
    if place.handle is not None:
        text += f'\n[to go on with these globals, pass {STATE} = "{place.handle}"]'
    meta: dict[str, Any] = {} if place.handle is None else {META_KEY: place.handle}
    run = reply.run
    if run is None or reply.is_error:
        return _result(text, None, meta, run, is_error=reply.is_error)
    data = _record(run, place, max_chars) if structured else None
    return _result(text, data, meta, run, blocks=_media(run.value, media))


def of_direct(reply: Reply, media: Media, *, has_schema: bool) -> CallToolResult:
    """For a tool that the client called itself."""
    run = reply.run
    if run is None or reply.is_error:
        return _result(reply.text, None, {}, run, is_error=reply.is_error)
    return _result(reply.text, to_jsonable(run.value) if has_schema else None, {}, run, blocks=_media(run.value, media))


def refused(message: str) -> CallToolResult:
    """For a call that was not carried out."""
    return CallToolResult(content=[TextContent(text=f"error: {message}")], is_error=True)


def _result(
    text: str,
    data: Any,
    meta: dict[str, Any],
    run: Run | None,
    *,
    blocks: list[ContentBlock] | None = None,
    is_error: bool = False,
) -> CallToolResult:
    if run is not None:
        meta = {**meta, RUN_KEY: run.id}
    more = {} if data is None else {"structured_content": data}
    content: list[ContentBlock] = [TextContent(text=text), *(blocks or ())]
    return CallToolResult(content=content, is_error=is_error, _meta=meta or None, **more)


def _record(run: Run, place: Place, max_chars: int) -> dict[str, Any]:
    record: dict[str, Any] = {"run": run.id, "calls": len(run.calls)}
    if run.values:
        value = to_jsonable(run.value if len(run.values) == 1 else list(run.values))
        if len(json.dumps(value, ensure_ascii=False)) <= max_chars:
            record["value"] = value
        else:
            record["cut"] = True
    if run.output:
        record["output"] = run.output[:max_chars]
    if place.handle is not None:
        record[STATE] = place.handle
    return record


def _media(value: Any, media: Media) -> list[ContentBlock]:
    """The images and sounds that a value refers to: whoever returns a reference wants them seen."""
    found: list[ContentBlock] = []
    waiting, looked_at = [value], 0
    while waiting and len(found) < _MOST_MEDIA and looked_at < _MOST_LOOKED_AT:
        item = waiting.pop()
        looked_at += 1
        if isinstance(item, dict):
            waiting += list(item.values())[::-1]
        elif isinstance(item, list):
            waiting += item[:_MOST_LOOKED_AT][::-1]
        elif isinstance(item, str) and item.startswith(PREFIX) and (kept := media.get(item)) is not None:
            if kept.kind == "image":
                found.append(ImageContent(data=kept.data, mime_type=kept.mime_type))
            elif kept.kind == "audio":
                found.append(AudioContent(data=kept.data, mime_type=kept.mime_type))
    return found
