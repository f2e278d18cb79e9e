"""The command `moonbox run`."""

from __future__ import annotations

from shlex import quote
from typing import Annotated

import typer

from moonbox.cli.options import argument, flag, language_names, option, with_run_options
from moonbox.cli.run_options import RunOptions  # noqa: TC001 - `with_run_options` reads it at run time
from moonbox.cli.script import read_inputs, read_script, run_script
from moonbox.errors import UsageError

RUN_EXAMPLES = """[bold]Examples[/]

  moonbox run -e '6 * 7'
  moonbox run report.lua --tools crm:tools --timeout 10s
  moonbox run report.lua --set month=3 --input rows.json
  moonbox run strange.lua --limits untrusted --audit on
  echo 'return #"abc"' | moonbox run - --json

The exit status is 0 for success, 1 for a script that failed, 2 for wrong use, 130 after Ctrl-C.
"""


@with_run_options
def run(
    file: Annotated[str | None, argument(metavar="FILE|-", help="The script; - is standard input.")] = None,
    words: Annotated[list[str] | None, argument(hidden=True)] = None,
    *,
    expression: Annotated[str | None, option("--expr", "-e", metavar="SCRIPT", help="The script itself.")] = None,
    as_json: Annotated[bool, flag("--json", help="Print the whole record of the run as JSON.")] = False,
    language: Annotated[
        str | None,
        option(
            metavar="NAME", help="Its language; by default that of the file's suffix.", autocompletion=language_names
        ),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        option("--set", "-s", metavar="NAME=VALUE", help="A global of the script: JSON, or else text. Repeatable."),
    ] = None,
    input_file: Annotated[
        str | None,
        option(
            "--input",
            "-i",
            metavar="FILE|-",
            help="A JSON file whose keys are globals of the script; any other JSON is the global `input`.",
        ),
    ] = None,
    traceback: Annotated[
        bool, flag("--traceback", help="Also show the Python traceback of each tool that raised an exception.")
    ] = False,
    options: RunOptions,
) -> None:
    """Run one script and show its result.

    What it prints and returns goes to standard output: formatted on a
    terminal, as plain text and JSON in a pipe. Errors, and what your tools
    print, go to standard error.
    """
    if words:
        given = quote(words[0] if "=" in words[0] else f"name={words[0]}")
        raise UsageError(f"a script takes no arguments, got '{words[0]}'; give it a global: --set {given}")
    if file == "-" and input_file == "-":
        raise UsageError("standard input is either the script or the input, not both")
    script = read_script(file, expression, language)
    status = run_script(script, options, read_inputs(inputs or (), input_file), as_json=as_json, traceback=traceback)
    if status:
        raise typer.Exit(status)
