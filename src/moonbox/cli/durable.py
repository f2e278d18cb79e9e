"""The commands `runs`, `resume`, `patch`, `undo`, `repls`, `approvals` and `cluster`: durable runs and their hosts."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path  # noqa: TC003 - read at run time by Typer
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec.structs import asdict

from moonbox.audit.query import labels_of, moment
from moonbox.cli.options import ConfigFile, Json, Labels, Place, argument, flag, option, with_run_options
from moonbox.cli.output import are_to_show, columns_table, confirm_deletion, console, print_json, user_name, when
from moonbox.cli.run_options import START_SECONDS, CommandRunOptions, json_or_text
from moonbox.cli.trust import trusted_config
from moonbox.config import Config
from moonbox.durable.index import KINDS, STATES, JournalFilter, KnownRun
from moonbox.durable.questions import Questions
from moonbox.errors import Diverged, InDoubt, UsageError
from moonbox.tools.toolbox import Toolbox
from moonbox.values import to_jsonable
from moonbox.wording import counted, seconds, visible

if TYPE_CHECKING:
    from moonbox.audit.records import Run
    from moonbox.cli.session import Session
    from moonbox.durable.store import Journal

RunId = Annotated[str, argument(help="The run's id, from `moonbox runs`.", metavar="RUN")]
InFlight = Annotated[
    str | None,
    option("--in-flight", metavar="WORD", help="What to do about calls that may have been made: retry or fail."),
]

Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="The most to list.")]
Skip = Annotated[int, typer.Option("--skip", min=0, help="Leave out the first ones: the next page of a list.")]
_MOST_LISTED = 1_000
_NEVER = 1e11

RUNS_EXAMPLES = """[bold]Examples[/]
  moonbox runs --journal state.db
  moonbox runs --state failed --since 1d
  moonbox runs --label tenant=acme --tool pay --json
