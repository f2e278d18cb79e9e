"""What commands print: text, JSON, errors, notes, and the result of a run."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from moonbox.cli.run_options import option_name
from moonbox.compact import binary, clean, pieces
from moonbox.errors import MoonboxError, ScriptError, UsageError
from moonbox.languages.registry import LANGUAGES
from moonbox.wording import counted, seconds, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.pretty import Node
    from rich.table import Table
    from rich.text import Text

    from moonbox.audit.records import Run

MEDIA_FOLDER = "moonbox-media"
"""Where media of scripts are saved, in the current folder."""

_PIPED_WIDTH = 160
# Compiled when they are first used, for an error.
_SOURCE_LINE = r"(\s*\d* \| )(.*)"
_PLACE = r" \(line \d+, position \d+\)\Z"
_DENIALS = {
    "approval_denied": "you denied the call of '{tool}'{reason}",
    "approval_unavailable": "the tool '{tool}' needs your approval, and there is no terminal to ask you on",
}
"""Messages for a person about a denied approval; a model gets other messages."""
_KINDS = {"syntax": "syntax error", "runtime": "runtime error", "tool": "tool error", "limit": "limit reached"}


def is_terminal(*, stderr: bool = False) -> bool:
    """Whether a person looks at this stream."""
    return (sys.stderr if stderr else sys.stdout).isatty()


def console(*, stderr: bool = False) -> Console:
    """A console that takes text as it is: no markup, no emoji, no guessed highlights."""
    from rich.console import Console

    width = None if is_terminal(stderr=stderr) else _PIPED_WIDTH
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def forget_typed(terminal: int) -> None:
    """Discard typed input that was not read yet: it was typed before the question appeared."""
    try:
        import termios
    except ImportError:  # the platform has no termios
        return
    with contextlib.suppress(termios.error):  # not a terminal
        termios.tcflush(terminal, termios.TCIFLUSH)


def confirmed(question: str) -> bool:
    """Whether the person says yes; nothing typed at the terminal before the question counts."""
    import typer  # imported here and below: slow to load, and `moonbox run FILE` does not need it

    at_terminal = sys.stdin.isatty()
    if at_terminal:
        forget_typed(sys.stdin.fileno())
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:
        typer.echo("", err=True)
        if at_terminal:  # Ctrl-C; outside of Typer nothing else would catch it
            raise KeyboardInterrupt from None
        return False  # the input has ended


def confirm_deletion(question: str, otherwise: str) -> None:
    """Ask the person before a deletion. Without a terminal, the error tells them to use `otherwise`."""
    import typer

    if not (sys.stdin.isatty() and is_terminal(stderr=True)):
        raise UsageError(f"no terminal to ask for confirmation; use {otherwise}")
    if not confirmed(question):
        typer.echo("nothing was deleted", err=True)
        raise typer.Exit(1)


def report_error(error: MoonboxError) -> int:
    """Show a MoonboxError as one line. Returns the exit status: 2 for wrong use, 1 otherwise."""
    print_error(str(error))
    return 2 if isinstance(error, UsageError) else 1


def print_error(message: str) -> None:
    """One line on stderr, with `error` in red on a terminal."""
    import typer

    head = typer.style("error:", fg="red", bold=True) if _in_colour() else "error:"
    typer.echo(f"{head} {visible(message)}", err=True)


def print_note(message: str) -> None:
    """A remark for the person at the terminal; nothing is printed elsewhere."""
    if is_terminal(stderr=True):
        import typer

        text = visible(message)
        typer.echo(typer.style(text, dim=True) if text and _in_colour() else text, err=True)


def print_json(data: Any) -> None:
    """Indented JSON, in ASCII: no escape code of a script reaches a terminal."""
    import typer

    typer.echo(json.dumps(data, indent=2))


def are_to_show(items: Collection[Any], none: str, *, as_json: bool) -> bool:
    """Whether a list is left to be shown. As JSON it is printed here, and `none` where there is nothing in it."""
    import typer

    if as_json:
        print_json([item if isinstance(item, dict) else item.to_dict() for item in items])
    elif not items:
        typer.echo(none)
    return bool(items) and not as_json


def when(moment: float) -> str:
    """A time of day for people."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))


def columns_table(
    names: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    right: Sequence[str] = (),
    folded: Sequence[str] = (),
) -> Table:
    """Rows below the names of their columns; text of the `folded` columns may take several lines."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in names:
        side: Any = "right" if name in right else "left"
        cut: Any = "fold" if name in folded else "ellipsis"
        table.add_column(name, justify=side, no_wrap=name not in folded, overflow=cut)
    for row in rows:
        table.add_row(*row)
    return table


def user_name() -> str:
    """The name of the person at this terminal, for records."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):  # the system does not know the user
        return f"user {os.getuid()}"


