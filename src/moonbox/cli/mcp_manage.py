"""The commands `moonbox mcp add`, `remove`, `test`, `login`, `logout` and `uninstall`."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moonbox.cli.browser import private_browser
from moonbox.cli.options import ConfigFile, Json, McpConfig, argument, flag, option
from moonbox.cli.output import confirmed, print_error, print_json, print_note
from moonbox.cli.trust import keeping_trust, trusted_config
from moonbox.errors import ConfigError, MissingExtra, UsageError
from moonbox.secrets import SecretRedactor
from moonbox.suggest import unknown
from moonbox.threads import in_thread
from moonbox.wording import counted, seconds, visible

if TYPE_CHECKING:
    from moonbox.config.mcp import ServerSettings
    from moonbox.mcp.clients import ClientProgram

_Name = Annotated[str, typer.Argument(help="The server's name in moonbox.toml.", metavar="NAME")]
ClientName = Annotated[
    str,
    typer.Option(
        help="The client; `install --client list` lists them.",
        metavar="NAME",
        autocompletion=lambda: [client.name for client in import_module("moonbox.mcp.clients").CLIENTS],
    ),
]
EntryName = Annotated[str, typer.Option(help="The name of the entry.", metavar="NAME")]
ProjectOnly = Annotated[bool, flag("--project", help="Only for the project in this folder.")]
ClientFile = Annotated[
    Path | None, option(help="The client's configuration file, if it is not in the usual place.", metavar="FILE")
]


def add(
    name: Annotated[str | None, argument(help="The name of the new server.", metavar="[NAME]")] = None,
    command: Annotated[
        list[str] | None, argument(help="After --: the program and its arguments.", metavar="[COMMAND]...")
    ] = None,
    url: Annotated[str | None, option(help="The address of a server over HTTP.", metavar="URL")] = None,
    env: Annotated[
        list[str] | None, option(help="A variable of its environment; can be repeated.", metavar="NAME=VALUE")
    ] = None,
    header: Annotated[
        list[str] | None, option(help="A header of each request; can be repeated.", metavar="NAME=VALUE")
    ] = None,
    source: Annotated[
        str | None, option("--from", help="Take over the servers of a client, such as cursor.", metavar="CLIENT")
    ] = None,
    file: ClientFile = None,
    remove_old: Annotated[
        bool | None,
        typer.Option(
            "--remove-old/--keep-old", help="Whether to remove the client's own entries.", show_default="asks"
        ),
    ] = None,
    as_variables: Annotated[
        bool | None,
        typer.Option(
            "--secrets-as-variables/--keep-secrets",
            help="Whether to write ${NAME} in place of a client's tokens and passwords.",
            show_default="asks",
        ),
    ] = None,
    replace: Annotated[bool, flag("--replace", help="Replace servers of the same name.")] = False,
    config: ConfigFile = None,
) -> None:
    """Add an MCP server to moonbox.toml: `add NAME -- command …`, `add NAME --url URL`, or `add --from CLIENT`."""
    path = _config_file(config)
    if source is not None:
        if name or command or url:
            raise UsageError("--from takes over all servers of a client; leave out the name, command and --url")
        _add_from(source, file, path, remove_old=remove_old, as_variables=as_variables, replace=replace)
        return
    if command and url is not None:
        raise UsageError("a server has either a command or a --url, not both")
    if name is None or (url is None and not command):
        raise UsageError(
            "write `moonbox mcp add NAME -- command …`, `moonbox mcp add NAME --url URL` "
            "or `moonbox mcp add --from CLIENT`"
        )
    table: dict[str, Any] = {"command": command[0], "args": command[1:]} if command else {"url": url}
    table |= {"env": _pairs(env or (), "--env"), "headers": _pairs(header or (), "--header")}
    _add_one(name, {key: value for key, value in table.items() if value not in ([], {})}, path, replace=replace)


def _add_one(name: str, table: dict[str, Any], path: Path, *, replace: bool) -> None:
    from moonbox.mcp.imports import add_servers

    with keeping_trust(path):
        add_servers(path, {name: table}, replace=replace)
    typer.echo(f"added the MCP server '{name}' to {path}")
    _guard_secrets({name: table}, path)
    program = table.get("command")
    if program is not None and shutil.which(program, path=table.get("env", {}).get("PATH")) is None:
        typer.echo(visible(f"warning: there is no program '{program}'"), err=True)
    print_note(f"`moonbox mcp test {name}` shows what it can do")


def _add_from(
    source: str, file: Path | None, path: Path, *, remove_old: bool | None, as_variables: bool | None, replace: bool
) -> None:
    from moonbox.mcp import clients
    from moonbox.mcp.imports import add_servers, client_file, literal_secrets, valid_tables, with_variables

    client, listed_in = client_file(source, file)
    tables, problems = valid_tables(listed_in)
    for name, problem in problems.items():
        typer.echo(visible(f"warning: left out '{name}' of {listed_in}: {problem}"), err=True)
    if not tables:
        raise UsageError(f"{listed_in} contains no {'other ' if problems else ''}servers")
    if not replace:
        tables = _without_known(tables, path)
    secrets = literal_secrets(tables)
    if secrets and as_variables is None:
        places = ", ".join(secret.place for secret in secrets)
        question = f"{listed_in} contains {counted(len(secrets), 'secret')}: {places}\nWrite ${{NAME}} in their place?"
        as_variables = confirmed(question)
    if as_variables:
        tables = with_variables(tables, secrets)
    with keeping_trust(path):
        add_servers(path, tables, replace=replace)
    names = ", ".join(f"'{item}'" for item in tables)
    typer.echo(f"added {counted(len(tables), 'MCP server')} to {path}: {names}")
    _guard_secrets(tables, path)
    holder = listed_in
    if remove_old is None:
        remove_old = confirmed(f"Remove these entries from {listed_in}?")
    if remove_old:
        removed = clients.remove(client, list(tables), listed_in)
        backup = f"; backup: {removed.backup}" if removed.backup is not None else ""
        holder = removed.backup or listed_in
        typer.echo(f"removed {counted(len(tables), 'entry', 'entries')} from {removed.path}{backup}")
    if as_variables and secrets:
        variables = ", ".join(dict.fromkeys(secret.variable for secret in secrets))
        text = f"set these variables before you start moonbox: {variables}; their values are in {holder}"
        typer.echo(visible(text), err=True)
    print_note(f"`moonbox mcp install --client {client.name}` adds moonbox to it")


def _without_known(tables: dict[str, Any], path: Path) -> dict[str, Any]:
    """The servers that are not in the file yet, and a line about the others."""
    from moonbox.mcp.imports import server_names

    kept = [name for name in server_names(path) if name in tables]
    if not kept:
        return tables
    names = ", ".join(f"'{name}'" for name in kept)
    message = f"{path} already has {names}; use --replace to replace {'it' if len(kept) == 1 else 'them'}"
    new = {name: table for name, table in tables.items() if name not in kept}
    if not new:
        raise UsageError(message)
    typer.echo(message, err=True)
    return new


def _guard_secrets(tables: dict[str, Any], path: Path) -> None:
    """Say which secrets a file holds now, and let nobody else read it."""
    from moonbox.mcp.imports import literal_secrets

    secrets = literal_secrets(tables)
    if not secrets:
        return
    path.chmod(path.stat().st_mode & 0o700)
    places = ", ".join(secret.place for secret in secrets)
    typer.echo(
        visible(
            f"warning: {path} contains {counted(len(secrets), 'secret')}: {places}; only you can read the file now. "
            f"Do not commit it, or write ${{{secrets[0].variable}}} instead and set that environment variable"
        ),
        err=True,
    )


def remove(name: _Name, config: ConfigFile = None) -> None:
    """Remove an MCP server from moonbox.toml, and forget its login."""
    from moonbox.mcp.imports import remove_server

    path = _config_file(config)
    try:
        forgotten = _store().remove(_find(name, config, None))
    except (MissingExtra, UsageError):
        forgotten = False  # without the SDK there is no login; the registry reports an unknown name
    with keeping_trust(path):
        remove_server(path, name)
    typer.echo(f"removed the MCP server '{name}' from {path}" + (" and forgot its login" if forgotten else ""))


def test(name: _Name, config: ConfigFile = None, mcp_config: McpConfig = None, as_json: Json = False) -> None:
    """Start one server and show what it can do, how fast it answers, and the problems of its tools."""
    settings = _find(name, config, mcp_config)
    from moonbox.mcp.upstreams.connection import examine
    from moonbox.mcp.upstreams.login import make_auth

    with _reporting(f"the MCP server '{name}'", config, mcp_config):
        report = asyncio.run(examine(settings, None if settings.url is None else make_auth(settings, _store())))
    if as_json:
        print_json(report)
    else:
        _show_report(report)
    if report["problems"]:
        raise typer.Exit(1)


def _show_report(report: dict[str, Any]) -> None:
    line = {key: visible(str(value), keep="") for key, value in report.items()}
    times = report["seconds"]
    typer.echo(f"{line['name']}: {line['server'] or 'unnamed server'}, protocol {line['protocol']}")
    typer.echo(f"  capabilities  {visible(', '.join(report['capabilities']) or 'none', keep='')}")
    typer.echo(
        f"  tools         {report['tools']}, of which {report['annotated']} have annotations and "
        f"{report['with_result_schema']} a schema of their results"
    )
    typer.echo(f"  prompts       {report['prompts']}")
    typer.echo(f"  resources     {report['resources']}, and {counted(report['templates'], 'template')}")
    typer.echo(f"  start         {seconds(times['start'])}")
    usual = f"{seconds(times['list'])} (median of {report['lists']})"
    typer.echo(f"  tools/list    {usual}, {seconds(times['first_list'])} at first")
    for problem in report["problems"]:
        typer.echo(f"  - {visible(problem[:300], keep='')}")


def login(
    name: _Name,
    open_browser: Annotated[
        bool,
        typer.Option("--browser/--no-browser", help="Open a browser, or print the address and read where it leads."),
    ] = True,
    config: ConfigFile = None,
    mcp_config: McpConfig = None,
) -> None:
    """Log in to an MCP server with OAuth. The tokens are kept in the system's keyring, or in a file of yours."""
    settings = _find(name, config, mcp_config)
    if settings.url is None:
        raise UsageError(f"the MCP server '{name}' is a program; only servers with a url have logins")
    if any(key.lower() == "authorization" for key in settings.headers):
        raise UsageError(f"the MCP server '{name}' has an Authorization header in its configuration; remove it first")
    from moonbox.mcp.upstreams.browser import log_in

    async def show(address: str) -> None:
        typer.echo(f"open this address to log in:\n\n  {visible(address, keep='')}\n", err=True)
        if open_browser:
            await in_thread(visit, address)
        else:
            typer.echo("then paste the address at which the browser ends here:", err=True)

    store = _store()
    with _reporting(f"the login at '{name}'", config, mcp_config), private_browser() as visit:
        asyncio.run(log_in(settings, store, show, paste=not open_browser))
    entry = store.login(settings)
    if entry is None:
        typer.echo(f"the MCP server '{name}' needs no login")
        return
    typer.echo(f"logged in at '{name}'{login_note(entry)}; the tokens are kept in {store.place}")


