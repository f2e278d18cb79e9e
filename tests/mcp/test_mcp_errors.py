"""Tests of the codes that scripts are given for the errors of MCP servers."""

from __future__ import annotations

import pytest
from mcp import MCPError

from moonbox.mcp.upstreams.errors import call_error


@pytest.mark.parametrize(
    ("number", "code", "retryable"),
    [
        (-32602, "invalid", False),
        (-32601, "unknown_tool", False),
        (-32002, "not_found", False),
        (-32001, "timeout", True),
        (-32603, "tool_error", False),
        (404, "not_found", False),
        (409, "conflict", False),
        (429, "rate_limited", True),
        (503, "unavailable", True),
        (7, "tool_error", False),
    ],
)
def test_codes_of_the_protocol(number: int, code: str, retryable: bool) -> None:
    error = call_error(MCPError(number, "no luck", {"why": "?"}), "server")
    assert (error.code, error.retryable, error.message, error.data) == (code, retryable, "no luck", {"why": "?"})


@pytest.mark.parametrize(
    ("status", "code"), [("401 Unauthorized", "denied"), ("503 Service Unavailable", "unavailable")]
)
def test_codes_of_http_statuses(status: str, code: str) -> None:
    error = call_error(MCPError(-32000, "Server returned an error response"), "server", f"it answered {status}")
    assert (error.code, error.message) == (code, f"the MCP server 'server' refused the call: it answered {status}")
