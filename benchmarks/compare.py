"""moonbox beside its peers on the same work, in one run: prints ratios, writes results.md and a plot.

    python benchmarks/compare.py [--rounds 6] [--rows call,fib] [--no-write]

Rounds go over all subjects in turn, and the best of each counts: a machine that is busy for a while is busy for all.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from figures import Row, drawing, report, shown
from rivals import SUBJECTS, Running, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HERE = Path(__file__).resolve().parent
ENOUGH = 2.5
"""Seconds for one subject and row, after which no further round is begun."""

ROWS = (
    Row("cold", "cold start to first result"),
    Row("fresh", "fresh REPL (warm pool) and a run"),
    Row("empty", "empty run"),
    Row("call", "one tool call, sequential"),
    Row("batch", "one tool call, in batches of 20"),
    Row("fib", "fib(27)"),
    Row("loop", "loop of 3·10^6"),
    Row("rows_in", "20,000 rows of 5 fields into the script"),
    Row("rows_out", "20,000 rows of 5 fields out of it"),
    Row("parallel", "twenty 50 ms tools in parallel", rounds=2),
    Row("memory", "memory of an idle REPL (of 50)", "bytes", rounds=1),
    Row("throughput", "runs a second, 2 REPLs", "rate", (2,), 4, True),
    Row("throughput", "runs a second, 8 REPLs", "rate", (8,), 4, True),
    Row("throughput", "runs a second, 64 REPLs", "rate", (64,), 4, True),
)
GROWTH = (
    *(Row("rows_in", f"{count:,} rows in", "time", (count,), 5) for count in (1_000, 5_000, 20_000)),
    *(Row("rows_out", f"{count:,} rows out", "time", (count,), 5) for count in (1_000, 5_000, 20_000)),
    *(Row("call", f"each of {count} calls", "time", (count,), 5) for count in (10, 100, 900)),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--rows", default="", help="only these keys, with commas between; nothing is written then")
    parser.add_argument("--no-write", action="store_true")
    options = parser.parse_args()
    wanted = [key for key in options.rows.split(",") if key]
    rows, growth = ([row for row in group if not wanted or row.key in wanted] for group in (ROWS, GROWTH))
    if not rows:
        parser.error(f"no such rows; there are: {', '.join(sorted({row.key for row in ROWS}))}")
    load = os.getloadavg()[0]
    running = list(started())
    try:
        figures = {row.id: measured(row, running, row.rounds or options.rounds) for row in (*rows, *growth)}
    finally:
        for one in running:
            one.close()
    names = [one.name for one in running]
    processors = os.cpu_count() or 1
    busy = f"a load of {load:.1f} before it began, on {processors} processors" if load > processors / 2 else ""
    text = report(rows, figures, names, growth, busy)
    print(f"\n{text}")
    if not options.no_write and not wanted:
        picture = "![How many times moonbox is ahead](results.svg)"
        (HERE / "results.md").write_text(f"{text}\n\n{picture}\n", encoding="utf-8")
        (HERE / "results.svg").write_text(drawing(rows, figures, names), encoding="utf-8")


class Measurable(Protocol):
    """A subject that can be asked for figures."""

    name: str

    def measure(self, row: str, *args: Any) -> float | None: ...


def started() -> Iterator[Running]:
    """Those subjects that can be had; the others are named and left out."""
    for subject in SUBJECTS:
        try:
            yield Running(subject)
        except Unavailable as problem:
            print(f"left out: {problem}", file=sys.stderr)


def measured(row: Row, running: Sequence[Measurable], rounds: int) -> dict[str, float]:
    """The best figure of each subject that has such a thing."""
    best: dict[str, float] = {}
    spent = dict.fromkeys((one.name for one in running), 0.0)
    for _ in range(rounds):
        for one in running:
            if spent[one.name] > ENOUGH:
                continue
            began = time.monotonic()
            value = one.measure(row.key, *row.args)
            spent[one.name] += time.monotonic() - began
            if value is not None:
                choose = max if row.more_is_better else min
                best[one.name] = choose(best.get(one.name, value), value)
    told = ", ".join(f"{name} {shown(value, row.unit)}" for name, value in best.items())
    print(f"  {row.title}: {told}", flush=True)
    return best


if __name__ == "__main__":
    main()
