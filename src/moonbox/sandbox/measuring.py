"""The gauges of a Sandbox: its workers, its Repls, and the nodes of its cluster."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moonbox.audit.metrics import Metrics
    from moonbox.cluster.membership import Membership
    from moonbox.sandbox.sandbox import Sandbox


def measure(box: Sandbox, metrics: Metrics) -> None:
    """Let the metrics read what a Sandbox has, as long as it lives."""
    living = weakref.ref(box)
    for name, read in (("workers", _workers), ("repls", _repls), ("cluster_room", _rooms)):
        metrics.watch(name, lambda read=read: [] if (found := living()) is None or found.closed else read(found))  # type: ignore[misc]


def report(box: Sandbox, cluster: Membership) -> None:
    """Let the operators of a cluster see what this front end does."""
    living = weakref.ref(box)
    cluster.figures = lambda: {} if (found := living()) is None or found.closed else _figures(found)


def _figures(box: Sandbox) -> dict[str, Any]:
    repls = box.repls
    awake = sum(repl.worker_pid is not None for repl in repls)
    runs = sum(repl.busy for repl in repls)
    return {"repls": len(repls), "asleep": len(repls) - awake, "runs": runs, "waiting": box.workers.waiting}


def _workers(box: Sandbox) -> list[tuple[dict[str, str], float]]:
    counts = box.workers
    return [({"state": name}, getattr(counts, name)) for name in ("in_use", "spare", "waiting")]


def _repls(box: Sandbox) -> list[tuple[dict[str, str], float]]:
    figures = _figures(box)
    asleep = figures["asleep"]
    states = {"awake": figures["repls"] - asleep, "asleep": asleep, "running": figures["runs"]}
    return [({"state": name}, count) for name, count in states.items()]


def _rooms(box: Sandbox) -> list[tuple[dict[str, str], float]]:
    return [({"node": each.node[:8]}, each.status["room"]) for each in box.cluster_hosts]
