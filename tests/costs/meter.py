"""Measures of work: calls of functions, peak memory and, where asked for, processor time."""

from __future__ import annotations

import contextlib
import gc
import time
import tracemalloc
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from moonbox.errors import MoonboxError
from moonbox.knowledge.extract.formats import Unreadable
from tests.counting import count_calls

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Growth", "measure"]

DOUBLINGS = 4
_TOO_FAST = 1.55
"""How much more each byte may cost when the input doubles: 2 is quadratic, n·log n is about 1.1."""
_NOISE = {"calls": 4_000.0, "memory": 400_000.0, "cpu": 0.05}
"""Below this a measure says nothing."""


@dataclass(frozen=True, slots=True)
class Growth:
    """What one family of inputs cost, from size to size."""

    sizes: tuple[int, ...]
    calls: tuple[float, ...]
    memory: tuple[float, ...]
    cpu: tuple[float, ...] = ()

    @property
    def problem(self) -> str | None:
        """Which measure grows faster than the input, at each of the last doublings; None when none does."""
        for name in ("calls", "memory", "cpu"):
            costs = getattr(self, name)
            if costs and costs[-1] > _NOISE[name] and self._grows(costs):
                figures = ", ".join(f"{size:,}: {cost:.6g}" for size, cost in zip(self.sizes, costs, strict=True))
                return f"{name} for each byte grow with the input ({figures})"
        return None

    def _grows(self, costs: tuple[float, ...]) -> bool:
        each = [cost / size for size, cost in zip(self.sizes, costs, strict=True)]
        return all(after > before * _TOO_FAST for before, after in zip(each[-3:], each[-2:], strict=False))


def measure(work: Callable[[Any], object], make: Callable[[int], Any], start: int, *, cpu: bool = False) -> Growth:
    """Do the work on inputs of doubling size. Refusals of ours count as done: they, too, must be cheap."""
    inputs = [make(start << step) for step in range(DOUBLINGS)]
    _done(work, make(1))  # whatever is worked out once
    calls = tuple(float(count_calls(partial(_done, work, item))) for item in inputs)
    memory = tuple(float(_peak(work, item)) for item in inputs)
    times = tuple(_cpu(work, item) for item in inputs) if cpu else ()
    return Growth(tuple(max(1, _size(item)) for item in inputs), calls, memory, times)


def _done(work: Callable[[Any], object], item: Any) -> None:
    with contextlib.suppress(MoonboxError, Unreadable, ValueError, RecursionError):
        work(item)


def _peak(work: Callable[[Any], object], item: Any) -> int:
    gc.collect(1)  # all generations would take seconds behind other tests, and what is older is not traced
    tracemalloc.start()
    try:
        _done(work, item)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _cpu(work: Callable[[Any], object], item: Any) -> float:
    times = []
    for _ in range(3):
        began = time.thread_time()
        _done(work, item)
        times.append(time.thread_time() - began)
    return min(times)


def _size(item: Any) -> int:
    """About as many bytes as the input has on the wire."""
    if isinstance(item, str | bytes):
        return len(item)
    if isinstance(item, dict):
        return 2 + sum(_size(key) + _size(value) + 2 for key, value in item.items())
    if isinstance(item, list | tuple):
        return 2 + sum(_size(value) + 1 for value in item)
    return 8
