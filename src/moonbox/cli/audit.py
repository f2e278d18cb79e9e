"""The commands `moonbox audit list`, `show`, `stats`, `prune` and `verify`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moonbox.audit.query import labels_of, moment
from moonbox.audit.sinks import default_path, open_trail
from moonbox.cli.audit_views import run_list, run_parts, script_tree, stats_parts
from moonbox.cli.options import Json, argument, option
from moonbox.cli.output import confirmed, console, is_terminal, print_json, when
from moonbox.errors import UsageError
from moonbox.wording import counted, visible

if TYPE_CHECKING:
    from moonbox.audit.records import Run
    from moonbox.audit.sinks import Store

app = typer.Typer(name="audit", help="Show what scripts did.", no_args_is_help=True)

Db = Annotated[
    Path | None, option("--db", help="The trail: a .db or .jsonl file; by default your own.", metavar="PATH")
]
Since = Annotated[str | None, option(help="Only runs of the last 45m, 12h or 7d, or since a date.")]


@app.command("list")
def list_runs(
    db: Db = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="The most runs to list.")] = 20,
    failed: Annotated[bool, typer.Option("--failed", help="Only runs that failed.")] = False,
    tool: Annotated[str | None, option(help="Only runs that called this tool.")] = None,
    since: Since = None,
    repl: Annotated[str | None, option(help="Only runs of this Repl.")] = None,
    label: Annotated[
        list[str] | None, option("--label", metavar="NAME=TEXT", help="Only runs with this label; may be repeated.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List runs, the latest first."""
    where: dict[str, Any] = {"tool": tool, "since": _since(since), "repl": repl, "labels": labels_of(label or ())}
    runs = _trail(db).list(limit, ok=False if failed else None, **where)
    if as_json:
        print_json([run.to_dict() for run in runs])
    elif not runs:
        typer.echo("no runs" + (" match" if failed or any(where.values()) else " in this trail"))
    else:
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
    later = [item.id for item in trail.list(_MOST_RELATED, since=run.started) if item.started <= end]
    for part in script_tree(run, [trail.get(id) for id in reversed(later)]):
        screen.print(part, no_wrap=True, overflow="ellipsis")


def chosen_run(db: Path | None, id: str | None, *, last: bool) -> Run:
    """The run of a trail that a command names."""
    trail = _trail(db)
    return trail.get(_chosen(trail, id, last=last))


_MOST_RELATED = 500


def _chosen(trail: Store, id: str | None, *, last: bool) -> str:
    if (id is None) != last:
        raise UsageError("name one run: an id from `moonbox audit list`, or --last")
    if id is not None:
        return id
    for run in trail.list(_MOST_RELATED):
        if not trail.get(run.id).tool:  # tool scripts are shown below the run that called them
            return run.id
    raise UsageError("no runs in this trail")


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
    trail, border = _trail(db), _border(older_than)
    age = None if border is None else time.time() - border
    if dry_run or not yes:
        number, which = trail.prune(older_than=age, keep=keep, dry_run=True), _which(border, keep)
        if dry_run or not number:
            typer.echo(f"{counted(number, 'run')} would be deleted: {which}" if dry_run else "nothing to delete")
            return
        _confirm(f"Delete {counted(number, 'run')} ({which})?")
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


def _border(text: str | None) -> float | None:
    now = time.time()
    border = None if text is None else moment(text, now)
    if border is not None and border > now:
        raise UsageError(f"--older-than {text} is in the future; use --keep 0 to delete every run")
    return border


def _which(border: float | None, keep: int | None) -> str:
    """In words: the border as a date, so that 1m is not taken for a month."""
    parts = [f"older than {when(border)}"] if border is not None else []
    if keep is not None:
        parts.append(f"all but the latest {keep:,}" if keep else "all")
    return ", and ".join(parts)


def _confirm(question: str) -> None:
    if not (sys.stdin.isatty() and is_terminal(stderr=True)):
        raise UsageError(
            "no terminal to ask for confirmation; use --yes to delete the runs, or --dry-run to count them"
        )
    if not confirmed(question):
        typer.echo("nothing was deleted", err=True)
        raise typer.Exit(1)


def _trail(db: Path | None) -> Store:
    if db is None and not default_path().exists():
        raise UsageError(
            f"no audit trail at {default_path()} yet; `moonbox run --audit on` records runs there, "
            "and --db PATH names another file"
        )
    return open_trail(db if db is not None else default_path())


def _since(text: str | None) -> float | None:
    return None if text is None else moment(text, time.time())
