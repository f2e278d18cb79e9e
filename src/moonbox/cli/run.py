"""The command `moonbox run`."""

from __future__ import annotations

from typing import Annotated

import typer

from moonbox.cli.options import RunOptions, language_names, with_run_options
from moonbox.cli.output import reporting_errors
from moonbox.cli.script import read_inputs, read_script, run_script
from moonbox.errors import UsageError

__all__ = ["register"]

_EXAMPLES = """[bold]Examples[/]

  moonbox run -e '6 * 7'
  moonbox run report.lua --tools crm:tools --timeout 10s
  moonbox run report.lua --set month=3 --input rows.json
  moonbox run strange.lua --limits untrusted --audit on
  echo 'return #"abc"' | moonbox run - --json

The exit status is 0 for success, 1 for a script that failed, 2 for wrong use, 130 after Ctrl-C.
"""


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("run", epilog=_EXAMPLES)(with_run_options(run))


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
        typer.Option(
            metavar="NAME",
            help="Its language; by default that of the file's suffix.",
            autocompletion=language_names,
            show_default=False,
        ),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            "-s",
            metavar="NAME=VALUE",
            help="A global of the script: JSON, or else text. Repeatable.",
            show_default=False,
        ),
    ] = None,
    input_file: Annotated[
        str | None,
        typer.Option(
            "--input",
            "-i",
            metavar="FILE|-",
            help="A JSON file whose keys are globals of the script; any other JSON is the global `input`.",
            show_default=False,
        ),
    ] = None,
    options: RunOptions,
) -> None:
    """Run one script and show its result.

    What it prints and returns goes to standard output: formatted on a
    terminal, as plain text and JSON in a pipe. Errors, and what your tools
    print, go to standard error.
    """
    with reporting_errors():
        if file == "-" and input_file == "-":
            raise UsageError("standard input is either the script or the input, not both")
        script = read_script(file, expression, language)
        status = run_script(script, options, read_inputs(inputs or (), input_file), as_json=as_json)
    if status:
        raise typer.Exit(status)
