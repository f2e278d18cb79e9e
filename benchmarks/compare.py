"""moonbox beside its peers on the same work, in one run: prints where it loses first, writes results.md and a plot.

    python benchmarks/compare.py [--rounds 6] [--rows call,fib] [--no-write]

Each row is measured free and pinned to one processor. Rounds go over all subjects in turn: a machine that is busy for a
while is busy for all.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from figures import Figure, Row, drawing, report, shown
from rivals import SUBJECTS, Running, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Figure", "Row", "drawing", "main", "measured", "report", "shown"]

HERE = Path(__file__).resolve().parent
ENOUGH = 1.0
"""Seconds for one subject, row and setting, after which no further round is begun."""
SHAPES = {"flat": "5 fields", "nested": "5 fields, one a list", "unlike": "unlike shapes"}
SIZES = {10: "10 B", 1_000: "1 kB", 100_000: "100 kB", 1_000_000: "1 MB", 10_000_000: "10 MB", 100_000_000: "100 MB"}

ROWS = (
    Row("start", "a program from its start to its first result and its end"),
    Row("cold", "a first result, the package being loaded"),
    Row("fresh", "fresh REPL (warm pool) and a run"),
    Row("one_off", "one-off runs, sustained"),
    Row("empty", "empty run"),
    Row("call", "one tool call, sequential"),
    Row("batch", "one tool call, in batches of 20"),
    Row("fib", "fib(27)"),
    Row("loop", "loop of 3·10^6"),
    *(
        Row("rows_in", f"20,000 rows of {what} into the script", "time", (20_000, shape))
        for shape, what in SHAPES.items()
    ),
    *(Row("rows_out", f"20,000 rows of {what} out of it", "time", (20_000, shape)) for shape, what in SHAPES.items()),
    Row("parallel", "twenty 50 ms tools in parallel"),
    Row("memory", "memory of an idle REPL (of 50)", "bytes", rounds=1),
    Row("memory_after", "memory of a REPL after work (of 10)", "bytes", rounds=1),
    *(Row("throughput", f"runs a second, {repls} REPLs", "rate", (repls,), 3, True) for repls in (2, 8, 64)),
)
GROWTH = (
    *(Row("result", f"a result of {what}", "time", (size,), 3) for size, what in SIZES.items()),
    *(Row("rows_in", f"{count:,} rows in", "time", (count, "nested"), 3) for count in (1_000, 5_000, 20_000)),
    *(Row("rows_out", f"{count:,} rows out", "time", (count, "nested"), 3) for count in (1_000, 5_000, 20_000)),
    *(Row("call", f"each of {count} calls", "time", (count,), 3) for count in (10, 100, 900)),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--rows", default="", help="only these keys, with commas between; nothing is written then")
    parser.add_argument("--no-write", action="store_true")
    options = parser.parse_args()
    wanted = [key for key in options.rows.split(",") if key]
    rows, growth = ([row for row in group if not wanted or row.key in wanted] for group in (ROWS, GROWTH))
    growth = [row for row in growth if row.id not in {other.id for other in rows}]
    if not rows:
        parser.error(f"no such rows; there are: {', '.join(sorted({row.key for row in ROWS}))}")
    load = os.getloadavg()[0]
    running = list(started())
    try:
        free, pinned = {}, {}
        for row in (*rows, *growth):
            rounds = row.rounds or options.rounds
            free[row.id] = measured(row, running, rounds)
            if row.unit != "bytes":
                pinned[row.id] = measured(row, running, rounds, pinned=True)
    finally:
        for one in running:
            one.close()
    names = [one.name for one in running]
    processors = os.cpu_count() or 1
    busy = f"a load of {load:.1f} before it began, on {processors} processors" if load > processors / 2 else ""
    text = report(rows, free, pinned, names, growth, busy)
    print(f"\n{text}")
    if not options.no_write and not wanted:
        picture = "![How many times moonbox is ahead](results.svg)"
        page = HERE / "results.md"
        _, heading, others = page.read_text(encoding="utf-8").partition("\n## A script as models write them")
        page.write_text(
            f"{text}\n\n{picture}\n{heading}{others}", encoding="utf-8"
        )  # real_script.py makes that section
        (HERE / "results.svg").write_text(drawing(rows, free, names), encoding="utf-8")


class Measurable(Protocol):
    """A subject that can be asked for figures."""

    name: str

    def measure(self, row: str, *args: Any, pinned: bool = False) -> tuple[float, float | None] | None: ...


def started() -> Iterator[Running]:
    """Those subjects that can be had; the others are named and left out."""
    for subject in SUBJECTS:
        try:
            yield Running(subject)
        except Unavailable as problem:
            print(f"left out: {problem}", file=sys.stderr)


def measured(row: Row, running: Sequence[Measurable], rounds: int, *, pinned: bool = False) -> dict[str, Figure]:
    """The figures of each subject that has such a thing; pinned, only those whose processor time was counted."""
    values: dict[str, list[float]] = {}
    spent = dict.fromkeys((one.name for one in running), 0.0)
    for _ in range(rounds):
        for one in running:
            if spent[one.name] > ENOUGH:
                continue
            began = time.monotonic()
            answer = one.measure(row.key, *row.args, pinned=pinned)
            spent[one.name] += time.monotonic() - began
            if answer is not None:
                figure = answer[1] if pinned and row.unit == "time" else answer[0]
                if figure:  # seconds by the clock are no figure beside seconds of processors
                    values.setdefault(one.name, []).append(figure)
    figures = {name: Figure(tuple(taken), row.more_is_better) for name, taken in values.items()}
    told = ", ".join(f"{name} {shown(figure.best, row.unit)}" for name, figure in figures.items())
    print(f"  {row.title}{', one processor' if pinned else ''}: {told}", flush=True)
    return figures


if __name__ == "__main__":
    main()
