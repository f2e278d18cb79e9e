"""What commands share: consoles, JSON, and errors as one line."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import typer

from moonbox.audit.terminal import visible
from moonbox.errors import MoonboxError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

__all__ = ["complain", "console", "is_terminal", "note", "print_json", "told"]

_PIPED_WIDTH = 160


def is_terminal(*, stderr: bool = False) -> bool:
    """Whether a person looks at this stream."""
    return (sys.stderr if stderr else sys.stdout).isatty()


def console(*, stderr: bool = False) -> Console:
    """A console that takes text as it is: no markup, no emoji, no guessed highlights."""
    from rich.console import Console

    width = None if is_terminal(stderr=stderr) else _PIPED_WIDTH
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


@contextlib.contextmanager
def told() -> Iterator[None]:
    """What went wrong as one line, without a traceback: status 2 for wrong use, 1 for the rest."""
    try:
        yield
    except MoonboxError as error:
        complain(str(error))
        raise typer.Exit(2 if isinstance(error, UsageError) else 1) from error


def complain(message: str) -> None:
    """One line on stderr, `error` in red on a terminal."""
    head = typer.style("error:", fg="red", bold=True) if _in_colour() else "error:"
    typer.echo(f"{head} {visible(message)}", err=True)


def note(message: str) -> None:
    """A remark for the person at the terminal; nothing where nobody looks."""
    if is_terminal(stderr=True):
        shown = visible(message)
        typer.echo(typer.style(shown, dim=True) if shown and _in_colour() else shown, err=True)


def _in_colour() -> bool:
    """Whether stderr may have colours: the same rule that rich follows."""
    return is_terminal(stderr=True) and not os.environ.get("NO_COLOR")


def print_json(data: Any) -> None:
    """Indented JSON, in ASCII: no escape code of a script reaches a terminal."""
    typer.echo(json.dumps(data, indent=2))
