"""What runs cost that sleep: memory of their process, and how late they wake.

    python benchmarks/sleepers.py [--runs 10000] [--after 120] [--spread 120]

One process begins the runs; each sleeps until a time of its own. The times are spread over so many seconds, and begin
so many seconds after the start. The goals are 200 MB, and one second.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

from moonbox import Sandbox
from moonbox.runs import call_ledger


def memory() -> float:
    """MB of this process."""
    text = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--after", type=float, default=120.0)
    parser.add_argument("--spread", type=float, default=120.0)
    args = parser.parse_args()
    call_ledger.HELD = 0.0  # also a short wait gives the worker back
    late: list[float] = []

    def note(until: float, _: object) -> None:
        late.append(time.time() - until)

    started = time.time()
    with tempfile.TemporaryDirectory() as folder, Sandbox(journal=f"{folder}/journal.db") as box:
        before, handles = memory(), []
        for number in range(args.runs):
            until = started + args.after + args.spread * number / args.runs
            handle = box.repl().submit(f"sleep_until({until!r}) return 1")
            handle._future.add_done_callback(partial(note, until))
            handles.append(handle)
            if number % 50 == 49:
                while any(each.status() == "running" for each in handles[-50:]):
                    time.sleep(0.01)
        asleep = time.time() - started
        print(
            f"{args.runs:,} runs sleep after {asleep:.0f} s: {memory():.0f} MB, {before:.0f} without them",
            flush=True,
        )
        assert asleep < args.after, "--after is too short"
        for handle in handles:
            handle.wait(args.after + args.spread + 120).unwrap()
        most = memory()
    late.sort()
    print(f"late by {statistics.median(late):.2f} s in the middle, {late[-1]:.2f} s at most; {most:.0f} MB in the end")


if __name__ == "__main__":
    main()
