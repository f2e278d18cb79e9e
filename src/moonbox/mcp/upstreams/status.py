"""The status of an upstream server, as a value that any thread may read, and a test of what the server can do."""

from __future__ import annotations

import asyncio
import statistics
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from moonbox.mcp.upstreams.callbacks import Callbacks, ClientFeatures
from moonbox.mcp.upstreams.connection import connect, make_transport
from moonbox.mcp.upstreams.errors import ConnectionLost, start_failure
from moonbox.mcp.upstreams.login import LoginRequired
from moonbox.mcp.upstreams.tools import convert_tools

if TYPE_CHECKING:
    import httpx2
    import mcp_types as types

    from moonbox.config.mcp import ServerSettings
    from moonbox.mcp.upstreams.connection import Connection
    from moonbox.mcp.upstreams.login import Login

_MAX_ICON, _MAX_ICONS = 16_384, 8
State = Literal["off", "idle", "starting", "ready", "retrying", "failed", "closed"]
_LISTS = 5


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
    """What the server calls itself."""
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


async def examine(settings: ServerSettings, auth: httpx2.Auth | None = None) -> dict[str, Any]:
    """Start or reach it, list everything, and report; raises ConnectionLost with the reason where that fails."""
    transport = make_transport(settings, auth)
    try:
        async with asyncio.timeout(settings.start_timeout):
            began = time.monotonic()
            async with connect(transport, ClientFeatures(), Callbacks(settings.name).answer) as connection:
                return await _report(connection, settings, time.monotonic() - began)
    except LoginRequired:
        raise
    except Exception as problem:
        raise ConnectionLost(start_failure(problem, transport, settings.start_timeout)) from problem


async def _report(connection: Connection, settings: ServerSettings, started: float) -> dict[str, Any]:
    async def never(*_: Any) -> Any:
        raise AssertionError

    times: list[float] = []
    tools: list[types.Tool] = []
    for _ in range(1 + _LISTS):
        began = time.monotonic()
        tools = await connection.tools()
        times.append(time.monotonic() - began)
    offers = await connection.offers()
    capabilities = connection.session.server_capabilities
    declared = {} if capabilities is None else capabilities.model_dump(exclude_none=True, by_alias=True)
    problems = list(convert_tools(tools, settings, never).problems)
    problems += [f"the tool '{tool.name}' has no description" for tool in tools if not tool.description]
    return {
        "name": settings.name,
        "server": connection.server,
        "protocol": connection.protocol,
        "capabilities": sorted(declared),
        "tools": len(tools),
        "annotated": sum(tool.annotations is not None for tool in tools),
        "with_result_schema": sum(tool.output_schema is not None for tool in tools),
        "prompts": len(offers.prompts),
        "resources": len(offers.resources),
        "templates": len(offers.templates),
        "seconds": {"start": started, "first_list": times[0], "list": statistics.median(times[1:])},
        "lists": _LISTS,
        "problems": problems,
    }
