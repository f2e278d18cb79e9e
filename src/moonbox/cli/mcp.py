"""The commands `moonbox mcp list`, `call`, `doctor` and `install`."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moonbox.audit.terminal import seconds, visible
from moonbox.cli.screen import complain, console, note, print_json, told
from moonbox.cli.serve import ConfigFile, McpConfig  # noqa: TC001 - read at run time by Typer
from moonbox.errors import ToolError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moonbox.mcp.upstreams.manager import Upstreams
    from moonbox.mcp.upstreams.status import Status
    from moonbox.tools.tool import Tool

__all__ = ["app"]

app = typer.Typer(name="mcp", help="Look at MCP servers, and enter moonbox in MCP clients.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON.")]
Wait = Annotated[float, typer.Option("--wait", help="Seconds to wait for servers to start.", metavar="SECONDS")]
_PATIENCE = 30.0
_NONE = "no MCP servers are configured; add [mcp.servers.<name>] to moonbox.toml, or pass --mcp-config"


@app.command("list")
def list_servers(
    server: Annotated[
        str | None, typer.Argument(help="Show the tools of this server.", metavar="[SERVER]", show_default=False)
    ] = None,
    config: ConfigFile = None,
    mcp_config: McpConfig = None,
    as_json: Json = False,
    wait: Wait = _PATIENCE,
) -> None:
    """List the servers with their states and numbers of tools, or one server's tools."""
    with told(), _started(config, mcp_config, wait, server) as upstreams:
        if server is not None:
            _show_tools(upstreams, server, as_json)
            return
        statuses = upstreams.statuses()
        if as_json:
            print_json([status.to_dict() for status in statuses])
        elif not statuses:
            typer.echo(_NONE)
        else:
            console().print(_table(statuses))


@app.command("call")
def call(
    tool: Annotated[str, typer.Argument(help="The tool, as server.tool.", metavar="SERVER.TOOL")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(help="A JSON object, or key=value pairs.", metavar="[ARGUMENT]...", show_default=False),
    ] = None,
    config: ConfigFile = None,
    mcp_config: McpConfig = None,
    wait: Wait = _PATIENCE,
) -> None:
    """Call one tool of a server and print its data as JSON."""
    with told():
        server, dot, _ = tool.partition(".")
        if not dot:
            raise UsageError(f"name the tool as server.tool, not {tool!r}; `moonbox mcp list` shows the servers")
        given = _arguments(arguments or [])
        with _started(config, mcp_config, wait, server) as upstreams:
            found = upstreams.toolbox.get(tool) or _resolved(upstreams, tool)
            try:
                value = upstreams.call(found.path, _typed(given, found))
            except ToolError as problem:
                complain(f"{problem.message} ({problem.code})")
                raise typer.Exit(1) from problem
        typer.echo(json.dumps(value, indent=2))


@app.command("doctor")
def doctor(
    config: ConfigFile = None, mcp_config: McpConfig = None, as_json: Json = False, wait: Wait = _PATIENCE
) -> None:
    """Start every server and say what is wrong with each; exit status 1 when something is."""
    with told(), _started(config, mcp_config, wait, None) as upstreams:
        statuses = upstreams.statuses()
        if as_json:
            print_json([status.to_dict() for status in statuses])
        elif not statuses:
            typer.echo(_NONE)
        else:
            for status in statuses:
                _diagnose(status)
        if any(status.state not in ("ready", "off") or status.problems for status in statuses):
            raise typer.Exit(1)


@app.command("install")
def install(
    client: Annotated[
        str, typer.Option("--client", help="Which client; `--client list` names them.", metavar="NAME")
    ] = "",
    name: Annotated[str, typer.Option(help="The entry's name.", metavar="NAME")] = "moonbox",
    config: ConfigFile = None,
    mcp_config: McpConfig = None,
    project: Annotated[
        bool, typer.Option("--project", metavar="", help="For the project in this folder only.")
    ] = False,
    file: Annotated[
        Path | None, typer.Option(help="Another file than the client's usual one.", metavar="FILE", show_default=False)
    ] = None,
    print_only: Annotated[
        bool, typer.Option("--print", metavar="", help="Print the entry and change nothing.")
    ] = False,
) -> None:
    """Enter moonbox in an MCP client's configuration; what is there stays, and a copy of it is kept."""
    with told():
        from moonbox.config.file import Config, find
        from moonbox.mcp.clients import CLIENTS, Entry, snippet
        from moonbox.mcp.clients import find as find_client
        from moonbox.mcp.clients import install as write
        from moonbox.project.settings import servers_of

        if client == "list":
            for known in CLIENTS:
                typer.echo(f"{known.name:<16}{known.file(project=known.user is None, folder=Path.cwd())}")
            return
        if not client:
            names = ", ".join(known.name for known in CLIENTS)
            raise UsageError(f"say for which client, with --client NAME; known are: {names}")
        chosen = find_client(client)
        used = config if config is not None else find()
        servers_of(Config.load(used), mcp_config)  # a client would show its user nothing of what is wrong with them
        entry = Entry.make(name, config=used, mcp_config=mcp_config or [])
        path = file if file is not None else chosen.file(project=project, folder=Path.cwd())
        if print_only:
            note(f"for {path}:")
            typer.echo(snippet(chosen, entry), nl=False)
            return
        outcome = write(chosen, entry, path)
        kept = f"; the file as it was: {outcome.backup}" if outcome.backup is not None else ""
        typer.echo(f"{_DONE[outcome.done].format(name=name)} {outcome.path}{kept}")
        if outcome.done != "unchanged":
            typer.echo(f"restart {chosen.title} to use it", err=True)


