"""The `mcpServers` JSON that other clients keep, read as settings of ours.

Understood are the files of Claude Desktop, Claude Code, Cursor, Windsurf, Cline and Gemini CLI (`mcpServers`), VS Code
(`servers`) and Zed (`context_servers`), comments and trailing commas included. What belongs to the other client alone
is ignored; `${VAR}`, `${VAR:-default}` and `${env:VAR}` are filled in from the environment.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moonbox.config.file import expand
from moonbox.config.mcp import ServerSettings
from moonbox.errors import ConfigError

__all__ = ["ROOTS", "parse_jsonc", "servers_from_file"]

ROOTS = ("mcpServers", "servers", "context_servers")
_TRANSPORTS = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamablehttp": "http",
    "streamable_http": "http",
    "sse": "sse",
}
_ENV_PREFIX = re.compile(r"\$\{env:")
# A string stays as it is; a comment, or a comma before a closing bracket, goes.
_JSONC = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/|,(?=\s*(?:(?://[^\n]*\s*)|(?:/\*.*?\*/\s*))*[}\]])', re.S)


def servers_from_file(
    path: str | os.PathLike[str], *, environ: Mapping[str, str] | None = None
) -> tuple[ServerSettings, ...]:
    """Every server of the file that is not switched off there."""
    where = Path(path).expanduser()
    try:
        text = where.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"there is no file {where}") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"{where} cannot be read: {problem}") from None
    data = parse_jsonc(text, str(where))
    tables = _tables(data, str(where))
    found = []
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            raise ConfigError(f"{where}: {name} must be an object, not {table!r}")
        if table.get("disabled") is True or table.get("enabled") is False or _is_moonbox(table):
            continue
        filled = expand(_plain_variables(dict(table)), os.environ if environ is None else environ, f"{where}: {name}")
        try:
            settings = ServerSettings.from_dict(name, _translated(filled))
        except ConfigError as problem:
            raise ConfigError(f"{where}: {problem}") from None
        found.append(settings)
    return tuple(found)


def parse_jsonc(text: str, where: str) -> Any:
    """JSON with comments and trailing commas, as editors allow it."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return json.loads(_JSONC.sub(lambda match: match.group(0) if match.group(0).startswith('"') else " ", text))
    except (ValueError, RecursionError) as problem:
        raise ConfigError(f"{where} is not valid JSON: {problem}") from None


def _tables(data: Any, where: str) -> Mapping[str, Any]:
    if isinstance(data, Mapping):
        inner = data.get("mcp")
        for place in (data, inner if isinstance(inner, Mapping) else {}):
            for root in ROOTS:
                if isinstance(place.get(root), Mapping):
                    found: Mapping[str, Any] = place[root]
                    return found
    raise ConfigError(f'{where} has no "mcpServers": {{…}} in it')


def _is_moonbox(table: Mapping[str, Any]) -> bool:
    """Whether the entry is our own: a client that has moonbox lists it, and we must not start ourselves."""
    command, args = str(table.get("command", "")), table.get("args", [])
    words = [str(item) for item in args] if isinstance(args, list) else []
    return "serve" in words and "moonbox" in {Path(command).stem, *(word.partition(".")[0] for word in words)}


def _plain_variables(value: Any) -> Any:
    """`${env:NAME}` as `${NAME}`."""
    if isinstance(value, dict):
        return {key: _plain_variables(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain_variables(item) for item in value]
    return _ENV_PREFIX.sub("${", value) if isinstance(value, str) else value


def _translated(table: dict[str, Any]) -> dict[str, Any]:
    """Our keys, from theirs."""
    command, args = table.get("command"), table.get("args", [])
    env = table.get("env") or {}
    if isinstance(command, Mapping):  # Zed's older form
        args, env, command = command.get("args", []), command.get("env") or {}, command.get("path")
    if isinstance(command, list) and command:  # program and arguments in one
        command, args = command[0], [*command[1:], *args]
    url = table.get("httpUrl") or table.get("serverUrl") or table.get("url")
    said = str(table.get("type") or table.get("transport") or "").lower()
    made: dict[str, Any] = {}
    if said and said not in _TRANSPORTS:
        raise ConfigError(f"unknown type {said!r}; known are: stdio, http, sse")
    if said:
        made["transport"] = _TRANSPORTS[said]
    if command:
        made.update(command=command, args=args, env={str(key): str(value) for key, value in env.items()})
        if table.get("cwd"):
            made["cwd"] = table["cwd"]
    if url and not command:
        headers = table.get("headers") or table.get("http_headers") or {}
        made.update(url=url, headers={str(key): str(value) for key, value in headers.items()})
    return made
