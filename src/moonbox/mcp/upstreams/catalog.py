"""What one server offers: its tools, prompts and resources, as they were last time and as they are now."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any

from moonbox.mcp.upstreams.errors import describe
from moonbox.mcp.upstreams.offers import EMPTY, Offers
from moonbox.mcp.upstreams.tools import convert_tools, placeholder
from moonbox.threads import unbroken
from moonbox.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import mcp_types as types

    from moonbox.config.mcp import ServerSettings
    from moonbox.mcp.upstreams.connection import Connection
    from moonbox.mcp.upstreams.tools import ConvertedTools, ToolCache

log = logging.getLogger("moonbox.mcp")


class RelistDelay:
    """How long to wait after a change before the tools are listed again; it doubles while the changes do not stop."""

    first, longest = 0.1, 10.0

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seconds = self.first
        self._listed_at = clock()

    def next(self) -> float:
        """The seconds to wait now."""
        soon = self._clock() - self._listed_at < 2 * self._seconds
        self._seconds = min(self.longest, self._seconds * 2) if soon else self.first
        return self._seconds

    def listed(self) -> None:
        """The tools are being listed again."""
        self._listed_at = self._clock()


class ServerCatalog:
    """Kept up to date over a connection. `toolbox` may be read by any thread; all else belongs to the event loop.

    invoke           calls one of the tools
    published        called with the converted tools, and whether they are those of an earlier start
    offers_changed   called when prompts or resources have changed
    """

    def __init__(
        self,
        settings: ServerSettings,
        cache: ToolCache | None,
        *,
        invoke: Callable[[types.Tool, dict[str, Any]], Awaitable[Any]],
        published: Callable[[ConvertedTools, bool], None],
        offers_changed: Callable[[], None],
    ) -> None:
        self.toolbox = Toolbox()
        self.offers: Offers = EMPTY
        """Its prompts, resources and templates, as far as they are known."""
        self.offers_known = asyncio.Event()
        """Set when its offers are listed, or cannot be listed now."""
        self.has_resources = False
        self._settings = settings
        self._cache = cache
        self._invoke = invoke
        self._published = published
        self._offers_changed = offers_changed
        self._listed: list[types.Tool] | None = None

    @property
    def known(self) -> bool:
        """Whether its tools were listed, now or at an earlier start."""
        return self._listed is not None

    def load_cached(self) -> bool:
        """Offer what an earlier start offered until the server has listed its own; whether that is known."""
        kept = None if self._cache is None else self._cache.get(self._settings)
        if kept is None:
            return False
        listed, offers = kept
        self._publish(listed, cached=True)
        self._take_offers(offers)
        return True

    async def take(self, listed: list[types.Tool]) -> None:
        """The server has listed its tools."""
        self._publish(listed)
        await self._save()

    def offer_placeholder(self, *, login: bool) -> None:
        """Show that the server exists, if its tools were never listed; `login`: because nobody has logged in there."""
        if self._listed is not None or len(self.toolbox):
            return
        if self._settings.problem:
            description = f"This MCP server is configured, but cannot be used: {self._settings.problem}"
        elif login:
            description = "This MCP server requires a login. Call this tool to log in; then its tools are here."
        else:
            description = "This MCP server is configured, but could not be reached yet. Call this tool to see why."
        instead = placeholder(self._invoke, description)
        self.toolbox.set_namespace(self._settings.namespace or self._settings.name, [instead])

    def _publish(self, listed: list[types.Tool], *, cached: bool = False) -> None:
        self._listed = listed
        converted = convert_tools(listed, self._settings, self._invoke)
        if not self._settings.namespace:
            self.toolbox.set_namespace(self._settings.name, ())  # where the placeholder was
        self.toolbox.set_namespace(self._settings.namespace or None, converted.tools)
        self._published(converted, cached)

    async def _save(self) -> None:
        if self._cache is not None:
            await unbroken(self._cache.put, self._settings, self._listed or [], self.offers)

    def _take_offers(self, offers: Offers) -> None:
        changed, self.offers = offers != self.offers, offers
        self.offers_known.set()
        if changed:
            self._offers_changed()

    async def follow(self, connection: Connection) -> None:
        """List prompts and resources now, and everything again after changes, while the connection lasts.

        Less and less often if the server never stops to say that something has changed.
        """
        delay, again = RelistDelay(), connection.changed.is_set()
        while True:
            connection.changed.clear()
            delay.listed()
            try:
                async with asyncio.timeout(self._settings.start_timeout):
                    if again and (listed := await connection.tools()) != self._listed:
                        self._publish(listed)
                    offers = await connection.offers()
                capabilities = connection.session.server_capabilities
                self.has_resources = capabilities is not None and capabilities.resources is not None
                self._take_offers(offers)
                await self._save()
            except Exception as problem:  # noqa: BLE001 - the old list stays; a lost connection is noticed elsewhere
                reason = describe(problem)
                log.warning("the MCP server '%s' failed to list what it offers: %s", self._settings.name, reason)
                self.offers_known.set()
            await connection.changed.wait()
            await asyncio.sleep(delay.next())
            again = True
