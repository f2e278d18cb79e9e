"""Events of a session, kept for a client that lost its connection: it asks for what came after the last one it saw.

A session has a log of its own. The SDK numbers streams anew in each session, so that in a log for all sessions a client
could read the events of another.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from typing import TYPE_CHECKING

from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

if TYPE_CHECKING:
    from mcp.server.streamable_http import EventCallback, EventId, StreamId
    from mcp_types.jsonrpc import JSONRPCMessage

__all__ = ["EventLog", "ResumableSessions"]

MAX_EVENTS = 200
MAX_BYTES = 4 * 1024 * 1024
RETRY_MILLISECONDS = 1_000


class EventLog(EventStore):
    """The latest events of one session; the oldest are dropped when there are too many."""

    def __init__(self, max_events: int = MAX_EVENTS, max_bytes: int = MAX_BYTES) -> None:
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._events: OrderedDict[EventId, tuple[StreamId, JSONRPCMessage | None, int]] = OrderedDict()
        self._size = 0
        self._prefix = secrets.token_hex(8)
        self._count = 0

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        self._count += 1
        name = f"{self._prefix}-{self._count}"
        size = 0 if message is None else len(message.model_dump_json(by_alias=True, exclude_unset=True))
        self._events[name] = (stream_id, message, size)
        self._size += size
        while len(self._events) > self._max_events or (self._size > self._max_bytes and len(self._events) > 1):
            _, (_, _, dropped) = self._events.popitem(last=False)
            self._size -= dropped
        return name

    async def replay_events_after(self, last_event_id: EventId, send_callback: EventCallback) -> StreamId | None:
        if last_event_id not in self._events:
            return None
        stream = self._events[last_event_id][0]
        names = list(self._events)
        for name in names[names.index(last_event_id) + 1 :]:
            of, message, _ = self._events.get(name, (None, None, 0))
            if of == stream and message is not None:
                await send_callback(EventMessage(message, name))
        return stream


class ResumableSessions(StreamableHTTPSessionManager):
    """The SDK's sessions, each with an event log of its own."""

    @property
    def event_store(self) -> EventStore | None:
        """A new log: read once for each session."""
        return EventLog()

    @event_store.setter
    def event_store(self, _: EventStore | None) -> None:
        """Set by the SDK's constructor; there is no log for all sessions."""
