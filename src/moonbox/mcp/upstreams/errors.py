"""Errors of upstream servers: what the SDK and the network raise, translated once for scripts and people."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import httpx2
import mcp_types as types
from mcp import MCPError
from mcp.client.auth import OAuthFlowError

from moonbox.errors import ArgumentError, ToolError, UsageError
from moonbox.mcp.upstreams.login import LoginRequired
from moonbox.tools.results import code_of_status, scrub
from moonbox.wording import visible

if TYPE_CHECKING:
    from moonbox.mcp.upstreams.transport import Transport

LAST_OUTPUT = "; its last output: "
_SDK_STATUS_MESSAGES = ("Not Found", "Server returned an error response")
"""What the SDK says for an HTTP status; the status itself says more."""
_CODES = {
    types.METHOD_NOT_FOUND: ("unknown_tool", False),
    types.REQUEST_TIMEOUT: ("timeout", True),
    types.URL_ELICITATION_REQUIRED: ("elicitation_required", True),
    -32002: ("not_found", False),  # a resource
}
"""The code of a call's error, and whether the call can be repeated, for those of the protocol."""
_SDK_CLOSED_MESSAGES = ("Connection closed", "SSE stream ")


class ConnectionLost(Exception):
    """The connection is gone, or was never made; the message says why."""


def unavailable(message: str, *, retryable: bool = True) -> ToolError:
    return ToolError(message, code="unavailable", retryable=retryable)


def timed_out(server: str, what: str, seconds: float) -> ToolError:
    message = f"the MCP server '{server}' did not answer {what} within {seconds:g} s"
    return ToolError(message, code="timeout", retryable=True)


def is_lost(problem: BaseException) -> bool:
    """Whether the connection is of no more use."""
    if isinstance(problem, MCPError):
        if problem.code == types.CONNECTION_CLOSED:  # servers use the same code for errors of their own
            return problem.message.startswith(_SDK_CLOSED_MESSAGES)
        return problem.message == "Session terminated"
    return isinstance(problem, ConnectionLost | OSError | BaseExceptionGroup | httpx2.HTTPError | httpx2.StreamError)


def call_error(problem: BaseException, server: str, refusal: str = "") -> ToolError:
    """The error of a call that the server answered or refused; `refusal` is its HTTP status, if it was one."""
    if isinstance(problem, ToolError):
        return problem
    if not isinstance(problem, MCPError):
        return ToolError(f"invalid answer from the MCP server '{server}': {describe(problem)}", code="bad_result")
    message = problem.message or "the server refused the call"
    if refusal and message in _SDK_STATUS_MESSAGES:
        status = re.search(r"\b[45]\d\d\b", refusal)
        code, retryable = code_of_status(int(status[0])) if status else ("tool_error", False)
        message = f"the MCP server '{server}' refused the call: {refusal}"
        return ToolError(message, code=code, retryable=retryable)
    data = problem.data if isinstance(problem.data, dict | list | str | int | float | bool) else None
    if problem.code == types.INVALID_PARAMS:
        return ArgumentError(message, data=data)
    code, retryable = _CODES.get(problem.code, ("tool_error", False))
    if 400 <= problem.code < 600:  # servers that pass on the status of an HTTP service
        code, retryable = code_of_status(problem.code)
    if problem.code == types.URL_ELICITATION_REQUIRED:
        message = _with_urls(message, data)
    return ToolError(message, code=code, retryable=retryable, data=data)


def describe(problem: BaseException, refusal: str = "") -> str:
    """The innermost reason in one line; `refusal` is the server's HTTP status, if it refused by one."""
    while isinstance(problem, BaseExceptionGroup) and problem.exceptions:
        problem = problem.exceptions[0]
    if isinstance(problem, ConnectionLost | LoginRequired):
        return str(problem)  # our own words, in which nothing needs to be hidden
    if isinstance(problem, TimeoutError) and not str(problem):
        return "it did not answer in time"
    text = visible(scrub(" ".join(str(problem).split()))[:300], keep="")
    if isinstance(problem, OAuthFlowError):
        return f"the login failed: {text}"
    if refusal:
        hint = "; it requires a login: run `moonbox mcp login`" if " 401 " in f"{refusal} " else ""
        return f"{refusal}{hint}" if text in _SDK_STATUS_MESSAGES else f"{refusal}: {text}"
    if isinstance(problem, MCPError | UsageError):
        return text
    if isinstance(problem, httpx2.ConnectError | httpx2.ConnectTimeout):
        return f"cannot connect: {text}" if text else "cannot connect"
    name = type(problem).__name__
    return f"{name}: {text}" if text else name


def _with_urls(message: str, data: Any) -> str:
    """The message with the addresses that a person must open first."""
    requests = data.get("elicitations") if isinstance(data, dict) else None
    urls = [item["url"] for item in requests or () if isinstance(item, dict) and isinstance(item.get("url"), str)]
    return f"{message}: a person must first open {', '.join(urls[:3])}" if urls else message


def start_failure(problem: BaseException, transport: Transport, seconds: float) -> str:
    """Why a server could not be started or reached, with its last line of output."""
    if isinstance(problem, TimeoutError):
        reason = f"it did not answer within {seconds:g} s"
    elif transport.ended.is_set():
        return transport.end_reason()
    else:
        reason = describe(problem, transport.refusal)
    return with_last_output(reason, transport.output.last_line())


def with_last_output(reason: str, line: str) -> str:
    """The reason for which a server is not available, with the last line that it wrote."""
    return f"{reason}{LAST_OUTPUT}{line}" if line else reason


def lost_during_call(name: str, transport: Transport, problem: BaseException, *, harmless: bool) -> ToolError:
    """The error of a call whose server was lost; `harmless` calls can be repeated."""
    reason = transport.end_reason() if transport.ended.is_set() else describe(problem)
    effect = "" if harmless else "; the call may have taken effect"
    return unavailable(f"the MCP server '{name}' was lost during this call: {reason}{effect}", retryable=harmless)
