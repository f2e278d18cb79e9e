"""What servers offer besides tools: prompts, resources and templates, under names that are unique among all servers.

prompt       <prefix>__<name>, or <name> if the server's prefix is empty
resource     its own address; moonbox://servers/<server>/<address> if an earlier server has the same address, or
             if it looks like an address of ours
template     likewise
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp import MCPError
from mcp.shared.uri_template import UriTemplate
from pydantic import TypeAdapter

from moonbox.codemode.definitions import portable_value

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from mcp import ClientSession

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


@dataclass(frozen=True, slots=True)
class Directory:
    """All offers under their public names, and which server each belongs to."""

    prompts: Mapping[str, tuple[Upstream, types.Prompt]] = field(default_factory=dict)
    resources: Mapping[str, tuple[Upstream, types.Resource]] = field(default_factory=dict)
    templates: Mapping[str, tuple[Upstream, types.ResourceTemplate]] = field(default_factory=dict)

    @classmethod
    def of(cls, upstreams: Iterable[Upstream]) -> Directory:
        prompts: dict[str, tuple[Upstream, types.Prompt]] = {}
        resources: dict[str, tuple[Upstream, types.Resource]] = {}
        templates: dict[str, tuple[Upstream, types.ResourceTemplate]] = {}
        for upstream in upstreams:
            settings = upstream.settings
            if settings.prompts:
                for prompt in upstream.catalog.offers.prompts:
                    name = f"{settings.namespace}__{prompt.name}" if settings.namespace else prompt.name
                    prompts.setdefault(name, (upstream, prompt))
            if settings.resources:
                for resource in upstream.catalog.offers.resources:
                    resources.setdefault(_public(str(resource.uri), settings.name, resources), (upstream, resource))
                for template in upstream.catalog.offers.templates:
                    templates.setdefault(_public(template.uri_template, settings.name, templates), (upstream, template))
        return cls(prompts, resources, templates)

    def listed_prompts(self) -> list[types.Prompt]:
        return [_renamed(prompt, name=name) for name, (_, prompt) in self.prompts.items()]

    def listed_resources(self) -> list[types.Resource]:
        return [_renamed(resource, uri=uri) for uri, (_, resource) in self.resources.items()]

    def listed_templates(self) -> list[types.ResourceTemplate]:
        return [_renamed(item, uri_template=pattern) for pattern, (_, item) in self.templates.items()]

    def find_resource(self, uri: str, upstreams: Mapping[str, Upstream]) -> tuple[Upstream, str] | None:
        """The server that a public address belongs to, and the server's own address for it."""
        if uri.startswith(NAMESPACE):
            server, _, inner = uri.removeprefix(NAMESPACE).partition("/")
            upstream = upstreams.get(server)
            return None if upstream is None or not inner or not upstream.settings.resources else (upstream, inner)
        if _is_ours(uri):
            return None  # no server learns which runs and media clients look for
        if uri in self.resources:
            upstream, resource = self.resources[uri]
            return upstream, str(resource.uri)
        for pattern, (upstream, _) in self.templates.items():
            if _matches(pattern, uri):
                return upstream, uri
        # Servers may have resources that they do not list: with only one such server there is no doubt.
        able = [item for item in upstreams.values() if item.settings.resources and item.catalog.has_resources]
        return (able[0], uri) if len(able) == 1 else None

    def find_template(self, pattern: str, upstreams: Mapping[str, Upstream]) -> tuple[Upstream, str] | None:
        if pattern in self.templates:
            upstream, template = self.templates[pattern]
            return upstream, template.uri_template
        return self.find_resource(pattern, upstreams)


def _is_ours(uri: str) -> bool:
    return uri.lower().startswith("moonbox:")


def _public(uri: str, server: str, taken: Mapping[str, Any]) -> str:
    return f"{NAMESPACE}{server}/{uri}" if uri in taken or _is_ours(uri) else uri


def _matches(pattern: str, uri: str) -> bool:
    try:
        return UriTemplate.parse(pattern).match(uri) is not None
    except ValueError:
        return False


def _renamed(item: Any, **update: str) -> Any:
    """A copy under its public name, in which every text can be written as JSON."""
    copy = item.model_copy(update=update).model_dump(mode="json", by_alias=True, exclude_none=True)
    return type(item).model_validate(portable_value(copy), by_name=False)


async def list_offers(session: ClientSession) -> Offers:
    """Every prompt, resource and template that a server has now."""
    capabilities = session.server_capabilities
    if capabilities is None:
        return Offers()
    prompts: list[Any] = []
    resources: list[Any] = []
    templates: list[Any] = []
    if capabilities.prompts is not None:
        prompts = await all_pages(session.list_prompts, "prompts")
    if capabilities.resources is not None:
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
