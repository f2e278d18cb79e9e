"""Runs of other processes reach those who watch, from the moment on that they are told so."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from moonbox import Sandbox
from moonbox.audit.sqlite import SqliteSink
from moonbox.http.events import Events, TrailWatch

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_written_after_the_start_is_published(tmp_path: Path) -> None:
    trail = SqliteSink(tmp_path / "audit.db")
    with Sandbox(audit=SqliteSink(tmp_path / "audit.db"), isolation="inline") as box:

        async def watch() -> str:
            events = Events()
            await TrailWatch(events, trail.tail).start()
            await asyncio.to_thread(box.run, "return 'early'")  # before anybody has subscribed
            async for event in events.subscribe():
                if event is not None:
                    return str(event.data["title"])
            raise AssertionError

        assert "early" in asyncio.run(asyncio.wait_for(watch(), 120))
    trail.close()
