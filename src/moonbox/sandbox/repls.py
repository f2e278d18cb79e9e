"""The living Repls of a Sandbox: their figures, and the sleep of idle ones."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import WeakSet

from moonbox.errors import MoonboxError

if TYPE_CHECKING:
    from moonbox.cluster.membership import Membership
    from moonbox.runs.held_worker import HeldWorker
    from moonbox.runs.slots import Turns
    from moonbox.sandbox.repl import Repl
    from moonbox.worker.pool import Pool

_LONGEST_PAUSE = 5.0
_SHORTEST_PAUSE = 0.02


class Repls:
    """The Repls of a Sandbox that are alive. It does not hold the Sandbox."""

    def __init__(self, pool: Pool, cluster: Membership | None, *, can_sleep: bool) -> None:
        self.known: WeakSet[Repl] = WeakSet()
        self._pool = pool
        self._stopped: set[Turns] = set()  # of closed Repls whose last run has not ended
        self._close_records: Callable[[], object] | None = None
        self._cluster = cluster
        self.dropped: deque[HeldWorker] = deque()
        """Of Repls that were dropped, and not closed."""
        self._can_sleep = can_sleep
        self._is_sharing = False
        pool.on_full = self._make_room

    def __call__(self) -> dict[str, dict[str, float]]:
        """Figures for metrics of the Sandbox and for operators of its cluster; none after the Sandbox was closed."""
        if self._pool.closed:
            return {}
        repls, workers = self.living(), self._pool.counts()
        awake, running = sum(repl.worker_pid is not None for repl in repls), sum(repl.busy for repl in repls)
        hosts = [] if self._cluster is None else self._cluster.connections()
        return {
            "workers": {"in_use": workers.in_use, "spare": workers.spare, "waiting": workers.waiting},
            "repls": {"awake": awake, "asleep": len(repls) - awake, "running": running},
            "cluster_room": {host.node[:8]: host.status.room for host in hosts},
        }

    def living(self) -> list[Repl]:
        while True:
            with suppress(RuntimeError):  # another thread has added one
                return list(self.known)

    def stopping(self, turns: Turns) -> None:
        """A Repl is being closed; `run_ended` follows."""
        self._stopped.add(turns)

    def run_ended(self, turns: Turns) -> None:
        """The last run of a closed Repl has ended. That of the last Repl closes what it was recorded in."""
        self._stopped.discard(turns)
        if self._close_records is not None and not self._stopped:
            self._close_records()

    def close_records(self, close: Callable[[], object]) -> None:
        """Close the trail and the journal of a closed Sandbox: now, or when the last run has ended."""
        self._close_records = close
        if not self._stopped:
            close()

    def add(self, repl: Repl) -> None:
        """A new Repl. The workers of those that were dropped end."""
        self._end_dropped()
        self.known.add(repl)

    def _end_dropped(self) -> None:
        with suppress(IndexError):  # another thread may take the last one
            while self.dropped:
                self.dropped.pop().close(idle=True)

    def _make_room(self) -> None:
        """Called under the pool's lock."""
        if (self._can_sleep or self.dropped) and not self._is_sharing:
            self._is_sharing = True
            threading.Thread(target=self._share, name="moonbox-sleep", daemon=True).start()

    def _share(self) -> None:
        """While a request for a worker waits: put those that have been idle longest to sleep."""
        while self._is_sharing:
            began, waiting = time.monotonic(), self._pool.counts().waiting
            self._end_dropped()
            repls = self.living() if self._can_sleep else []
            idle = [(link.idle_seconds(), repl) for repl in repls if (link := repl.idle_worker) is not None]
            for _, repl in sorted(idle, key=lambda each: -each[0])[:waiting]:
                with suppress(MoonboxError):  # closed, or its journal is away
                    repl.sleep()
            time.sleep(max(_SHORTEST_PAUSE, 4 * (time.monotonic() - began)))
            with self._pool.lock:
                waits = self._pool.counts().waiting > 0 and not self._pool.closed
                self._is_sharing = waits and (self._can_sleep or bool(self.dropped))

    def let_go(self, repl_id: str) -> None:
        """Have the Repl of that id give its journal up until its next run, if it is idle."""
        for repl in self.living():
            if repl.id == repl_id:
                repl.sleep()

    def put_to_sleep(self, idle_seconds: float) -> None:
        """Start a thread that does it for those which have been idle for so long."""
        threading.Thread(target=self._watch, args=(idle_seconds,), name="moonbox-sleep", daemon=True).start()

    def _watch(self, idle_seconds: float) -> None:
        while not self._pool.closed:
            time.sleep(min(idle_seconds / 4, _LONGEST_PAUSE))
            for repl in self.living():
                with suppress(MoonboxError):  # closed, or its journal is away: the next look tries again
                    repl.sleep(idle_seconds)
