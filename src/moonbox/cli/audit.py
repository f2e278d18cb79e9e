"""The commands `moonbox audit list`, `show`, `stats`, `prune` and `verify`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from moonbox.audit.query import RunSummary, TrailStats, labels_of, moment
from moonbox.audit.reports import timeline_text, tracebacks
from moonbox.audit.sinks import Store, default_path, open_trail
from moonbox.cli.options import Db, Json, Labels, argument, option
from moonbox.cli.output import are_to_show, columns_table, confirm_deletion, console, lexer_of, print_json, when
from moonbox.cli.run_options import default_trail
from moonbox.compact import short
from moonbox.errors import AuditError, UsageError
from moonbox.wording import counted, seconds, size, visible

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

    from moonbox.audit.records import Call, Run

app = typer.Typer(name="audit", help="Show what scripts did.", no_args_is_help=True)

Since = Annotated[str | None, option(help="Only runs of the last 45m, 12h or 7d, or since a date.")]


@app.command("list")
def list_runs(
    db: Db = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="The most runs to list.")] = 20,
    failed: Annotated[bool, typer.Option("--failed", help="Only runs that failed.")] = False,
    tool: Annotated[str | None, option(help="Only runs that called this tool.")] = None,
    since: Since = None,
    repl: Annotated[str | None, option(help="Only runs of this Repl.")] = None,
    label: Labels = None,
    as_json: Json = False,
) -> None:
    """List runs, the latest first."""
    where: dict[str, Any] = {"tool": tool, "since": _since(since), "repl": repl, "labels": labels_of(label or ())}
    runs = _trail(db).list(limit, ok=False if failed else None, **where)
    none = "no runs" + (" match" if failed or any(where.values()) else " in this trail")
    if are_to_show(runs, none, as_json=as_json):
        screen = console()
        for line in run_list(runs, screen.width):
            screen.print(line, no_wrap=True, overflow="ellipsis")


@app.command("show")
def show_run(
    id: Annotated[str | None, argument(help="The run's id, or the beginning of it.", metavar="[ID]")] = None,
    last: Annotated[bool, typer.Option("--last", help="The latest run.")] = False,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Show one run: its source, its result, and its calls on a timeline."""
    run, trail = chosen_run(db, id, last=last), _trail(db)
    if as_json:
        print_json(run.to_dict())
        return
    screen = console()
    for part in run_parts(run, screen.width):
        screen.print(part, soft_wrap=isinstance(part, str))
    end = run.started + run.usage.wall + 1.0 if run.state in ("ok", "failed") else float("inf")
    others = []
    for other in reversed(trail.list(_MOST_RELATED, since=run.started, until=end)):
        with contextlib.suppress(AuditError):  # a record that is damaged says nothing about this run
            others.append(trail.get(other.id))
    for part in script_tree(run, others):
        screen.print(part, no_wrap=True, overflow="ellipsis")


def chosen_run(db: Path | None, id: str | None, *, last: bool) -> Run:
    """The run of a trail that a command names."""
    if (id is None) != last:
        raise UsageError("name one run: an id from `moonbox audit list`, or --last")
    trail = _trail(db)
    if id is not None:
        return trail.get(id)
    for item in trail.list(_MOST_RELATED):
        run = trail.get(item.id)
        if not run.tool:  # tool scripts are shown below the run that called them
            return run
    raise UsageError("no runs in this trail")


_MOST_RELATED = 500


@app.command("stats")
def show_stats(db: Db = None, since: Since = None, as_json: Json = False) -> None:
    """Show figures of runs and tools."""
    stats = _trail(db).stats(since=_since(since))
    if as_json:
        print_json(stats.to_dict())
    else:
        console().print(*stats_parts(stats), sep="\n")


