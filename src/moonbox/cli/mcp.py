"""The command `moonbox mcp`: `list`, `call`, `doctor` and `install` here, the others in `mcp_manage`."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moonbox.cli import mcp_manage
from moonbox.cli.mcp_manage import ClientFile, ClientName, EntryName, ProjectOnly, chosen_server, client_entry
from moonbox.cli.options import ConfigFile, Json, McpConfig, Wait, argument, flag, parse_arguments
from moonbox.cli.output import are_to_show, columns_table, console, print_error, print_json, print_note
from moonbox.cli.run_options import START_SECONDS
from moonbox.cli.trust import Trust, trusted_config
from moonbox.config import find
from moonbox.errors import ToolError, UsageError
from moonbox.wording import counted, seconds, visible

if TYPE_CHECKING:
    from moonbox.mcp.upstreams.manager import Upstreams
    from moonbox.mcp.upstreams.status import Status
    from moonbox.scripts.configured import ToolsSettings
    from moonbox.tools.tool import Tool

app = typer.Typer(name="mcp", help="Manage MCP servers, and add moonbox to MCP clients.", no_args_is_help=True)

_NONE = (
    "no MCP servers are configured; `moonbox mcp add NAME -- command …` adds one, and `moonbox mcp add --from cursor` "
    "those of a client"
)


@app.command("list")
def list_servers(
    server: Annotated[str | None, argument(help="Show the tools of this server.", metavar="[SERVER]")] = None,
    config: ConfigFile = None,
    mcp_config: McpConfig = None,
    as_json: Json = False,
    wait: Wait = START_SECONDS,
    trust: Trust = False,
) -> None:
    """List the servers with their state and number of tools, or the tools of one server."""
    with _started(config, mcp_config, wait, server, trust) as (upstreams, settings):
        if server is not None:
            _show_tools(upstreams, settings, server, as_json)
        elif are_to_show(statuses := upstreams.statuses(), _NONE, as_json=as_json):
            console().print(_table(statuses))
            for status in statuses:
                if status.said and status.state != "ready":
                    typer.echo(f"{_line(status.name)} wrote:")
                    _show_last_lines(status)


@app.command("call")
def call(
    tool: Annotated[str, typer.Argument(help="The tool, written server.tool.", metavar="SERVER.TOOL")],
    arguments: Annotated[
        list[str] | None, argument(help="A JSON object, or key=value pairs.", metavar="[ARGUMENT]...")
    ] = None,
    config: ConfigFile = None,
    mcp_config: McpConfig = None,
    wait: Wait = START_SECONDS,
    trust: Trust = False,
) -> None:
    """Call one tool of a server and print its result as JSON."""
    server, dot, _ = tool.partition(".")
    if not dot:
        raise UsageError(f"write the tool as server.tool, not '{tool}'; `moonbox mcp list` shows the servers")
    with _started(config, mcp_config, wait, server, trust) as (upstreams, settings):
        called = _find_tool(upstreams, server, tool)
        if not settings.allows(called):
            raise UsageError(f"the tool '{called.path}' is disabled: [tools] of moonbox.toml says so")
        given = parse_arguments(arguments or [], called, "ARGUMENT")
        try:
            value = upstreams.call(called.path, given)
        except ToolError as problem:
            print_error(f"{problem.message} ({problem.code})")
            raise typer.Exit(1) from problem
    print_json(value)


@app.command("doctor")
def doctor(
    config: ConfigFile = None,
    mcp_config: McpConfig = None,
    as_json: Json = False,
    wait: Wait = START_SECONDS,
    trust: Trust = False,
) -> None:
    """Start every server and show its problems. The exit status is 1 when there are any."""
    with _started(config, mcp_config, wait, None, trust) as (upstreams, _):
        statuses = upstreams.statuses()
        for status in statuses if are_to_show(statuses, _NONE, as_json=as_json) else ():
            _diagnose(status)
        if any(status.state not in ("ready", "off") or status.problems for status in statuses):
            raise typer.Exit(1)


@app.command("install")
def install(
    client: ClientName = "",
    name: EntryName = "moonbox",
    config: ConfigFile = None,
    mcp_config: McpConfig = None,
    project: ProjectOnly = False,
    file: ClientFile = None,
    print_only: Annotated[bool, flag("--print", help="Print the entry and change nothing.")] = False,
    trust: Trust = False,
) -> None:
    """Add moonbox to the configuration of an MCP client. Everything else in the file stays, and a backup is kept."""
    from moonbox.mcp.clients import CLIENTS, ServerEntry, snippet
    from moonbox.mcp.clients import install as write
    from moonbox.project.sections import read_servers

    if client == "list":
        for known in CLIENTS:
            typer.echo(f"{known.name:<16}{known.file(project=known.user is None, folder=Path.cwd())}")
        return
    chosen, path = client_entry(client, project=project, file=file)
    used = config if config is not None else find()
    # Report errors and ask about trust here, because a client would not show either.
    read_servers(trusted_config(used, trust=trust), mcp_config)
    entry = ServerEntry.make(name, config=used, mcp_config=mcp_config or [])
    if print_only:
        print_note(f"for {path}:")
        typer.echo(snippet(chosen, entry), nl=False)
        return
    written = write(chosen, entry, path)
    backup = f"; backup: {written.backup}" if written.backup is not None else ""
    typer.echo(f"{_DONE[written.done].format(name=name)} {written.path}{backup}")
    if written.done != "unchanged":
        typer.echo(f"restart {chosen.title} to use it", err=True)


for command in ("add", "remove", "test", "login", "logout", "uninstall"):
    app.command(command)(getattr(mcp_manage, command))

_DONE = {
    "created": "created with the entry {name!r}:",
    "added": "added the entry {name!r} to",
    "replaced": "replaced the entry {name!r} in",
    "unchanged": "the entry {name!r} exists already in",
}


@contextlib.contextmanager
def _started(
    config: Path | None, mcp_config: Sequence[Path] | None, wait: float, only: str | None, trust: bool
) -> Iterator[tuple[Upstreams, ToolsSettings]]:
    """The configured servers (or one of them), started and waited for, and which tools may be used."""
    from moonbox.project.sections import need_mcp, read_secrets, read_servers, read_tools

    logging.basicConfig(stream=sys.stderr, level=logging.CRITICAL)  # problems are shown in the tables
    used = trusted_config(config, trust=trust)
    servers, secrets = read_servers(used, mcp_config), read_secrets(used, mcp_config)
    need_mcp()
    from moonbox.mcp.upstreams.login import LoginStore
    from moonbox.mcp.upstreams.manager import Upstreams

    if only is not None:
        servers = [chosen_server(servers, only)]
    # Lazy servers are started too, because the command shows their state.
    started = (replace(server, lazy=False) for server in servers)
    with Upstreams(started, logins=LoginStore(), secrets=secrets) as upstreams:
        if not upstreams.wait(wait):
            print_note("some servers are still starting; wait longer with --wait")
        yield upstreams, read_tools(used)


def _find_tool(upstreams: Upstreams, server: str, path: str) -> Tool:
    """The tool by its server and its own name, whatever prefix it has; or else as scripts name it."""
    name = path.partition(".")[2]
    for tool in upstreams.toolbox:
        if (tool.meta.get("mcp_server"), tool.meta.get("mcp_tool")) == (server, name):
            return tool
    _need_ready(upstreams.status(server))
    try:
        return upstreams.toolbox.resolve(path)
    except ToolError as problem:
        raise UsageError(problem.message) from None


def _show_tools(upstreams: Upstreams, settings: ToolsSettings, server: str, as_json: bool) -> None:
    from moonbox.tools.signature import render

    tools = [tool for tool in upstreams.toolbox if tool.meta.get("mcp_server") == server]
    if as_json:
        names = ("description", "policy", "hints", "parameters", "returns")
        described = [{"name": tool.path, **{name: getattr(tool, name) for name in names}} for tool in tools]
        print_json([{**each, "hints": each["hints"].to_dict()} for each in described])
        return
    _need_ready(upstreams.status(server))
    for tool in tools:
        note = "" if tool.policy == "auto" else str(tool.policy)
        note = "disabled" if not settings.allows(tool) else note or "direct: destructive" * bool(tool.hints.destructive)
        typer.echo(visible(render(tool, "brief"), keep="") + (f"  [{note}]" if note else ""))


def _need_ready(status: Status) -> None:
    """Refuse a server that did not start; this command makes no further attempts."""
    if status.state != "ready":
        print_error(
            f"the MCP server '{status.name}' is not available: {status.reason}" if status.reason else status.why()
        )
        raise typer.Exit(1)


def _table(statuses: Sequence[Status]) -> Any:
    from rich.text import Text

    from moonbox.mcp.upstreams.status import LAST_OUTPUT

    names = ("server", "state", "tools", "protocol", "start", "command or address", "notes")
    rows = []
    for status in statuses:
        why = status.reason or "; ".join(status.problems)
        if status.said:  # which is shown below
            why = why.partition(LAST_OUTPUT)[0]
        if status.login is not None:
            why = "; ".join([f"logged in{mcp_manage.login_note(status.login)}", *([why] if why else [])])
        row = (
            _line(status.name),
            Text(status.state, _COLOURS.get(status.state, "")),
            str(status.tools) if status.state == "ready" else "",
            _line(status.protocol),
            seconds(status.seconds) if status.seconds is not None else "",
            _line(status.where if "://" in status.where else Path(status.where).name),
            _line(why),
        )
        rows.append(row)
    return columns_table(names, rows, right=("tools", "start"), folded=names)


_LAST_LINES, _LONGEST_LINE = 10, 2_000
"""Of what a server that failed wrote: the last lines explain it, and often name a file that says more."""
_COLOURS = {"ready": "green", "failed": "red", "retrying": "red", "starting": "yellow", "off": "dim"}


def _diagnose(status: Status) -> None:
    """One server in a few lines."""
    good = status.state == "ready" and not status.problems
    mark = typer.style("ok" if good else "off" if status.state == "off" else "!!", fg="green" if good else "red")
    if status.state == "ready":
        tools, time = counted(status.tools, "tool"), seconds(status.seconds or 0)
        speaks = f"{_line(status.server) or 'unnamed server'}, protocol {_line(status.protocol)}"
        typer.echo(f"{mark} {_line(status.name)}: {speaks}, {tools}, started in {time}")
    else:
        typer.echo(f"{mark} {_line(status.name)}: {_line(status.reason or status.why())}")
        typer.echo(f"   command or address: {_line(status.where)}")
        _show_last_lines(status)
    for problem in status.problems:
        typer.echo(f"   - {_line(problem)}")


def _show_last_lines(status: Status) -> None:
    for line in [line for line in status.said.splitlines() if line.strip()][-_LAST_LINES:]:
        typer.echo(f"   | {visible(line[:_LONGEST_LINE], keep='')}")


def _line(text: str) -> str:
    """A text of a server on one line, with its control characters made visible."""
    return visible(text[:300], keep="")