def _in_colour() -> bool:
    """Whether stderr may have colours: the same rule that rich follows."""
    return is_terminal(stderr=True) and not os.environ.get("NO_COLOR")


# The result of a run


def show_output(run: Run, *, printed: bool = False) -> None:
    """Show what the script printed. On a terminal, its escape codes are shown as text.

    With `printed`, the output was shown while the script ran, and only a note about missing output is added.
    """
    if run.output and not printed:
        text = visible(run.output) if is_terminal() else run.output
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    if run.output_cut:
        sys.stdout.flush()
        cut = counted(run.output_cut, "byte")
        console(stderr=True).print(f"… {cut} of output not shown: the limit max_output was reached", style="dim")


def save_media(run: Run) -> None:
    """Write the images, audio clips and files that the script returned or showed, and say where they are."""
    for medium in run.media:
        try:
            import typer

            typer.echo(f"saved {medium.save(MEDIA_FOLDER)}", err=True)
        except OSError as problem:
            print_error(f"{medium.name} cannot be saved: {problem.strerror or problem}")


def show_values(run: Run, *, quote: bool, rows: int = 60, items: int = 30) -> bool:
    """Show what the script returned, for a person or for another program. Returns True if something was left out.

    `quote` shows a string as a script would write it; without, it is shown as text.
    """
    if not is_terminal():
        for value in run.values:
            if isinstance(value, bytes):  # a string that is not UTF-8 goes out as the bytes that it is
                sys.stdout.flush()
                sys.stdout.buffer.write(value)
                sys.stdout.buffer.flush()
            else:
                sys.stdout.write(plain_text(value) + "\n")
        return False
    screen = console()
    shortened = False
    for value in run.values:
        if isinstance(value, str) and not quote:
            screen.print(visible(value), soft_wrap=True)
            continue
        if value is None:
            known = LANGUAGES.get(run.language)
            screen.print("null" if known is None else known.nothing, style="magenta")
            continue
        text, cut = pretty(value, screen.width, rows=rows, items=items)
        shortened = shortened or cut
        screen.print(text, soft_wrap=True)
    return shortened


def show_error(
    error: ScriptError, *, language: str, name: str | None = None, limits: Mapping[str, str] | None = None
) -> None:
    """What went wrong, on stderr: where and what, the line with a caret, the calls that led there, the hint.

    `limits` says for each limit what sets it; by default it is an option of the command.
    """
    text = _error_text(error, language, name)
    if error.limit is not None:
        field = {"time": "timeout", "calls": "max_tool_calls"}.get(error.limit, f"max_{error.limit}")
        setting = option_name(field) if limits is None else limits.get(error.limit)
        if setting is not None:
            text.append("\nlimit: ", "bold green")
            text.append(f"{setting} sets it")
    console(stderr=True).print(text, soft_wrap=True)


def show_tracebacks(run: Run) -> None:
    """How the code of its tools failed, on stderr."""
    from moonbox.audit.reports import tracebacks

    screen = console(stderr=True)
    for call, text in tracebacks(run):
        screen.print(f"traceback of call {call.index} ({visible(call.tool, keep='')}):", style="bold")
        screen.print(visible(text), soft_wrap=True)


def summary(run: Run) -> str:
    """The number of calls and the time."""
    failed = sum(not call.ok for call in run.calls)
    calls = [counted(len(run.calls), "call") + (f", {failed} failed" if failed else "")] if run.calls else []
    return " · ".join([*calls, seconds(run.usage.wall)])


def _error_text(error: ScriptError, language: str, name: str | None) -> Text:
    from rich.text import Text

    text = Text()
    if error.line is not None:
        text.append(f"{visible(name)}:{error.line}: " if name else f"line {error.line}: ", "bold")
    elif name:
        text.append(f"{visible(name)}: ", "bold")
    kind = f"limit reached ({error.limit})" if error.limit else _KINDS.get(error.kind, error.kind)
    message = visible(_for_person(error))
    if error.line is not None:
        message = re.sub(_PLACE, "", message)  # the line number is shown at the beginning
    if message[: len(kind) + 1].lower() == f"{kind}:":
        message = message[len(kind) + 1 :].lstrip()
    text.append(f"{kind}: ", "bold red")
    text.append(message)
    for line in error.traceback.splitlines():
        text.append("\n  ")
        text.append_text(_traceback_line(visible(line), language))
    if error.hint and error.kind != "denied":  # the hint of a denial is advice for a model
        text.append("\nhint: ", "bold green")
        text.append(visible(error.hint))
    return text


