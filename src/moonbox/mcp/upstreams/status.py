"""How an upstream server is: its status, as a value that any thread may read, and what its errors mean.

What the SDK and the network raise is translated here, once for scripts and people.
"""

from __future__ import annotations

import re
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import httpx2
import mcp_types as types
from mcp import MCPError
from mcp.client.auth import OAuthFlowError

from moonbox.errors import ArgumentError, ToolError, UsageError
from moonbox.mcp.upstreams.login import Login, LoginRequired
from moonbox.tools.results import code_of_status, scrub
from moonbox.wording import visible

if TYPE_CHECKING:
    from moonbox.mcp.upstreams.transport import Transport


_MAX_ICON, _MAX_ICONS = 16_384, 8
State = Literal["off", "idle", "starting", "ready", "retrying", "failed", "closed"]


@dataclass(frozen=True, slots=True)
class Status:
    """How one server is.

    off        disabled in the configuration
    idle       lazy, and not called yet or not for a while
    starting   being started or connected to
    ready      connected
    retrying   lost or not reached; the next start is due after a while
    failed     given up after several starts; a call tries once more
    closed     ended together with moonbox
    """

    name: str
    state: State
    where: str = ""
    reason: str = ""
    """Why it is not ready."""
    tools: int = 0
    cached: bool = False
    """Whether its tools are those of an earlier start, because it has not listed them yet."""
    problems: tuple[str, ...] = ()
    """What is wrong with its tools."""
    protocol: str = ""
    server: str = ""
    icons: tuple[dict[str, Any], ...] = ()
    """Its icons, as it sent them."""
    seconds: float | None = None
    """How long the latest start took."""
    attempts: int = 0
    """Starts that failed since it was last ready."""
    retry_at: float | None = None
    """When the next start is due, on the monotonic clock."""
    restarts: int = 0
    login: Login | None = None
    """The login at the server, if it has one."""
    said: str = ""
    """The end of what the process wrote to its standard error."""

    def why(self) -> str:
        """One sentence for a caller."""
        server = f"the MCP server '{self.name}'"
        match self.state:
            case "retrying":
                return f"{server} is not available: {self.reason}; next attempt in {self._retry_in():.0f} s"
            case "failed" if not self.attempts:
                return f"{server} is not available: {self.reason}"
            case "failed":
                return f"{server} is not available after {self.attempts} attempts: {self.reason}; trying once more now"
        others = {"starting": "is still starting", "off": "is disabled", "closed": "was closed"}
        return f"{server} {others.get(self.state, f'is {self.state}')}"

    def to_dict(self) -> dict[str, Any]:
        data = asdict(self) | {"problems": list(self.problems), "icons": list(self.icons)}
        retry_at = data.pop("retry_at")
        return data | {"retry_in": None if retry_at is None else round(self._retry_in(), 1)}

    def _retry_in(self) -> float:
        return max(0.0, (self.retry_at or 0.0) - time.monotonic())


def server_icons(info: types.Implementation | None) -> tuple[dict[str, Any], ...]:
    """The icons of a server, without those that are too large to show beside its name."""
    icons = [] if info is None else info.icons or []
    small = [icon for icon in icons if len(icon.src) <= _MAX_ICON][:_MAX_ICONS]
    return tuple(icon.model_dump(mode="json", by_alias=True, exclude_none=True) for icon in small)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long a supervisor waits, in seconds."""

    head_start: float = 0.25
    """Before the start of a server whose tools are known, unless it is called."""
    first_delay: float = 0.5
    """Before the second start; doubled for each further one."""
    max_delay: float = 30.0
    worth_waiting: float = 2.0
    """A call waits for a start that is due this soon, instead of failing at once."""
    health_check: float = 5.0
    """For an answer after a call timed out; without one the server is restarted."""


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
