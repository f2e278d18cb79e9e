"""The command `moonbox serve`."""

from __future__ import annotations

import logging
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moonbox.audit.terminal import visible
from moonbox.cli.screen import complain, note, told

if TYPE_CHECKING:
    from moonbox.mcp.server.settings import ServeSettings

__all__ = ["ConfigFile", "McpConfig", "register", "serve"]

_EXAMPLES = """[bold]Examples[/]

  moonbox serve                        over stdio, for a client to start
  moonbox serve --mcp-config mcp.json  the servers of another client
  moonbox serve --http                 at http://127.0.0.1:8808/mcp
  moonbox mcp install --client cursor  enter it in a client
"""

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        help="The configuration; by default the nearest moonbox.toml.",
        metavar="FILE",
        show_default=False,
    ),
]
McpConfig = Annotated[
    list[Path] | None,
    typer.Option(
        "--mcp-config",
        help="A file with the mcpServers of another client, to put behind moonbox too. May be repeated.",
        metavar="FILE",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("serve", epilog=_EXAMPLES)(serve)


def serve(
    config: ConfigFile = None,
    mcp_config: McpConfig = None,
    tools: Annotated[
        list[str] | None,
        typer.Option(
            "--tools",
            "-t",
            metavar="MODULE:NAME",
            help="Python tools to offer too. May be repeated.",
            show_default=False,
        ),
    ] = None,
    http: Annotated[
        bool, typer.Option("--http", metavar="", help="Serve over HTTP instead of standard input and output.")
    ] = False,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Where to listen.", show_default="127.0.0.1")
    ] = None,
    port: Annotated[
        int | None, typer.Option(metavar="PORT", min=0, max=65_535, help="0 takes any free one.", show_default="8808")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            envvar="MOONBOX_TOKEN",
            help="What clients must show; needed for any address but this machine's own.",
            show_default=False,
        ),
    ] = None,
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            metavar="",
            count=True,
            help="Say more on standard error; twice for everything.",
            show_default=False,
        ),
    ] = 0,
) -> None:
    """Serve your tools and other MCP servers to MCP clients.

    They are shown one code tool with a catalog of everything, and the few
    tools that stay direct. Nothing but the protocol goes to standard output.
    """
    _log(verbose)
    with told():
        from moonbox.cli.toolrefs import load_tools
        from moonbox.config.file import Config
        from moonbox.project.serving import run_http, run_stdio

        found = Config.load(config)

        def load() -> Any:
            return load_tools(tools or ())

        if not http:
            _refuse_http_options(host, port)
            if sys.stdin.isatty():
                note("speaking MCP on standard input and output, as a client starts it; Ctrl-C ends it")
                note("`moonbox mcp install` enters it in a client, `moonbox serve --http` serves it on an address")
            run_stdio(found, load, mcp_config or [])
            return
        run_http(found, _settings(found, host, port, token), load, mcp_config or [], told=_say)


def _settings(config: Any, host: str | None, port: int | None, token: str | None) -> ServeSettings:
    from moonbox.mcp.server.settings import ServeSettings

    given: dict[str, Any] = {"host": host, "port": port, "token": token or None}
    given = {key: value for key, value in given.items() if value is not None}
    return replace(ServeSettings.from_config(config), **given)


def _refuse_http_options(host: str | None, port: int | None) -> None:
    for name, value in (("--host", host), ("--port", port)):
        if value is not None:
            complain(f"{name} belongs to --http; without it MCP is served on standard input and output")
            raise typer.Exit(2)


def _say(message: str) -> None:
    typer.echo(message, err=True)


def _log(verbose: int) -> None:
    """Everything that is logged goes to standard error: standard output belongs to the protocol."""
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Harmless("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=level)
    if verbose < 2:
        for noisy in ("mcp", "client", "httpx2", "httpcore2"):
            logging.getLogger(noisy).setLevel(logging.ERROR)


class _Harmless(logging.Formatter):
    """What clients and servers say, without a hold on the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))
