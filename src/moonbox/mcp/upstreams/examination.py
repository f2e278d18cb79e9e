"""Examination of one server: what it can do, how fast it answers, and the problems of its tools."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from moonbox.mcp.upstreams.callbacks import Callbacks, ClientFeatures
from moonbox.mcp.upstreams.connection import connect, make_transport
from moonbox.mcp.upstreams.errors import ConnectionLost, start_failure
from moonbox.mcp.upstreams.login import LoginRequired
from moonbox.mcp.upstreams.tools import convert_tools

if TYPE_CHECKING:
    import httpx2

    from moonbox.config.mcp import ServerSettings
    from moonbox.mcp.upstreams.connection import Transport

__all__ = ["examine"]

_LISTS = 5


async def examine(settings: ServerSettings, auth: httpx2.Auth | None = None) -> dict[str, Any]:
    """Start or reach it, list everything, and report; raises ConnectionLost with the reason where that fails."""
    transport = make_transport(settings, auth)
    try:
        async with asyncio.timeout(settings.start_timeout):
            return await _examined(transport, settings)
    except LoginRequired:
        raise
    except Exception as problem:
        raise ConnectionLost(start_failure(problem, transport, settings.start_timeout)) from problem


async def _examined(transport: Transport, settings: ServerSettings) -> dict[str, Any]:
    async def never(*_: Any) -> Any:
        raise AssertionError

    began = time.monotonic()
    async with connect(transport, ClientFeatures(), Callbacks(settings.name).answer) as connection:
        started = time.monotonic() - began
        began = time.monotonic()
        tools = await connection.tools()
        listed = time.monotonic() - began
        times = []
        for _ in range(_LISTS):
            began = time.monotonic()
            await connection.tools()
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
            "seconds": {"start": started, "first_list": listed, "list": sorted(times)[_LISTS // 2]},
            "lists": _LISTS,
            "problems": problems,
        }
