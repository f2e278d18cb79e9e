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
_ADDRESS_SECONDS = 60.0
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


class HostActor:
    """The host of one node, in an actor. Ray starts it again where its process dies."""

    def __init__(self) -> None:
        from ray import util

        address: Any = util.get_node_ip_address  # it has no types
        self._host = NodeHost(address())

    def where(self) -> tuple[tuple[str, int], bytes, str]:
        """Its address, its token, and the version of moonbox."""
        return self._host.address, self._host.token, self._host.version

    def status(self) -> dict[str, Any]:
        return self._host.status()


def host_of(node: str) -> Any:
    """The host of a node; each version of moonbox has its own."""
    return actor(HostActor, f"host-{__version__}-{node}", node=node)


class Membership:
    """Connections to the hosts of all living nodes. A thread looks for new nodes."""

    def __init__(self, address: str) -> None:
        self._ray = connect(address)
        self._lock = threading.Lock()  # guards the two below
        self._connections: dict[str, HostConnection] = {}
        self._connecting: set[str] = set()
        self.figures: Callable[[], dict[str, Any]] = dict
        """What this front end says of itself, for `moonbox cluster status`; nothing where it is empty."""
        self._closed = threading.Event()
        threading.Thread(target=self._watch, name="moonbox-nodes", daemon=True).start()

    def connections(self) -> list[HostConnection]:
        with self._lock:
            return [connection for connection in self._connections.values() if not connection.lost]

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            connections = list(self._connections.values())
        for connection in connections:
            connection.close()

    def _watch(self) -> None:
        while True:
            with suppress(Exception, SystemExit):  # Ray's head may be away for a while; the workers go on
                self._look()
            if self._closed.wait(LOOK_SECONDS):
                return

    def _look(self) -> None:
        figures = self.figures()
        if figures:
            from moonbox.cluster.registry import registry

            registry().report.remote(f"{socket.gethostname()}:{os.getpid()}", figures)
        alive = living_nodes(self._ray)
        with self._lock:
            connected = {node for node, each in self._connections.items() if not each.lost}
            new = alive.keys() - connected - self._connecting
            self._connecting |= new
        for connection in self.connections():
            if connection.node in alive:
                with suppress(HostLost):
                    connection.ask("status")
        for node in new:
            threading.Thread(target=self._connect, args=(node,), name="moonbox-node", daemon=True).start()

    def _connect(self, node: str) -> None:
        """In a thread of its own: a node that is about to die does not delay the others."""
        try:
            where = host_of(node).where.remote()
            deadline = time.monotonic() + _ADDRESS_SECONDS
            while not self._ray.wait([where], timeout=LOOK_SECONDS)[0]:
                if self._closed.is_set() or time.monotonic() > deadline:
                    return
            address, token, _ = self._ray.get(where)
            connection = HostConnection(node, tuple(address), token)
            with self._lock:
                self._connections[node] = connection
            if self._closed.is_set():
                connection.close()
        except (Exception, SystemExit):  # noqa: BLE001 - of Ray, also where it is shut down; the next look tries again
            pass
        finally:
            with self._lock:
                self._connecting.discard(node)


def living_nodes(ray: Any) -> Mapping[str, dict[str, Any]]:
    """What Ray says of each node that is alive, by their ids."""
    return {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}