"""


def runs(
    journal: Place = None,
    config: ConfigFile = None,
    state: Annotated[
        str | None,
        option(
            "--state", metavar="STATE", help=f"Only those in this state: {', '.join(STATES)}, or the kind of an error."
        ),
    ] = None,
    label: Labels = None,
    tool: Annotated[str | None, option("--tool", metavar="NAME", help="Only those that have called this tool.")] = None,
    since: Annotated[str | None, option("--since", metavar="TIME", help="Only those since 12h, 7d or a date.")] = None,
    text: Annotated[
        str | None, option("--text", metavar="WORDS", help="Only those whose script has these words.")
    ] = None,
    interrupted: Annotated[bool, typer.Option("--interrupted", help="Only runs that a crash cut off.")] = False,
    in_doubt: Annotated[
        bool, typer.Option("--in-doubt", help="Only runs that a crash cut off during calls, with these calls.")
    ] = False,
    limit: Limit = _MOST_LISTED,
    page: Annotated[int, typer.Option("--page", min=1, help="The page, of as many runs as --limit says.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON for each run.")] = False,
) -> None:
    """List the runs of a journal, the latest first."""
    wanted = JournalFilter(
        state="interrupted" if interrupted or in_doubt else state or "",
        labels=labels_of(label or ()) or {},
        tool=tool or "",
        since=moment(since, time.time()) if since else 0.0,
        text=text or "",
    )
    with contextlib.closing(open_place(journal, config)) as opened:
        found = opened.runs(wanted, most=limit + 1, skip=limit * (page - 1))
        pending = {run.id: _pending(opened, run) for run in found} if in_doubt else {}
    if len(found) > limit:
        typer.echo(f"there are more: --page {page + 1} lists the next ones", err=True)
    shown = [run for run in found[:limit] if not in_doubt or pending[run.id]]
    if not shown and not as_json:
        typer.echo("no runs were cut off" if interrupted or in_doubt else "no runs match")
    for run in shown:
        if as_json:
            typer.echo(json.dumps(asdict(run) | ({"pending": pending[run.id]} if in_doubt else {})))
            continue
        console().print(_run_line(run), no_wrap=True, markup=False)
        for call in pending.get(run.id, ()):
            typer.echo(visible(f"  without an answer: {call['tool']} {json.dumps(call['arguments'])}", keep=""))


def _run_line(run: KnownRun) -> str:
    about = f"failed ({run.state})" if run.state in KINDS else run.state
    about += f" until {when(run.wakes)}" if run.wakes is not None and run.wakes < _NEVER else ""
    about += f" ({run.reason})" if run.reason and run.state != "ok" else ""
    about += {"yes": ", undone", "partly": ", partly undone"}.get(run.undone, "")
    first = next((line.strip() for line in run.source.splitlines() if line.strip()), "")
    return f"{when(run.began)}  {run.id}  {visible(f'{about}  {first}', keep='')}"


def _pending(journal: Journal, run: KnownRun) -> list[dict[str, Any]]:
    """The calls of a run without an answer."""
    from moonbox.durable.recorded import read_runs
    from moonbox.runs.environment import Additions

    recorded = next((each for each in read_runs(journal.read(run.repl)) if each.begin.run == run.id), None)
    calls = () if recorded is None else recorded.pending(Toolbox(), Additions.standard())
    return [{"call": each.call, "tool": each.tool, "arguments": to_jsonable(each.arguments)} for each in calls]


@with_run_options
def resume(run: RunId, options: CommandRunOptions, in_flight: InFlight = None, as_json: Json = False) -> None:
    """Continue a run that a crash cut off.

    Calls with an answer are not made again. A call without one is made again where its tool is read-only or idempotent;
    --in-flight decides about the others.
    """
    with open_session(options, run) as session:
        finished = session.sandbox.resume(run, in_flight)
    show_finished(finished, as_json=as_json)


@with_run_options
def patch(
    run: RunId,
    other: Annotated[Path, argument(help="The corrected script.", metavar="FILE")],
    options: CommandRunOptions,
    answer: Annotated[
        list[str] | None,
        option("--answer", metavar="CALL=JSON", help="The answer to a call, by its number in the run."),
    ] = None,
    skip: Annotated[
        list[int] | None, option("--skip", metavar="CALL", help="A call that the corrected script does not make.")
    ] = None,
    in_flight: InFlight = None,
    as_json: Json = False,
) -> None:
    """Continue a run with a corrected script.

    For a run that failed or was cut off. The script runs against the recorded answers and must make the same calls
    until the record ends; otherwise nothing is changed. Then it goes on, and calls tools.
    """
    from moonbox.cli.replay import read_answer
    from moonbox.cli.script import script_text

    answers = dict(map(read_answer, answer or ()))
    with open_session(options, run) as session:
        finished = session.sandbox.patch(run, script_text(other), in_flight, answer=answers, skip=skip or ())
    show_finished(finished, as_json=as_json)


@with_run_options
def undo(
    run: RunId,
    options: CommandRunOptions,
    in_flight: InFlight = None,
    as_json: Json = False,
) -> None:
    """Take the calls of a run back.

    The latest call is first, by the `undo` of its tool. Shows first what can be taken back and what cannot. Stops at
    the first failure; the same command goes on there.
    """
    with open_session(options, run) as session:
        plan = session.sandbox.undo_plan(run)
        possible = [step for step in plan if step.undo]
        for step in plan:
            what = f"{step.undo} {json.dumps(step.given)}" if step.undo else f"cannot be taken back: {step.why_not}"
            which = f"call {step.call}" if step.call else "a call that a correction has left out"
            typer.echo(visible(f"{which}: {step.tool}  →  {what}", keep=""), err=True)
        if not possible:
            typer.echo("nothing can be taken back", err=True)
            return
        if not options.yes:
            confirm_deletion(f"Take {counted(len(possible), 'call')} back?", "--yes to do it")
        done = session.sandbox.undo(run, in_flight)
    if as_json:
        print_json({"undone": len(done.undone), "left": len(done.left), "impossible": len(done.impossible)})
    else:
        typer.echo(f"{counted(len(done.undone), 'call')} taken back, {len(done.left)} left")
    if done.run.error is not None:
        raise UsageError(visible(f"undoing stopped: {done.run.error}"))


def _undecided(problem: InDoubt, session: Session) -> UsageError:
    missing = list(dict.fromkeys(call.tool for call in problem.pending if call.tool not in session.sandbox.toolbox))
    if missing:  # whether a call may be made again is known of tools that are there
        named = ", ".join(f"'{visible(name, keep='')}'" for name in missing)
        return UsageError(f"the run called {named}, not found here; name its tools with --tools or in moonbox.toml")
    lines = [f"  {call.tool} {call.arguments}" for call in problem.pending]
    said = "\n".join(["these calls may have been made before the crash:", *lines])
    return UsageError(f"{visible(said)}\ndecide with --in-flight retry or --in-flight fail")


repls_app = typer.Typer(name="repls", help="List or delete the Repls of a journal.", no_args_is_help=True)


@repls_app.command("list")
def list_repls(
    journal: Place = None,
    config: ConfigFile = None,
    label: Labels = None,
    limit: Limit = _MOST_LISTED,
    skip: Skip = 0,
    as_json: Json = False,
) -> None:
    """List the Repls, the latest first."""
    with contextlib.closing(open_place(journal, config)) as opened:
        found = opened.repls(labels_of(label or ()), most=limit + 1, skip=skip)
    if len(found) > limit:
        typer.echo(f"there are more: --skip {skip + limit} lists the next ones", err=True)
        found = found[:limit]
    none = "no Repls match" if label else "no Repls in this journal"
    for repl in found if are_to_show([asdict(repl) for repl in found], none, as_json=as_json) else ():
        labels = ", ".join(f"{name}={text}" for name, text in repl.labels.items())
        parts = [
            when(repl.created),
            repl.id,
            repl.language,
            counted(repl.runs, "run"),
            repl.held_by and f"in use by {repl.held_by}",
            labels,
        ]
        console().print("  ".join(visible(part, keep="") for part in parts if part), no_wrap=True, markup=False)


@repls_app.command("delete")
def delete_repls(
    ids: Annotated[list[str] | None, argument(help="The Repls.", metavar="[ID]...")] = None,
    journal: Place = None,
    label: Labels = None,
    older_than: Annotated[
        str | None, option("--older-than", metavar="AGE", help="All Repls that were not used since: 12h, 30d, 8w.")
    ] = None,
    interrupted: Annotated[
        bool, typer.Option("--interrupted", help="With --older-than: also those with a run that a crash cut off.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    config: ConfigFile = None,
) -> None:
    """Delete Repls with all that the journal knows of them: runs, calls, approvals."""
    if ids and label:
        raise UsageError("name either the Repls to delete or their label, not both")
    if not ids and not label and older_than is None:
        raise UsageError("name the Repls to delete, or all of a label: --label tenant=acme, or --older-than 30d")
    opened = open_place(journal, config)
    chosen = list(ids or [repl.id for repl in opened.repls(labels_of(label or ()))])
    if older_than is not None:
        unused = set(opened.unused(moment(older_than, time.time()), interrupted=interrupted))
        chosen = [repl for repl in chosen if repl in unused]
    if chosen:
        if not yes:
            confirm_deletion(f"Delete {counted(len(chosen), 'Repl')} for good?", "--yes to delete them")
        typer.echo(f"deleted {counted(opened.delete(chosen), 'Repl')}")
    else:
        typer.echo("no Repls match")
    opened.close()


approvals_app = typer.Typer(
    name="approvals", help="List and answer calls that wait for a person.", no_args_is_help=True
)
_LONGEST = 2_000  # characters of the arguments in the list


@approvals_app.command("list")
def list_approvals(journal: Place = None, config: ConfigFile = None, as_json: Json = False) -> None:
    """List the calls that wait for a person, oldest first."""
    from moonbox.durable.approvals import Question

    with contextlib.closing(open_place(journal, config)) as opened:
        found = [Question.of_kept(kept).to_dict() for kept in Questions(opened.backend).pending()]
    for each in found if are_to_show(found, "no calls wait for approval", as_json=as_json) else ():
        arguments = json.dumps(each["arguments"], ensure_ascii=False)
        cut = len(arguments) - _LONGEST
        more = f" … {cut:,} more characters: use --json" if cut > 0 else ""
        labels = [f"{name}={text}" for name, text in each["labels"].items()]
        age, left = (seconds(max(0.0, span)) for span in (time.time() - each["asked"], each["expires"] - time.time()))
        about = ", ".join([f"asked {age} ago", f"expires in {left}", f"run {each['run']}", *each["hints"], *labels])
        typer.echo(visible(f"{each['id']}  {each['tool']} {arguments[:_LONGEST]}{more}", keep=""))
        typer.echo(visible(f"  {about}", keep=""))


@approvals_app.command("answer")
def answer(
    id: Annotated[str, argument(help="The approval's id, from `moonbox approvals list`.", metavar="ID")],
    allow: Annotated[bool, flag("--allow", help="Run the call.")] = False,
    deny: Annotated[bool, flag("--deny", help="Do not run the call.")] = False,
    edit: Annotated[
        str | None, option("--edit", metavar="JSON", help="With --allow: arguments to change, as a JSON object.")
    ] = None,
    reason: Annotated[str, option("--reason", metavar="TEXT", help="Why; a script whose call is denied gets it.")] = "",
    journal: Place = None,
    config: ConfigFile = None,
) -> None:
    """Answer a call that waits for a person.

    The first answer counts. The process that waits continues within a second;
    if it has died, `moonbox resume` uses the answer.
    """
    if allow == deny or (edit is not None and deny):
        raise UsageError("say what you decide: --allow, --allow --edit JSON, or --deny")
    decision: dict[str, Any] = {"kind": "allow" if allow else "deny", "reason": reason, "by": user_name()}
    if edit is not None:
        changes = json_or_text(edit)
        if not isinstance(changes, dict):
            raise UsageError('--edit takes a JSON object, such as {"amount": 5}')
        decision |= {"kind": "edit", "changes": changes}
    with contextlib.closing(open_place(journal, config)) as opened:
        Questions(opened.backend).answer(id, decision)
    typer.echo("allowed" if allow else "denied")


def open_place(place: str | None, config: Path | None = None) -> Journal:
    """The journal of --journal, or that of the project."""
    return _open(Config() if place else trusted_config(config), place)


def _open(config: Config, place: str | None) -> Journal:
    from moonbox.project.sections import open_journal, with_journal

    journal = open_journal(with_journal(config, place), create=False)
    if journal is None:
        raise UsageError("name the journal with --journal, in MOONBOX_JOURNAL, or in [journal] of moonbox.toml")
    return journal


@contextlib.contextmanager
def open_session(options: CommandRunOptions, run: str) -> Iterator[Session]:
    """The project's tools, in a Sandbox for the language of that run; says what a person must decide about it."""
    from moonbox.cli.session import Session

    opened = _open(options.project or Config(), options.journal)
    language = opened.known(run).language
    opened.close()
    with Session(options, language, wait=START_SECONDS) as session:
        try:
            yield session
        except Diverged as problem:
            raise UsageError(visible(str(problem))) from None
        except InDoubt as problem:
            raise _undecided(problem, session) from None


