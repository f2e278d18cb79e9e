"""The command `moonbox repl`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from moonbox.cli.screen import complain, console, is_terminal, note, told
from moonbox.cli.settings import Settings, with_settings
from moonbox.errors import MoonboxError
from moonbox.languages.registry import DEFAULT_LANGUAGE
from moonbox.languages.registry import language as language_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moonbox.audit.records import Run
    from moonbox.cli.session import Session

__all__ = ["register", "repl"]

_EXAMPLES = """[bold]Examples[/]

  moonbox repl
  moonbox repl --tools crm:tools --limits untrusted
  echo 'x = 2  return x * 21' | moonbox repl

At the prompt, :help lists the commands.
"""


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("repl", epilog=_EXAMPLES)(with_settings(repl))


def repl(
    *,
    language: Annotated[str, typer.Option(metavar="NAME", help="The language of the scripts.")] = DEFAULT_LANGUAGE,
    settings: Settings,
) -> None:
    """Type scripts at a prompt that keeps its globals.

    Ctrl-C stops the script that runs, Ctrl-D leaves. Without a terminal,
    scripts are read from standard input, one after another.
    """
    from moonbox.cli.session import Session

    with told(), Session(settings, language) as session:
        if sys.stdin.isatty() and is_terminal():
            _converse(session)
        elif not _read_all(session):
            raise typer.Exit(1)


def _converse(session: Session) -> None:
    """Ask, run, show, until the person leaves."""
    from moonbox.cli import colon
    from moonbox.cli.completion import Names, ScriptCompleter
    from moonbox.cli.prompt import Prompt

    language = session.sandbox.language
    names = Names.of(session.sandbox)
    completer = ScriptCompleter(names, language_named(language).keywords, colon.COMMANDS)
    prompt = Prompt(language, completer, language_named(language).completeness())
    _greet(session)
    while True:
        try:
            text = prompt.ask()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if not text.strip():
            continue
        try:
            if text.startswith(":"):
                colon.obey(text, session)
            else:
                _show(session.run(text), session)
            completer.names = names.with_globals(session.repl.globals())
        except colon.Leave:
            return
        except KeyboardInterrupt:
            note("\ninterrupted")
        except MoonboxError as problem:  # a worker that cannot be had now may be had at the next script
            complain(str(problem))


def _greet(session: Session) -> None:
    from moonbox import __version__

    count = len(session.sandbox.toolbox)
    tools = f", {count} tool{'s' * (count != 1)}" if count else ""
    isolation = "" if session.sandbox.isolation == "process" else ", inline: for scripts that you trust"
    console().print(
        f"moonbox {__version__} ({session.sandbox.language}{tools}{isolation})  :help for help", style="dim"
    )


def _read_all(session: Session) -> bool:
    """Run what standard input holds; False when a script failed."""
    from moonbox.cli import colon

    good = True
    for text in _chunks(session.sandbox.language):
        if text.startswith(":"):
            try:
                colon.obey(text, session)
            except colon.Leave:
                break
            continue
        run = session.run(text)
        _show(run, session)
        good = good and run.ok
        if run.error is not None and run.error.kind == "cancelled":
            raise typer.Exit(130)
    return good


def _chunks(language: str) -> Iterator[str]:
    """The scripts in standard input: lines, and more lines where one is not complete."""
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
    from moonbox.cli.outcome import show_error, show_output, show_values, summary

    show_output(run)
    if show_values(run, quote=True):
        note("shortened; keep it in a global and look at a part of it")
    sys.stdout.flush()
    if run.error is not None and run.error.kind != "cancelled":
        show_error(run.error, language=run.language)
    elif run.error is not None:
        note("\nstopped; globals are kept" if not run.state_lost else "\nstopped")  # after the terminal's own ^C
    if run.state_lost:
        complain("the environment was lost with the script: globals are gone")
    if run.calls:
        note(summary(run))
