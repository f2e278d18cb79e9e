"""The reference of the command line, from the commands themselves."""

from __future__ import annotations

import inspect
from typing import Any

from rich.markup import render

from gen.table import GENERATED, table
from moonbox.cli.app import COMMANDS, load

INTRO = f"""{GENERATED}

# Commands

This page has the texts of `moonbox COMMAND --help`. [The command line](../cli.md) describes the common commands with
examples.
"""


def page() -> str:
    entries = {entry.name: entry for entry in COMMANDS}
    parts = [INTRO.strip(), table(("command", ""), [(f"[`{n}`](#moonbox-{n})", e.summary) for n, e in entries.items()])]
    for name, entry in entries.items():
        parts += _command(f"moonbox {name}", load(entry), 2)
    return "\n\n".join(parts) + "\n"


def _command(path: str, command: Any, level: int) -> list[str]:
    parts = [f"{'#' * level} {path}", _text(command)]
    children = getattr(command, "commands", None)
    if children is None:
        shown = [item for item in command.params if not item.hidden]
        arguments = [item for item in shown if item.param_type_name == "argument"]
        options = [item for item in shown if item.param_type_name == "option"]
        words = [path, "[OPTIONS]" if options else "", *(_argument(item) for item in arguments)]
        parts.append(f"Usage: `{' '.join(word for word in words if word)}`")
        explained = [(f"`{_argument(item)}`", _help(item)) for item in arguments if getattr(item, "help", None)]
        if explained:
            parts.append(table(("argument", ""), explained))
        if options:
            parts.append(table(("option", "default", ""), [_option(item) for item in options]))
        return parts
    for name, child in children.items():
        parts += _command(f"{path} {name}", child, level + 1)
    return parts


def _text(command: Any) -> str:
    text = inspect.cleandoc(_help(command)).split("\f")[0]
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _argument(item: Any) -> str:
    name = item.human_readable_name if item.metavar is None else item.metavar
    name = name.replace("...", "").strip("[]<>").upper()
    name = f"{name}…" if item.nargs == -1 else name
    return name if item.required else f"[{name}]"


def _option(item: Any) -> tuple[str, str, str]:
    names = ", ".join(f"`{name}`" for name in (*item.opts, *item.secondary_opts))
    default = item.default
    nothing = default is None or callable(default) or isinstance(default, bool) or default in ((), [], "")
    shown = "" if nothing else str(default)
    if not shown and isinstance(getattr(item, "show_default", None), str):
        shown = item.show_default
    return names, f"`{shown}`" if shown else "", _help(item)


def _help(item: Any) -> str:
    """The help of a command or parameter, which is markup of Rich, as text."""
    return render(item.help or "").plain
