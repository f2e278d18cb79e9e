"""What one more Repl costs while many are open: processor time of the zygote, and the wait for a fresh Repl.

    python benchmarks/many_repls.py [COUNT …]

The figures should not depend on the count. Each Repl takes a descriptor of this process: raise `ulimit -n` for more.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from moonbox import Sandbox
from moonbox.worker.sources import ProcessSource

if TYPE_CHECKING:
    from moonbox import Repl

COUNTS = (100, 2_000, 6_000)
ROUNDS, BATCH = 5, 40


def cpu_seconds(pid: int) -> float:
    """Of the main thread, to the nanosecond; the zygote has no other."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def fresh(box: Sandbox) -> Repl:
    repl = box.repl()
    repl.run("return 1").unwrap()
    return repl


def main() -> None:
    counts = [int(argument) for argument in sys.argv[1:]] or COUNTS
    source = ProcessSource.started()
    with Sandbox(isolation=source, min_workers=0, max_workers=max(counts) + BATCH) as box:
        repls: list[Repl] = []
        print(f"{'open Repls':>10} {'zygote, ms':>11} {'fresh Repl, ms':>15} {'all open after, s':>18}")
        began = time.perf_counter()
        for count in counts:
            repls += [fresh(box) for _ in range(count - len(repls))]
            opened = time.perf_counter() - began
            zygote, waited = [], []
            for _ in range(ROUNDS):
                assert source.zygote_pid is not None
                spent, start = cpu_seconds(source.zygote_pid), time.perf_counter()
                more = [fresh(box) for _ in range(BATCH)]
                zygote.append((cpu_seconds(source.zygote_pid) - spent) / BATCH * 1000)
                waited.append((time.perf_counter() - start) / BATCH * 1000)
                for repl in more:
                    repl.close()
            print(f"{count:10} {min(zygote):11.2f} {statistics.median(waited):15.2f} {opened:18.1f}", flush=True)


if __name__ == "__main__":
    main()
