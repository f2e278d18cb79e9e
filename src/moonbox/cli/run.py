"""The command `moonbox run`."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from moonbox.cli.screen import complain, is_terminal, note, print_json, told
from moonbox.cli.settings import Settings, with_settings

if TYPE_CHECKING:
    from moonbox.audit.records import Run
    from moonbox.cli.source import Script

__all__ = ["register", "run"]

INTERRUPTED = 130
_ROWS, _ITEMS = 500, 200

_EXAMPLES = """[bold]Examples[/]

  moonbox run -e '6 * 7'
  moonbox run report.lua --tools crm:tools --timeout 10s
  moonbox run strange.lua --limits untrusted --audit on
  echo 'return #"abc"' | moonbox run - --json

The exit status is 0, 1 for a script that failed, 2 for wrong use, 130 after Ctrl-C.
"""


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("run", epilog=_EXAMPLES)(with_settings(run))


def run(
    file: Annotated[
        str | None, typer.Argument(metavar="FILE|-", help="The script; - is standard input.", show_default=False)
    ] = None,
    *,
    expression: Annotated[
        str | None, typer.Option("--expr", "-e", metavar="SCRIPT", help="The script itself.", show_default=False)
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print the whole record of the run as JSON.")
    ] = False,
    language: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What it is written in; else its suffix tells.", show_default=False),
    ] = None,
    settings: Settings,
) -> None:
    """Run one script and show what it returns.

    What it prints and returns goes to standard output: laid out on a
    terminal, as plain text and JSON in a pipe. Errors, and what your tools
    print, go to standard error.
    """
    with told():
        from moonbox.cli.source import read_script

        script = read_script(file, expression, language)
        finished = _execute(script, settings)
        if as_json:
            print_json(finished.to_dict())
        else:
            _show(finished, script, settings)
    if finished.error is not None:
        raise typer.Exit(INTERRUPTED if finished.error.kind == "cancelled" else 1)


def _execute(script: Script, settings: Settings) -> Run:
    """Run it; after Ctrl-C the record of what it did until then."""
    from moonbox.cli.session import Session

    # Tools print to stdout as they please: only the script's own output belongs there.
    with contextlib.redirect_stdout(sys.stderr), Session(settings, script.language) as session:
        return session.run(script.text)


def _show(run: Run, script: Script, settings: Settings) -> None:
    from moonbox.cli.outcome import show_error, show_output, show_values, summary

    if run.error is not None and run.error.kind == "cancelled" and not run.calls:
        note("")  # after the terminal's own ^C; the line of calls has taken it away with itself
    show_output(run)
    shortened = show_values(run, quote=False, rows=_ROWS, items=_ITEMS)
    sys.stdout.flush()
    if run.error is not None:
        if run.error.kind == "cancelled":
            complain("interrupted" + (f" after {summary(run)}" if run.calls else ""))
        else:
            show_error(run.error, language=script.language, name=script.name)
    if not script.text.strip():
        note(f"{script.name or 'the script'} is empty")
    if shortened:
        note("shortened for the terminal; pipe it, or use --json, for all of it")
    if settings.trail is not None:
        note(f"{summary(run)} · moonbox audit show {run.id[:8]}")
    elif run.calls and is_terminal() and run.ok:
        note(summary(run))
