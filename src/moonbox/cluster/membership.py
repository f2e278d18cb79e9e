"""The nodes of a Ray cluster: Ray says which there are, and keeps the host of workers on each of them running."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from moonbox._version import __version__
from moonbox.cluster.host import NodeHost
from moonbox.cluster.source import HostConnection
from moonbox.cluster.wire import HostLost
from moonbox.errors import MissingExtra, UsageError, WorkerError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NAMESPACE = "moonbox"
LOOK_SECONDS = 1.0
"""How often Ray is asked for new nodes."""
_FIRST_LOOK_SECONDS = 0.1
_FORGET_SECONDS = 15.0
_STATUS_SECONDS = 10.0
_FORMS = '"auto", "ray://host:port" or "host:port"'


def connect(address: str) -> Any:
    """Ray, connected to a cluster. A process that has connected to one before stays with that."""
    if not isinstance(address, str) or not address:
        raise UsageError(f"cluster must be {_FORMS}, not {address!r}")
    try:
        import ray
    except ImportError:
        raise MissingExtra("ray", "ray", "Sandbox(cluster=…)") from None
    if not ray.is_initialized():
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, ValueError, RuntimeError) as problem:
            raise WorkerError(f"the cluster {address!r} cannot be reached: {problem}") from None
    return ray


def actor(kind: type, name: str, *arguments: Any, node: str = "", concurrency: int = 8) -> Any:
    """The actor of that name; it is made where there is none, and outlives the process that made it."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    options: dict[str, Any] = {} if not node else {"scheduling_strategy": NodeAffinitySchedulingStrategy(node, False)}
    return (
        ray.remote(kind)
        .options(
            name=name,
            namespace=NAMESPACE,
            lifetime="detached",
            get_if_exists=True,
            num_cpus=0,
            max_restarts=-1,
            max_concurrency=concurrency,
            **options,
        )
        .remote(*arguments)
    )


def host_of(node: Mapping[str, Any]) -> Any:
    """The host of a node; each version of moonbox has its own. Ray starts it again where its process dies."""
    return actor(NodeHost, f"host-{__version__}-{node['NodeID']}", node["NodeManagerAddress"], node=node["NodeID"])


def living_nodes(ray: Any) -> Mapping[str, dict[str, Any]]:
    """What Ray says of each node that is alive, by their ids."""
    return {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}


class Membership:
    """Connections to the hosts of all living nodes. A thread looks for new nodes."""

    def __init__(self, address: str) -> None:
        self._ray = connect(address)
        self._connections: dict[str, HostConnection] = {}
        self._starting: dict[str, Any] = {}  # nodes whose hosts have not said yet where they are
        self.figures: Callable[[], Mapping[str, Any]] = dict
        """What this front end says of itself, for `moonbox cluster status`; nothing where it is empty."""
        self._closed = threading.Event()
        threading.Thread(target=self._watch, name="moonbox-nodes", daemon=True).start()

    def connections(self) -> list[HostConnection]:
        """To the hosts that can be reached now."""
        return [connection for connection in list(self._connections.values()) if not connection.lost]

    def close(self) -> None:
        self._closed.set()

    def _watch(self) -> None:
        while not self._closed.is_set():
            with suppress(Exception, SystemExit):  # Ray's head may be away for a while; the workers go on
                self._look()
            self._closed.wait(LOOK_SECONDS if self._connections else _FIRST_LOOK_SECONDS)
        for connection in self._connections.values():
            connection.close()

    def _look(self) -> None:
        if figures := self.figures():
            registry().report.remote(f"{socket.gethostname()}:{os.getpid()}", figures)
        alive, connected = living_nodes(self._ray), {each.node for each in self.connections()}
        for node in alive.keys() - connected - self._starting.keys():
            self._starting[node] = host_of(alive[node]).where.remote()
        for node, where in list(self._starting.items()):
            if node not in alive:
                del self._starting[node]
            elif self._ray.wait([where], timeout=0)[0]:
                del self._starting[node]
                with suppress(HostLost, self._ray.exceptions.RayError):  # the next look tries again
                    address, token = self._ray.get(where)
                    self._connections[node] = HostConnection(node, tuple(address), token)
        for connection in self.connections():
            with suppress(HostLost):
                connection.ask("status")


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
