"""The application `moonbox`: a table of commands, each loaded when it is called."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from moonbox.cli.helptext import HELP_NAMES, tidy, tidy_options

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["COMMANDS", "Entry", "app", "load"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A command: its module has a Typer application `app`, or a function `register(app)` that adds the command."""

    name: str
    module: str
    summary: str
    """The first line of its help, here so that the list of commands needs no imports; a test compares them."""
    panel: str = "Scripts"


COMMANDS = (
    Entry("run", "moonbox.cli.run", "Run one script and show what it returns."),
    Entry("repl", "moonbox.cli.repl", "Type scripts at a prompt that keeps its globals."),
    Entry("init", "moonbox.cli.init", "Write a commented moonbox.toml and a folder for tool scripts.", "Tool scripts"),
    Entry("tool", "moonbox.cli.tool", "Make and test tool scripts.", "Tool scripts"),
    Entry("catalog", "moonbox.cli.catalog", "Show what the model would see of your tools, and its size."),
    Entry("audit", "moonbox.cli.audit", "Look at what scripts did."),
    Entry("serve", "moonbox.cli.serve", "Serve your tools and other MCP servers to MCP clients.", "MCP"),
    Entry("mcp", "moonbox.cli.mcp", "Look at MCP servers, and enter moonbox in MCP clients.", "MCP"),
    Entry("sync", "moonbox.cli.knowledge", "Bring the knowledge base up to date with its sources.", "Knowledge"),
    Entry("search", "moonbox.cli.knowledge", "Search the documents.", "Knowledge"),
    Entry("get", "moonbox.cli.knowledge", "Show one document.", "Knowledge"),
    Entry("sources", "moonbox.cli.knowledge", "List the sources and how they are.", "Knowledge"),
    Entry("stats", "moonbox.cli.knowledge", "Show the knowledge base in numbers.", "Knowledge"),
    Entry("doctor", "moonbox.cli.doctor", "Show which protections hold on this machine.", "This machine"),
)


def load(entry: Entry) -> Any:
    """The command itself."""
    module = import_module(entry.module)
    part = typer.Typer(add_completion=False)
    register: Callable[[typer.Typer], None] | None = getattr(module, "register", None)
    if register is not None:
        register(part)
    else:
        part.add_typer(module.app, name=entry.name)
    return tidy(get_group(part).commands[entry.name])


class _Commands(TyperGroup):
    """Knows every command by name and summary, and loads the one that is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._entries = {entry.name: entry for entry in COMMANDS}
        for entry in COMMANDS:
            self.commands[entry.name] = TyperCommand(entry.name, help=entry.summary, rich_help_panel=entry.panel)

    def get_params(self, ctx: Any) -> list[Any]:
        params = super().get_params(ctx)
        tidy_options(params)
        return params

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        entry = self._entries.get(name or "")
        return name, load(entry) if entry is not None else command, rest


_EXAMPLES = """[bold]Examples[/]

  moonbox run -e '6 * 7'                      a script from the command line
  moonbox run report.lua --tools crm:tools    a file that calls your functions
  moonbox repl                                try things out
  moonbox doctor                              what protects you here
"""

app = typer.Typer(
    name="moonbox",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # their frames would show the values of local variables
    epilog=_EXAMPLES,
    context_settings={"help_option_names": HELP_NAMES},
)


@app.callback()
def _moonbox(
    version: Annotated[bool, typer.Option("--version", "-V", metavar="", help="Show the version and exit.")] = False,
) -> None:
    """Run scripts that a language model wrote, in a sandbox, with your tools."""
    if version:
        from moonbox import __version__

        typer.echo(f"moonbox {__version__}")
        raise typer.Exit
