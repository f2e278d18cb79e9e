"""Live events without a server: nothing is lost between the past and the present, and nobody waits for the slow."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from moonbox import Sandbox
from moonbox.audit.sqlite import SqliteSink
from moonbox.http.events import Event, Events

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


def session_event(number: int) -> Event:
    return Event("output", {"n": number}, "s", number)


async def take(stream: AsyncIterator[Event | None], count: int) -> list[Any]:
    return [event.number if (event := await anext(stream)) is not None else None for _ in range(count)]


def test_an_event_between_the_request_and_the_first_read_is_not_lost() -> None:
    async def main() -> list[Any]:
        events, log = Events(), [session_event(1)]
        stream = events.subscribe(["s"], lambda: list(log))
        log.append(session_event(2))  # it happens after the stream was asked for, and before it is read
        events.publish(log[-1])
        first = await take(stream, 2)
        log.append(session_event(3))
        events.publish(log[-1])
        return first + await take(stream, 1)

    assert asyncio.run(main()) == [1, 2, 3]


def test_an_event_that_is_in_the_past_and_heard_too_comes_once() -> None:
    async def main() -> list[Any]:
        events = Events()

        def past() -> list[Event]:
            events.publish(session_event(1))  # heard already, and in the past as well
            return [session_event(1)]

        stream = events.subscribe(["s"], past)
        first = await take(stream, 1)
        events.publish(session_event(2))
        return first + await take(stream, 1)

    assert asyncio.run(main()) == [1, 2]


def test_sessions_hear_their_own_events_and_those_of_everybody() -> None:
    async def main() -> list[str]:
        events = Events()
        stream = events.subscribe(["s"])
        first = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        events.publish(Event("output", {}, "another", 1))
        events.publish(Event("run", {}))
        heard = await first
        assert heard is not None
        events.close()
        return [heard.name, *[event.name async for event in stream if event is not None]]

    assert asyncio.run(main()) == ["run"]


def test_who_falls_behind_is_told_to_load_everything_again() -> None:
    async def main() -> list[str]:
        events = Events()
        stream = events.subscribe()
        first = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        for _ in range(3_000):
            events.publish(Event("run", {}))
        names: list[str] = []
        event = await first
        while event is not None and event.name != "resync" and len(names) < 3_000:
            names.append(event.name)
            event = await anext(stream)
        return [*names, event.name if event is not None else "silence"]

    assert asyncio.run(main())[-1] == "resync"


def test_what_an_event_holds_cannot_forge_another() -> None:
    text = Event("output", {"text": "a\n\nevent: done\ndata: {}\r\n\r\n\u2028"}, "s", 1).encode().decode()
    assert text.count("\n\n") == 1
    assert text.splitlines()[0] == "event: output"
    assert "\r" not in text


def test_what_is_written_after_the_start_is_published(tmp_path: Path) -> None:
    trail = SqliteSink(tmp_path / "audit.db")
    with Sandbox(audit=SqliteSink(tmp_path / "audit.db"), isolation="inline") as box:

        async def watch() -> str:
            events = Events()
            await events.follow(trail.tail)
            await asyncio.to_thread(box.run, "return 'early'")  # before anybody has subscribed
            async for event in events.subscribe():
                if event is not None:
                    return str(event.data["title"])
            raise AssertionError

        assert "early" in asyncio.run(asyncio.wait_for(watch(), 120))
    trail.close()
