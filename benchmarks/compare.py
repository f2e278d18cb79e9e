"""moonbox beside its peers on the same work, in one run: prints ratios, writes results.md and a plot.

    python benchmarks/compare.py [--rounds 5] [--rows call,fib] [--no-write]

Rounds go over all subjects in turn, and the best of each counts: a machine that is busy for a while is busy for all.
"""

from __future__ import annotations

import argparse
import platform
from dataclasses import dataclass
from pathlib import Path

from peers import SUBJECTS, Running

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Row:
    """One thing to measure."""

    key: str
    title: str
    unit: str = "time"
    args: tuple[int, ...] = ()
    rounds: int | None = None
    more_is_better: bool = False

    @property
    def id(self) -> str:
        return self.key + "".join(f"-{arg}" for arg in self.args)


ROWS = (
    Row("cold", "cold start to first result", rounds=3),
    Row("fresh", "fresh REPL (warm pool) and a run", rounds=3),
    Row("empty", "empty run"),
    Row("call", "one tool call, sequential"),
    Row("batch", "one tool call, in batches of 20"),
    Row("fib", "fib(27)"),
    Row("loop", "loop of 3·10^6"),
    Row("rows_in", "20,000 rows of 5 fields into the script"),
    Row("rows_out", "20,000 rows of 5 fields out of it"),
    Row("parallel", "twenty 50 ms tools in parallel"),
    Row("memory", "memory of an idle REPL (of 50)", "bytes", rounds=1),
    Row("throughput", "runs a second, 2 REPLs", "rate", (2,), 3, True),
    Row("throughput", "runs a second, 8 REPLs", "rate", (8,), 3, True),
    Row("throughput", "runs a second, 64 REPLs", "rate", (64,), 3, True),
)
GROWTH = (
    *(Row("rows_in", f"{count:,} rows in", "time", (count,), 3) for count in (1_000, 5_000, 20_000)),
    *(Row("rows_out", f"{count:,} rows out", "time", (count,), 3) for count in (1_000, 5_000, 20_000)),
    *(Row("call", f"each of {count} calls", "time", (count,), 3) for count in (10, 100, 900)),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", default="", help="only these keys, with commas between")
    parser.add_argument("--no-write", action="store_true")
    options = parser.parse_args()
    wanted = [key for key in options.rows.split(",") if key]
    running = [Running(subject) for subject in SUBJECTS]
    try:
        rows = [row for row in (*ROWS, *GROWTH) if not wanted or row.key in wanted]
        figures = {row.id: measured(row, running, row.rounds or options.rounds) for row in rows}
    finally:
        for one in running:
            one.close()
    names = [subject.name for subject in SUBJECTS]
    text = report(rows, figures, names)
    print(text)
    if not options.no_write and not wanted:
        (HERE / "results.md").write_text(text + "\n", encoding="utf-8")
        plot([row for row in ROWS if row.id in figures], figures, names)


def measured(row: Row, running: list[Running], rounds: int) -> dict[str, float]:
    best: dict[str, float] = {}
    for _ in range(rounds):
        for one in running:
            value = one.measure(row.key, *row.args)
            if value is not None:
                choose = max if row.more_is_better else min
                best[one.name] = choose(best.get(one.name, value), value)
    print(
        f"  {row.title}: " + ", ".join(f"{name} {shown(value, row.unit)}" for name, value in best.items()), flush=True
    )
    return best


def report(rows: list[Row], figures: dict[str, dict[str, float]], names: list[str]) -> str:
    lines = [
        "# moonbox beside its peers",
        "",
        f"One run on one machine ({platform.machine()}, {platform.system()}, Python {platform.python_version()}). "
        "Figures of different machines differ; the ratios tell more. `make bench` makes this file.",
        "",
        "In brackets: how many times moonbox's figure. Above 1 the other is slower (or larger), below 1 it is ahead.",
        "",
        "| | " + " | ".join(names) + " |",
        "|---|" + "---|" * len(names),
    ]
    lost: list[str] = []
    for row in rows:
        found = figures[row.id]
        own = found.get("moonbox")
        cells = []
        for name in names:
            value = found.get(name)
            if value is None:
                cells.append("–")
            elif name == "moonbox" or not own:
                cells.append(f"**{shown(value, row.unit)}**")
            else:
                ratio = own / value if row.more_is_better else value / own
                cells.append(f"{shown(value, row.unit)} ({ratio:.2g}×)")
                if ratio < 1:
                    lost.append(f"{row.title}: {name} is {1 / ratio:.2g} times ahead")
        lines.append(f"| {row.title} | " + " | ".join(cells) + " |")
    lines += ["", "## Where moonbox loses", ""]
    lines += [f"- {item}" for item in lost] or ["- nowhere in this run"]
    lines += [
        "",
        "Bare lupa has no isolation, limits, validation or records: it stands for native speed. smolagents' executor runs "
        "in the host process; its fib and loop are measured on less work and scaled up. FastMCP's code mode makes a fresh "
        "sandbox for each execution. A dash means that the subject has no such thing.",
    ]
    return "\n".join(lines)


def shown(value: float, unit: str) -> str:
    if unit == "bytes":
        return f"{value / 2**20:.2f} MiB"
    if unit == "rate":
        return f"{value:,.0f}/s"
    for scale, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= scale:
            return f"{value / scale:.3g} {name}"
    return f"{value * 1e9:.3g} ns"


def plot(rows: list[Row], figures: dict[str, dict[str, float]], names: list[str]) -> None:
    """A bar for each subject and row, as a plain SVG: how many times moonbox's figure."""
    import math

    others = [name for name in names if name != "moonbox"]
    colours = dict(zip(others, ("#c2410c", "#7c3aed", "#0f766e", "#64748b"), strict=False))
    bars: list[str] = []
    top = 60
    for row in rows:
        own = figures[row.id].get("moonbox")
        if not own:
            continue
        bars.append(f'<text x="270" y="{top + 11}" text-anchor="end">{row.title}</text>')
        for name in others:
            value = figures[row.id].get(name)
            if value is None:
                continue
            ratio = own / value if row.more_is_better else value / own
            width = max(-150.0, min(430.0, math.log10(ratio) * 120))
            left = 430 + min(0.0, width)
            bars.append(f'<rect x="{left:.0f}" y="{top}" width="{abs(width):.0f}" height="10" fill="{colours[name]}"/>')
            bars.append(f'<text x="{max(430.0, 430 + width) + 4:.0f}" y="{top + 9}" class="n">{ratio:.2g}×</text>')
            top += 13
        top += 10
    key = "".join(
        f'<rect x="{290 + 130 * i}" y="30" width="10" height="10" fill="{colours[name]}"/>'
        f'<text x="{304 + 130 * i}" y="39">{name}</text>'
        for i, name in enumerate(others)
    )
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="900" height="{top + 20}" font-family="sans-serif" font-size="11">'
        '<style>.n{font-size:9px;fill:#475569}</style><rect width="100%" height="100%" fill="white"/>'
        '<text x="20" y="20" font-size="14" font-weight="bold">How many times moonbox\'s figure (logarithmic; right of the line: moonbox is ahead)</text>'
        f'{key}<line x1="430" y1="50" x2="430" y2="{top}" stroke="#0f172a"/>{"".join(bars)}</svg>'
    )
    (HERE / "results.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
