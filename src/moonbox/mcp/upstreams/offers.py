"""What servers offer besides tools: prompts, resources and templates, under names that are unique among all servers.

prompt       <prefix>__<name>, or <name> if the server's prefix is empty
resource     its own address; moonbox://servers/<server>/<address> if an earlier server has the same address, or
             if it looks like an address of ours
template     likewise
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import mcp_types as types
from mcp import MCPError
from mcp.shared.uri_template import UriTemplate
from pydantic import TypeAdapter

from moonbox.codemode.definitions import portable_value
from moonbox.errors import ToolError
from moonbox.suggest import unknown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcp import ClientSession

    from moonbox.config.mcp import ServerSettings
    from moonbox.mcp.upstreams.upstream import Upstream

NAMESPACE = "moonbox://servers/"
MAX_OFFERS = 2_000
"""Of each kind, from one server."""
_MAX_PAGES = 100


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
        return [_renamed(item, **{_KEYS[kind]: name}) for name, (_, item) in self._offers[kind].items()]

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


def _renamed(item: Any, **update: str) -> Any:
    copy = item.model_copy(update=update).model_dump(mode="json", by_alias=True, exclude_none=True)
    return type(item).model_validate(portable_value(copy), by_name=False)


async def list_offers(session: ClientSession) -> Offers:
    """Every prompt, resource and template that a server has now."""
    capabilities = session.server_capabilities
    prompts: list[Any] = []
    resources: list[Any] = []
    templates: list[Any] = []
    if capabilities is not None and capabilities.prompts is not None:
        prompts = await all_pages(session.list_prompts, "prompts")
    if capabilities is not None and capabilities.resources is not None:
        resources = await all_pages(session.list_resources, "resources")
        with contextlib.suppress(MCPError):  # many servers have no templates, and say so by an error
            templates = await all_pages(session.list_resource_templates, "resource_templates")
    return Offers(tuple(prompts[:MAX_OFFERS]), tuple(resources[:MAX_OFFERS]), tuple(templates[:MAX_OFFERS]))


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
