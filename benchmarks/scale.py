"""What a cluster costs: Repls placed and runs a second, a call, the loss of a node with 100 Repls, sleeping Repls.

    python benchmarks/scale.py [NODES …]

It starts Ray clusters of 1, 2 and 4 nodes on this machine, so that the nodes share its processors: the figures show
what moonbox and Ray cost, not what more machines give. `--journal postgresql://…` takes another journal than a file.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moonbox import Limits, Sandbox, tool
from moonbox.audit.metrics import Metrics

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.cluster.local_cluster import LocalCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moonbox import Repl

THREADS = 8
REPLS_A_NODE = 100
CALLS = 1_000
RUNS = 1_000
SLEEPING = 500


@tool
def add(a: int, b: int) -> int:
    """The sum."""
    return a + b


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
    count = REPLS_A_NODE * nodes
    with LocalCluster(folder, nodes) as cluster:
        options: dict[str, Any] = {"cluster": cluster.address, "min_workers": 0, "max_workers": count + 16}
        with sandbox(nodes, options) as box:
            found["call, ms"] = call(box)
        place = journal or f"{folder}/state-{nodes}.db"
        with sandbox(nodes, {**options, "journal": place}) as box:
            found["call with journal, ms"] = call(box)
            repls = [box.repl() for _ in range(count)]
            found["Repls placed/s"] = count / together(lambda repl: repl.__enter__(), repls)
            together(lambda repl: repl.run("x = tools.add{a = 1, b = 2}").unwrap(), repls)
            work = [repls[number % count] for number in range(RUNS)]
            found["runs/s"] = RUNS / together(lambda repl: repl.run("x = x + 0 return x").unwrap(), work)
            if nodes > 1:
                found["recovery of a node, s"] = recovery(cluster, repls)
            for repl in repls:
                repl.close()
            found |= sleeping(box, place if not journal else "")
    return found


def sandbox(nodes: int, options: dict[str, Any]) -> Sandbox:
    """One that has reached all nodes, each of which has had a worker."""
    metrics = Metrics()
    box = Sandbox([add], metrics=metrics, **options)
    while metrics.text().count(b"moonbox_cluster_room{") < nodes:
        time.sleep(0.1)
    together(lambda _: box.run("return 1").unwrap(), range(nodes * 4))
    return box


def call(box: Sandbox) -> float:
    with box.repl() as repl:
        repl.run("return 1").unwrap()
        script = f"for i = 1, {CALLS} do tools.add{{a = i, b = i}} end"
        return timed(lambda: repl.run(script, limits=Limits(max_tool_calls=CALLS)).unwrap()) / CALLS * 1000


def recovery(cluster: LocalCluster, repls: list[Repl]) -> float:
    """Seconds from the death of a node until every Repl has given a right answer."""
    cluster.kill_node(replace=False)

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
