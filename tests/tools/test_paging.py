"""Which tools are paged, by their parameters."""

from __future__ import annotations

from typing import Any

import pytest

from moonbox import Tool
from moonbox.tools.paging import paging_form
from moonbox.tools.signature import render

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}


def _tool(properties: dict[str, Any], returns: Any = None) -> Tool:
    schema = {"type": "object", "properties": properties}
    return Tool.from_schema(name="f", description="Lists.", parameters=schema, call=lambda _: None, returns=returns)


@pytest.mark.parametrize(
    ("properties", "form"),
    [
        ({"cursor": TEXT}, {"cursor": "cursor"}),
        ({"q": TEXT, "page_token": TEXT, "page_size": WHOLE}, {"cursor": "page_token", "limit": "page_size"}),
        ({"offset": WHOLE, "limit": WHOLE}, {"offset": "offset", "limit": "limit"}),
        ({"page": {"anyOf": [WHOLE, {"type": "null"}]}, "per_page": WHOLE}, {"page": "page", "limit": "per_page"}),
        ({"after": TEXT, "first": WHOLE}, {"cursor": "after", "limit": "first"}),
        ({"after": TEXT}, None),  # a date, as likely as not
        ({"page": TEXT}, None),  # the name of a page
        ({"limit": WHOLE}, None),
        ({"page": {"anyOf": [{"$ref": "#/properties/page"}]}}, None),
        ({}, None),
    ],
)
def test_the_form_follows_from_the_parameters(properties: dict[str, Any], form: dict[str, str] | None) -> None:
    assert paging_form(_tool(properties)) == form


def test_a_tool_that_returns_text_is_not_paged() -> None:
    assert paging_form(_tool({"offset": WHOLE, "limit": WHOLE}, returns=TEXT)) is None


def test_the_signature_says_which_tools_are_paged() -> None:
    assert render(_tool({"cursor": TEXT})) == "f(cursor?: string) -- paged — Lists."
    assert render(_tool({"q": TEXT}), "signature") == "f(q?: string)"
