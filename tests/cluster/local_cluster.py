"""A Ray cluster of several nodes on one machine, whose nodes can be killed and replaced."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moonbox.cluster import ray_process
from tests.faults.processes import descendants
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ATTEMPTS = 4
_HEAD_AWAY = "RAY_gcs_rpc_server_reconnect_timeout_s"
_STORE = 80 << 20  # bytes; the least that Ray takes is about that


class LocalCluster:
    """Raylets, GCS and all, from `ray.cluster_utils`, and this process connected to it."""

    def __init__(self, folder: str, nodes: int = 3) -> None:
        os.environ |= {
            "RAY_TMPDIR": folder,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_AUTH_MODE": "disabled",  # also where a user has a token for clusters
            "PYTHONPATH": str(Path(__file__).parents[2]),  # nodes find what the tests import
        }
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": _STORE}
        self._cluster = _patiently(lambda: Cluster(initialize_head=True, head_node_args=head))
        self.address = self._cluster.address
        self._nodes = [self._add() for _ in range(nodes - 1)]
        self.random = random.Random(7)
        ray_process.JOIN_SECONDS = 60.0  # on a busy machine
        os.environ[_HEAD_AWAY] = "3"  # seconds after which Ray ends the process that uses it; nodes have more patience
        self._process = ray_process.RayProcess.shared(self.address)  # all tests share it
        del os.environ[_HEAD_AWAY]

    def _add(self) -> Any:
        return _patiently(
            lambda: self._cluster.add_node(num_cpus=1, object_store_memory=_STORE, resources={"moonbox_repls": 300})
        )

    def kill_head(self) -> None:
        """`kill -9` of gcs_server."""
        for process in self._cluster.head_node.all_processes["gcs_server"]:
            _kill(process.process.pid)

    def kill_node(self, *, replace: bool = True) -> str:
        """`kill -9` of a raylet and everything below it, as if a machine had failed; another takes its place."""
        node = self._nodes.pop(self.random.randrange(len(self._nodes)))
        name: str = node.node_id
        started = [process.process for each in node.all_processes.values() for process in each]
        pids = [process.pid for process in started if process.poll() is None]  # not those of dead ones
        for each in [*(child for pid in pids for child in descendants(pid)), *pids]:
            _kill(each)
        self._cluster.remove_node(node, allow_graceful=False)
        if replace:
            self._nodes.append(self._add())  # takes a few seconds
        return name

    @contextmanager
    def node_without(self, folder: Path) -> Iterator[None]:
        """Within the block, there is a node that finds nothing in this folder."""
        start = [str(Path(sys.executable).with_name("ray")), "start", f"--address={self.address}", "--block"]
        start += ["--num-cpus=1", f"--object-store-memory={_STORE}"]
        hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(folder), *start]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        with subprocess.Popen(
            hidden, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        ) as node:
            try:
                yield
            finally:
                for each in [*descendants(node.pid), node.pid]:
                    _kill(each)

    def kill_actor(self) -> None:
        """`kill -9` of the process of one host of workers; Ray starts it again."""
        _kill(self.random.choice(_hosts()))

    def __enter__(self) -> LocalCluster:
        return self

    def __exit__(self, *_: object) -> None:
        wait_until(lambda: not [each for each in threading.enumerate() if each.name == "moonbox-nodes"])
        self._process.close()
        self._cluster.shutdown()


def _patiently(start: Callable[[], Any]) -> Any:
    """On a busy machine Ray gives a new node up before it is there."""
    for attempt in range(_ATTEMPTS):
        try:
            return start()
        except Exception:
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):  # it is gone
        os.kill(pid, signal.SIGKILL)


def _hosts() -> list[int]:
    """The processes of hosts: Ray names a process after its actor."""

    def look() -> list[int]:
        found = []
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if entry.read_bytes().startswith(b"ray::NodeHost"):
                    found.append(int(entry.parent.name))
            except OSError:
                continue
        return found

    hosts: list[int] = wait_until(look, "there is no host of workers")
    return hosts
