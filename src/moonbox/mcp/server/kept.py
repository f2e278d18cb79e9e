"""Kept results: work that goes on without a request, and what came of it, for its owner and for a limited time."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import mcp_types as types

    from moonbox.mcp.server.call import Call
    from moonbox.mcp.server.sessions import Client

MOST_KEPT = 64
"""Of one client, in all of its sessions; the oldest that have ended are forgotten first."""
_MOST_CHARACTERS = 32 * 1024 * 1024
"""Of the results that are kept for one client; the last one is kept in any case."""


@dataclass(slots=True, eq=False)
class Kept:
    """One piece of work."""

    id: str
    owner: str
    client: str
    share: str
    created: float
    updated: float
    work: asyncio.Task[Any]
    seconds: float | None
    """How long it is kept, from its start; it is stopped then. None: as long as it runs, and some time from its end."""
    call: Call | None
    """The script in the background; None for a task."""
    cancelled: bool = False
    size: int = 0
    """Of its result."""


class KeptResults:
    """The work of all clients. `seconds` is how long results are kept from their end on, where nothing else is said."""

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.time) -> None:
        self._seconds = seconds
        self.clock = clock
        self._kept: dict[str, Kept] = {}

    def has_room(self, client: Client) -> bool:
        """Whether more of this client can be kept; the oldest that has ended is forgotten for that."""
        self.end_expired()
        if sum(kept.share == client.share for kept in self._kept.values()) < MOST_KEPT:
            return True
        ended = self._ended(client.share)
        if ended:
            self.forget(ended[0])
        return bool(ended)

    def add(
        self,
        id: str,
        client: Client,
        work: asyncio.Task[Any],
        *,
        seconds: float | None = None,
        call: Call | None = None,
    ) -> Kept:
        now = self.clock()
        kept = Kept(id, client.owner, client.id, client.share, now, now, work, seconds, call)
        self._kept[id] = kept
        work.add_done_callback(lambda _: self._note_end(kept))
        return kept

    def find(self, id: str, owner: str) -> Kept | None:
        """What has this id, if it is this owner's; ids cannot be guessed, which tells one owner's clients apart."""
        self.end_expired()
        kept = self._kept.get(id)
        return kept if kept is not None and kept.owner == owner else None

    def of(self, client: Client) -> list[Kept]:
        """What the client itself has started."""
        self.end_expired()
        return [kept for kept in self._kept.values() if kept.owner == client.owner and kept.client == client.id]

    def cancel(self, kept: Kept) -> None:
        """Stop it. That it was cancelled is remembered."""
        kept.cancelled = True
        kept.updated = self.clock()
        kept.work.cancel()

    def forget(self, kept: Kept) -> None:
        """Stop it if it still runs; it is unknown from now on."""
        self._kept.pop(kept.id, None)
        kept.work.cancel()

    def end_expired(self) -> None:
        """Forget what has been kept long enough."""
        now = self.clock()
        for kept in [kept for kept in self._kept.values() if now > self._end(kept)]:
            self.forget(kept)

    def running(self) -> list[str]:
        """The scripts in the background that have not ended."""
        return [kept.id for kept in self._kept.values() if kept.call is not None and not kept.work.done()]

    async def close(self) -> None:
        """Stop and forget everything."""
        running = [kept.work for kept in self._kept.values() if not kept.work.done()]
        for work in running:
            work.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._kept.clear()

    def _end(self, kept: Kept) -> float:
        if kept.seconds is not None:
            return kept.created + kept.seconds
        return kept.updated + self._seconds if kept.work.done() else float("inf")

    def _note_end(self, kept: Kept) -> None:
        kept.updated = self.clock()
        if kept.work.cancelled() or kept.work.exception() is not None:  # reading it keeps asyncio from logging it
            return
        if kept.id not in self._kept:  # its time was over
            return
        kept.size = _size(kept.work.result())
        others = self._ended(kept.share)
        others.remove(kept)
        total = kept.size + sum(other.size for other in others)
        for other in others:
            if total <= _MOST_CHARACTERS:
                break
            self.forget(other)
            total -= other.size

    def _ended(self, share: str) -> list[Kept]:
        """Those of one client that have ended, the oldest first."""
        ended = [kept for kept in self._kept.values() if kept.share == share and kept.work.done()]
        return sorted(ended, key=lambda kept: kept.updated)


def _size(result: types.CallToolResult) -> int:
    """About how many characters it has."""
    size = 0 if result.structured_content is None else len(json.dumps(result.structured_content, default=str))
    for block in result.content:
        inner = getattr(block, "resource", block)
        size += sum(len(getattr(inner, name, None) or "") for name in ("text", "data", "blob"))
    return size
