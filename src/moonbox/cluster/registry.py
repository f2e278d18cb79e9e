"""The registry of a cluster: what each front end says of itself, and what all of it looks like to an operator."""

from __future__ import annotations

import time
from typing import Any

from moonbox.cluster.membership import actor, connect, host_of, living_nodes

_FORGET_SECONDS = 15.0
_STATUS_SECONDS = 10.0


class Registry:
    """One actor in the cluster. Front ends report to it; one that has not for a while is gone."""

    def __init__(self) -> None:
        self._reports: dict[str, tuple[float, dict[str, Any]]] = {}

    def report(self, front_end: str, figures: dict[str, Any]) -> None:
        self._reports[front_end] = time.monotonic(), figures

    def front_ends(self) -> list[dict[str, Any]]:
        border = time.monotonic() - _FORGET_SECONDS
        self._reports = {name: report for name, report in self._reports.items() if report[0] > border}
        return [{"name": name, **figures} for name, (_, figures) in sorted(self._reports.items())]


def registry() -> Any:
    """The actor; it is made where there is none."""
    return actor(Registry, "registry")


def cluster_status(address: str) -> dict[str, Any]:
    """The nodes with their workers, and the front ends with their Repls, runs and queues."""
    ray = connect(address)
    asked = {node: (about, host_of(about).status.remote()) for node, about in living_nodes(ray).items()}
    front_ends = registry().front_ends.remote()
    nodes = []
    for node, (about, answer) in asked.items():
        found = {"node": node, "address": about["NodeManagerAddress"]}
        try:
            nodes.append({**found, **ray.get(answer, timeout=_STATUS_SECONDS)})
        except ray.exceptions.RayError as problem:
            nodes.append({**found, "problem": type(problem).__name__})
    return {"nodes": nodes, "front_ends": ray.get(front_ends, timeout=_STATUS_SECONDS)}
