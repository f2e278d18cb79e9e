"""Resources: a client's own runs, media that its tools returned, and the state of the servers."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from typing import TYPE_CHECKING

from mcp import MCPError
from mcp_types import (
    INVALID_PARAMS,
    BlobResourceContents,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from moonbox.audit.query import RunSummary
from moonbox.audit.sinks import MemorySink
from moonbox.errors import AuditError, UsageError
from moonbox.mcp.media import PREFIX as MEDIA
from moonbox.wording import counted

if TYPE_CHECKING:
    from moonbox.audit.records import Run
    from moonbox.audit.sinks import Trail
    from moonbox.mcp.media import Media
    from moonbox.mcp.server.peer import Peer
    from moonbox.mcp.upstreams.manager import Upstreams

__all__ = ["RUNS", "SERVERS", "Resources"]

RUNS = "moonbox://runs/"
SERVERS = "moonbox://servers"
_LISTED, _REMEMBERED, _MOST_OWNERS = 50, 500, 1_000
_JSON = "application/json"


class Resources:
    """Each client sees its own runs alone. They are read from the trail where there is one, else kept for a while."""

    def __init__(self, *, trail: Trail | None, media: Media, upstreams: Upstreams | None) -> None:
        self._kept = MemorySink(_REMEMBERED) if trail is None else None
        self._trail: Trail = self._kept if self._kept is not None else trail  # type: ignore[assignment]  # one of them is
        self._media = media
        self._upstreams = upstreams
        self._runs: OrderedDict[str, OrderedDict[str, RunSummary]] = OrderedDict()

    def note(self, owner: str, run: Run) -> None:
        """Remember whose run it was."""
        mine = self._runs.setdefault(owner, OrderedDict())
        self._runs.move_to_end(owner)
        mine[run.id] = RunSummary.of(run)
        if self._kept is not None:
            self._kept.write(run)
        if len(mine) > _REMEMBERED:
            mine.popitem(last=False)
        if len(self._runs) > _MOST_OWNERS:
            self._runs.popitem(last=False)

    def list(self, peer: Peer) -> ListResourcesResult:
        runs = [_run_resource(summary) for summary in reversed(self._runs.get(peer.owner, {}).values())]
        servers = [
            Resource(
                uri=SERVERS,
                name="servers",
                mime_type=_JSON,
                description="The MCP servers behind moonbox.",
            )
        ]
        return ListResourcesResult(resources=[*(servers if self._upstreams else ()), *runs[:_LISTED]])

    @staticmethod
    def templates() -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(
            resource_templates=[
                ResourceTemplate(
                    uri_template=RUNS + "{id}",
                    name="run",
                    mime_type=_JSON,
                    description="The record of a run: script, value, output, calls, usage, error.",
                ),
                ResourceTemplate(
                    uri_template=MEDIA + "{id}",
                    name="media",
                    description="An image, sound or file from a tool.",
                ),
            ]
        )

    async def read(self, peer: Peer, uri: str) -> ReadResourceResult:
        if uri == SERVERS and self._upstreams is not None:
            states = [status.to_dict() for status in self._upstreams.statuses()]
            for state in states:
                state.pop("said")  # what a process wrote is for whoever runs the server
            text = json.dumps({"servers": states})
            return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=_JSON, text=text)])
        if uri.startswith(MEDIA) and (medium := self._media.get(uri)) is not None:
            blob = BlobResourceContents(uri=uri, mime_type=medium.mime_type, blob=medium.data)
            return ReadResourceResult(contents=[blob])
        if uri.startswith(RUNS) and (run := uri.removeprefix(RUNS)) in self._runs.get(peer.owner, {}):
            try:
                found = await asyncio.to_thread(self._trail.get, run)
            except (UsageError, AuditError):
                found = None
            if found is not None:
                contents = TextResourceContents(uri=uri, mime_type=_JSON, text=found.to_json())
                return ReadResourceResult(contents=[contents])
        raise MCPError(INVALID_PARAMS, f"there is no resource {uri[:200]}", {"uri": uri[:200]})


def _run_resource(summary: RunSummary) -> Resource:
    ended = "ok" if summary.ok else f"failed ({summary.kind})"
    return Resource(
        uri=RUNS + summary.id,
        name=f"run {summary.id[:8]}",
        title=summary.title or None,
        mime_type=_JSON,
        description=f"{ended}, {counted(summary.calls, 'call')}, {summary.wall:.3f} s",
    )
