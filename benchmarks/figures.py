"""The comparison's figures as text and as a picture."""

from __future__ import annotations

import math
import platform
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Figures = Mapping[str, Mapping[str, "Figure"]]
    """By row, then by subject."""

OURS, NATIVE = "moonbox", "bare lupa"
IN_PROCESS = frozenset({"bare lupa", "smolagents", "quickjs-ng"})
"""Those that run scripts in the host process: nothing to start, no boundary to cross."""
COLOURS = ("#c2410c", "#7c3aed", "#0f766e", "#64748b", "#b45309")
_LEFT, _RIGHT = 290, 850


@dataclass(frozen=True)
class Row:
    """One thing to measure."""

    key: str
    title: str
    unit: str = "time"
    args: tuple[int | str, ...] = ()
    rounds: int | None = None
    more_is_better: bool = False

    @property
    def id(self) -> str:
        return self.key + "".join(f"-{arg}" for arg in self.args)

    def ratio(self, own: float, other: float) -> float:
        """How many times moonbox is ahead."""
        return own / other if self.more_is_better else other / own


@dataclass(frozen=True)
class Figure:
    """What a subject came to in one row, over all rounds."""

    values: tuple[float, ...]
    more_is_better: bool = False

    @property
    def best(self) -> float:
        return max(self.values) if self.more_is_better else min(self.values)

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def spread(self) -> float:
        """Half of what lies between the quartiles, as a part of the median."""
        if len(self.values) < 2 or not self.median:
            return 0.0
        low, _, high = statistics.quantiles(self.values, n=4, method="inclusive")
        return (high - low) / 2 / self.median


def report(
    rows: Sequence[Row],
    free: Figures,
    pinned: Figures,
    names: Sequence[str],
    growth: Sequence[Row] = (),
    busy: str = "",
) -> str:
    """Where moonbox loses, and then the tables, as Markdown."""
    everything = [*rows, *growth]
    lines = [
        "# moonbox beside its peers",
        "",
        f"One run on one machine ({platform.machine()}, {platform.system()}, Python {platform.python_version()}).",
        *([f"It was busy with other work: {busy}."] if busy else []),
        "Figures of different machines differ; the ratios tell more. `make bench` makes this file.",
        "",
        "Each row is measured in tight loops in two settings. *Free*: on all processors, by the clock.",
        "*One processor*: all processes of a subject are pinned to one, and the figure is the processor time of all of",
        "them together, as the kernel counts it; no second processor hides what is spent. Throughput is by the clock.",
        "",
        "A cell has the best of the rounds, their median and spread (half of what lies between the quartiles), and how",
        "many times moonbox is ahead (faster, or smaller) by the medians. Below 1 the other is ahead.",
        "",
        "## Where moonbox loses",
    ]
    others = [name for name in names if name != OURS]
    for title, group in (
        ("To those that run scripts in a process of their own", [name for name in others if name not in IN_PROCESS]),
        ("To those that run them in the host process, unprotected", [name for name in others if name in IN_PROCESS]),
    ):
        for setting, figures in (("free", free), ("one processor", pinned)):
            lost = list(_losses(everything, figures, group))
            lines += ["", f"{title}, {setting}:", "", *(lost or ["- nowhere in this run"])]
    if native := list(_native(rows, free)):
        lines += ["", "Compute against bare Lua:", "", *native]
    lines += ["", "## Free", "", *_table(rows, free, names)]
    if pinned:
        lines += ["", "## One processor", "", *_table([row for row in rows if row.id in pinned], pinned, names)]
    if growth:
        lines += ["", "## How each grows, free", "", *_table(growth, free, names)]
        grown = [row for row in growth if row.id in pinned]
        if grown:
            lines += ["", "## How each grows, one processor", "", *_table(grown, pinned, names)]
    return "\n".join([*lines, "", *_NOTES])


def shown(value: float, unit: str) -> str:
    if unit == "bytes":
        return f"{value / 2**20:.2f} MiB"
    if unit == "rate":
        return f"{value:,.0f}/s"
    for scale, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= scale:
            return f"{value / scale:.3g} {name}"
    return f"{value * 1e9:.3g} ns"


