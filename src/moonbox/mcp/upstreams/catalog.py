"""What servers offer besides tools: prompts, resources and templates, under names that are unique among all servers.

prompt       <prefix>__<name>, or <name> if the server's prefix is empty
resource     its own address; moonbox://servers/<server>/<address> if an earlier server has the same address, or
             if it looks like an address of ours
template     likewise
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import mcp_types as types
from mcp import MCPError
from mcp.shared.uri_template import UriTemplate
from pydantic import BaseModel, TypeAdapter

from moonbox.audit.sinks import default_path
from moonbox.codemode.definitions import portable_value
from moonbox.errors import ToolError
from moonbox.mcp.upstreams.login import Records, record_name
from moonbox.mcp.upstreams.status import describe
from moonbox.mcp.upstreams.tools import convert_tools, placeholder
from moonbox.suggest import unknown
from moonbox.threads import unbroken
from moonbox.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from moonbox.config.mcp import ServerSettings
    from moonbox.mcp.upstreams.connection import Connection
    from moonbox.mcp.upstreams.upstream import Upstream


T = TypeVar("T", bound=BaseModel)

NAMESPACE = "moonbox://servers/"
MAX_OFFERS = 2_000
"""Of each kind, from one server."""
_MAX_PAGES = 100
_MAX_CACHED_BYTES = 8_000_000
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 10.0


@dataclass(frozen=True, slots=True)
class Offers:
    """The prompts, resources and templates of one server."""

    prompts: tuple[types.Prompt, ...] = ()
    resources: tuple[types.Resource, ...] = ()
    templates: tuple[types.ResourceTemplate, ...] = ()

    def to_json(self) -> Any:
        return TypeAdapter(Offers).dump_python(self, mode="json", by_alias=True, exclude_none=True)

    @classmethod
    def from_json(cls, data: Any) -> Offers:
        return TypeAdapter(Offers).validate_python(data, by_name=False)


EMPTY = Offers()


Kind = Literal["prompts", "resources", "templates"]
_KEYS: dict[Kind, str] = {"prompts": "name", "resources": "uri", "templates": "uri_template"}
"""Each kind of offer, and the field that names one."""


class Directory:
    """All offers under their public names, and which server each belongs to."""

    def __init__(self, upstreams: Mapping[str, Upstream]) -> None:
        self._upstreams = upstreams
        self._offers: dict[Kind, dict[str, tuple[Upstream, Any]]] = {kind: {} for kind in _KEYS}
        for upstream in upstreams.values():
            for kind, entries in self._offers.items():
                is_shown = upstream.settings.prompts if kind == "prompts" else upstream.settings.resources
                for item in getattr(upstream.catalog.offers, kind) if is_shown else ():
                    own = str(getattr(item, _KEYS[kind]))
                    entries.setdefault(_public_name(kind, own, upstream.settings, entries), (upstream, item))

    def listed(self, kind: Kind) -> list[Any]:
        """Copies under their public names, in which every text can be written as JSON."""
        return [portable_copy(item, **{_KEYS[kind]: name}) for name, (_, item) in self._offers[kind].items()]

    def find(self, kind: Kind, name: str, *, granted: bool = False) -> tuple[Upstream, str]:
        """The server that an offer belongs to, and its name or address there; ToolError if there is none.

        `granted`: only if scripts may have it.
        """
        upstream, item = self._offers[kind].get(name, (None, None))
        found = (upstream, str(getattr(item, _KEYS[kind]))) if upstream is not None else None
        if found is None and kind != "prompts":
            found = self._find_unlisted(name)
        if found is None or (granted and kind not in found[0].settings.scripts):
            code = "unknown_prompt" if kind == "prompts" else "unknown_resource"
            raise ToolError(unknown(kind.removesuffix("s"), name[:200], list(self._offers[kind])), code=code)
        return found

    def _find_unlisted(self, uri: str) -> tuple[Upstream, str] | None:
        if uri.startswith(NAMESPACE):
            server, _, inner = uri.removeprefix(NAMESPACE).partition("/")
            named = self._upstreams.get(server)
            return None if named is None or not inner or not named.settings.resources else (named, inner)
        if _is_ours(uri):
            return None  # no server learns which runs and media clients look for
        for pattern, (upstream, _) in self._offers["templates"].items():
            if _matches(pattern, uri):
                return upstream, uri
        # Servers may have resources that they do not list: with only one such server there is no doubt.
        able = [item for item in self._upstreams.values() if item.settings.resources and item.catalog.has_resources]
        return (able[0], uri) if len(able) == 1 else None


def _public_name(kind: Kind, name: str, settings: ServerSettings, taken: Mapping[str, Any]) -> str:
    if kind == "prompts":
        return f"{settings.namespace}__{name}" if settings.namespace else name
    return f"{NAMESPACE}{settings.name}/{name}" if name in taken or _is_ours(name) else name


def _is_ours(uri: str) -> bool:
    return uri.lower().startswith("moonbox:")


def _matches(pattern: str, uri: str) -> bool:
    try:
        return UriTemplate.parse(pattern).match(uri) is not None
    except ValueError:
        return False


def portable_copy(item: T, **update: Any) -> T:
    """The same with some other parts, in which every text can be written as JSON."""
    copy = item.model_copy(update=update).model_dump(mode="json", by_alias=True, exclude_none=True)
    return type(item).model_validate(portable_value(copy), by_name=False)


async def list_offers(connection: Connection) -> Offers:
    """Every prompt, resource and template that a server has now."""
    session, found = connection.session, {}
    if connection.capabilities.prompts is not None:
        found["prompts"] = await all_pages(session.list_prompts, "prompts")
    if connection.capabilities.resources is not None:
        found["resources"] = await all_pages(session.list_resources, "resources")
        with contextlib.suppress(MCPError):  # many servers have no templates, and say so by an error
            found["templates"] = await all_pages(session.list_resource_templates, "resource_templates")
    return Offers(**{kind: tuple(items[:MAX_OFFERS]) for kind, items in found.items()})


async def all_pages(list_page: Callable[..., Awaitable[Any]], name: str, most: int = MAX_OFFERS) -> list[Any]:
    """Everything on all pages of a list; a little more than `most` if there are more."""
    items: list[Any] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await list_page(params=types.PaginatedRequestParams(cursor=cursor))
        items += getattr(page, name)
        cursor = page.next_cursor
        if cursor is None or len(items) > most:
            break
    return items


log = logging.getLogger("moonbox.mcp")


def relist_delay(before: float, quiet: float) -> float:
    """How long to wait after a change before the tools are listed again; it doubles while the changes do not stop.

    `before` is the last such delay, `quiet` the time since the tools were listed.
    """
    return min(_LONGEST_DELAY, before * 2) if quiet < 2 * before else _FIRST_DELAY


@dataclass(eq=False)
class ServerCatalog:
    """Kept up to date over a connection. `toolbox` may be read by any thread; all else belongs to the event loop."""

    _upstream: Upstream
    toolbox: Toolbox = field(default_factory=Toolbox)
    offers: Offers = EMPTY
    """Its prompts, resources and templates, as far as they are known."""
    has_resources: bool = False
    _listed: list[types.Tool] | None = None

    def __post_init__(self) -> None:
        self._settings = self._upstream.settings
        self._cache = None if self._upstream.spare else self._upstream.servers.cache

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
        instead = placeholder(self._upstream.invoke, description)
        self.toolbox.set_namespace(self._settings.namespace or self._settings.name, [instead])

    def _publish(self, listed: list[types.Tool], *, cached: bool = False) -> None:
        self._listed = listed
        tools, problems = convert_tools(listed, self._settings, self._upstream.invoke)
        if not self._settings.namespace:
            self.toolbox.set_namespace(self._settings.name, ())  # where the placeholder was
        self.toolbox.set_namespace(self._settings.namespace or None, tools)
        self._upstream.note_tools(len(tools), problems, cached=cached)

    async def _save(self) -> None:
        if self._cache is not None:
            await unbroken(self._cache.put, self._settings, self._listed or [], self.offers)

    def _take_offers(self, offers: Offers) -> None:
        changed, self.offers = offers != self.offers, offers
        self._upstream.reached["offers"].set()
        if changed and not self._upstream.spare:
            self._upstream.servers.offers_changed()

    async def follow(self, connection: Connection) -> None:
        """List prompts and resources now, and everything again after changes, while the connection lasts.

        Less and less often if the server never stops to say that something has changed.
        """
        delay, again = _FIRST_DELAY, connection.changed.is_set()
        while True:
            connection.changed.clear()
            listed_at = time.monotonic()
            try:
                async with asyncio.timeout(self._settings.start_timeout):
                    if again and (listed := await connection.tools()) != self._listed:
                        self._publish(listed)
                    offers = await list_offers(connection)
                self.has_resources = connection.capabilities.resources is not None
                self._take_offers(offers)
                await self._save()
            except Exception as problem:  # noqa: BLE001 - the old list stays; a lost connection is noticed elsewhere
                reason = describe(problem)
                log.warning("the MCP server '%s' failed to list what it offers: %s", self._settings.name, reason)
                self._upstream.reached["offers"].set()
            await connection.changed.wait()
            delay = relist_delay(delay, time.monotonic() - listed_at)
            await asyncio.sleep(delay)
            again = True


def default_cache_folder() -> Path:
    """$MOONBOX_HOME/mcp-tools, or a folder in the user's cache."""
    if os.environ.get("MOONBOX_HOME"):
        return default_path().parent / "mcp-tools"
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if Path(given).is_absolute() else Path.home() / ".cache"
    return base / "moonbox" / "mcp-tools"