@contextlib.contextmanager
def _reporting(what: str, config: Path | None, mcp_config: Sequence[Path] | None) -> Iterator[None]:
    """Report a failure as one line: whatever a server makes the SDK raise is the server's problem."""
    from moonbox.mcp.upstreams.status import describe
    from moonbox.project.sections import read_secrets

    try:
        yield
    except UsageError:
        raise
    except Exception as problem:  # noqa: BLE001 - see above
        hide = SecretRedactor(read_secrets(trusted_config(config), list(mcp_config or ())))
        print_error(f"{what} failed: {hide(describe(problem))}")
        raise typer.Exit(1) from None


def logout(name: _Name, config: ConfigFile = None, mcp_config: McpConfig = None) -> None:
    """Forget the login at an MCP server."""
    removed = _store().remove(_find(name, config, mcp_config))
    typer.echo(f"logged out of '{name}'" if removed else f"there is no login at '{name}'")


def login_note(entry: Any) -> str:
    """How long a login lasts, for people."""
    if entry.renews:
        return ", renewed by itself"
    if entry.expires_at is None:
        return ""
    until = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.expires_at))
    return f", expired since {until}" if entry.expired else f" until {until}"


def uninstall(
    client: ClientName = "",
    name: EntryName = "moonbox",
    project: ProjectOnly = False,
    file: ClientFile = None,
) -> None:
    """Remove moonbox from the configuration of an MCP client. Everything else stays, and a backup is kept."""
    from moonbox.mcp.clients import remove

    chosen, path = client_entry(client, project=project, file=file)
    removed = remove(chosen, [name], path)
    if removed.done == "unchanged":
        typer.echo(f"there is no entry '{name}' in {removed.path}")
        return
    typer.echo(f"removed the entry '{name}' from {removed.path}; backup: {removed.backup}")
    typer.echo(f"restart {chosen.title} to use it without moonbox", err=True)


