"""What each client may use across all front ends of a cluster, counted by one actor."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from typing import TYPE_CHECKING, Any

from moonbox.mcp.server.limits import Quotas, TooMany
from moonbox.wording import counted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from moonbox.config.sections import ServeSettings

_BEAT_SECONDS, _LOST_SECONDS = 5.0, 20.0
_LOOK_SECONDS = 0.05


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

    def __init__(self, settings: ServeSettings) -> None:
        from moonbox.cluster.membership import actor

        limits = settings.max_calls, settings.calls_per_minute, settings.seconds_per_minute
        name = "limits-" + "-".join(map(str, limits))  # front ends with the same limits count together
        self._settings = settings
        self._actor: Any = actor(ClusterCount, name, *limits, concurrency=1)

    @contextlib.asynccontextmanager
    async def acall(self, client: str) -> AsyncIterator[None]:
        """As `Quotas.acall`; waits while the client has too many calls under way on all front ends together."""
        call = secrets.token_hex(8)
        deadline = time.monotonic() + self._settings.wait_seconds
        while answer := await self._ask(client, call):
            if answer != "wait":
                raise TooMany(answer)
            if time.monotonic() > deadline:
                allowed = counted(self._settings.max_calls, "call")
                raise TooMany(f"this client may run {allowed} at a time on this cluster; try again later")
            await asyncio.sleep(_LOOK_SECONDS)
        beating = asyncio.create_task(self._beat(client, call))
        try:
            yield
        finally:
            beating.cancel()
            self._actor.leave.remote(call)

    async def _ask(self, client: str, call: str) -> str:
        try:
            async with asyncio.timeout(self._settings.wait_seconds):
                answer: str = await self._actor.enter.remote(client, call)
                return answer
        except Exception:  # noqa: BLE001 - the actor is being moved to another node: what is not counted must wait
            return "wait"

    async def _beat(self, client: str, call: str) -> None:
        while True:
            await asyncio.sleep(_BEAT_SECONDS)
            self._actor.enter.remote(client, call)