class ToolCache:
    """What servers offered last time, so that the catalog is complete before the servers are up.

    Losing it costs nothing but time.
    """

    def __init__(self, folder: Path) -> None:
        self._records = Records(folder, _MAX_CACHED_BYTES)

    def get(self, settings: ServerSettings) -> tuple[list[types.Tool], Offers] | None:
        """The tools, and the prompts and resources, that the server had last time; None if they are not known."""
        data = self._records.read(_cache_name(settings))
        try:
            tools = [types.Tool.model_validate(item, by_name=False) for item in data["tools"]]
            return tools, Offers.from_json(data)
        except (ValueError, KeyError, TypeError):
            return None

    def put(self, settings: ServerSettings, tools: Sequence[types.Tool], offers: Offers = EMPTY) -> None:
        listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
        data = {"server": settings.name, "tools": listed, **offers.to_json()}
        name = _cache_name(settings)
        with contextlib.suppress(OSError):
            if self._records.read(name) != data:
                self._records.write(name, data)


def _cache_name(settings: ServerSettings) -> str:
    """By how the server is reached; of variables and headers, which may be secret, only the names count."""
    how = settings.name, settings.command, list(settings.args), settings.url, str(settings.cwd)
    return record_name(*how, sorted(settings.env), sorted(settings.headers))
