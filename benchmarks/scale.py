"""What a cluster costs: Repls placed and runs a second, a call, the loss of a node with 100 Repls, sleeping Repls.

    python benchmarks/scale.py [NODES …]

It starts Ray clusters of 1, 2 and 4 nodes on this machine, so that the nodes share its processors: the figures show
what moonbox and Ray cost, not what more machines give. `--journal postgresql://…` takes another journal than a file.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moonbox import Sandbox, tool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moonbox import Repl

THREADS = 8
REPLS_A_NODE = 100
CALLS = 1_000
RUNS = 1_000
SLEEPING = 500
_STORE = 80 << 20


@tool
def add(a: int, b: int) -> int:
    """The sum."""
    return a + b


class LocalCluster:
    """Ray nodes on this machine."""

    def __init__(self, nodes: int, folder: str) -> None:
        os.environ |= {"RAY_TMPDIR": folder, "RAY_USAGE_STATS_ENABLED": "0"}
        import ray
        from ray.cluster_utils import Cluster

        self._ray: Any = ray
        head = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": _STORE}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self._others = [self.add() for _ in range(nodes - 1)]
        self.address = self._cluster.address

    def add(self) -> Any:
        return self._cluster.add_node(num_cpus=1, object_store_memory=_STORE)

    def kill(self) -> str:
        """`kill -9` of the last node's host of workers and raylet; the node's id."""
        from moonbox.cluster.membership import host_of

        node = self._others.pop()
        name: str = node.node_id
        pid = self._ray.get(host_of(name).status.remote())["pid"]
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        self._cluster.remove_node(node, allow_graceful=False)
        return name

    def close(self) -> None:
        self._ray.shutdown()
        self._cluster.shutdown()


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def together(work: Callable[[Any], object], items: Sequence[Any]) -> float:
    """Seconds until it is done for all of them, from several threads."""
    with ThreadPoolExecutor(THREADS) as pool:
        return timed(lambda: list(pool.map(work, items)))


def resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure(nodes: int, folder: str, journal: str) -> dict[str, float]:
    found: dict[str, float] = {}
    cluster = LocalCluster(nodes, folder)
    count = REPLS_A_NODE * nodes
    try:
        options: dict[str, Any] = {"cluster": cluster.address, "min_workers": 0, "max_workers": count + 16}
        with Sandbox([add], **options) as box:
            while len(box.cluster_hosts) < nodes:
                time.sleep(0.1)
            box.run("return 1")
            repl = box.repl()
            script = f"for i = 1, {CALLS} do tools.add{{a = i, b = i}} end"
            repl.run("return 1")
            found["call, ms"] = timed(lambda: repl.run(script).unwrap()) / CALLS * 1000
            repl.close()
        place = journal or f"{folder}/state-{nodes}.db"
        with Sandbox([add], journal=place, **options) as box:
            while len(box.cluster_hosts) < nodes:
                time.sleep(0.1)
            box.run("return 1")
            repl = box.repl()
            repl.run("return 1")
            found["call with journal, ms"] = timed(lambda: repl.run(script).unwrap()) / CALLS * 1000
            repl.close()
            repls = [box.repl() for _ in range(count)]
            found["Repls placed/s"] = count / together(lambda repl: repl.__enter__(), repls)
            together(lambda repl: repl.run("x = tools.add{a = 1, b = 2}").unwrap(), repls)
            work = [repls[number % count] for number in range(RUNS)]
            found["runs/s"] = RUNS / together(lambda repl: repl.run("x = x + 0 return x").unwrap(), work)
            if nodes > 1:
                found["recovery of a node, s"] = recovery(cluster, box, repls)
            for repl in repls:
                repl.close()
            found |= sleeping(box, place if not journal else "")
    finally:
        cluster.close()
    return found


def recovery(cluster: LocalCluster, box: Sandbox, repls: list[Repl]) -> float:
    """Seconds from the death of a node until every Repl has given a right answer."""
    cluster.kill()

    def check(repl: Repl) -> None:
        assert repl.run("return x").unwrap() == 3

    return together(check, repls)


def sleeping(box: Sandbox, journal: str) -> dict[str, float]:
    """Bytes of this process, and of the journal, for each Repl that sleeps."""
    size = Path(journal).stat().st_size if journal else 0

    def asleep(_: int) -> Repl:
        repl = box.repl()
        repl.run("x = tools.add{a = 1, b = 2}").unwrap()
        repl.sleep()
        return repl

    before = resident()
    kept = [asleep(number) for number in range(SLEEPING)]
    found = {"sleeping Repl, KB": (resident() - before) / SLEEPING / 1000}
    if journal:
        found["its journal, KB"] = (Path(journal).stat().st_size - size) / SLEEPING / 1000
    for repl in kept:
        repl.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("nodes", nargs="*", type=int, default=[1, 2, 4])
    parser.add_argument("--journal", default="", help="postgresql://…; otherwise a SQLite file")
    arguments = parser.parse_args()
    for nodes in arguments.nodes:
        folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # a short path: Ray puts sockets into it
        try:
            found = measure(nodes, folder, arguments.journal)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        print(f"{nodes} nodes: " + "; ".join(f"{name} {value:,.3g}" for name, value in found.items()), flush=True)


if __name__ == "__main__":
    main()
