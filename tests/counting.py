"""Work counted in calls of Python functions: the same on every machine, however busy it is."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass
class Counted:
    """How many functions, of Python's and built in, were called."""

    calls: int = 0


@contextmanager
def counting() -> Iterator[Counted]:
    counted = Counted()

    def watch(frame: Any, event: str, argument: Any) -> None:
        counted.calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield counted
    finally:
        sys.setprofile(before)


def count_calls(job: Callable[[], Any]) -> int:
    """How many functions, of Python's and built in, a job calls."""
    with counting() as counted:
        job()
    return counted.calls
