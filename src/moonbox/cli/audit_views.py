"""What `moonbox audit` prints of runs: the list, one run, figures, the tree of tool scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.audit.compact import short
from moonbox.audit.query import RunSummary
from moonbox.audit.reports import timeline_text, tracebacks
from moonbox.cli.output import columns_table, lexer_of, when
from moonbox.wording import counted, seconds, size, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import RenderableType
    from rich.text import Text

    from moonbox.audit.query import Stats
    from moonbox.audit.records import Call, Run

_GAP = "  "
_NARROWEST_SCRIPT = 12
_NUMBERS = ("calls", "time")
_UNENDED = ("running", "interrupted", "unfinished")


def run_list(runs: Sequence[RunSummary], width: int) -> Iterator[Text]:
    """One line for each run with the script at its end, or two lines where that is too narrow.

    Only the script is ever cut: every other column is as wide as what is in it.
    """
    from rich.text import Text

    length = _telling_length([run.id for run in runs])
    columns = {
        "when": [Text(when(run.started)) for run in runs],
        "id": [Text(visible(run.id[:length], keep="")) for run in runs],
        "result": [_result(run) for run in runs],
        "calls": [Text(run.calls_text) for run in runs],
        "time": [Text(seconds(run.wall)) for run in runs],
    }
    widths = {name: max(len(name), *(cell.cell_len for cell in cells)) for name, cells in columns.items()}
    scripts = [Text(visible(run.title, keep="")) for run in runs]
    used = sum(widths.values()) + len(_GAP) * len(widths)
    if width - used >= _NARROWEST_SCRIPT:
        yield _columns({name: Text(name, "bold") for name in columns}, widths, Text("script", "bold"))
        yield Text("─" * width, "dim")
        for place, script in enumerate(scripts):
            yield _columns({name: cells[place] for name, cells in columns.items()}, widths, script)
        return
    times = columns.pop("when")
    for place, script in enumerate(scripts):
        yield _columns({name: cells[place] for name, cells in columns.items()}, widths)
        yield _columns({}, widths, Text(_GAP, "dim").append_text(times[place]).append(_GAP).append_text(script))


def _columns(cells: Mapping[str, Text], widths: Mapping[str, int], rest: Text | None = None) -> Text:
    """A line of cells, each as wide as its column, and a last one that may be cut."""
    from rich.text import Text

    line = []
    for name, cell in cells.items():
        line.append(cell.copy())
        line[-1].align("right" if name in _NUMBERS else "left", widths[name])
    return Text(_GAP).join([*line, *([rest] if rest is not None else [])])


def _result(run: RunSummary) -> Text:
    from rich.text import Text

    return Text(visible(run.result, keep=""), {"ok": "green", "running": "cyan"}.get(run.state, "red"))


def _telling_length(ids: Sequence[str]) -> int:
    """How many characters tell these ids apart, eight at least."""
    longest = max(map(len, ids))
    return next((size for size in range(8, longest) if len({id[:size] for id in ids}) == len(set(ids))), longest)


def run_parts(run: Run, width: int) -> Iterator[RenderableType]:
    from rich.syntax import Syntax
    from rich.text import Text

    yield Text.assemble("run ", (visible(run.id), "bold"), "  ", _result(RunSummary.of(run)))
    where = f"run {run.number} of Repl {visible(run.repl)}" if run.repl else "a run by itself"
    if run.tool:
        caller = f", called by run {visible(run.parent[:8])}" if run.parent else ""
        where = f"the tool script {visible(run.tool, keep='')}{caller}"
    yield f"{when(run.started)}, {run.language}, {where}"
    if run.labels:
        yield visible(", ".join(f"{name}={text}" for name, text in run.labels.items()), keep="")
    yield _usage(run)
    yield _heading("source")
    source, lexer = visible(run.source).strip("\n"), lexer_of(run.language)
    yield Syntax(source, lexer, line_numbers=True, theme="ansi_dark", background_color="default")
    if run.error is not None:
        yield _heading("error")
        yield Text(visible(str(run.error)), style="red")
        if run.error.traceback:
            yield visible(run.error.traceback)
    if run.values:
        yield _heading("returned")
        yield from (visible(short(value, 2000)) for value in run.values)
    if run.output:
        yield _heading("printed")
        yield visible(run.output.rstrip("\n"))
    if run.calls:
        yield _heading(f"calls ({len(run.calls)})")
        yield from timeline_text(run, width)
        yield _heading("arguments and results")
        yield from (_call_line(call, width, running=run.running) for call in run.calls[:100])
    for call, text in tracebacks(run):
        yield _heading(f"traceback of call {call.index} ({visible(call.tool, keep='')})")
        yield visible(text)
    if run.state_lost:
        yield "\nthe state of the Repl was lost with this run"


def _heading(title: str) -> Text:
    from rich.text import Text

    return Text(f"\n{title}", style="bold")


def _usage(run: Run) -> str:
    """What it spent, against its limits where they are known."""
    usage, limits = run.usage, {} if run.limits is None else run.limits.to_dict()

    def of(name: str, text: Callable[[float], str]) -> str:
        return f" of {text(limits[name])}" if limits.get(name) else ""

    operations = ""
    if usage.operations is not None:
        operations = f", {usage.operations:,}{of('max_operations', lambda n: f'{n:,}')} operations"
    traffic = f"{size(usage.bytes_in)} in, {size(usage.bytes_out)} out"
    spent = f"{seconds(usage.wall)}{of('timeout', seconds)} ({seconds(usage.cpu)} cpu)"
    return f"{spent}{operations}, {size(usage.peak_memory)}{of('max_memory', size)} of memory, {traffic}"


def _call_line(call: Call, width: int, *, running: bool) -> str:
    result = short(call.result, width) if call.ok else call.status
    if call.status == "in_flight":
        result = "running" if running else "in doubt: it may have taken effect"
    if call.error:
        result = f"{call.error.code}: {call.error.message}"
    notes = f" [{_approval(call, width)}]" if call.approval else ""
    notes += f" [retry of {call.retry_of}]" if call.retry_of is not None else ""
    line = f"{call.index} {call.tool} {short(call.arguments, max(20, width // 2))}{notes} → {result}"
    line = visible(" ".join(line.split()), keep="")
    return line if len(line) <= width else line[: width - 1] + "…"


def _approval(call: Call, width: int) -> str:
    """What was decided, by whom, and why."""
    before = "" if call.original_arguments is None else f", was {short(call.original_arguments, max(20, width // 2))}"
    reason = f": {call.approval_reason}" if call.approval_reason else ""
    return f"{call.approval} by {call.approval_by or 'a person'}{before}{reason}"


def stats_parts(stats: Stats) -> Iterator[RenderableType]:
    kinds = ", ".join(f"{count} {kind}" for kind, count in stats.kinds.items())
    failed = f"{stats.failures:,} failed{f' ({kinds})' if kinds else ''}"
    others = [f"{n:,} {state}" for state in _UNENDED if (n := stats.states.get(state))]
    yield ", ".join([counted(stats.runs, "run"), failed, *others, counted(stats.calls, "call")])
    if stats.tools:
        names: tuple[str, ...] = ("tool", "calls", "failed", "p50", "p95", "sent", "received")
        rows = []
        for tool in stats.tools:
            figures = (f"{tool.calls:,}", f"{tool.failures:,}", seconds(tool.p50), seconds(tool.p95))
            rows.append((visible(tool.tool, keep=""), *figures, size(tool.bytes_in), size(tool.bytes_out)))
        yield columns_table(names, rows, right=names[1:])
    if stats.days:
        names = ("day (UTC)", "runs", "failed", "calls", "time")
        days = [
            (day.day, f"{day.runs:,}", f"{day.failures:,}", f"{day.calls:,}", seconds(day.wall))
            for day in stats.days[:31]
        ]
        yield columns_table(names, days, right=names[1:])


def script_tree(run: Run, others: Sequence[Run]) -> Iterator[RenderableType]:
    """The runs of tool scripts that this run called, and those that they called, below one another."""
    from rich.text import Text
    from rich.tree import Tree

    def grow(branch: Tree, id: str) -> Tree:
        for child in others:
            if child.parent == id:
                calls = f", {counted(len(child.calls), 'call')}" if child.calls else ""
                head = f"{visible(child.tool, keep='')}  {child.id[:8]}  "
                about = Text.assemble(head, _result(RunSummary.of(child)), f"  {seconds(child.usage.wall)}{calls}")
                grow(branch.add(about), child.id)
        return branch

    tree = grow(Tree(_heading("tool scripts")), run.id)
    yield from [tree] if tree.children else []
