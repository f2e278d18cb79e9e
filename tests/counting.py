"""Work counted in calls of Python functions: the same on every machine, however busy it is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def count_calls(job: Callable[[], Any]) -> int:
    """How many functions, of Python's and built in, a job calls."""
    calls = 0

    def watch(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        job()
    finally:
        sys.setprofile(before)
    return calls


async def count_awaited(job: Callable[[], Awaitable[Any]]) -> int:
    """The same for an awaited job, with whatever else its event loop does meanwhile."""
    calls = 0

    def watch(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        await job()
    finally:
        sys.setprofile(before)
    return calls
