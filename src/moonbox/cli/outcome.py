"""What a run came to, on the screen: printed output, values, and an error with its line and caret."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from moonbox.audit.terminal import seconds, visible
from moonbox.cli.screen import console, is_terminal
from moonbox.cli.values import plain_text, pretty
from moonbox.languages.registry import LANGUAGES

if TYPE_CHECKING:
    from rich.text import Text

    from moonbox.audit.records import Run
    from moonbox.errors import ScriptError

__all__ = ["error_text", "show_error", "show_output", "show_values", "summary"]

_SOURCE_LINE = re.compile(r"(\s*\d* \| )(.*)")
_PLACE = re.compile(r" \(line \d+, position \d+\)\Z")
_KINDS = {"syntax": "syntax error", "runtime": "runtime error", "tool": "tool error", "limit": "limit reached"}


def show_output(run: Run) -> None:
    """What the script printed: as it is, except that a terminal does not obey its escape codes."""
    if run.output:
        text = visible(run.output) if is_terminal() else run.output
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    if run.output_cut:
        sys.stdout.flush()
        console(stderr=True).print(f"… {run.output_cut:,} more bytes were printed than max_output allows", style="dim")


def show_values(run: Run, *, quote: bool, rows: int = 60, items: int = 30) -> bool:
    """What the script returned: for a person, or for another program. True when something was left out.

    `quote` shows a string as a script would write it; without, it is shown as text.
    """
    if not is_terminal():
        for value in run.values:
            _write_plain(value)
        return False
    screen = console()
    shortened = False
    for value in run.values:
        if isinstance(value, str) and not quote:
            screen.print(visible(value), soft_wrap=True)
            continue
        shown = pretty(value, screen.width, rows=rows, items=items)
        shortened = shortened or shown.shortened
        screen.print(shown.text, soft_wrap=True)
    return shortened


def show_error(error: ScriptError, *, language: str, name: str | None = None) -> None:
    """What went wrong, on stderr."""
    screen = console(stderr=True)
    screen.print(error_text(error, language=language, name=name), soft_wrap=True)


def error_text(error: ScriptError, *, language: str, name: str | None = None) -> Text:
    """The error as a person reads it: where and what, the line with a caret, the calls that led there, the hint."""
    from rich.text import Text

    text = Text()
    if error.line is not None:
        text.append(f"{visible(name)}:{error.line}: " if name else f"line {error.line}: ", "bold")
    elif name:
        text.append(f"{visible(name)}: ", "bold")
    kind = _kind(error)
    message = visible(error.message)
    if error.line is not None:
        message = _PLACE.sub("", message)  # it stands in front already
    if message[: len(kind) + 1].lower() == f"{kind}:":  # it says so itself
        message = message[len(kind) + 1 :].lstrip()
    text.append(f"{kind}: ", "bold red")
    text.append(message)
    for line in error.traceback.splitlines():
        text.append("\n  ")
        text.append_text(_traceback_line(visible(line), language))
    if error.hint:
        text.append("\nhint: ", "bold green")
        text.append(visible(error.hint))
    return text


def summary(run: Run) -> str:
    """How many calls and how long, in a few words."""
    calls = len(run.calls)
    failed = sum(not call.ok for call in run.calls)
    parts = [f"{calls} call{'s' * (calls != 1)}" + f", {failed} failed" * (failed > 0)] if calls else []
    return " · ".join([*parts, seconds(run.usage.wall)])


def _kind(error: ScriptError) -> str:
    return f"limit reached ({error.limit})" if error.limit else _KINDS.get(error.kind, error.kind)


def _traceback_line(line: str, language: str) -> Text:
    from rich.text import Text

    found = _SOURCE_LINE.fullmatch(line)
    if found is None:
        return Text(line, "dim")
    text = Text(found[1], "dim")
    if found[2].strip() == "^":
        return text.append(found[2], "bold red")
    return text.append_text(highlighted(found[2], language))


def highlighted(source: str, language: str) -> Text:
    """One line of a script in colours."""
    from rich.syntax import Syntax

    syntax = Syntax(
        "",
        LANGUAGES[language].lexer if language in LANGUAGES else "text",
        theme="ansi_dark",
        background_color="default",
    )
    text = syntax.highlight(source)
    text.rstrip()
    return text


def _write_plain(value: Any) -> None:
    if isinstance(value, bytes):  # a string that is not UTF-8 goes out as the bytes that it is
        sys.stdout.flush()
        sys.stdout.buffer.write(value)
        sys.stdout.buffer.flush()
    else:
        sys.stdout.write(plain_text(value) + "\n")
