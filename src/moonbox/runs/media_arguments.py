"""Media as arguments of a call: a script passes handles, and a tool gets what its schema asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moonbox.media import PREFIX, Media, MediaStore, is_handle

if TYPE_CHECKING:
    from moonbox.schema.tree import SchemaNode
    from moonbox.tools.tool import Tool


def with_addresses(given: list[Any], tool: Tool) -> list[Any]:
    """A call's arguments with the address of a medium instead of its handle, where the tool wants text or bytes."""
    if len(given) != 1 or type(given[0]) is not dict:
        return given
    named = given[0]
    if is_handle(named) and "media" not in tool.parameter_names and tool.parameter_names:
        named = {tool.parameter_names[0]: named}  # a handle is one argument, not the names of several
    elif not any(is_handle(value) for value in named.values()):
        return given
    return [{key: value["media"] if _wants_text(key, value, tool) else value for key, value in named.items()}]


def with_contents(arguments: dict[str, Any], tool: Tool, store: MediaStore) -> dict[str, Any]:
    """The arguments with the medium itself instead of its address: as bytes, as base64 or as a data URI.

    The schema decides: `"format": "binary"` is bytes; where it speaks of base64 it is that; else a data URI.
    """
    changed = {}
    for name, value in arguments.items():
        medium = store.get(value) if type(value) is str and value.startswith(PREFIX) else None
        if medium is not None:
            changed[name] = _content(medium, tool.accepted.fields.get(name))
    return {**arguments, **changed} if changed else arguments


def _wants_text(name: str, value: Any, tool: Tool) -> bool:
    if not is_handle(value):
        return False
    node = tool.accepted.fields.get(name)
    kinds = None if node is None else node.kinds
    return kinds is not None and "string" in kinds and "object" not in kinds


def _content(medium: Media, node: SchemaNode | None) -> str | bytes:
    declared = {} if node is None else node.says
    if declared.get("format") == "binary":
        return medium.data
    words = " ".join(str(declared.get(key, "")) for key in ("format", "contentEncoding", "description")).lower()
    return medium.base64 if "base64" in words or declared.get("format") == "byte" else medium.data_uri
