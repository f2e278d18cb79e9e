"""The figures of a Sandbox: what it has and does now, for its metrics and for the operators of its cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moonbox.cluster.membership import Membership
    from moonbox.sandbox.repl import Repl
    from moonbox.worker.pool import Pool


class Figures:
    """Called, it counts. It does not hold the Sandbox."""

    def __init__(self, repls: Iterable[Repl], pool: Pool, cluster: Membership | None) -> None:
        self._repls = repls
        self._pool = pool
        self._cluster = cluster

    def __call__(self) -> dict[str, dict[str, float]]:
        """Nothing after the Sandbox was closed."""
        if self._pool.closed:
            return {}
        repls, workers = living(self._repls), self._pool.counts()
        awake, running = sum(repl.worker_pid is not None for repl in repls), sum(repl.busy for repl in repls)
        hosts = [] if self._cluster is None else self._cluster.connections()
        return {
            "workers": {"in_use": workers.in_use, "spare": workers.spare, "waiting": workers.waiting},
            "repls": {"awake": awake, "asleep": len(repls) - awake, "running": running},
            "cluster_room": {host.node[:8]: host.status["room"] for host in hosts},
        }


def living(repls: Iterable[Repl]) -> list[Repl]:
    """The Repls of a set to which other threads add."""
    while True:
        try:
            return list(repls)
        except RuntimeError:  # another thread has added one
            continue
