"""The command `moonbox replay`: a recorded run again, at one of its calls, or from there on with other answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path  # noqa: TC003 - read at run time by Typer
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moonbox.audit.records import Call, Run
from moonbox.cli.durable import RunId, open_session, show_finished
from moonbox.cli.options import Json, flag, option, with_run_options
from moonbox.cli.output import print_json
from moonbox.cli.run_options import CommandRunOptions, json_or_text
from moonbox.errors import UsageError
from moonbox.wording import visible

if TYPE_CHECKING:
    from moonbox.durable.views import RunView
    from moonbox.sandbox.sandbox import Sandbox

_PARTS = ("locals", "globals", "output", "calls")
REPLAY_EXAMPLES = """[bold]Examples[/]
  moonbox replay 5f0c --journal state.db
  moonbox replay 5f0c --at 7 --show locals --show output
  moonbox replay 5f0c --answer 7='{"ok": false}' --dry
"""


@with_run_options
def replay(
    run: RunId,
    options: CommandRunOptions,
    other: Annotated[
        Path | None, option("--with", metavar="FILE", help="Run this script instead, with the recorded answers.")
    ] = None,
    at: Annotated[
        int | None, option("--at", metavar="CALL", help="Show the run at this call: 1 for the first one.")
    ] = None,
    show: Annotated[
        list[str] | None,
        option("--show", metavar="PART", help="With --at: locals, globals, output or calls. Repeatable."),
    ] = None,
    answer: Annotated[
        list[str] | None,
        option("--answer", metavar="CALL=JSON", help="Go on from this call with another answer. Repeatable."),
    ] = None,
    dry: Annotated[
        bool, flag("--dry", help="Go on without invoking a tool, up to the first call without a recorded answer.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run a recorded run again without touching the world.

    No tool is invoked: every answer comes from the record. What differs from the record is shown.
    With --answer and without --dry, the calls after the changed one are made, in a new Repl of the journal.
    """
    answers = dict(map(read_answer, answer or ()))
    if other is not None and (at is not None or answers or dry):
        raise UsageError("--with runs another script; --at, --answer and --dry are about the recorded one")
    at = min(answers) if at is None and answers else at
    if at is None and (dry or show):
        raise UsageError("say at which call: --at 7")
    if unknown := [part for part in show or () if part not in _PARTS]:
        raise UsageError(f"--show takes one of {', '.join(_PARTS)}, not '{unknown[0]}'")
    with open_session(options, run) as session:
        if at is None:
            finished, differences = _repeated(session.sandbox, run, other)
        else:
            view = session.sandbox.replay(run, until=at)
            found = view.fork(answers, dry=dry) if answers or dry else view
    if at is None:
        _show_repeated(finished, differences, as_json=as_json)
    elif isinstance(found, Run):
        show_finished(found, as_json=as_json)
    elif as_json:
        print_json(found.to_dict())
    else:
        for line in _lines(found, show or ["locals"]):
            typer.echo(visible(line))


def _repeated(sandbox: Sandbox, run: str, other: Path | None) -> tuple[Run, tuple[str, ...]]:
    """The run again, or another script in its place; and what differs from the record."""
    if other is not None:
        from moonbox.cli.script import script_text

        return sandbox.replay(run, script_text(other))
    if not sandbox.journal.known(run).has_ended:
        raise UsageError(f"run {run!r} has not ended; `moonbox resume {run}` continues a run that was cut off")
    return sandbox.replay(run), ()


def _show_repeated(finished: Run, differences: tuple[str, ...], *, as_json: bool) -> None:
    for line in differences or ("the same as recorded",):
        typer.echo(visible(line), err=True)
    show_finished(finished, as_json=as_json)
    if differences:
        raise typer.Exit(1)


def read_answer(text: str) -> tuple[int, Any]:
    call, separator, value = text.partition("=")
    if not separator or not call.strip().isdecimal():
        raise UsageError(f"--answer takes the number of a call and a value, such as 7=5, not '{text}'")
    return int(call), json_or_text(value)


def _lines(view: RunView, parts: list[str]) -> Iterator[str]:
    """A view in words."""
    call, line = view.call, "" if view.line is None else f", line {view.line}"
    yield f"call {view.at} of {view.total}{line}: {call.tool} {_text(call.arguments)}"
    yield view.ends or _outcome(call)
    if "locals" in parts:
        for frame in view.frames:
            yield f"locals of {frame.function}, line {frame.line}" + ("" if frame.own else " of an earlier script")
            yield from _values(frame.locals)
    if "globals" in parts:
        yield "globals"
        yield from _values(view.globals)
    if "calls" in parts:
        yield "calls"
        for each in view.calls:
            yield f"  {each.index}. {each.tool} {_text(each.arguments)}, {_outcome(each)}"
    if "output" in parts:
        yield "output"
        yield from (f"  {each}" for each in view.output.splitlines())


def _outcome(call: Call) -> str:
    if call.error is not None:
        return f"{call.status}: {call.error.message}"
    return f"answer: {_text(call.result)}" if call.ok else call.status


def _values(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        yield f"  {name} = {_text(value)}"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
