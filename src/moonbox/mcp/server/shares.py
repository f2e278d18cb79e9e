"""Shares: how much one client may ask for at a time, so that the others get their turn."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["Rate", "Shares", "TooMany"]


class TooMany(Exception):
    """The client has asked for more than its share."""


@dataclass(slots=True)
class _Share:
    slots: asyncio.Semaphore
    users: int = 0


@dataclass(slots=True)
class Shares:
    """Slots for calls, counted for each client; whoever finds none free waits in line, and the line is bounded."""

    most: int
    waiting: int
    _shares: dict[str, _Share] = field(default_factory=dict)

    @contextlib.asynccontextmanager
    async def slot(self, client: str) -> AsyncIterator[None]:
        share = self._shares.setdefault(client, _Share(asyncio.Semaphore(self.most)))
        if share.users >= self.most + self.waiting:
            raise TooMany(
                f"this client has {share.users} calls under way or waiting, which is its limit; "
                "try again when some have ended"
            )
        share.users += 1
        try:
            async with share.slots:
                yield
        finally:
            share.users -= 1
            if not share.users:
                self._shares.pop(client, None)


class Rate:
    """Requests for each address: a bucket that fills again, and a bounded number of buckets."""

    def __init__(self, per_minute: int, most_addresses: int = 10_000) -> None:
        self._burst = float(per_minute)
        self._per_second = per_minute / 60.0
        self._most = most_addresses
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, address: str) -> float:
        """0 when the request may pass; else the seconds until one may."""
        now = time.monotonic()
        left, seen = self._buckets.pop(address, (self._burst, now))
        left = min(self._burst, left + (now - seen) * self._per_second)
        allowed = left >= 1.0
        self._buckets[address] = (left - 1.0 if allowed else left, now)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1.0 - left) / self._per_second