@app.command("prune")
def prune(
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="AGE", help="Runs older than this: 12h, 30d, 8w, or a date.")
    ] = None,
    keep: Annotated[int | None, option("--keep", metavar="N", min=0, help="All runs but the latest N.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count the runs.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    db: Db = None,
) -> None:
    """Delete old runs.

    A run is deleted if either option names it. On a terminal you are asked
    first. Programs may write to the trail at the same time.
    """
    if older_than is None and keep is None:
        raise UsageError("name the runs to delete: --older-than 30d, --keep 1000, or both")
    trail, border = _trail(db), _since(older_than)
    now = time.time()
    if border is not None and border > now:
        raise UsageError(f"--older-than {older_than} is in the future; use --keep 0 to delete every run")
    if dry_run or not yes:
        age = None if border is None else now - border
        number = trail.prune(older_than=age, keep=keep, dry_run=True)
        parts = [] if border is None else [f"older than {when(border)}"]  # as a date: 1m is not taken for a month
        if keep is not None:
            parts.append(f"all but the latest {keep:,}" if keep else "all")
        which = ", and ".join(parts)
        if dry_run or not number:
            typer.echo(f"{counted(number, 'run')} would be deleted: {which}" if dry_run else "nothing to delete")
            return
        otherwise = "--yes to delete the runs, or --dry-run to count them"
        confirm_deletion(f"Delete {counted(number, 'run')} ({which})?", otherwise)
    # Measured again: the person has confirmed the border, and no run becomes older while they think.
    age = None if border is None else time.time() - border
    typer.echo(f"{counted(trail.prune(older_than=age, keep=keep), 'run')} deleted")


@app.command("verify")
def verify(
    expect: Annotated[
        str | None,
        option("--expect", metavar="HASH", help="A hash that an earlier check printed: it must be there."),
    ] = None,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Check that nobody changed, removed or added records.

    Each record has a hash over itself and the record before. A run without
    calls is one record; with calls, its start and the start and end of each
    call are records of their own. The first record that does not fit is
    named, and the exit status is 1. Whoever can write the file can also
    write all hashes anew: keep the hash that is printed in another place,
    and give it to --expect the next time.
    """
    report = _trail(db).verify(expect=expect)
    if as_json:
        print_json(report.to_dict())
    elif report.ok:
        pruned = f"; {counted(report.pruned, 'run')} deleted by pruning" if report.pruned else ""
        typer.echo(f"ok: {report.counted}{pruned}\nhash: {report.head or '(none)'}")
    else:
        typer.echo(f"not intact: {visible(report.problem or '', keep='')}")
    if not report.ok:
        raise typer.Exit(1)


def _trail(db: Path | None) -> Store:
    place = str(db) if db is not None else default_trail()
    if place == str(default_path()) and not default_path().exists():
        raise UsageError(
            f"no audit trail at {place} yet; `moonbox run --audit on` records runs there, "
            "and --db PATH names another file"
        )
    return open_trail(place)


def _since(text: str | None) -> float | None:
    return None if text is None else moment(text, time.time())


# What is printed of runs


_NARROWEST_SCRIPT = 12
_BETWEEN = 3
"""Between two columns of a table."""
_UNENDED = ("running", "interrupted", "unfinished")


def run_list(runs: Sequence[RunSummary], width: int) -> Iterator[RenderableType]:
    """One line for each run with the script at its end, or two lines where that is too narrow.

    Only the script is ever cut: every other column is as wide as what is in it.
    """
    ids = {run.id for run in runs}
    most = max(map(len, ids))
    length = next((size for size in range(8, most) if len({id[:size] for id in ids}) == len(ids)), most)
    names = ("when", "id", "result", "calls", "time", "script")
    rows = []
    for run in runs:
        id, script = visible(run.id[:length], keep=""), Text(visible(run.title, keep=""))
        script.no_wrap, script.overflow = True, "ellipsis"
        rows.append((when(run.started), id, _result(run), run.calls_text, seconds(run.wall), script))
    *others, _ = zip(names, *rows, strict=True)
    if width - sum(max(map(len, column)) + _BETWEEN for column in others) >= _NARROWEST_SCRIPT:
        table = columns_table(names, rows, right=("calls", "time"), folded=("script",))
        table.show_edge = False
        yield table
        return
    for began, id, result, calls, took, script in rows:
        yield Text.assemble(id, "  ", result, f"  {calls}  {took}")
        yield Text.assemble((f"  {began}  ", "dim"), script)


def _result(run: RunSummary) -> Text:
    return Text(visible(run.result, keep=""), {"ok": "green", "running": "cyan"}.get(run.state, "red"))


def run_parts(run: Run, width: int) -> Iterator[RenderableType]:
    from rich.syntax import Syntax

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
    notes, room = "", max(20, width // 2)
    if call.approval:
        before = "" if call.original_arguments is None else f", was {short(call.original_arguments, room)}"
        reason = f": {call.approval_reason}" if call.approval_reason else ""
        notes = f" [{call.approval} by {call.approval_by or 'a person'}{before}{reason}]"
    notes += f" [retry of {call.retry_of}]" if call.retry_of is not None else ""
    line = f"{call.index} {call.tool} {short(call.arguments, room)}{notes} → {result}"
    line = visible(" ".join(line.split()), keep="")
    return line if len(line) <= width else line[: width - 1] + "…"


def stats_parts(stats: TrailStats) -> Iterator[RenderableType]:
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
    from rich.tree import Tree

    children: dict[str, list[Run]] = {}
    for other in others:
        children.setdefault(other.parent, []).append(other)

    def grow(branch: Tree, id: str) -> Tree:
        for child in children.pop(id, ()):  # once: in a file that was tampered with, a run may be its own parent
            calls = f", {counted(len(child.calls), 'call')}" if child.calls else ""
            head = f"{visible(child.tool, keep='')}  {child.id[:8]}  "
            about = Text.assemble(head, _result(RunSummary.of(child)), f"  {seconds(child.usage.wall)}{calls}")
            grow(branch.add(about), child.id)
        return branch

    tree = grow(Tree(_heading("tool scripts")), run.id)
    yield from [tree] if tree.children else []
