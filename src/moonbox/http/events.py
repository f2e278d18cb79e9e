"""Live events: a hub that any thread may publish to, and the stream of server-sent events that browsers read."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.responses import StreamingResponse

from moonbox.threads import in_thread, soon

if TYPE_CHECKING:
    from moonbox.audit.query import RunSummary

    Tail = Callable[[int | None], tuple[int, tuple[RunSummary, ...]]]
    """Gives the runs that were written after a mark, and the next mark; None marks the end."""

_QUEUE = 1_000
_HEARTBEAT = 15.0
_LOOK = 1.0
_IDLE_LOOKS = 10


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `number` counts those of a session, so that a browser that was away can ask for the rest."""

    name: str
    data: Any
    session: str = ""
    number: int = 0

    def encode(self) -> bytes:
        number = f"id: {self.session}:{self.number}\n" if self.number else ""
        data = json.dumps(self.data, ensure_ascii=False, separators=(",", ":"))
        # JSON escapes line ends, so that the data is one line whatever it holds.
        return f"event: {self.name}\n{number}data: {data}\n\n".encode("utf-8", "backslashreplace")


@dataclass(eq=False, slots=True)
class _Subscriber:
    sessions: frozenset[str]
    loop: asyncio.AbstractEventLoop
    queue: asyncio.Queue[Event | None] = field(default_factory=lambda: asyncio.Queue(_QUEUE))


class Events:
    """The hub. Publishing never waits: a subscriber that falls behind gets `resync` and loads everything again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscribers: set[_Subscriber] = set()
        self._closed = False
        self._following: asyncio.Task[None] | None = None

    @property
    def watching(self) -> int:
        """How many streams are open."""
        return len(self._subscribers)

    def publish(self, event: Event | None) -> None:
        """Send an event to its subscribers, from any thread. None ends every stream."""
        with self._lock:
            session = event.session if event is not None else ""
            subscribers = [each for each in self._subscribers if not session or session in each.sessions]
        for each in subscribers:  # only its own event loop may touch a queue
            soon(each.loop, partial(_put, each.queue, event))

    async def subscribe(
        self, sessions: Iterable[str] = (), past: Callable[[], Iterable[Event]] = tuple
    ) -> AsyncIterator[Event | None]:
        """Events as they come, None now and then where there are none; the past ones of the sessions come first.

        `past` is asked once new events are heard, so that none falls between the two.
        """
        subscriber = _Subscriber(frozenset(sessions), asyncio.get_running_loop())
        with self._lock:
            if self._closed:
                return
            self._subscribers.add(subscriber)
        try:
            last: dict[str, int] = {}
            for event in past():
                last[event.session] = max(last.get(event.session, 0), event.number)
                yield event
            while True:
                try:
                    event_or_end = await asyncio.wait_for(subscriber.queue.get(), _HEARTBEAT)
                except TimeoutError:
                    yield None
                    continue
                if event_or_end is None:
                    return
                if event_or_end.session and event_or_end.number <= last.get(event_or_end.session, 0):
                    continue  # it was among the past ones
                yield event_or_end
        finally:
            with self._lock:
                self._subscribers.discard(subscriber)

    def close(self) -> None:
        """End every stream, so that a server that is stopped need not wait for its browsers."""
        with self._lock:
            self._closed = True
        self.publish(None)

    async def follow(self, tail: Tail) -> None:
        """Publish the runs that are written to a trail after this has returned, by any process.

        It ends when there has been no subscriber for some time.
        """
        if self._following is None or self._following.done():
            mark, _ = await in_thread(tail, None)
            if self._following is None or self._following.done():  # else another request has started it
                self._following = asyncio.create_task(self._follow(tail, mark))

    async def _follow(self, tail: Tail, mark: int) -> None:
        idle = 0
        while idle < _IDLE_LOOKS:  # the request that started it may take a while to subscribe
            await asyncio.sleep(_LOOK)
            if not self.watching:
                idle += 1
                continue
            idle = 0
            mark, runs = await in_thread(tail, mark)
            for run in runs:
                self.publish(Event("run", run.to_dict()))


def _put(queue: asyncio.Queue[Event | None], event: Event | None) -> None:
    if event is None or queue.qsize() >= _QUEUE - 1:
        while not queue.empty():
            queue.get_nowait()
        event = event and Event("resync", {})
    queue.put_nowait(event)


def event_stream(events: AsyncIterator[Event | None]) -> StreamingResponse:
    """The answer of `GET /events`."""

    async def frames() -> AsyncIterator[bytes]:
        yield b"retry: 2000\n\n"
        async for event in events:
            yield b": still here\n\n" if event is None else event.encode()

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(frames(), media_type="text/event-stream", headers=headers)
