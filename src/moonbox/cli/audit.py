"""The commands `moonbox audit list`, `show`, `stats` and `prune`."""

from __future__ import annotations

import datetime as dt
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moonbox.audit.compact import short
from moonbox.audit.query import moment
from moonbox.audit.sinks import default_path, open_trail
from moonbox.audit.terminal import seconds, size, visible
from moonbox.cli.screen import console, is_terminal, print_json, told
from moonbox.errors import UsageError
from moonbox.languages.registry import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from moonbox.audit.query import DayStats, RunSummary, Stats, ToolStats
    from moonbox.audit.records import Call, Run, Usage
    from moonbox.audit.sinks import Store

__all__ = ["app"]

app = typer.Typer(name="audit", help="Look at what scripts did.", no_args_is_help=True)

Db = Annotated[
    Path | None,
    typer.Option("--db", help="The trail, a .db or .jsonl file; else your own.", metavar="PATH", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Since = Annotated[str | None, typer.Option(help="Only runs since then: 45m, 12h, 7d, or a date.", show_default=False)]


@app.command("list")
def list_runs(
    db: Db = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many runs at most.")] = 20,
    failed: Annotated[bool, typer.Option("--failed", help="Only runs that failed.")] = False,
    tool: Annotated[str | None, typer.Option(help="Only runs that called this tool.", show_default=False)] = None,
    since: Since = None,
    repl: Annotated[str | None, typer.Option(help="Only runs of this Repl.", show_default=False)] = None,
    as_json: Json = False,
) -> None:
    """List runs, the latest first."""
    with told():
        runs = _trail(db).list(limit, ok=False if failed else None, tool=tool, since=_since(since), repl=repl)
        if as_json:
            print_json([run.to_dict() for run in runs])
        elif not runs:
            typer.echo("no runs" + (" match" if failed or tool or since or repl else " in this trail"))
        else:
            console().print(_run_table(runs))


@app.command("show")
def show_run(
    id: Annotated[str, typer.Argument(help="The run's id, or enough of its beginning.", metavar="ID")],
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Show one run: its source, what came of it, and its calls on a timeline."""
    with told():
        run = _trail(db).get(id)
        if as_json:
            print_json(run.to_dict())
            return
        screen = console()
        for part in _run_parts(run, screen.width):
            screen.print(part, soft_wrap=isinstance(part, str))


@app.command("stats")
def show_stats(db: Db = None, since: Since = None, as_json: Json = False) -> None:
    """Show how runs and tools did."""
    with told():
        stats = _trail(db).stats(since=_since(since))
        if as_json:
            print_json(stats.to_dict())
        else:
            console().print(*_stats_parts(stats), sep="\n")


@app.command("prune")
def prune(
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="AGE", help="Those from before: 12h, 30d, 8w ago, or a date."),
    ] = None,
    keep: Annotated[
        int | None, typer.Option("--keep", metavar="N", min=0, help="All but the latest N.", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many there are.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    db: Db = None,
) -> None:
    """Remove old runs, for good.

    A run goes that either option names. On a terminal you are asked first.
    Programs that are writing to the trail meanwhile are not disturbed.
    """
    with told():
        if older_than is None and keep is None:
            raise UsageError("say which runs: --older-than 30d, --keep 1000, or both")
        trail, border = _trail(db), _border(older_than)
        age = None if border is None else time.time() - border
        if dry_run or not yes:
            found, which = trail.prune(older_than=age, keep=keep, dry_run=True), _which(border, keep)
            if dry_run or not found:
                typer.echo(f"{_runs(found)} would be removed: {which}" if dry_run else "nothing to remove")
                return
            _confirm(f"Remove {_runs(found)} for good ({which})?")
        # Measured anew: what a person has agreed to is the border, and no run has become older by the time to think.
        age = None if border is None else time.time() - border
        typer.echo(f"{_runs(trail.prune(older_than=age, keep=keep))} removed")


def _border(text: str | None) -> float | None:
    now = time.time()
    border = None if text is None else moment(text, now)
    if border is not None and border > now:
        raise UsageError(f"--older-than {text} lies in the future; that would be every run: --keep 0 removes those")
    return border


def _which(border: float | None, keep: int | None) -> str:
    """In words: the border as a date, so that 1m is not taken for a month."""
    said = [f"from before {_when(border)}"] if border is not None else []
    if keep is not None:
        said.append(f"all but the latest {keep:,}" if keep else "all")
    return ", and ".join(said)


def _runs(count: int) -> str:
    return f"{count:,} run{'s' * (count != 1)}"


def _confirm(question: str) -> None:
    if not (sys.stdin.isatty() and is_terminal(stderr=True)):
        raise UsageError("nobody is here to be asked; --yes removes them without, --dry-run counts them")
    if not typer.confirm(question, err=True):
        typer.echo("nothing was removed", err=True)
        raise typer.Exit(1)


def _trail(db: Path | None) -> Store:
    if db is None and not default_path().exists():
        raise UsageError(f"there is no audit trail at {default_path()} yet; name another one with --db PATH")
    return open_trail(db if db is not None else default_path())


def _since(text: str | None) -> float | None:
    return None if text is None else moment(text, time.time())


def _run_table(runs: Sequence[RunSummary]) -> RenderableType:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    length = _telling_length([run.id for run in runs])
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("when", no_wrap=True)
    table.add_column(
        "id", no_wrap=True, min_width=length
    )  # to be typed: it is there in full, however narrow the window
    table.add_column("result", no_wrap=True, min_width=max(len(run.kind or "ok") for run in runs))
    table.add_column("calls", justify="right", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("script", no_wrap=True, overflow="ellipsis", ratio=1)
    for run in runs:
        failed = f" ({run.failed_calls} failed)" if run.failed_calls else ""
        table.add_row(
            _when(run.started),
            visible(run.id[:length], keep=""),
            Text("ok", style="green") if run.ok else Text(visible(str(run.kind)), style="red"),
            f"{run.calls}{failed}",
            seconds(run.wall),
            Text(visible(run.title, keep="")),
        )
    return table


def _telling_length(ids: Sequence[str]) -> int:
    """How many characters tell these ids apart, eight at least."""
    longest = max(map(len, ids))
    return next((size for size in range(8, longest) if len({id[:size] for id in ids}) == len(set(ids))), longest)


def _run_parts(run: Run, width: int) -> Iterator[RenderableType]:
    from rich.syntax import Syntax
    from rich.text import Text

    from moonbox.audit.timeline import timeline_text

    result = Text("ok", style="green") if run.error is None else Text(run.error.kind, style="red")
    yield Text.assemble("run ", (visible(run.id), "bold"), "  ", result)
    yield f"{_when(run.started)}, {run.language}, run {run.number} of Repl {visible(run.repl) or '(unnamed)'}"
    yield _usage(run.usage)
    yield _heading("source")
    lexer = LANGUAGES[run.language].lexer if run.language in LANGUAGES else "text"
    yield Syntax(
        visible(run.source).strip("\n"), lexer, line_numbers=True, theme="ansi_dark", background_color="default"
    )
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
        yield from (_call_line(call, width) for call in run.calls[:100])
    if run.state_lost:
        yield "\nthe Repl's state was lost with this run"


def _heading(title: str) -> RenderableType:
    from rich.text import Text

    return Text(f"\n{title}", style="bold")


def _usage(usage: Usage) -> str:
    operations = f", {usage.operations:,} operations" if usage.operations is not None else ""
    traffic = f"{size(usage.bytes_in)} in, {size(usage.bytes_out)} out"
    spent = f"{seconds(usage.wall)} ({seconds(usage.cpu)} cpu)"
    return f"{spent}{operations}, {size(usage.peak_memory)} of memory, {traffic}"


def _call_line(call: Call, width: int) -> str:
    came = short(call.result, width) if call.ok else call.status.replace("_", " ")
    if call.error:
        came = f"{call.error.code}: {call.error.message}"
    notes = f" [{call.approval} by a person]" if call.approval else ""
    notes += f" [retry of {call.retry_of}]" if call.retry_of is not None else ""
    line = f"{call.index} {call.tool} {short(call.arguments, max(20, width // 2))}{notes} → {came}"
    line = visible(" ".join(line.split()), keep="")
    return line if len(line) <= width else line[: width - 1] + "…"


def _stats_parts(stats: Stats) -> Iterator[RenderableType]:
    kinds = ", ".join(f"{count} {kind}" for kind, count in stats.kinds.items())
    calls = f"{stats.calls:,} call{'s' * (stats.calls != 1)}"
    yield f"{_runs(stats.runs)}, {stats.failures:,} failed{f' ({kinds})' if kinds else ''}, {calls}"
    if stats.tools:
        names: tuple[str, ...] = ("tool", "calls", "failed", "p50", "p95", "sent", "received")
        yield _figures(names, [_tool_row(tool) for tool in stats.tools])
    if stats.days:
        names = ("day (UTC)", "runs", "failed", "calls", "time")
        yield _figures(names, [_day_row(day) for day in stats.days[:31]])


def _tool_row(tool: ToolStats) -> tuple[str, ...]:
    counts = (f"{tool.calls:,}", f"{tool.failures:,}")
    times = (seconds(tool.p50), seconds(tool.p95))
    return (visible(tool.tool, keep=""), *counts, *times, size(tool.bytes_in), size(tool.bytes_out))


def _day_row(day: DayStats) -> tuple[str, ...]:
    return (day.day, f"{day.runs:,}", f"{day.failures:,}", f"{day.calls:,}", seconds(day.wall))


def _figures(names: Sequence[str], rows: Sequence[Sequence[str]]) -> RenderableType:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(names):
        table.add_column(name, justify="right" if place else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _when(moment: float) -> str:
    return dt.datetime.fromtimestamp(moment).strftime("%Y-%m-%d %H:%M:%S")
