"""The Ray process of a front end: joins the cluster, keeps a host of workers running on each node, and calls actors.

Ray may end or block a process that uses it, for example when its head is away. It does so here, and not in the front
end, which starts this process again. It ends with the front end's socket.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
from contextlib import suppress
from importlib import import_module
from typing import Any

import ray
from msgspec import msgpack
from ray.util import placement_group, remove_placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from moonbox.cluster import wire
from moonbox.cluster.host import WORKER_BYTES, NodeHost
from moonbox.cluster.node_tools import call_here
from moonbox.cluster.ray_messages import (
    AskNodes,
    CallActor,
    CallFunction,
    FrontEndMessage,
    HostGone,
    NodeAddress,
    NodeProblem,
    NodesChanged,
    RayAnswer,
    RayFailure,
    RayLoaded,
    RayRefused,
    ReserveRoom,
)

NAMESPACE = "moonbox"
REPLS = "moonbox_repls"
"""The custom resource of nodes: how many Repls an operator wants on one."""
_LOOK_SECONDS = 1.0
_FIRST_LOOK_SECONDS = 0.1
_LEAVE_SECONDS = 3.0
_TRY_AGAIN_LOOKS = 10
_CHUNK = 16
"""Repls of one bundle that is reserved."""


class RayMember:
    """Serves one front end."""

    def __init__(self, sock: socket.socket, version: str) -> None:
        self._sock = sock
        self._version = version
        self._lock = threading.Lock()  # messages go out whole
        self._hosts: dict[str, Any] = {}  # by their nodes; each version of moonbox has its own
        self._where: dict[str, Any] = {}  # what hosts that have not said yet where they are will answer
        self._nodes: dict[str, NodeAddress] = {}
        self._problems: dict[str, NodeProblem] = {}
        self._looks = 0
        self._actors: dict[str, Any] = {}
        self._reserved: dict[tuple[str, str], list[tuple[Any, int]]] = {}  # groups and their sizes, by Sandbox and node
        self._told: NodesChanged | None = None

    def send(self, message: wire.Message) -> None:
        with self._lock, suppress(OSError):  # the front end is gone: `serve` notices
            wire.send(self._sock, message)

    def watch(self) -> None:
        """Tell the front end of nodes, for ever."""
        while True:
            try:
                self._look()
            except Exception:
                logging.getLogger(__name__).debug("looking for nodes failed", exc_info=True)
            threading.Event().wait(_LOOK_SECONDS if self._nodes else _FIRST_LOOK_SECONDS)

    def serve(self) -> None:
        """Until the front end hangs up."""
        with suppress(OSError):
            while True:
                request: Any = wire.receive(self._sock, FrontEndMessage, wire.LONGEST_ORDER * 2)
                try:
                    self._answer(request)
                except Exception as problem:  # noqa: BLE001 - the front end is told
                    self._fail(getattr(request, "number", 0), problem)

    # Nodes

    def _look(self) -> None:
        alive = _living_nodes()
        self._looks += 1
        if self._looks % _TRY_AGAIN_LOOKS == 0:  # moonbox may have been installed there
            self._problems.clear()
        for known in (self._hosts, self._where, self._nodes, self._problems):
            for node in known.keys() - alive.keys():
                known.pop(node, None)
        known_nodes = self._nodes.keys() | self._where.keys() | self._problems.keys()
        for node in alive.keys() - known_nodes:
            name, address = f"host-{self._version}-{node}", alive[node]["NodeManagerAddress"]
            places = int(alive[node]["Resources"].get(REPLS, 0))
            host = self._hosts[node] = _named_actor(NodeHost, name, address, places, node=node)
            self._where[node] = host.where.remote()
        for node, where in list(self._where.items()):
            if ray.wait([where], timeout=0)[0]:
                del self._where[node]
                self._place(node, where)
        told = NodesChanged(list(self._nodes.copy().values()), list(self._problems.values()), len(self._where))
        if told != self._told:
            self._told = told
            self.send(told)

    def _place(self, node: str, where: Any) -> None:
        """Where the host of a node is; or why it cannot run workers."""
        try:
            (ip, port), token, *version = ray.get(where)
            if version != [self._version]:
                theirs = version[0] if version else "an earlier version"
                message = f"moonbox there is {theirs}, and the front end's is {self._version}"
                self._problems[node] = NodeProblem(node, message[:500])
            else:
                self._nodes[node] = NodeAddress(node, ip, port, token)
        except ray.exceptions.RayError as problem:
            self._problems[node] = NodeProblem(node, _reason(problem))
        except (ValueError, TypeError):
            self._problems[node] = NodeProblem(node, "its host gave an invalid answer")

    # Requests

    def _answer(self, request: Any) -> None:
        if isinstance(request, CallActor):
            method = getattr(self._actor(request), request.method)
            self._when_done(method.remote(*request.arguments), request.number)
        elif isinstance(request, CallFunction):
            task = ray.remote(call_here).options(max_retries=request.retries, num_cpus=0)
            done = task.remote(request.tool, request.function, request.arguments, request.about)
            self._when_done(done, request.number)
        elif isinstance(request, AskNodes):
            threading.Thread(target=self._ask_nodes, args=(request.number,), daemon=True).start()
        elif isinstance(request, ReserveRoom):
            self._reserve(request)
        elif isinstance(request, HostGone):
            self._nodes.pop(request.node, None)

    def _reserve(self, request: ReserveRoom) -> None:
        """Reserve in Ray what workers use, so that Ray shows it, and what they wait for: its autoscaler adds nodes."""
        of_sandbox = {node for sandbox, node in self._reserved if sandbox == request.sandbox}
        for node in of_sandbox | request.workers.keys():
            count = request.workers.get(node, 0)
            groups = self._reserved.setdefault((request.sandbox, node), [])
            while groups and sum(size for _, size in groups[:-1]) >= count:
                remove_placement_group(groups.pop()[0])
            if (more := count - sum(size for _, size in groups)) > 0:
                groups.append((_group(node, more), more))
            elif not groups:
                del self._reserved[request.sandbox, node]

    def _actor(self, request: CallActor) -> Any:
        if request.name not in self._actors:
            module, _, name = request.kind.partition(":")
            kind = getattr(import_module(module), name)
            self._actors[request.name] = _named_actor(kind, request.name, *request.given, concurrency=1)
        return self._actors[request.name]

    def _when_done(self, reference: Any, number: int) -> None:
        def tell(done: Any) -> None:
            try:
                data = done.result()
                data = data if isinstance(data, bytes) else msgpack.encode(data)
                if len(data) > wire.LONGEST_ORDER:
                    raise ValueError(f"the answer has {len(data):,} bytes; at most {wire.LONGEST_ORDER:,} are allowed")
            except Exception as problem:  # noqa: BLE001 - the front end is told
                self._fail(number, problem)
            else:
                self.send(RayAnswer(number, data))

        if number:
            reference.future().add_done_callback(tell)

    def _fail(self, number: int, problem: Exception) -> None:
        if number:
            self.send(RayFailure(number, _reason(problem)))

    def _ask_nodes(self, number: int) -> None:
        asked = {node: host.status.remote() for node, host in list(self._hosts.items())}
        ready, _ = (
            ray.wait(list(asked.values()), num_returns=len(asked), timeout=_LOOK_SECONDS * 5) if asked else ([], [])
        )
        found = {}
        for node, status in asked.items():
            with suppress(ray.exceptions.RayError):
                if status in ready:
                    found[node] = ray.get(status)
        addresses = {node: about["NodeManagerAddress"] for node, about in _living_nodes().items()}
        self.send(RayAnswer(number, msgpack.encode([addresses, found])))


def _living_nodes() -> dict[str, dict[str, Any]]:
    """What Ray says of each node that is alive, by their ids."""
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return {node["NodeID"]: node for node in nodes if node["Alive"]}


def _named_actor(kind: type, name: str, *given: Any, node: str = "", concurrency: int = 8) -> Any:
    """The actor of that name; it is made where there is none, and outlives the process that made it.

    Ray starts it again where its process dies.
    """
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
        .remote(*given)
    )


def _group(node: str, workers: int) -> Any:
    """Room for so many workers, on this node or anywhere: in Repls where nodes count them, otherwise in memory.

    Ray removes it when the process ends.
    """
    alive = _living_nodes()
    of = [alive[node]] if node in alive else alive.values()
    unit, size = (REPLS, 1) if any(REPLS in each["Resources"] for each in of) else ("memory", WORKER_BYTES)
    bundles = [{unit: size * min(_CHUNK, workers - done)} for done in range(0, workers, _CHUNK)]
    labels = [{"ray.io/node-id": node}] * len(bundles) if node else None
    return placement_group(bundles, bundle_label_selector=labels)


def _reason(problem: BaseException) -> str:
    """The last line that says something, without what Ray puts around it."""
    if "No module named 'moonbox'" in str(problem):
        return "moonbox is not installed there"
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return (lines[-1] if lines else type(problem).__name__)[:500]


def main(number: int, address: str, version: str, path: list[str]) -> None:
    """Run the process; `number` is the descriptor of the front end's socket, and `version` the front end's.

    The modules of tools are looked for in `path`, as in the front end.
    """
    with socket.socket(fileno=number) as sock:
        wire.send(sock, RayLoaded())
        sys.path[:] = path
        try:
            ray.init(address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)
        except Exception as problem:  # noqa: BLE001 - the front end is told
            wire.send(sock, RayRefused(_reason(problem)))
            os._exit(1)
        member = RayMember(sock, version)
        threading.Thread(target=member.watch, name="moonbox-nodes", daemon=True).start()
        member.serve()
        leaving = threading.Timer(_LEAVE_SECONDS, os._exit, (1,))  # also when Ray cannot leave
        leaving.daemon = True
        leaving.start()
        ray.shutdown()
    os._exit(0)
