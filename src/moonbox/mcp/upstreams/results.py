"""Results of upstream tools as plain data for scripts.

structured content                      that, as it is
one block of text                       the text; where it is a JSON object or array, the data
several blocks of text                  joined with line breaks; where each is JSON, an array of the data
an image or a sound                     {type, mimeType, size, uri}; the bytes stay in the host, `uri` names them there
an embedded resource                    {type = "resource", uri, mimeType, text}, or with size and media instead of text
a link to a resource                    {type = "resource_link", uri, name, description, mimeType, size}
text together with others, or several   {text, content = {…}}
nothing                                 null
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from moonbox.errors import ToolError
from moonbox.mcp.media import Media, Medium

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock

__all__ = ["WRAPPED", "unwrap"]

WRAPPED = "x-fastmcp-wrap-result"
"""In a result schema: the value is wrapped in an object {result = …} because MCP wanted one."""
_LONGEST_ERROR = 2_000


def unwrap(result: CallToolResult, schema: dict[str, Any] | None, media: Media | None = None) -> Any:
    """The value for the script; raises ToolError for a result that says it is an error."""
    if result.is_error:
        raise _error(result)
    if result.structured_content is not None:
        value = result.structured_content
        if schema is not None and schema.get(WRAPPED) and isinstance(value, dict) and set(value) == {"result"}:
            return value["result"]
        return value
    texts = [block.text for block in result.content if isinstance(block, TextContent)]
    others = [_reference(block, media) for block in result.content if not isinstance(block, TextContent)]
    if not others:
        return _text(texts)
    if len(others) == 1 and not texts:
        return others[0]
    return {**({"text": _text(texts)} if texts else {}), "content": others}


def _text(texts: list[str]) -> Any:
    if len(texts) <= 1:
        return texts[0] if texts else None  # a single text that is JSON becomes data later, with every other tool's
    parsed = [_json(text) for text in texts]
    return parsed if all(value is not None for value in parsed) else "\n".join(texts)


def _json(text: str) -> Any:
    if text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _reference(block: ContentBlock, media: Media | None) -> dict[str, Any]:
    match block:
        case ImageContent() | AudioContent():
            made = {"type": block.type, "mimeType": block.mime_type, "size": _size(block.data)}
            return _with(made, uri=_kept(media, Medium(block.type, block.mime_type, block.data)))
        case EmbeddedResource(resource=TextResourceContents() as inner):
            return _with({"type": "resource", "uri": inner.uri, "text": inner.text}, mimeType=inner.mime_type)
        case EmbeddedResource(resource=BlobResourceContents() as inner):
            kind = inner.mime_type or "application/octet-stream"
            made = {"type": "resource", "uri": inner.uri, "mimeType": kind, "size": _size(inner.blob)}
            return _with(made, media=_kept(media, Medium("resource", kind, inner.blob)))
        case ResourceLink():
            return _with(
                {"type": "resource_link", "uri": block.uri, "name": block.name},
                description=block.description,
                mimeType=block.mime_type,
                size=block.size,
            )
    return {"type": block.type}


def _with(made: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**made, **{key: value for key, value in more.items() if value is not None}}


def _kept(media: Media | None, medium: Medium) -> str | None:
    return None if media is None else media.keep(medium)


def _size(data: str) -> int:
    """The bytes that base64 text stands for."""
    return len(data) * 3 // 4 - data[-2:].count("=")


def _error(result: CallToolResult) -> ToolError:
    texts = [block.text for block in result.content if isinstance(block, TextContent)]
    message = "\n".join(text.strip() for text in texts if text.strip()) or "the tool reported an error without words"
    if len(message) > _LONGEST_ERROR:
        message = message[:_LONGEST_ERROR] + "…"
    data = result.structured_content
    code = "tool_error"
    if isinstance(data, dict) and isinstance(data.get("code"), str) and 0 < len(data["code"]) <= 60:
        code = data["code"]
    return ToolError(message, code=code, data=data)