def show_finished(finished: Run, *, as_json: bool) -> None:
    from moonbox.cli.script import show_run

    if as_json:
        print_json(finished.to_dict())
    else:
        show_run(finished)
    if finished.error is not None:
        raise typer.Exit(1)


# The cluster whose nodes run the workers


cluster_app = typer.Typer(name="cluster", help="Show the nodes of a cluster and what they do.", no_args_is_help=True)


@cluster_app.command("status")
def cluster_status_command(
    address: Annotated[str | None, typer.Option(help="The cluster: auto, ray://host:port or host:port.")] = None,
    config: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Show nodes, workers, front ends, Repls, runs and queues.

    Without --address, the cluster is the one of [cluster] in moonbox.toml,
    or the one that this machine belongs to.
    """
    from moonbox.cluster.membership import cluster_status
    from moonbox.config.sections import ClusterSettings

    found = trusted_config(config) if address is None else Config()
    result = cluster_status(address or found.read(ClusterSettings, "cluster").address or "auto")
    if as_json:
        print_json(result)
        return
    nodes = [
        {**node, "node": node["node"][:8], "free memory": f"{node.get('free_memory', 0) / 2**30:.1f} GiB"}
        for node in result["nodes"]
    ]
    ends = [{"front end": each["name"], **each["repls"], **each["workers"]} for each in result["front_ends"]]
    _print_table(nodes, "node", "address", "workers", "room", "free memory", "version", "problem")
    _print_table(ends, "front end", "awake", "asleep", "running", "waiting")


def _print_table(rows: list[dict[str, Any]], *columns: str) -> None:
    console().print(columns_table(columns, [[str(row.get(column, "–")) for column in columns] for row in rows]))
