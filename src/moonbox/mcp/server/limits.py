"""Limits of each client: calls at a time and in a minute, and requests from one address.

The front ends of a cluster count calls together, by one actor.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from msgspec import msgpack

from moonbox.wording import counted

if TYPE_CHECKING:
    from moonbox.cluster.membership import Membership
    from moonbox.cluster.ray_messages import CallActor
    from moonbox.config.sections import ServeSettings

_MAX_REMEMBERED = 10_000
"""Clients whose use is remembered; of more only those with calls in the last minute."""
_BEAT_SECONDS, _LOST_SECONDS = 5.0, 20.0
_LOOK_SECONDS = 0.05


class TooMany(Exception):
    """A limit of the server is reached; the message is for the client, which may try again after `seconds`."""

    def __init__(self, message: str, seconds: int = 1) -> None:
        super().__init__(message)
        self.seconds = seconds


@dataclass(slots=True)
class _Share:
    slots: asyncio.Semaphore
    users: int = 0


class Shares:
    """Slots for the calls of each client; further calls wait their turn for a while, in a line of bounded length."""

    def __init__(self, max_calls: int, max_waiting: int, wait_seconds: float = 30.0) -> None:
        self._max_calls = max_calls
        self._max_waiting = max_waiting
        self._wait_seconds = wait_seconds
        self._shares: dict[str, _Share] = {}

    @contextlib.asynccontextmanager
    async def slot(self, client: str, on_wait: Callable[[int], None] = lambda _: None) -> AsyncIterator[None]:
        """Wait for a slot; `on_wait` is called with the number of calls ahead if there is none."""
        share = self._shares.setdefault(client, _Share(asyncio.Semaphore(self._max_calls)))
        if share.users >= self._max_calls + self._max_waiting:
            raise TooMany(f"this client already has {share.users} calls running or waiting; try again later")
        share.users += 1
        try:
            if share.slots.locked():
                on_wait(share.users - 1)
            try:
                async with asyncio.timeout(self._wait_seconds):
                    await share.slots.acquire()
            except TimeoutError:
                allowed = counted(self._max_calls, "call")
                raise TooMany(
                    f"this call waited {self._wait_seconds:g} s for its turn: this client may run {allowed} "
                    f"at a time, and has {share.users} running or waiting; try again later"
                ) from None
            try:
                yield
            finally:
                share.slots.release()
        finally:
            share.users -= 1
            if not share.users:
                self._shares.pop(client, None)


@dataclass(slots=True)
class _Use:
    """The calls of one client: each counts while it runs, and for a minute from its end."""

    running: dict[object, float] = field(default_factory=dict)
    """When each began."""
    ended: deque[tuple[float, float]] = field(default_factory=deque)
    """When each ended, and how long it took; the oldest first."""
    took: float = 0.0
    """The seconds of those that have ended, together."""

    def count(self, now: float) -> int:
        """How many there are, without those that have ended long ago."""
        while self.ended and self.ended[0][0] <= now - 60.0:
            self.took -= self.ended.popleft()[1]
        return len(self.running) + len(self.ended)

    def seconds(self, now: float) -> float:
        return self.took + sum(now - began for began in self.running.values())

    def refusal(self, limit: str, now: float) -> TooMany:
        wait = (self.ended[0][0] if self.ended else now) + 60.0 - now
        seconds = max(1, math.ceil(wait))
        return TooMany(f"{limit}; try again in {seconds} s", seconds)


class Quotas:
    """What each client may use in a minute: how many calls, and how long they take together."""

    def __init__(
        self, calls: int | None, seconds: float | None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._calls, self._seconds, self._clock = calls, seconds, clock
        self._used: dict[str, _Use] = {}

    @contextlib.contextmanager
    def call(self, client: str) -> Iterator[None]:
        """Count a call; TooMany says when the next is possible."""
        if self._calls is None and self._seconds is None:
            yield
            return
        now = self._clock()
        if len(self._used) > _MAX_REMEMBERED:
            self._used = {name: use for name, use in self._used.items() if use.count(now)}
        use, call = self._used.setdefault(client, _Use()), object()
        count = use.count(now)
        if self._calls is not None and count >= self._calls:
            raise use.refusal(f"this client may make {counted(self._calls, 'call')} a minute", now)
        if self._seconds is not None and count and use.seconds(now) >= self._seconds:
            raise use.refusal(f"the calls of this client may take {self._seconds:g} s a minute", now)
        use.running[call] = now
        try:
            yield
        finally:
            ended = self._clock()
            took = ended - use.running.pop(call)
            use.took += took
            use.ended.append((ended, took))

    @contextlib.asynccontextmanager
    async def acall(self, client: str) -> AsyncIterator[None]:
        """The same for what awaits its turn where several servers count together."""
        with self.call(client):
            yield


@dataclass(eq=False)
class TokenBucket:
    """What may be spent: it fills at `rate` a second, up to `most`."""

    rate: float
    most: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    def __post_init__(self) -> None:
        self._left, self._seen = self.most, self.clock()

    def spend(self, amount: float) -> float:
        """Take the amount, perhaps more than there is; the seconds until nothing is owed."""
        now = self.clock()
        self._left = min(self.most, self._left + (now - self._seen) * self.rate) - amount
        self._seen = now
        return max(0.0, -self._left / self.rate)

    async def pay(self, amount: float) -> None:
        """Take the amount, and wait until nothing is owed."""
        if (seconds := self.spend(amount)) > 0:
            await self.sleep(seconds)


class RequestRate:
    """A token bucket for each address or client, for a bounded number of them."""

    def __init__(
        self, per_minute: int, *, max_addresses: int = 10_000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._new_bucket = partial(TokenBucket, per_minute / 60.0, per_minute, clock=clock)
        self._max_addresses = max_addresses
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def wait(self, address: str) -> float:
        """0 if a request may pass now; otherwise the seconds until one may."""
        bucket = self._buckets[address] = self._buckets.pop(address, self._new_bucket())
        if len(self._buckets) > self._max_addresses:
            self._buckets.popitem(last=False)
        if seconds := bucket.spend(1.0):
            bucket.spend(-1.0)  # what is refused costs nothing
        return seconds


# Across all front ends of a cluster


class ClusterCount:
    """The actor: the calls under way of each client, and what it has used in the last minute."""

    def __init__(self, max_calls: int, calls: int | None, seconds: float | None) -> None:
        self._max_calls = max_calls
        self._quotas = Quotas(calls, seconds)
        self._open: dict[str, tuple[str, contextlib.ExitStack]] = {}
        self._beats: dict[str, float] = {}

    def enter(self, client: str, call: str) -> str:
        """Empty where the call may begin or go on, "wait" where the client has too many; otherwise why it may not."""
        now = time.monotonic()
        if call not in self._open:
            for name in [name for name, beat in self._beats.items() if beat < now - _LOST_SECONDS]:
                self.leave(name)  # its front end is gone
            if sum(owner == client for owner, _ in self._open.values()) >= self._max_calls:
                return "wait"
            stack = contextlib.ExitStack()
            try:
                stack.enter_context(self._quotas.call(client))
            except TooMany as problem:
                return str(problem)
            self._open[call] = client, stack
        self._beats[call] = now
        return ""

    def leave(self, call: str) -> None:
        if self._beats.pop(call, None) is not None:
            self._open.pop(call)[1].close()


class ClusterQuotas:
    """The front end's side, in place of `Quotas`: asks the actor before each call."""

    def __init__(self, settings: ServeSettings, cluster: Membership) -> None:
        self._limits = [settings.max_calls, settings.calls_per_minute, settings.seconds_per_minute]
        self._settings = settings
        self._cluster = cluster

    @contextlib.asynccontextmanager
    async def acall(self, client: str) -> AsyncIterator[None]:
        """As `Quotas.acall`; waits while the client has too many calls in progress on all front ends."""
        call = secrets.token_hex(8)
        deadline = time.monotonic() + self._settings.wait_seconds
        with contextlib.ExitStack() as stack:
            stack.callback(
                self._cluster.ray.ask, self._request("leave", call)
            )  # also where the answer of the actor did not arrive
            while answer := await self._ask(client, call):
                if answer != "wait":
                    raise TooMany(answer)
                if time.monotonic() > deadline:
                    allowed = counted(self._settings.max_calls, "call")
                    raise TooMany(f"this client may run {allowed} at a time on this cluster; try again later")
                await asyncio.sleep(_LOOK_SECONDS)
            stack.callback(asyncio.create_task(self._beat(client, call)).cancel)
            yield

    async def _ask(self, client: str, call: str) -> str:
        try:
            async with asyncio.timeout(self._settings.wait_seconds):
                answer = await asyncio.wrap_future(self._cluster.ray.ask(self._request("enter", client, call)))
                return msgpack.decode(answer, type=str)
        except Exception:  # noqa: BLE001 - the actor is being moved to another node: what is not counted must wait
            return "wait"

    async def _beat(self, client: str, call: str) -> None:
        while True:
            await asyncio.sleep(_BEAT_SECONDS)
            self._cluster.ray.ask(self._request("enter", client, call))

    def _request(self, method: str, *arguments: str) -> CallActor:
        from moonbox.cluster.ray_messages import CallActor

        name = "limits-" + "-".join(map(str, self._limits))  # front ends with the same limits count together
        return CallActor(0, f"{__name__}:{ClusterCount.__name__}", name, self._limits, method, list(arguments))
