"""The commands `moonbox run` and `moonbox repl`: one script, or the loop of the prompt with its own commands."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from moonbox import __version__
from moonbox.cli.options import Language, argument, flag, option, with_run_options
from moonbox.cli.output import (
    console,
    is_terminal,
    print_error,
    print_note,
    save_media,
    show_error,
    show_output,
    show_values,
    summary,
)
from moonbox.cli.run_options import CommandRunOptions  # noqa: TC001 - `with_run_options` reads it at run time
from moonbox.cli.script import read_inputs, read_script, run_script
from moonbox.errors import MoonboxError, UsageError
from moonbox.languages.registry import language as language_named
from moonbox.suggest import nearest, suggestion
from moonbox.wording import counted, size, visible

if TYPE_CHECKING:
    from moonbox.audit.records import Run
    from moonbox.cli.session import Session

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
    language: Language = None,
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
    options: CommandRunOptions,
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
    script = read_script(file, expression, language, options)
    status = run_script(script, options, read_inputs(inputs or (), input_file), as_json=as_json, traceback=traceback)
    if status:
        raise typer.Exit(status)


REPL_EXAMPLES = """[bold]Examples[/]

  moonbox repl
  moonbox repl --tools crm:tools --limits untrusted
  echo 'x = 2  return x * 21' | moonbox repl

At the prompt, :help lists the commands.
"""


@with_run_options
def repl(
    *,
    language: Language = None,
    options: CommandRunOptions,
) -> None:
    """Run scripts at a prompt that keeps its globals.

    Ctrl-C stops the running script, Ctrl-D exits. Without a terminal,
    scripts are read from standard input, one after another.
    """
    from moonbox.cli.session import Session

    with Session(options, language or options.language) as session:
        if sys.stdin.isatty() and is_terminal():
            _interactive(session)
        elif not _read_all(session):
            raise typer.Exit(1)


class _Quit(Exception):
    """`:quit` was typed."""


def _interactive(session: Session) -> None:
    """Ask, run, show, until the person quits."""
    from moonbox.cli.prompt import ScriptCompleter, prompt

    language = language_named(session.sandbox.language)
    completer = ScriptCompleter(session.sandbox, language.keywords, COMMANDS)
    line = prompt(language.name, completer, language.completeness())
    locals_before = _Locals()
    _greet(session)
    while True:
        try:
            text = line.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if not text.strip():
            continue
        try:
            if text.startswith(":"):
                _run_command(text, session)
            else:
                run = session.run(text)
                _show(run, session)
                locals_before.explain(run, session.repl.globals())
            completer.look(session.repl.globals())
        except _Quit:
            return
        except KeyboardInterrupt:
            print_note("\ninterrupted")
        except MoonboxError as problem:  # a worker may be available again for the next script
            print_error(str(problem))


class _Locals:
    """The local variables of earlier scripts. They no longer exist, but people expect them to."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def explain(self, run: Run, defined: Mapping[str, str]) -> None:
        """Print a note if the script reads one of them, then remember the script's own."""
        own = {name for names in _LOCAL.findall(run.source) for name in re.findall(r"\w+", names)}
        if run.error is not None or None in run.values:
            words = set(re.findall(r"\w+", run.source))
            for name in sorted((self._names & words) - own - set(defined)):
                print_note(f"{name} is nil: `local {name}` ended with its script; write {name} = … to keep it")
        self._names |= own


_LOCAL = re.compile(r"\blocal\s+(?:function\s+)?(\w+(?:\s*,\s*\w+)*)")


def _greet(session: Session) -> None:
    count = len(session.sandbox.toolbox)
    tools = f", {counted(count, 'tool')}" if count else ""
    isolation = "" if session.sandbox.isolation == "process" else ", inline: only for scripts that you trust"
    console().print(
        f"moonbox {__version__} ({session.sandbox.language}{tools}{isolation})  :help for help", style="dim"
    )


def _read_all(session: Session) -> bool:
    """Run the scripts of standard input; False when one failed."""
    good = True
    for text in _stdin_scripts(session.sandbox.language):
        if text.startswith(":"):
            try:
                _run_command(text, session)
            except _Quit:
                break
            continue
        run = session.run(text)
        _show(run, session)
        good = good and run.ok
        if run.error is not None and run.error.kind == "cancelled":
            raise typer.Exit(130)
    return good


