"""MCP servers in configuration files: imported from those of other clients, added to and removed from moonbox.toml.

Understood are the files of Claude Desktop, Claude Code, Cursor, Windsurf, Cline and Gemini CLI (`mcpServers`), VS Code
(`servers`) and Zed (`context_servers`), with comments and trailing commas. Settings that only concern the other client
are ignored; `${VAR}`, `${VAR:-default}`, `${env:VAR}` and VS Code's `${input:var}` are replaced from the environment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from moonbox.config.mcp import ServerSettings, server_from_table
from moonbox.config.variables import Variables, is_secret, is_secret_name
from moonbox.errors import ConfigError, UsageError
from moonbox.mcp import clients
from moonbox.mcp.clients import ClientProgram, changed_toml, read_file, toml_tables, write_file
from moonbox.secrets import SecretRedactor
from moonbox.suggest import unknown

if TYPE_CHECKING:
    import os


_OWN_ROOT = ("mcp", "servers")
_ROOTS = ("mcpServers", "servers", "context_servers")
_TRANSPORTS = {"stdio": "stdio", "http": "http", "streamablehttp": "http", "sse": "sse"}
_ENV_PREFIX = re.compile(r"\$\{env:")
_INPUT = re.compile(r"\$\{input:([^}]*)\}")
"""What VS Code asks its user for."""
_SCHEME = re.compile(r"(?:Bearer|Basic|Token|ApiKey)\s+", re.I)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.S)
_TOKEN = re.compile(
    r"(?:sk|pk|rk|ghp|gho|ghu|ghs|github_pat|glpat|xox[abeprs]|AKIA|AIza|eyJ|lin_api|ntn|hf|npm)[-_]?[\w-]{8}"
    r"|(?=.*\d)(?=.*[a-z])(?=.*[A-Z])[\w+/=-]{24,}\Z|[0-9a-f]{32,}\Z"
)
_OPTION = re.compile(r"--?([A-Za-z][\w-]*)(?:=(.*))?", re.S)
# Strings stay as they are; comments, and commas before a closing bracket, are removed.
_JSONC = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/|,(?=\s*(?:(?://[^\n]*\s*)|(?:/\*.*?\*/\s*))*[}\]])', re.S)


def client_file(source: str, file: Path | None = None) -> tuple[ClientProgram, Path]:
    """The client of this name, and its file: that one, or the first in the usual places that exists."""
    names = {"claude": ("claude-desktop", "claude-code")}.get(source.lower(), (source,))
    candidates = []
    for name in names:
        client = clients.find(name)
        if file is not None:
            return client, file
        for project in (True, False):
            if (client.project if project else client.user) is not None:
                candidates.append((client, client.file(project=project, folder=Path.cwd())))
    for client, path in candidates:
        if path.is_file():
            return client, path
    looked = ", ".join(str(path) for _, path in candidates)
    raise UsageError(f"{source} has no configuration file; looked for {looked}")


def servers_from_file(
    path: str | os.PathLike[str], *, environ: Mapping[str, str] | None = None
) -> tuple[ServerSettings, ...]:
    """Every enabled server in a client's file, except moonbox itself."""
    servers = []
    for _, _, found in _entries(path, Variables(environ)):
        if isinstance(found, str):
            raise ConfigError(f"{Path(path).expanduser()}: {found}")
        servers.append(found)
    return tuple(servers)


def secrets_in_file(path: str | os.PathLike[str]) -> dict[str, str]:
    """The values of variables in a client's file that are secret."""
    variables = Variables()
    list(_entries(path, variables))  # to find them
    return variables.secrets


def valid_tables(path: str | os.PathLike[str]) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """The servers as tables of moonbox.toml, in which variables are not replaced yet, and what is wrong with others."""
    entries = list(_entries(path, Variables()))
    tables = {name: table for name, table, found in entries if not isinstance(found, str)}
    return tables, {name: found for name, _, found in entries if isinstance(found, str)}