_DONE = {
    "created": "made with an entry {name!r}:",
    "added": "added an entry {name!r} to",
    "replaced": "replaced the entry {name!r} in",
    "unchanged": "the entry {name!r} is there already:",
}


@contextlib.contextmanager
def _started(
    config: Path | None, mcp_config: Sequence[Path] | None, wait: float, only: str | None
) -> Iterator[Upstreams]:
    """The configured servers (or one of them), started and waited for."""
    from dataclasses import replace

    from moonbox.config.file import Config
    from moonbox.project.settings import need_mcp, servers_of

    logging.basicConfig(stream=sys.stderr, level=logging.CRITICAL)  # what is wrong is shown in the tables
    servers = servers_of(Config.load(config), mcp_config)
    need_mcp()
    from moonbox.mcp.upstreams.manager import Upstreams

    if only is not None and only in {server.name for server in servers}:
        servers = [server for server in servers if server.name == only]
    # Started even if lazy: whoever asks wants to know.
    with Upstreams(replace(server, lazy=False) for server in servers) as upstreams:
        if not upstreams.wait(wait):
            note("some servers are still starting; give them longer with --wait")
        yield upstreams


def _resolved(upstreams: Upstreams, name: str) -> Tool:
    _need_ready(upstreams.status(name.partition(".")[0]))
    try:
        return upstreams.toolbox.resolve(name)
    except ToolError as problem:
        raise UsageError(problem.message) from None


def _arguments(given: Sequence[str]) -> dict[str, Any] | list[tuple[str, str]]:
    """A JSON object, or key=value pairs."""
    if len(given) == 1 and given[0].lstrip().startswith("{"):
        try:
            data = json.loads(given[0])
        except ValueError as problem:
            raise UsageError(f"the arguments are not valid JSON: {problem}") from None
        return dict(data)
    pairs = []
    for item in given:
        key, equals, text = item.partition("=")
        if not equals or not key:
            raise UsageError(f"give the arguments as key=value or as one JSON object, not {item!r}")
        pairs.append((key, text))
    return pairs


def _typed(given: dict[str, Any] | list[tuple[str, str]], tool: Tool) -> dict[str, Any]:
    """Pairs as the schema wants them: text for text, else JSON where it is JSON."""
    if isinstance(given, dict):
        return given
    properties = tool.parameters.get("properties", {})
    arguments: dict[str, Any] = {}
    for key, text in given:
        part = properties.get(key)
        is_text = isinstance(part, dict) and part.get("type") == "string"
        arguments[key] = text if is_text else _value(text)
    return arguments


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _show_tools(upstreams: Upstreams, server: str, as_json: bool) -> None:
    from moonbox.tools.signature import render

    status = upstreams.status(server)
    tools = [tool for tool in upstreams.toolbox if tool.namespace == server]
    if as_json:
        print_json([_described(tool) for tool in tools])
        return
    _need_ready(status)
    for tool in tools:
        policy = "" if not _note(tool) else f"  [{_note(tool)}]"
        typer.echo(visible(render(tool, "brief"), keep="") + policy)


def _need_ready(status: Status) -> None:
    """Nothing is said of further attempts: this command makes none."""
    if status.state == "ready":
        return
    if not status.reason:
        complain(status.why())
    else:
        complain(f"the MCP server '{status.name}' is not available: {status.reason}")
    raise typer.Exit(1)


def _note(tool: Tool) -> str:
    """Why scripts do not simply call it."""
    if tool.policy != "auto":
        return tool.policy
    return "direct: destructive" if tool.hints.destructive else ""


def _described(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.path,
        "description": tool.description,
        "policy": tool.policy,
        "hints": tool.hints.to_dict(),
        "parameters": tool.parameters,
        "returns": tool.returns,
    }


def _table(statuses: Sequence[Status]) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("server", "state", "tools", "protocol", "start", "how it is reached", "why"):
        table.add_column(column, justify="right" if column in ("tools", "start") else "left", overflow="fold")
    for status in statuses:
        why = status.reason or "; ".join(status.problems)
        table.add_row(
            _line(status.name),
            Text(status.state, _COLOURS.get(status.state, "")),
            str(status.tools) if status.state == "ready" else "",
            _line(status.protocol),
            seconds(status.seconds) if status.seconds is not None else "",
            _line(status.where if "://" in status.where else Path(status.where).name),
            _line(why),
        )
    return table


_COLOURS = {"ready": "green", "failed": "red", "retrying": "red", "starting": "yellow", "off": "dim"}


def _diagnose(status: Status) -> None:
    """One server, in sentences."""
    good = status.state == "ready" and not status.problems
    mark = typer.style("ok" if good else "off" if status.state == "off" else "!!", fg="green" if good else "red")
    if status.state == "ready":
        speaks = f"{_line(status.server) or 'a server without a name'}, protocol {_line(status.protocol)}"
        typer.echo(f"{mark} {_line(status.name)}: {speaks}, {status.tools} tools, up in {seconds(status.seconds or 0)}")
    else:
        typer.echo(f"{mark} {_line(status.name)}: {_line(status.reason or status.why())}")
        typer.echo(f"   reached by: {_line(status.where)}")
        for line in status.said.splitlines()[-5:]:
            typer.echo(f"   | {_line(line)}")
    for problem in status.problems:
        typer.echo(f"   - {_line(problem)}")


def _line(text: str) -> str:
    """What a server says, on one line and without a hold on the terminal."""
    return visible(text[:300], keep="")
