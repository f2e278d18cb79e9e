"""The application `moonbox`: a table of commands, each loaded when it is called, and their help."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from moonbox.cli.output import report_error
from moonbox.errors import MoonboxError


@dataclass(frozen=True, slots=True)
class Entry:
    """A command: its module has a function of that name, or a Typer application `NAME_app` or `app`.

    NAME_EXAMPLES ends its help.
    """

    name: str
    module: str
    summary: str
    """The first line of its help, here so that the list of commands needs no imports; a test compares them."""
    panel: str = "Scripts"
    takes_words: bool = False
    """`-word` is an argument, not an option."""


COMMANDS = (
    Entry("run", "moonbox.cli.repl", "Run one script and show its result."),
    Entry("repl", "moonbox.cli.repl", "Run scripts at a prompt that keeps its globals."),
    Entry("check", "moonbox.cli.catalog", "Find mistakes in scripts without running them."),
    Entry("init", "moonbox.cli.tool", "Write a commented moonbox.toml and a folder for tool scripts.", "Tool scripts"),
    Entry("trust", "moonbox.cli.trust", "Agree to what a project's moonbox.toml starts and reaches.", "Tool scripts"),
    Entry("tool", "moonbox.cli.tool", "Create and test tool scripts.", "Tool scripts"),
    Entry("script", "moonbox.cli.tool", "Save runs as tools, and remove them.", "Tool scripts"),
    Entry("catalog", "moonbox.cli.catalog", "Show what the model sees of your tools, and its size."),
    Entry("audit", "moonbox.cli.audit", "Show what scripts did."),
    Entry("runs", "moonbox.cli.durable", "List the runs of a journal, the latest first.", "Durable runs"),
    Entry("resume", "moonbox.cli.durable", "Continue a run that a crash cut off.", "Durable runs"),
    Entry("patch", "moonbox.cli.durable", "Continue a run with a corrected script.", "Durable runs"),
    Entry("undo", "moonbox.cli.durable", "Take the calls of a run back.", "Durable runs"),
    Entry("replay", "moonbox.cli.replay", "Run a recorded run again without touching the world.", "Durable runs"),
    Entry("repls", "moonbox.cli.durable", "List or delete the Repls of a journal.", "Durable runs"),
    Entry("approvals", "moonbox.cli.durable", "List and answer calls that wait for a person.", "Durable runs"),
    Entry("cluster", "moonbox.cli.durable", "Show the nodes of a cluster and what they do.", "Durable runs"),
    Entry("console", "moonbox.cli.serve", "Open pages to try scripts, watch runs and answer approvals."),
    Entry("serve", "moonbox.cli.serve", "Serve your tools and other MCP servers to MCP clients.", "MCP"),
    Entry("mcp", "moonbox.cli.mcp", "Manage MCP servers, and add moonbox to MCP clients.", "MCP"),
    Entry("sync", "moonbox.cli.knowledge", "Bring the knowledge base up to date with its sources.", "Knowledge"),
    Entry("search", "moonbox.cli.knowledge", "Search the documents.", "Knowledge", takes_words=True),
    Entry("get", "moonbox.cli.knowledge", "Show one document.", "Knowledge"),
    Entry("sources", "moonbox.cli.knowledge", "List the sources and their state.", "Knowledge"),
    Entry("stats", "moonbox.cli.knowledge", "Show the size of the knowledge base.", "Knowledge"),
    Entry("doctor", "moonbox.cli.doctor", "Show which protections are active on this machine.", "This machine"),
)


def load(entry: Entry) -> Any:
    """The command itself."""
    module, part = import_module(entry.module), typer.Typer(add_completion=False)
    function = getattr(module, entry.name, None)
    if function is not None:
        kind = _Words if entry.takes_words else TyperCommand
        part.command(entry.name, cls=kind, epilog=getattr(module, f"{entry.name.upper()}_EXAMPLES", None))(function)
    else:
        part.add_typer(getattr(module, f"{entry.name}_app", None) or module.app, name=entry.name)
    return _tidy(get_group(part).commands[entry.name])


class _Words(TyperCommand):
    """A command whose arguments may begin with a dash: `moonbox search -draft` leaves documents out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        words = [arg for arg in args if re.match(r"-[^\W\d_]{2}", arg)]
        if words and "--" not in args:
            args = [*(arg for arg in args if arg not in words), "--", *words]
        return super().parse_args(ctx, args)


class _Commands(TyperGroup):
    """Knows every command by name and summary, and loads the one that is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._entries = {entry.name: entry for entry in COMMANDS}
        for entry in COMMANDS:
            self.commands[entry.name] = TyperCommand(entry.name, help=entry.summary, rich_help_panel=entry.panel)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except MoonboxError as error:  # one line for an error of any command, without a traceback
            raise typer.Exit(report_error(error)) from error

    def get_params(self, ctx: Any) -> list[Any]:
        params = super().get_params(ctx)
        _tidy_parameters(params)
        return params

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        entry = self._entries.get(name or "")
        return name, load(entry) if entry is not None else command, rest


# Help without the names of Python types


_HELP_NAMES = ["--help", "-h"]
_TYPE_WORDS = {"str": "TEXT", "int": "N", "float": "N", "list[str]": "TEXT", "path": "PATH"}


def _tidy(command: Any) -> Any:
    """The command, and its subcommands, with readable help."""
    _tidy_parameters(command.params)
    for part in (command, *command.params):
        if part.help:  # Rich would take `[journal]` as markup and leave it out
            part.help = re.sub(r"\[(?=[a-z])", r"\\[", part.help)
    # Typer creates the option --help for the first context and keeps it.
    help_option = command.get_help_option(command.context_class(command, help_option_names=_HELP_NAMES))
    if help_option is not None:
        _tidy_parameters([help_option])
    for child in getattr(command, "commands", {}).values():
        _tidy(child)
    return command


def _tidy_parameters(params: list[Any]) -> None:
    for param in params:
        if param.param_type_name == "argument":  # only its name: Typer adds brackets and dots in the usage line
            vars(param)["display_type_rich"] = lambda ctx: None
            if param.hidden:
                vars(param)["get_usage_pieces"] = lambda ctx: []
            if param.metavar is not None:
                param.metavar = param.metavar.replace("...", "").strip("[]")
        elif param.metavar is None:
            param.metavar = "" if getattr(param, "is_flag", False) else _TYPE_WORDS.get(param.bare_type())


_EXAMPLES = """[bold]Examples[/]

  moonbox run -e '6 * 7'                      a script from the command line
  moonbox run report.lua --tools crm:tools    a file that calls your functions
  moonbox repl                                an interactive prompt
  moonbox doctor                              the protections on this machine
"""

app = typer.Typer(
    name="moonbox",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # their frames would show the values of local variables
    epilog=_EXAMPLES,
    context_settings={"help_option_names": _HELP_NAMES},
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
