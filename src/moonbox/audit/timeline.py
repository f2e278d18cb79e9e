"""The timeline of a run's calls, drawn as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moonbox.audit.terminal import seconds, visible
from moonbox.wording import counted

if TYPE_CHECKING:
    from rich.text import Text

    from moonbox.audit.records import Call, Run

__all__ = ["Bar", "bars", "timeline", "timeline_text"]

MARKS = {"ok": "✓", "error": "✗", "denied": "⊘", "timeout": "!", "cancelled": "∅", "in_flight": "…"}
STYLES = {
    "ok": "green",
    "error": "red",
    "denied": "yellow",
    "timeout": "red",
    "cancelled": "yellow",
    "in_flight": "cyan",
}


@dataclass(frozen=True, slots=True)
class Bar:
    """One row: what was called, and where on the line it stands, in cells."""

    call: Call
    label: str
    before: int
    waiting: int
    running: int
    after: int

    @property
    def drawing(self) -> str:
        """Spaces, the wait for a slot or a person as ░, the time inside the tool as █."""
        return " " * self.before + "░" * self.waiting + "█" * self.running + " " * self.after

    @property
    def status(self) -> str:
        """What came of it, in words when it was not simply done."""
        call = self.call
        if call.ok:
            return MARKS["ok"]
        words = call.error.code if call.error and call.status == "error" else call.status.replace("_", " ")
        return f"{MARKS.get(call.status, '?')} {visible(words, keep='')[:30]}"


def bars(run: Run, cells: int, *, max_rows: int = 100, label_width: int = 24) -> tuple[Bar, ...]:
    """A bar for each of the first `max_rows` calls, on a line of `cells` cells that stands for the whole run."""
    start, end = _span(run)
    per_cell = (end - start) / cells if end > start else 1.0
    return tuple(_bar(call, start, per_cell, cells, label_width) for call in run.calls[:max_rows])


def timeline(run: Run, width: int = 100, *, max_rows: int = 100) -> list[str]:
    """The timeline as plain lines: a scale, a row for each call, and how many calls are not shown."""
    return [line.plain for line in timeline_text(run, width, max_rows=max_rows)]


def timeline_text(run: Run, width: int = 100, *, max_rows: int = 100) -> list[Text]:
    """The same lines with colours, for rich."""
    from rich.text import Text

    if not run.calls:
        return []
    label_width = min(max(len(visible(call.tool, keep="")) for call in run.calls[:max_rows]), max(8, width // 4))
    number_width = len(str(run.calls[-1].index))
    status_width = max(len(bar.status) for bar in bars(run, 1, max_rows=max_rows))
    cells = max(10, width - number_width - label_width - 3 - _ROOM_FOR_TIME - status_width)
    start, end = _span(run)
    scale = f"{'0':<{cells - len(seconds(end - start))}}{seconds(end - start)}"
    lines = [Text(f"{'':{number_width}} {'':{label_width}} {scale}", style="dim")]
    for bar in bars(run, cells, max_rows=max_rows, label_width=label_width):
        style = STYLES.get(bar.call.status, "default")
        line = Text(f"{bar.call.index:>{number_width}} ", style="dim")
        line.append(f"{bar.label:<{label_width}} ", style="default")
        line.append(bar.drawing, style=style)
        line.append(f" {seconds(bar.call.duration):>{_ROOM_FOR_TIME - 1}} ", style="default")
        line.append(bar.status, style=style)
        lines.append(line)
    hidden = len(run.calls) - max_rows
    if hidden > 0:
        lines.append(Text(f"{'':{number_width}} … {counted(hidden, 'more call')}", style="dim"))
    return lines


_ROOM_FOR_TIME = 9


def _span(run: Run) -> tuple[float, float]:
    """From the start of the run to the end of whatever ended last."""
    start = min([call.started for call in run.calls] + ([run.started] if run.started else []))
    ends = [call.started + call.queued + call.duration for call in run.calls]
    return start, max(*ends, run.started + run.usage.wall if run.started else 0.0, start)


def _bar(call: Call, start: float, per_cell: float, cells: int, label_width: int) -> Bar:
    def cell(moment: float) -> int:
        return min(cells, max(0, round((moment - start) / per_cell)))

    begun = min(cell(call.started), cells - 1)
    entered = min(max(cell(call.started + call.queued), begun), cells - 1)
    left = max(cell(call.started + call.queued + call.duration), entered + 1)  # never invisible
    if call.status == "in_flight":
        left = cells
    label = visible(call.tool, keep="")
    if len(label) > label_width:
        label = label[: label_width - 1] + "…"
    return Bar(call, label, before=begun, waiting=entered - begun, running=left - entered, after=cells - left)
