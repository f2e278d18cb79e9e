"""The commands of the prompt that begin with a colon: `:help`, `:docs name`, `:calls`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.audit.terminal import size, visible
from moonbox.cli.screen import complain, console
from moonbox.errors import MoonboxError
from moonbox.suggest import nearest, suggestion

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.cli.session import Session

__all__ = ["COMMANDS", "Leave", "obey"]


class Leave(Exception):
    """`:quit` was typed."""


def obey(line: str, session: Session) -> None:
    """Do what a line such as `:docs tools.find` asks for."""
    name, _, argument = line[1:].strip().partition(" ")
    command = _DO.get(name)
    if command is None:
        near = nearest(name, _DO, parts=True)
        complain(f"there is no command :{name}; {f'did you mean :{near[0]}?' if near else ':help lists them'}")
        return
    command(session, argument.strip())


def _help(session: Session, argument: str) -> None:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for name, about in COMMANDS.items():
        table.add_row(f":{name}", about)
    screen = console()
    screen.print("Type a script or an expression; Enter runs it once it is complete. Globals stay, locals do not.")
    screen.print("Alt-Enter runs it as it is, Tab completes, Ctrl-C stops, Ctrl-D leaves.\n")
    screen.print(table)


def _reset(session: Session, argument: str) -> None:
    session.repl.reset()
    console().print("a fresh environment", style="dim")


def _globals(session: Session, argument: str) -> None:
    defined = session.repl.globals()
    screen = console()
    if not defined:
        screen.print("nothing is defined yet", style="dim")
    width = max(map(len, defined), default=0)
    for name, kind in defined.items():
        screen.print(f"{visible(name):<{width}}  {visible(kind)}")


def _docs(session: Session, argument: str) -> None:
    from rich.table import Table

    from moonbox.sandbox.docs import Docs

    box = session.sandbox
    docs = Docs(box.toolbox, {}, box.language)
    screen = console()
    if argument:
        try:
            screen.print(visible(docs.describe(argument)), soft_wrap=True)
        except MoonboxError:
            complain(f"there is no documentation of '{argument}'{suggestion(argument, docs.names())}")
        return
    names = docs.names()
    table = Table.grid(padding=(0, 2, 0, 0))
    widest = min(40, max(map(len, names)))
    table.add_column(no_wrap=True, style="bold", width=widest)
    table.add_column(no_wrap=True, overflow="ellipsis", width=max(10, screen.width - widest - 4))
    for name in names:
        table.add_row(visible(name, keep=""), visible((docs.get(name) or "").partition("\n")[0], keep=""))
    screen.print(table)


def _calls(session: Session, argument: str) -> None:
    from moonbox.audit.timeline import timeline_text

    screen = console()
    run = session.latest
    if run is None or not run.calls:
        screen.print("the latest script made no calls" if run else "no script was run yet", style="dim")
        return
    for line in timeline_text(run, screen.width):
        screen.print(line, soft_wrap=True)


def _limits(session: Session, argument: str) -> None:
    screen = console()
    for name, value in session.sandbox.limits.to_dict().items():
        said = "none" if value is None else f"{value:g} s" if name == "timeout" else f"{value:,}"
        if name in ("max_memory", "max_string", "max_output"):
            said += f"  ({size(value)})"
        screen.print(f"{name:<15} {said}")


def _quit(session: Session, argument: str) -> None:
    raise Leave


COMMANDS = {
    "help": "this list",
    "docs": "what there is; :docs NAME shows one entry, for example :docs parallel.map",
    "globals": "what scripts have defined",
    "calls": "the tool calls of the latest script, on a timeline",
    "limits": "what a script may spend",
    "reset": "start afresh",
    "quit": "leave (Ctrl-D)",
}
_DO: dict[str, Callable[[Session, str], None]] = {
    "help": _help,
    "docs": _docs,
    "globals": _globals,
    "calls": _calls,
    "limits": _limits,
    "reset": _reset,
    "quit": _quit,
}
