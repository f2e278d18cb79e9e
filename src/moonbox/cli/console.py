"""The command `moonbox console`."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path  # noqa: TC003 - read at run time by Typer
from typing import Annotated, Any

import typer

from moonbox.cli.options import ConfigFile, McpConfig, Tools  # noqa: TC001 - read at run time by Typer
from moonbox.cli.output import print_note, reporting_errors
from moonbox.cli.trust import Trust, trusted_config
from moonbox.errors import UsageError

__all__ = ["console", "register"]

_EXAMPLES = """[bold]Examples[/]

  moonbox console                      with the nearest moonbox.toml
  moonbox console --tools crm:tools    with your Python functions as tools
  moonbox console report.lua           with this script in the editor
"""


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("console", epilog=_EXAMPLES)(console)


def console(
    script: Annotated[
        Path | None, typer.Argument(help="A script to begin with.", metavar="SCRIPT", show_default=False)
    ] = None,
    config: ConfigFile = None,
    mcp_config: McpConfig = None,
    tools: Tools = None,
    port: Annotated[
        int | None,
        typer.Option(metavar="PORT", min=0, max=65_535, help="The port; 0 takes a free one.", show_default="8809"),
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", metavar="", help="Print the address without opening a browser.")
    ] = False,
    trust: Trust = False,
) -> None:
    """Open pages to try scripts, watch runs and answer approvals.

    The pages are served on this machine alone. The printed address works
    once; after that, the browser that used it stays signed in.
    """
    with reporting_errors():
        from moonbox.project.console import run_console
        from moonbox.project.python_tools import load_tools

        source = _read(script) if script is not None else ""

        def load() -> Any:
            return load_tools(tools or ())

        def opened(address: str) -> None:
            typer.echo(address)
            print_note("this address works once; Ctrl-C stops the console")
            if not no_browser and _has_screen():
                webbrowser.open(address)

        run_console(
            trusted_config(config, trust=trust), load, mcp_config or [], port=port, script=source, opened=opened
        )


def _read(script: Path) -> str:
    try:
        return script.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"the file '{script}' does not exist") from None
    except OSError as problem:
        raise UsageError(f"'{script}' cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"'{script}' is not UTF-8") from None


def _has_screen() -> bool:
    """Whether a browser with windows can be expected; one in the terminal would take it over."""
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