def _entries(
    path: str | os.PathLike[str], variables: Variables
) -> Iterator[tuple[str, dict[str, Any], ServerSettings | str]]:
    """The entries of a client's file that are neither disabled nor moonbox itself.

    Each has its name, its table, and its settings, or the reason why moonbox cannot use it.
    """
    file = Path(path).expanduser()
    text = read_file(file)
    if text is None:
        raise ConfigError(f"there is no file {file}")
    # `${env:NAME}` as `${NAME}`, and `${input:api-key}` as `${API_KEY}`.
    plain = _INPUT.sub(lambda match: f"${{{_variable(match[1])}}}", _ENV_PREFIX.sub("${", text))
    for name, data in _server_tables(_parse_jsonc(plain, file), file).items():
        if isinstance(data, Mapping) and (
            data.get("disabled") is True or data.get("enabled") is False or _is_moonbox(data)
        ):
            continue
        table: dict[str, Any] = {}
        try:
            if not isinstance(data, Mapping):
                raise ConfigError(f"{name} must be an object, not {data!r}")
            table = _translated(dict(data))
            yield name, table, server_from_table(name, variables.expand(table, ("mcp", "servers", name)))
        except ConfigError as problem:
            yield name, table, SecretRedactor(variables.secrets)(str(problem))


def _parse_jsonc(text: str, file: Path) -> Any:
    """JSON with comments and trailing commas, as editors allow it."""
    try:
        return json.loads(_JSONC.sub(lambda match: match.group(0) if match.group(0).startswith('"') else " ", text))
    except (ValueError, RecursionError) as problem:
        raise ConfigError(f"{file} is not valid JSON: {problem}") from None


def _server_tables(data: Any, file: Path) -> Mapping[str, Any]:
    if isinstance(data, Mapping):
        inner = data.get("mcp")
        for place in (data, inner if isinstance(inner, Mapping) else {}):
            for root in _ROOTS:
                tables = place.get(root)
                if isinstance(tables, Mapping):
                    return tables
    raise ConfigError(f'{file} contains no "mcpServers": {{…}}')


def _is_moonbox(table: Mapping[str, Any]) -> bool:
    """Whether the entry is moonbox itself, which must not start itself."""
    command, args = str(table.get("command", "")), table.get("args", [])
    words = [str(item) for item in args] if isinstance(args, list) else []
    return "serve" in words and "moonbox" in {Path(command).stem, *(word.partition(".")[0] for word in words)}


def _variable(text: str) -> str:
    """The name of an environment variable that is like this text."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_").upper()
    return f"INPUT_{name}".rstrip("_") if not name or name[0].isdigit() else name


def _translated(table: dict[str, Any]) -> dict[str, Any]:
    """Another client's keys as ours."""
    command, args = table.get("command"), table.get("args", [])
    env = table.get("env") or {}
    if isinstance(command, Mapping):  # Zed's older form
        args, env, command = command.get("args", []), command.get("env") or {}, command.get("path")
    if isinstance(command, list) and command:  # program and arguments in one list
        command, args = command[0], [*command[1:], *args] if isinstance(args, list) else args
    url = table.get("httpUrl") or table.get("serverUrl") or table.get("url")
    kind = str(table.get("type") or table.get("transport") or "").lower()
    transport = _TRANSPORTS.get(re.sub("[-_]", "", kind))
    if kind and transport is None:
        raise ConfigError(f"unknown type '{kind}'; known types: stdio, http, sse")
    settings: dict[str, Any] = {"transport": transport} if kind else {}
    if command:
        settings["command"] = command
        if args:
            settings["args"] = args
        if env:
            settings["env"] = _texts(env)
        if table.get("cwd"):
            settings["cwd"] = table["cwd"]
    elif url:
        headers = table.get("headers") or table.get("http_headers") or {}
        settings["url"] = url
        if headers:
            settings["headers"] = _texts(headers)
    return settings


def _texts(table: Any) -> Any:
    """The table with texts as values; anything else is refused where all settings are checked."""
    return {str(key): str(value) for key, value in table.items()} if isinstance(table, Mapping) else table