def drawing(rows: Sequence[Row], figures: Figures, names: Sequence[str]) -> str:
    """A bar for each subject and row, as SVG: how many times moonbox is ahead, on an axis that all of them fit on."""
    others = [name for name in names if name != OURS]
    colours = dict(zip(others, COLOURS, strict=False))
    ratios = {
        row.id: [
            (name, row.ratio(figures[row.id][OURS].median, figures[row.id][name].median))
            for name in others
            if name in figures[row.id] and OURS in figures[row.id]
        ]
        for row in rows
    }
    axis = _Axis.over([ratio for bars in ratios.values() for _, ratio in bars])
    parts: list[str] = []
    top = 75
    for row in rows:
        if not ratios[row.id]:
            continue
        parts.append(f'<text x="270" y="{top + 11}" text-anchor="end">{escape(row.title)}</text>')
        for name, ratio in ratios[row.id]:
            parts.append(_bar(top, ratio, colours[name], axis))
            top += 13
        top += 10
    key = "".join(
        f'<rect x="{290 + 130 * place}" y="30" width="10" height="10" fill="{colours[name]}"/>'
        f'<text x="{304 + 130 * place}" y="39">{escape(name)}</text>'
        for place, name in enumerate(others)
    )
    title = "How many times moonbox is ahead (logarithmic; left of the line: the other is)"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="900" height="{top + 20}" font-family="sans-serif" '
        'font-size="11"><style>.n{font-size:9px;fill:#475569}</style><rect width="100%" height="100%" fill="white"/>'
        f'<text x="20" y="20" font-size="14" font-weight="bold">{title}</text>{key}'
        f"{axis.drawing(top)}{''.join(parts)}</svg>"
    )


@dataclass(frozen=True)
class _Axis:
    """A logarithmic axis from one power of ten to another, 1 among them."""

    least: int
    most: int

    @classmethod
    def over(cls, ratios: Sequence[float]) -> _Axis:
        logs = [math.log10(ratio) for ratio in ratios]
        return cls(min(0, *map(math.floor, logs), 0), max(1, *map(math.ceil, logs), 1))

    def at(self, ratio: float) -> float:
        return _LEFT + (math.log10(ratio) - self.least) * (_RIGHT - _LEFT) / (self.most - self.least)

    def drawing(self, bottom: int) -> str:
        lines = []
        for power in range(self.least, self.most + 1):
            place, colour = self.at(10.0**power), "#0f172a" if power == 0 else "#e2e8f0"
            lines.append(
                f'<line x1="{place:.0f}" y1="66" x2="{place:.0f}" y2="{bottom}" stroke="{colour}"/>'
                f'<text x="{place:.0f}" y="60" text-anchor="middle" class="n">{_times(10.0**power)}×</text>'
            )
        return "".join(lines)


def _bar(top: int, ratio: float, colour: str, axis: _Axis) -> str:
    left, end = sorted((axis.at(1.0), axis.at(ratio)))
    return (
        f'<rect x="{left:.1f}" y="{top}" width="{end - left:.1f}" height="10" fill="{colour}"/>'
        f'<text x="{end + 4:.0f}" y="{top + 9}" class="n">{_times(ratio)}×</text>'
    )


def _table(rows: Sequence[Row], figures: Figures, names: Sequence[str]) -> Iterator[str]:
    yield "| | " + " | ".join(names) + " |"
    yield "|---|" + "---:|" * len(names)
    for row in rows:
        yield f"| {row.title} | " + " | ".join(_cell(row, figures[row.id], name) for name in names) + " |"


def _cell(row: Row, figures: Mapping[str, Figure], name: str) -> str:
    figure, own = figures.get(name), figures.get(OURS)
    if figure is None:
        return "–"
    best = f"**{shown(figure.best, row.unit)}**" if name == OURS else shown(figure.best, row.unit)
    if len(figure.values) > 1:
        best += f", {shown(figure.median, row.unit)} ± {figure.spread:.0%}"
    if name == OURS or own is None:
        return best
    return f"{best} ({_times(row.ratio(own.median, figure.median))}×)"


def _losses(rows: Sequence[Row], figures: Figures, names: Sequence[str]) -> Iterator[str]:
    for row in rows:
        found = figures.get(row.id, {})
        own = found.get(OURS)
        if own is None:
            continue
        ratios = {name: row.ratio(own.median, found[name].median) for name in names if name in found}
        ahead = [f"{name} {_times(1 / ratio)}×" for name, ratio in ratios.items() if 0 < ratio < 1]
        if ahead:
            yield f"- {row.title}: {', '.join(ahead)}"


def _native(rows: Sequence[Row], figures: Figures) -> Iterator[str]:
    """How much of bare Lua's speed is left for compute."""
    for row in rows:
        found = figures[row.id]
        if row.key in ("fib", "loop") and OURS in found and NATIVE in found:
            more = (found[OURS].best / found[NATIVE].best - 1) * 100
            yield f"- {row.title} takes {abs(more):.0f} % {'more' if more > 0 else 'less'} than in bare Lua"


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


_NOTES = (
    "Bare lupa and quickjs-ng have no isolation, limits, validation or records. smolagents' executor runs",
    "in the host process, without a worker to start or a boundary to cross; its fib and loop are measured on less work",
    "and scaled up. FastMCP's code mode makes a fresh sandbox for each execution. A dash means that the subject has no",
    "such thing, or failed at it.",
)
