"""Faults of upstreams, translated once: what the SDK and the network raise, as tool errors that scripts understand."""

from __future__ import annotations

from typing import Any

from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, INVALID_PARAMS, METHOD_NOT_FOUND, REQUEST_TIMEOUT, URL_ELICITATION_REQUIRED

from moonbox.audit.terminal import visible
from moonbox.errors import ArgumentError, ToolError
from moonbox.tools.results import scrub

__all__ = ["Lost", "is_lost", "of_call", "sentence", "unavailable"]

_STAND_INS = ("Not Found", "Server returned an error response")
"""What the SDK says of an HTTP status."""


class Lost(Exception):
    """The connection is gone, or never was; says why."""


def unavailable(message: str, *, retryable: bool = True) -> ToolError:
    return ToolError(message, code="unavailable", retryable=retryable)


def is_lost(problem: BaseException) -> bool:
    """Whether the connection is of no more use."""
    if isinstance(problem, MCPError):
        return problem.code == CONNECTION_CLOSED or problem.message == "Session terminated"
    return isinstance(problem, Lost | OSError | BaseExceptionGroup) or "httpx" in type(problem).__module__


def of_call(problem: BaseException, server: str, refusal: str = "") -> ToolError:
    """Why a call that the server answered, or refused, failed; `refusal` is what it said by HTTP."""
    if isinstance(problem, ToolError):
        return problem
    if isinstance(problem, MCPError):
        message = problem.message or "the server refused the call"
        if refusal and message in _STAND_INS:
            return ToolError(f"the MCP server '{server}' refused the call: {refusal}", code="refused")
        data = _plain(problem.data)
        match problem.code:
            case c if c == INVALID_PARAMS:
                return ArgumentError(message, data=data)
            case c if c == METHOD_NOT_FOUND:
                return ToolError(message, code="unknown_tool", data=data)
            case c if c == REQUEST_TIMEOUT:
                return ToolError(message, code="timeout", retryable=True, data=data)
            case c if c == URL_ELICITATION_REQUIRED:
                return ToolError(_urls(message, problem.data), code="elicitation_required", retryable=True, data=data)
        return ToolError(message, code=f"mcp_{problem.code}", data=data)
    return ToolError(f"the answer of the MCP server '{server}' is not usable: {sentence(problem)}", code="bad_result")


def sentence(problem: BaseException, refusal: str = "") -> str:
    """The innermost reason, in one line; `refusal` is what the server said by HTTP."""
    while isinstance(problem, BaseExceptionGroup) and problem.exceptions:
        problem = problem.exceptions[0]
    if isinstance(problem, TimeoutError) and not str(problem):
        return "it did not answer in time"
    said = visible(scrub(" ".join(str(problem).split()))[:300], keep="")
    if refusal:
        advice = '; give it a token: headers = { Authorization = "Bearer …" }' if " 401 " in f"{refusal} " else ""
        return f"{refusal}{advice}" if said in _STAND_INS else f"{refusal}: {said}"
    if isinstance(problem, Lost | MCPError):
        return said
    name = type(problem).__name__
    if name in ("ConnectError", "ConnectTimeout"):
        return f"it cannot be reached: {said}" if said else "it cannot be reached"
    return f"{name}: {said}" if said else name


def _plain(data: Any) -> Any:
    return data if isinstance(data, dict | list | str | int | float | bool) else None


def _urls(message: str, data: Any) -> str:
    """The addresses that the person must open first."""
    asked = data.get("elicitations") if isinstance(data, dict) else None
    urls = [item["url"] for item in asked or () if isinstance(item, dict) and isinstance(item.get("url"), str)]
    return f"{message}: a person must first open {', '.join(urls[:3])}" if urls else message