@dataclass(frozen=True, slots=True)
class LiteralSecret:
    """A token or a password that stands in a table itself, instead of the name of a variable."""

    place: str
    """`[mcp.servers.github] env.TOKEN`"""
    variable: str
    """A name for the variable that would hold it."""
    value: str


def literal_secrets(tables: Mapping[str, Mapping[str, Any]]) -> list[LiteralSecret]:
    """The secrets in tables of moonbox.toml, as far as their names and forms tell."""
    secrets: list[LiteralSecret] = []
    variables: dict[str, str] = {}
    for server, table in tables.items():
        for place, name, value in _candidates(table):
            key = place.partition(".")[0].partition("[")[0]
            if "${" in value or not is_secret(name, value, (key,)):
                continue
            if key == "args" and not (is_secret_name(name) or _TOKEN.match(value)):  # python -m server
                continue
            variable = _variable(name if key == "env" else f"{server} {name}")
            if variables.get(variable, value) != value:  # two servers with values of their own
                variable = _variable(f"{server} {name}")
            variables[variable] = value
            secrets.append(LiteralSecret(f"[mcp.servers.{server}] {place}", variable, value))
    return secrets


def with_variables(tables: Mapping[str, Any], secrets: list[LiteralSecret]) -> dict[str, Any]:
    """The same tables with `${NAME}` in place of these secrets."""

    def replaced(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: replaced(item) for key, item in value.items()}
        if isinstance(value, list):
            return [replaced(item) for item in value]
        for secret in secrets if isinstance(value, str) else ():
            value = value.replace(secret.value, f"${{{secret.variable}}}")
        return value

    return {name: replaced(table) for name, table in tables.items()}


def _candidates(table: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Places, names and values in a table that may be secret."""
    for name, value in (table.get("env") or {}).items():
        yield f"env.{name}", name, str(value)
    for name, value in (table.get("headers") or {}).items():
        yield f"headers.{name}", name, _SCHEME.sub("", str(value), count=1)
    option = ""
    for index, item in enumerate(str(item) for item in table.get("args") or ()):
        match = _OPTION.fullmatch(item)
        variable = _ASSIGNMENT.fullmatch(item) if option in ("e", "env") else None  # docker run -e NAME=VALUE
        if variable is not None:
            yield f"args[{index}]", variable[1], variable[2]
        elif match is None and option:
            yield f"args[{index}]", option, item
        elif match is not None and match[2]:
            yield f"args[{index}]", match[1], match[2]
        option = match[1] if match is not None and match[2] is None else ""
    parts = urlsplit(str(table.get("url") or ""))
    if parts.password:
        yield "url", "password", parts.password
    for name, value in parse_qsl(parts.query):
        yield f"url.{name}", name, value


# In moonbox.toml


def add_servers(path: Path, servers: Mapping[str, Mapping[str, Any]], *, replace: bool = False) -> list[str]:
    """Add tables [mcp.servers.<name>]; the names that were new. UsageError if one exists and `replace` is not set."""
    for name, table in servers.items():
        ServerSettings.from_dict(name, dict(table))  # what is invalid is refused before anything is written
    text = read_file(path) or ""
    known = toml_tables(text, _OWN_ROOT, path)
    taken = [name for name in servers if name in known]
    if taken and not replace:
        raise UsageError(f"the MCP server '{taken[0]}' exists already in {path}; use --replace to replace it")
    write_file(path, changed_toml(text, _OWN_ROOT, servers, (), path))
    return [name for name in servers if name not in taken]


def server_names(path: Path) -> list[str]:
    return list(toml_tables(read_file(path) or "", _OWN_ROOT, path))


def remove_server(path: Path, name: str) -> None:
    known = server_names(path)
    if name not in known:
        raise UsageError(f"{path}: {unknown('MCP server', name, known)}")
    write_file(path, changed_toml(read_file(path) or "", _OWN_ROOT, {}, [name], path))