def client_entry(name: str, *, project: bool, file: Path | None) -> tuple[ClientProgram, Path]:
    """A client, and the file that it keeps its servers in."""
    from moonbox.mcp.clients import CLIENTS, find

    if not name:
        raise UsageError(f"--client is required; known clients: {', '.join(known.name for known in CLIENTS)}")
    chosen = find(name)
    return chosen, file if file is not None else chosen.file(project=project, folder=Path.cwd())


def _config_file(config: Path | None) -> Path:
    from moonbox.config import find
    from moonbox.config.file import FILE_NAME

    return config or find() or Path.cwd() / FILE_NAME


def _find(name: str, config: Path | None, mcp_config: Sequence[Path] | None) -> ServerSettings:
    from moonbox.project.sections import need_mcp, read_servers

    need_mcp()
    server = chosen_server(read_servers(trusted_config(config), list(mcp_config or ())), name)
    if server.problem:
        raise ConfigError(server.problem)
    return server


def chosen_server(servers: Sequence[ServerSettings], name: str) -> ServerSettings:
    """The server of this name; UsageError names the known ones."""
    by_name = {server.name: server for server in servers}
    if name not in by_name:
        raise UsageError(unknown("MCP server", name, by_name))
    return by_name[name]


def _store() -> Any:
    from moonbox.project.sections import need_mcp

    need_mcp()
    from moonbox.mcp.upstreams.login import LoginStore

    return LoginStore()


def _pairs(items: Sequence[str], option: str) -> dict[str, str]:
    pairs = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise UsageError(f"{option} takes NAME=VALUE, not '{item.partition('=')[0]}'")
        pairs[key] = value
    return pairs
