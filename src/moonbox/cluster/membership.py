"""The nodes of a cluster that a front end is connected to; what operators see of them."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from moonbox.cluster.ray_messages import AskNodes, CallActor, FrontEndReport, HostGone, NodeAddress, ReserveRoom
from moonbox.cluster.ray_process import RayProcess, RequestFailed
from moonbox.cluster.source import SILENCE_SECONDS, HostConnection
from moonbox.cluster.wire import HostLost, HostStatus

_FIRST_NODES_SECONDS, _NODES_SECONDS = 0.1, 1.0
_FORGET_SECONDS = 15.0
_STATUS_SECONDS = 15.0


class Membership:
    """Connections to the hosts of all living nodes. A thread connects to those that the Ray process tells of."""

    def __init__(self, address: str, silence: float = SILENCE_SECONDS) -> None:
        self.ray = RayProcess.shared(address)
        self._waiting: set[object] = set()  # one for each worker that waits for a node with room
        self.figures: Callable[[], Mapping[str, Any]] = dict
        """What this front end says of itself, for `moonbox cluster status`; nothing where it is empty."""
        self._silence = silence
        self._connections: dict[str, HostConnection] = {}
        self._connecting: set[str] = set()
        self._closed = threading.Event()
        threading.Thread(target=self._watch, name="moonbox-nodes", daemon=True).start()

    def connections(self) -> list[HostConnection]:
        """To the hosts that can be reached now."""
        return [connection for connection in list(self._connections.values()) if not connection.lost]

    def refusal(self) -> str:
        """Why no node can run workers, where all of them say so; otherwise it is empty."""
        told = self.ray.nodes
        if told is None or told.nodes or told.starting or not told.problems:
            return ""
        problems = "; ".join(f"node {each.node[:8]}: {each.message}" for each in told.problems[:5])
        return f"no node of the cluster can run workers: {problems}"

    def advice(self) -> str:
        """What to do where no node has room."""
        if self.ray.problem:
            return f"Ray tells of no new nodes: {self.ray.problem}"
        return "add a node, or close a Repl"

    @contextmanager
    def one_waits(self) -> Iterator[None]:
        """Within the block, a worker waits for a node with room."""
        token = object()
        self._waiting.add(token)
        try:
            yield
        finally:
            self._waiting.discard(token)

    def close(self) -> None:
        self._closed.set()

    def _watch(self) -> None:
        name = str(id(self))
        while not self._closed.is_set():
            self._look()
            workers = {each.node: each.workers for each in self.connections()}
            self.ray.tell(ReserveRoom(name, workers | {"": len(self._waiting)}))
            self._closed.wait(_NODES_SECONDS if self._connections else _FIRST_NODES_SECONDS)
        self.ray.tell(ReserveRoom(name, {}))
        for connection in list(self._connections.values()):
            connection.close()
        self.ray.close()

    def _look(self) -> None:
        if figures := self.figures():
            name = f"{socket.gethostname()}:{os.getpid()}"
            self.ray.tell(_registry("report", name, figures))
        connected = {each.node for each in self.connections()}
        for place in self.ray.nodes.nodes if self.ray.nodes is not None else ():
            if place.node not in connected and place.node not in self._connecting:
                self._connecting.add(place.node)
                threading.Thread(target=self._connect, args=(place,), name="moonbox-connect", daemon=True).start()

    def _connect(self, place: NodeAddress) -> None:
        """Connect to a host; where that fails, its process may be a new one, with another address."""
        try:
            connection = HostConnection(place.node, (place.ip, place.port), place.token, self._silence)
        except HostLost:
            self.ray.tell(HostGone(place.node))
            self._closed.wait(_NODES_SECONDS)
        else:
            self._connections[place.node] = connection
            if self._closed.is_set():
                connection.close()
        finally:
            self._connecting.discard(place.node)


class Registry:
    """One actor in the cluster. Front ends report to it; one that has not for a while is gone."""

    def __init__(self) -> None:
        self._reports: dict[str, tuple[float, dict[str, Any]]] = {}

    def report(self, front_end: str, figures: dict[str, Any]) -> None:
        self._reports[front_end] = time.monotonic(), figures

    def front_ends(self) -> list[tuple[str, dict[str, Any]]]:
        border = time.monotonic() - _FORGET_SECONDS
        self._reports = {name: report for name, report in self._reports.items() if report[0] > border}
        return [(name, figures) for name, (_, figures) in sorted(self._reports.items())]


def _registry(method: str, *arguments: Any) -> CallActor:
    return CallActor(0, f"{__name__}:{Registry.__name__}", "registry", [], method, list(arguments))


def cluster_status(address: str) -> dict[str, Any]:
    """The nodes with their workers, and the front ends with their Repls, runs and queues."""
    ray = RayProcess.shared(address)
    try:
        kind = tuple[dict[str, str], dict[str, HostStatus]]
        addresses, hosts = ray.request(AskNodes(0), kind, _STATUS_SECONDS)
        ends: list[FrontEndReport] = []
        with suppress(RequestFailed):  # no node can run the actor
            ends = ray.request(_registry("front_ends"), list[FrontEndReport], _STATUS_SECONDS)
        told = ray.nodes
    finally:
        ray.close()
    problems = {} if told is None else {each.node: each.message for each in told.problems}
    nodes = []
    for node, where in addresses.items():
        found: dict[str, Any] = {"node": node, "address": where}
        if node in hosts:
            names = ("workers", "room", "free_memory", "version")
            nodes.append({**found, **{name: getattr(hosts[node], name) for name in names}})
        else:
            nodes.append({**found, "problem": problems.get(node, "its host does not answer")})
    return {"nodes": nodes, "front_ends": [{"name": each.name, **each.figures} for each in ends]}
