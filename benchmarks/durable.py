"""What a journal costs: an empty run and a sequential call with and without one, and the time of `restore`.

The subjects take turns in every round, so that whatever else the machine does meets them all alike. A figure is the
median of the rounds' ratios to the run without a journal: by the clock, and in processor time of host and worker. A
journal in PostgreSQL is measured where the server's programs are installed, or with `--postgres ADDRESS`.

    python benchmarks/durable.py [--rounds 15] [--runs 200] [--calls 200] [--no-write]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from moonbox import Limits, Repl, Sandbox, tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PAGE = Path(__file__).with_suffix(".md")
GOAL = 3.0
NONE, PROCESS, MACHINE, POSTGRES = "no journal", "SQLite, process", "SQLite, machine", "PostgreSQL"
RESTORED = (10, 100, 1_000)
_WORK = "rows = rows or {}\nrows[#rows + 1] = tools.add{a = #rows, b = 1}"


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Subject:
    """A Repl of its own, with this journal."""

    def __init__(self, name: str, box: Sandbox) -> None:
        self.name = name
        self.repl: Repl = box.repl()
        self.figures: dict[str, list[tuple[float, float]]] = {"an empty run": [], "a sequential call": []}
        """By row, of each round: seconds by the clock and of processor time."""

    def measure(self, runs: int, calls: int) -> None:
        self._measure("an empty run", ["return 1"] * runs, runs)
        self._measure("a sequential call", [f"for i = 1, {calls} do tools.add{{a = i, b = 1}} end"], calls)

    def _measure(self, row: str, sources: Sequence[str], times: int) -> None:
        began, spent = time.perf_counter(), time.process_time()
        done = [self.repl.run(source) for source in sources]
        wall, cpu = time.perf_counter() - began, time.process_time() - spent
        for run in done:
            run.unwrap()
        cpu += sum(run.usage.cpu for run in done)
        self.figures[row].append((wall / times, cpu / times))


@contextlib.contextmanager
def subjects(folder: str, calls: int, postgres: str | None) -> Iterator[list[Subject]]:
    """One for each kind of journal."""
    places: list[tuple[str, dict[str, str]]] = [
        (NONE, {}),
        (PROCESS, {"journal": f"{folder}/process.db"}),
        (MACHINE, {"journal": f"{folder}/machine.db", "durability": "machine"}),
        *([(POSTGRES, {"journal": postgres})] if postgres else []),
    ]
    with contextlib.ExitStack() as stack:
        limits = Limits(max_tool_calls=calls + 1)
        yield [
            Subject(name, stack.enter_context(Sandbox([add], limits=limits, **place)))  # type: ignore[arg-type]
            for name, place in places
        ]


def costs(folder: str, rounds: int, runs: int, calls: int, postgres: str | None) -> list[Subject]:
    with subjects(folder, calls, postgres) as found:
        for subject in found:
            subject.measure(runs, calls)
            for figures in subject.figures.values():
                figures.clear()
        for number in range(rounds):
            for subject in found[number % len(found) :] + found[: number % len(found)]:
                subject.measure(runs, calls)
        return found


def restores(folder: str, most: Sequence[int] = RESTORED) -> list[tuple[int, float]]:
    """Seconds to restore a Repl after so many runs of one call each."""
    times = []
    for runs in most:
        place = f"{folder}/restored-{runs}.db"
        with Sandbox([add], journal=place) as box, box.repl() as repl:
            for _ in range(runs):
                repl.run(_WORK).unwrap()
            repl_id = repl.id
        with Sandbox([add], journal=place) as box:
            box.run("return 1")  # the zygote is started
            rounds = []
            for _ in range(3):
                began = time.perf_counter()
                with box.restore(repl_id) as repl:
                    rounds.append(time.perf_counter() - began)
                    assert repl.run("return #rows").value >= runs
        times.append((runs, statistics.median(rounds)))
    return times


def ratios(subject: Subject, base: Subject, row: str) -> tuple[float, float]:
    """Medians over the rounds: by the clock, in processor time."""
    pairs = list(zip(subject.figures[row], base.figures[row], strict=True))
    return (
        statistics.median(own[0] / other[0] for own, other in pairs),
        statistics.median(own[1] / other[1] for own, other in pairs),
    )


def report(found: list[Subject], restored: list[tuple[int, float]]) -> str:
    base = found[0]
    lines = [
        "# What a journal costs",
        "",
        f"One run on one machine ({platform.machine()}, {platform.system()}, Python {platform.python_version()}),",
        f"with a load of {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors at its end.",
        "`python benchmarks/durable.py` makes this file.",
        "",
        "The subjects take turns, and figures are medians over the rounds. A ratio is that to the same work without a",
        "journal in the same round: by the clock, and in processor time of host and worker. The goal for SQLite with",
        f'`durability="process"` is {GOAL:g}. PostgreSQL is on the same machine, and its commits wait for the disk.',
        "",
        "| journal | " + " | ".join(f"{row} | ratio | processor time" for row in base.figures) + " |",
        "|---|" + "---:|---:|---:|" * len(base.figures),
    ]
    for subject in found:
        cells = []
        for row, figures in subject.figures.items():
            wall, cpu = ratios(subject, base, row)
            cells.append(f"{statistics.median(each[0] for each in figures) * 1e6:.0f} µs | {wall:.1f} | {cpu:.1f}")
        lines.append(f"| {subject.name} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "A Repl is restored by running its scripts again. Each of these runs made one call.",
        "",
        "| runs | restored in |",
        "|---:|---:|",
        *(f"| {runs:,} | {seconds * 1e3:,.0f} ms |" for runs, seconds in restored),
        "",
    ]
    return "\n".join(lines)


@contextlib.contextmanager
def postgres_server() -> Iterator[str | None]:
    """The address of a server for this benchmark alone; None where it is not installed."""
    sys.path.append(str(PAGE.parents[1]))
    from tests.postgres import running

    with contextlib.ExitStack() as stack:
        try:
            address: str | None = stack.enter_context(running(fsync=True))
        except LookupError as missing:
            print(missing)
            address = None
        yield address


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--postgres", help="the address of a database")
    parser.add_argument("--without-restore", action="store_true")
    parser.add_argument("--no-write", action="store_true")
    args = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        postgres = args.postgres or stack.enter_context(postgres_server())
        found = costs(folder, args.rounds, args.runs, args.calls, postgres)
        restored = [] if args.without_restore else restores(folder)
    text = report(found, restored)
    print(text)
    if not args.no_write:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
