"""The resources of the server: a client's own runs, media that tools returned, and the status of the upstreams."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import OrderedDict
from typing import TYPE_CHECKING

from mcp_types import (
    BlobResourceContents,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from moonbox.audit.query import RunSummary
from moonbox.audit.sinks import MemorySink
from moonbox.errors import AuditError, UsageError
from moonbox.media import PREFIX as MEDIA
from moonbox.wording import counted

if TYPE_CHECKING:
    from moonbox.audit.records import Run
    from moonbox.audit.sinks import Trail
    from moonbox.mcp.server.sessions import Client
    from moonbox.mcp.upstreams.manager import Upstreams
    from moonbox.media import MediaStore

__all__ = ["RUNS", "SERVERS", "Resources"]

RUNS = "moonbox://runs/"
SERVERS = "moonbox://servers"
_LISTED, _REMEMBERED, _MOST_OWNERS = 50, 500, 1_000
_JSON = "application/json"


class Resources:
    """Each client sees only its own runs, read from the trail if there is one, otherwise from memory."""

    def __init__(self, *, trail: Trail | None, media: MediaStore, upstreams: Upstreams | None) -> None:
        self._memory: MemorySink | None = None
        if trail is None:
            trail = self._memory = MemorySink(_REMEMBERED)
        self._trail: Trail = trail
        self._media = media
        self._upstreams = upstreams
        self._runs: OrderedDict[str, OrderedDict[str, RunSummary]] = OrderedDict()

    def add_run(self, owner: str, run: Run) -> None:
        """Remember the owner of a run."""
        runs = self._runs.setdefault(owner, OrderedDict())
        self._runs.move_to_end(owner)
        runs[run.id] = RunSummary.of(run)
        if self._memory is not None:
            self._memory.write(run)
        if len(runs) > _REMEMBERED:
            runs.popitem(last=False)
        if len(self._runs) > _MOST_OWNERS:
            self._runs.popitem(last=False)

    def list_own(self, client: Client) -> list[Resource]:
        runs = [_run_resource(summary) for summary in reversed(self._runs.get(client.owner, {}).values())]
        servers = [
            Resource(
                uri=SERVERS,
                name="servers",
                mime_type=_JSON,
                description="The MCP servers behind moonbox.",
            )
        ]
        return [*(servers if self._upstreams else ()), *runs[:_LISTED]]

    @staticmethod
    def own_templates() -> list[ResourceTemplate]:
        return [
            ResourceTemplate(
                uri_template=RUNS + "{id}",
                name="run",
                mime_type=_JSON,
                description="The record of a run: script, value, output, calls, usage, error.",
            ),
            ResourceTemplate(
                uri_template=MEDIA + "{id}",
                name="media",
                description="An image, audio clip or file that a tool returned.",
            ),
        ]

    async def read_own(self, client: Client, uri: str) -> ReadResourceResult | None:
        """A resource of ours; None if it is not one."""
        if uri == SERVERS and self._upstreams is not None:
            states = [status.to_dict() for status in self._upstreams.statuses()]
            for state in states:
                state.pop("said")  # what a process wrote is only for whoever runs moonbox
            text = json.dumps({"servers": states})
            return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=_JSON, text=text)])
        if uri.startswith(MEDIA) and (medium := self._media.get(uri)) is not None:
            blob = BlobResourceContents(uri=uri, mime_type=medium.type, blob=medium.base64)
            return ReadResourceResult(contents=[blob])
        if uri.startswith(RUNS) and (run := uri.removeprefix(RUNS)) in self._runs.get(client.owner, {}):
            with contextlib.suppress(UsageError, AuditError):
                record = await asyncio.to_thread(self._trail.get, run)
                contents = TextResourceContents(uri=uri, mime_type=_JSON, text=record.to_json())
                return ReadResourceResult(contents=[contents])
        return None


def _run_resource(summary: RunSummary) -> Resource:
    ended = "ok" if summary.ok else f"failed ({summary.kind})"
    return Resource(
        uri=RUNS + summary.id,
        name=f"run {summary.id[:8]}",
        title=summary.title or None,
        mime_type=_JSON,
        description=f"{ended}, {counted(summary.calls, 'call')}, {summary.wall:.3f} s",
    )
