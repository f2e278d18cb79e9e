"""The worker that a Repl holds: taken from the pool, brought up to date, lost or given up, and its state with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moonbox.errors import ClosedError
from moonbox.worker import protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.limits import Limits
    from moonbox.worker.jail import Layer
    from moonbox.worker.link import Link
    from moonbox.worker.pool import Pool

__all__ = ["EnvironmentMark", "Holding"]

EnvironmentMark = tuple[int, int, int]
"""Tells one environment from another: which toolbox, and the revisions of its tools and of what was added."""

_FRAME_SLACK = 1 << 20


class Holding:
    """At most one worker at a time; `loss_unseen` says that state went with one and no Run has told so yet."""

    def __init__(self, pool: Pool, timeout: float | None, template: EnvironmentMark, limits: Limits) -> None:
        self._pool = pool
        self._timeout = timeout
        self._template = template, limits  # what every worker has when it comes from the pool
        self._sent = self._template
        self._closed = False
        self._has_state = False
        self.link: Link | None = None
        self.loss_unseen = False

    def acquire(self) -> None:
        """Have a living worker. Waits for one while all are in use."""
        if self._needs_another():
            self._take(self._pool.checkout(self._timeout))

    async def aacquire(self) -> None:
        """The same, awaited."""
        if self._needs_another():
            self._take(await self._pool.acheckout(self._timeout))

    def update(
        self,
        mark: EnvironmentMark,
        limits: Limits,
        describe: Callable[[], dict[str, Any]],
        describe_limits: Callable[[Limits], dict[str, Any]],
    ) -> bytes:
        """The frame that brings the worker up to date; empty when it is."""
        assert self.link is not None
        config: dict[str, Any] = {}
        if mark != self._sent[0]:
            config["environment"] = describe()
        if limits != self._sent[1]:
            config["limits"] = describe_limits(limits)
        self._sent = mark, limits
        self.link.allow_frames_of(limits.max_memory + _FRAME_SLACK)
        return protocol.pack(protocol.CONFIGURE, config) if config else b""

    def ran(self, *, lost: bool) -> None:
        """A run is over, and the worker's life with it or not; the Run tells of the loss."""
        if lost:
            self.give_up()
        self._has_state = not lost

    def lose(self) -> None:
        """The worker is gone, and with it the script's state."""
        self.give_up()
        if self._has_state:
            self.loss_unseen = True
        self._has_state = False

    def give_up(self, *, idle: bool = False) -> None:
        """No more need of the worker. An idle one may end a little later."""
        link, self.link = self.link, None
        if link is not None:
            (self._pool.retire if idle else self._pool.discard)(link)

    def start_afresh(self) -> None:
        """Give the worker up on purpose: no loss."""
        self.give_up()
        self._has_state = False

    def close(self, *, idle: bool) -> None:
        """For good."""
        self._closed = True
        self.give_up(idle=idle)

    def layers(self) -> tuple[Layer, ...]:
        """What the worker told of its jail."""
        from moonbox.worker.jail import Layer

        greeting = b"" if self.link is None else self.link.greeting or b""
        told = [line.split("\t") for line in greeting.decode("utf-8", "replace").splitlines()]
        return tuple(Layer(part[0], part[1] == "1", part[2]) for part in told if len(part) == 3)

    def _needs_another(self) -> bool:
        if self.link is not None and not self.link.alive():
            self.lose()
        return self.link is None

    def _take(self, link: Link) -> None:
        self.link = link
        self._sent = self._template
        if self._closed:  # by another thread meanwhile
            self.give_up()
            raise ClosedError("the Repl is closed")