def _stdin_scripts(language: str) -> Iterator[str]:
    """The scripts in standard input: each is one line, or several lines until it is complete."""
    is_complete = language_named(language).completeness()
    text = ""
    for line in sys.stdin:
        text += line
        if not text.strip():
            text = ""
        elif text.startswith(":") or is_complete(text):
            yield text.rstrip("\n")
            text = ""
    if text.strip():
        yield text


def _show(run: Run, session: Session) -> None:
    show_output(run)
    if show_values(run, quote=True):
        print_note("shortened; keep the value in a global to look at parts of it")
    sys.stdout.flush()
    if run.error is not None and run.error.kind != "cancelled":
        show_error(run.error, language=run.language)
    elif run.error is not None:
        print_note("\nstopped" if run.state_lost else "\nstopped; globals are kept")  # after the terminal's own ^C
    if run.state_lost:
        print_error("the worker was stopped with the script: globals are lost")
    save_media(run)
    if run.calls:
        print_note(summary(run))


# The commands that begin with a colon


def _run_command(line: str, session: Session) -> None:
    """Do what a line such as `:docs tools.find` asks for."""
    name, _, argument = line[1:].strip().partition(" ")
    if name not in _TABLE:
        near = nearest(name, _TABLE)
        hint = f"did you mean :{near[0]}?" if near else ":help lists the commands"
        print_error(f"unknown command :{name}; {hint}")
        return
    _TABLE[name][0](session, argument.strip())


def _help(session: Session, argument: str) -> None:
    screen = console()
    screen.print("Type a script or an expression; Enter runs it once it is complete. Globals are kept, locals are not.")
    screen.print("Alt-Enter runs it as it is, Tab completes, Ctrl-C stops a script, Ctrl-D exits.\n")
    _print_pairs({f":{name}": about for name, about in COMMANDS.items()})


def _docs(session: Session, argument: str) -> None:
    docs = session.sandbox.docs
    if argument:
        try:
            console().print(visible(docs.describe(argument)), soft_wrap=True)
        except MoonboxError:
            print_error(f"no documentation for '{argument}'{suggestion(argument, docs.names())}")
        return
    _print_pairs({name: (docs.get(name) or "").partition("\n")[0] for name in docs.names()})


def _print_pairs(pairs: Mapping[str, str]) -> None:
    """A name and a text on each line."""
    screen, width = console(), min(40, max(map(len, pairs)))
    for name, text in pairs.items():
        line = f"{visible(name, keep=''):<{width}}  {visible(text, keep='')}"
        screen.print(line, no_wrap=True, overflow="ellipsis")


def _globals(session: Session, argument: str) -> None:
    defined = session.repl.globals()
    if defined:
        _print_pairs(defined)
    else:
        console().print("no globals yet", style="dim")


def _calls(session: Session, argument: str) -> None:
    from moonbox.audit.reports import timeline_text

    screen = console()
    run = session.latest
    if run is None or not run.calls:
        screen.print("the latest script made no calls" if run else "no script has run yet", style="dim")
        return
    for line in timeline_text(run, screen.width):
        screen.print(line, soft_wrap=True)


def _limits(session: Session, argument: str) -> None:
    shown = {}
    for name, value in session.sandbox.limits.to_dict().items():
        shown[name] = "none" if value is None else f"{value:g} s" if name == "timeout" else f"{value:,}"
        if name in ("max_memory", "max_string", "max_output", "max_source"):
            shown[name] += f"  ({size(value)})"
    _print_pairs(shown)


def _reset(session: Session, argument: str) -> None:
    session.repl.reset()
    console().print("all globals were removed", style="dim")


def _quit(session: Session, argument: str) -> None:
    raise _Quit


_TABLE: dict[str, tuple[Callable[[Session, str], None], str]] = {
    "help": (_help, "this list"),
    "docs": (_docs, "list the documentation; :docs NAME shows one entry, for example :docs parallel.map"),
    "globals": (_globals, "list what scripts have defined"),
    "calls": (_calls, "show the tool calls of the latest script on a timeline"),
    "limits": (_limits, "show the limits of a script"),
    "reset": (_reset, "remove all globals"),
    "quit": (_quit, "exit (Ctrl-D)"),
}
COMMANDS = {name: about for name, (_, about) in _TABLE.items()}
