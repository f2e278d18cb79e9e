"""The form in which a tool gives its items page by page, as its parameters show it.

The forms of answers are known to the function `pages` of scripts (languages/lua/prelude/pages.lua).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moonbox.schema.tree import SchemaNode
    from moonbox.tools.tool import Tool

PARAMETERS = {
    "cursor": (
        *("cursor", "next_cursor", "nextCursor", "page_token", "pageToken", "next_token", "nextToken"),
        *("next_page_token", "nextPageToken", "continuation_token", "continuationToken", "starting_after"),
    ),
    "page": ("page", "page_number", "pageNumber", "page_no", "pageNo"),
    "offset": ("offset", "start_at", "startAt", "start_index", "startIndex"),
    "limit": (
        *("limit", "page_size", "pageSize", "per_page", "perPage", "max_results", "maxResults"),
        *("count", "size", "first", "top", "take"),
    ),
}
"""The usual names of parameters for each part of a form, the more usual ones first."""

ONLY_WITH_LIMIT = {"cursor": ("after", "marker", "token"), "offset": ("skip", "start", "from")}
"""Names that mean a place in a list only beside a parameter for the size of a page."""

_NUMBERS = frozenset({"page", "offset"})


def paging_form(tool: Tool) -> dict[str, str] | None:
    """The parameters that a tool is paged with (`cursor`, `page`, `offset`, `limit`); None when it is not paged.

    `{"cursor": "page_token", "limit": "page_size"}`: the part of each parameter, and its name.
    """
    named = tool.accepted.fields
    limit = next((name for name in PARAMETERS["limit"] if name in named), None)
    form = {}
    for part in ("cursor", "page", "offset"):
        names = (*PARAMETERS[part], *(ONLY_WITH_LIMIT.get(part, ()) if limit else ()))
        name = next((name for name in names if name in named and _fits(part, named[name])), None)
        if name is not None:
            form[part] = name
    if not form or (isinstance(tool.returns, dict) and tool.returns.get("type") == "string"):
        return None
    return form if limit is None else {**form, "limit": limit}


def _fits(part: str, node: SchemaNode) -> bool:
    """Whether a parameter can be that part: pages and offsets are numbers."""
    return part not in _NUMBERS or (node.kinds is not None and not node.kinds.isdisjoint({"integer", "number"}))