def _for_person(error: ScriptError) -> str:
    """The message of an error for the person who runs the script."""
    message = _DENIALS.get(error.code or "")
    if message is None or error.kind != "denied":
        return error.message
    _, colon, reason = error.message.partition(": ")
    return message.format(tool=error.tool, reason=f": {reason}" if colon else "")


def _traceback_line(line: str, language: str) -> Text:
    """A line of a traceback; a line of the script in colours."""
    from rich.syntax import Syntax
    from rich.text import Text

    source = re.fullmatch(_SOURCE_LINE, line)
    if source is None:
        return Text(line, "dim")
    text = Text(source[1], "dim")
    if source[2].strip() == "^":
        return text.append(source[2], "bold red")
    syntax = Syntax("", lexer_of(language), theme="ansi_dark", background_color="default")
    highlighted = syntax.highlight(source[2])
    highlighted.rstrip()
    return text.append_text(highlighted)


def lexer_of(language: str) -> str:
    """The name of the lexer for scripts in this language; a record may name a language of another version."""
    return LANGUAGES[language].lexer if language in LANGUAGES else "text"


# Values: JSON-like, coloured, formatted for the terminal's width, and shortened if they are long

_STRING = r'"(?:[^"\\]|\\.)*"'
# The names of the groups are styles. Compiled when they are first used: a pipe needs no colours.
_COLOURS = (
    rf"(?P<blue>(?:{_STRING}|\[[^\]\n]*\])(?=: ))|(?P<green>{_STRING})|(?P<dim>… [\d,]+ more(?: \w+)?)"
    r"|(?P<magenta>\b(?:true|false|null)\b)|(?P<cyan>-?\b\d[\w.+-]*)"
)
_PARTS_OF_A_ROW = 20
"""How many values are read for each row, on average; further ones would hardly be shown."""


def pretty(value: Any, width: int, *, items: int = 30, chars: int = 500, rows: int = 60) -> tuple[Text, bool]:
    """A value on the screen, and whether something of it was left out.

    At most `rows` lines: of each table the first `items`, of each string the first `chars` characters.
    """
    from rich.text import Text

    tree = _PrintedTree(items, chars, rows * _PARTS_OF_A_ROW)
    lines = tree.node(value).render(width, indent_size=2).split("\n")
    hidden = len(lines) - rows
    if hidden > 0:
        lines[rows:] = [f"… {counted(hidden, 'more line')}"]
    text = Text("\n".join(lines))
    text.highlight_regex(_COLOURS)
    return text, tree.shortened or hidden > 0


def plain_text(value: Any) -> str:
    """The value for another program: text as it is, everything else as JSON on one line."""
    return value if isinstance(value, str) else "".join(pieces(value))


class _PrintedTree(Struct):
    """Makes the nodes that rich lays out: on one line where they fit, else one item to a line."""

    items: int
    chars: int
    left: int
    """How many more values are looked at."""
    shortened: bool = False

    def node(self, value: Any, key: str = "") -> Node:
        from rich.pretty import Node

        if not isinstance(value, list | dict):
            return Node(key, self._scalar(value))
        # Sorted, so that the same table always looks the same.
        members = (
            sorted(value.items(), key=lambda item: (isinstance(item[0], str), item[0]))
            if isinstance(value, dict)
            else ((None, item) for item in value)
        )
        children: list[Node] = []
        for name, item in members:
            if len(children) == self.items or self.left <= 0:
                self.shortened = True
                children.append(Node(value_repr=f"… {len(value) - len(children):,} more"))
                break
            self.left -= 1
            label = "" if name is None else _quoted(name) if isinstance(name, str) else f"[{name}]"
            children.append(self.node(item, label))
        if children:
            children[-1].last = True
        opener, closer = "[]" if isinstance(value, list) else "{}"
        return Node(key, "", opener, closer, opener + closer, children=children)

    def _scalar(self, value: Any) -> str:
        if isinstance(value, str):
            cut = len(value) - self.chars
            self.shortened = self.shortened or cut > 0
            note = f" … {counted(cut, 'more character')}" if cut > 0 else ""
            return _quoted(value[: self.chars]) + note
        if isinstance(value, bytes):
            return visible(binary(value), keep="")
        return json.dumps(value) if isinstance(value, bool | int | float | None) else visible(str(value))


def _quoted(text: str) -> str:
    return visible(json.dumps(clean(text), ensure_ascii=False), keep="")
