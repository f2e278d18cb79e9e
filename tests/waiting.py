"""Waiting for a condition of which no event tells."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 60.0
"""Far longer than any condition takes: a test that waits so long fails."""
_PAUSE = 0.01


def wait_until(condition: Callable[[], Any], what: str = "the condition did not hold", seconds: float = SECONDS) -> Any:
    """Poll a condition until it holds; what it returned. `what` says what is wrong if it never does."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what} within {seconds:g} s"
        time.sleep(_PAUSE)
    return value


async def await_until(condition: Callable[[], Any], seconds: float = SECONDS) -> None:
    """The same, awaited."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"the condition did not hold within {seconds:g} s"
        await asyncio.sleep(_PAUSE)
