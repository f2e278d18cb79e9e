"""Configuration files of MCP clients: the servers that are in them, and an entry for moonbox added to them.

`servers_from_file` reads the files of Claude Desktop, Claude Code, Cursor, Windsurf, Cline and Gemini CLI
(`mcpServers`), VS Code (`servers`) and Zed (`context_servers`), with comments and trailing commas. Settings that only
concern the other client are ignored; `${VAR}`, `${VAR:-default}` and `${env:VAR}` are replaced from the environment.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moonbox.config.file import expand
from moonbox.errors import ConfigError
from moonbox.mcp.upstreams.settings import ServerSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moonbox.mcp.clients.known import Client

__all__ = ["Entry", "Installed", "install", "servers_from_file", "snippet"]

_ROOTS = ("mcpServers", "servers", "context_servers")
_TRANSPORTS = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamablehttp": "http",
    "streamable_http": "http",
    "sse": "sse",
}
_ENV_PREFIX = re.compile(r"\$\{env:")
# Strings stay as they are; comments, and commas before a closing bracket, are removed.
_JSONC = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/|,(?=\s*(?:(?://[^\n]*\s*)|(?:/\*.*?\*/\s*))*[}\]])', re.S)


@dataclass(frozen=True, slots=True)
class Entry:
    """How a client starts moonbox."""

    name: str
    command: str
    args: tuple[str, ...] = ("serve",)
    env: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def make(cls, name: str, *, config: Path | None = None, mcp_config: Sequence[Path] = ()) -> Entry:
        """With absolute paths: clients start it in their own folder, with their own environment."""
        args = ["serve"]
        if config is not None:
            args += ["--config", str(config.resolve())]
        for file in mcp_config:
            args += ["--mcp-config", str(file.resolve())]
        program = Path(sys.executable).with_name("moonbox")
        if program.is_file():
            return cls(name, str(program), tuple(args))
        installed = shutil.which("moonbox")
        if installed is not None:
            return cls(name, str(Path(installed).resolve()), tuple(args))
        return cls(name, sys.executable, ("-m", "moonbox.cli", *args))


@dataclass(frozen=True, slots=True)
class Installed:
    """What `install` did."""

    path: Path
    done: str
    """created, added, replaced or unchanged."""
    backup: Path | None = None


def snippet(client: Client, entry: Entry) -> str:
    """The entry alone, as it appears in the client's file."""
    shaped = client.shape(entry)
    if client.form == "toml":
        return _toml(client, entry.name, shaped)
    data: dict[str, Any] = {entry.name: shaped}
    for key in reversed(client.root):
        data = {key: data}
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def install(client: Client, entry: Entry, path: Path) -> Installed:
    """Write the entry; everything else in the file stays, and a backup of the file is kept next to it."""
    path = path.resolve()  # a symbolic link stays one: its target is changed
    before = _read(path)
    edit = _edit_toml if client.form == "toml" else _edit_json
    after, done = edit(client, entry, before or "", path)
    if done == "unchanged":
        return Installed(path, done)
    backup = _backup(path) if before is not None else None
    _write(path, after)
    return Installed(path, done if before is not None else "created", backup)


def _edit_json(client: Client, entry: Entry, before: str, path: Path) -> tuple[str, str]:
    text = before if before.strip() else "{}"
    try:
        data = json.loads(text)
    except ValueError:
        raise ConfigError(
            f"{path} contains comments or errors, which would be lost; add this by hand:\n\n{snippet(client, entry)}"
        ) from None
    table = data
    for key in client.root:
        if not isinstance(table, dict) or not isinstance(table.setdefault(key, {}), dict):
            raise ConfigError(f"{path}: {'.'.join(client.root)} is not an object; the file was not changed")
        table = table[key]
    shaped = client.shape(entry)
    if table.get(entry.name) == shaped:
        return text, "unchanged"
    done = "replaced" if entry.name in table else "added"
    table[entry.name] = shaped
    return json.dumps(data, indent=_indent(text), ensure_ascii=False) + "\n", done


def _edit_toml(client: Client, entry: Entry, before: str, path: Path) -> tuple[str, str]:
    root = client.root[0]
    try:
        data = tomllib.loads(before)
    except tomllib.TOMLDecodeError as problem:
        raise ConfigError(f"{path} is not valid TOML ({problem}); the file was not changed") from None
    shaped = client.shape(entry)
    table = data.get(root, {})
    if isinstance(table, dict) and table.get(entry.name) == shaped:
        return before, "unchanged"
    block = _toml(client, entry.name, shaped)
    name = re.escape(entry.name)
    header = re.compile(rf"^\[{re.escape(root)}\.(?:{name}|\"{name}\")(?:\.[^\]]*)?\]\s*$")
    lines, kept, inside = before.splitlines(keepends=True), [], False
    for line in lines:
        if line.lstrip().startswith("["):
            inside = header.match(line.strip()) is not None
        if not inside:
            kept.append(line)
    rest = "".join(kept)
    after = rest.rstrip("\n") + ("\n\n" if rest.strip() else "") + block
    if not _adds_only(data, after, root, entry.name, shaped):
        raise ConfigError(f"{path} cannot be changed safely; add this by hand:\n\n{block}")
    return after, "added" if len(kept) == len(lines) else "replaced"


def _adds_only(before: dict[str, Any], text: str, root: str, name: str, shaped: Any) -> bool:
    """Whether the new text contains exactly what the old one did, and our entry."""
    try:
        after = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    if not isinstance(after.get(root), dict):
        return False
    entry = after[root].pop(name, None)
    others = {key: value for key, value in before.get(root, {}).items() if key != name}
    return entry == shaped and after == {**before, root: others}


def _toml(client: Client, name: str, shaped: Mapping[str, Any]) -> str:
    key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)
    lines = [f"[{client.root[0]}.{key}]"]
    for field_name, value in shaped.items():
        if isinstance(value, Mapping):
            inner = ", ".join(f"{json.dumps(item)} = {json.dumps(text)}" for item, text in value.items())
            lines.append(f"{field_name} = {{ {inner} }}")
        else:
            lines.append(f"{field_name} = {json.dumps(value, ensure_ascii=False)}")
    return "\n".join(lines) + "\n"


def _indent(text: str) -> int | str:
    """The indentation that the file uses."""
    first = re.search(r"^\{\s*\n([ \t]+)\"", text)
    if first is None:
        return 2
    return "\t" if first.group(1).startswith("\t") else len(first.group(1))


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"{path} cannot be read: {problem}") from None


def _backup(path: Path) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    copy, number = path.with_name(f"{path.name}.{stamp}.backup"), 1
    while copy.exists():
        number += 1
        copy = path.with_name(f"{path.name}.{stamp}-{number}.backup")
    try:
        shutil.copy2(path, copy)
    except OSError as problem:
        raise ConfigError(f"{path} was not changed, because no backup {copy.name} could be made: {problem}") from None
    return copy


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        if path.exists():
            shutil.copymode(path, temporary)
        Path(temporary).replace(path)
    except OSError as problem:
        raise ConfigError(f"{path} cannot be written: {problem}") from None


def servers_from_file(
    path: str | os.PathLike[str], *, environ: Mapping[str, str] | None = None
) -> tuple[ServerSettings, ...]:
    """Every enabled server in a client's file, except moonbox itself."""
    file = Path(path).expanduser()
    text = _read(file)
    if text is None:
        raise ConfigError(f"there is no file {file}")
    servers = []
    for name, table in _server_tables(_parse_jsonc(text, file), file).items():
        if not isinstance(table, Mapping):
            raise ConfigError(f"{file}: {name} must be an object, not {table!r}")
        if table.get("disabled") is True or table.get("enabled") is False or _is_moonbox(table):
            continue
        filled = expand(_plain_variables(dict(table)), os.environ if environ is None else environ, f"{file}: {name}")
        try:
            servers.append(ServerSettings.from_dict(name, _translated(filled)))
        except ConfigError as problem:
            raise ConfigError(f"{file}: {problem}") from None
    return tuple(servers)


def _parse_jsonc(text: str, file: Path) -> Any:
    """JSON with comments and trailing commas, as editors allow it."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
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
    return "serve" in words and (Path(command).stem == "moonbox" or "moonbox.cli" in words or "moonbox" in words)


def _plain_variables(value: Any) -> Any:
    """`${env:NAME}` as `${NAME}`."""
    if isinstance(value, dict):
        return {key: _plain_variables(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain_variables(item) for item in value]
    return _ENV_PREFIX.sub("${", value) if isinstance(value, str) else value


def _translated(table: dict[str, Any]) -> dict[str, Any]:
    """Another client's keys as ours."""
    command, args = table.get("command"), table.get("args", [])
    env = table.get("env") or {}
    if isinstance(command, Mapping):  # Zed's older form
        args, env, command = command.get("args", []), command.get("env") or {}, command.get("path")
    if isinstance(command, list) and command:  # program and arguments in one list
        command, args = command[0], [*command[1:], *args]
    url = table.get("httpUrl") or table.get("serverUrl") or table.get("url")
    kind = str(table.get("type") or table.get("transport") or "").lower()
    if kind and kind not in _TRANSPORTS:
        raise ConfigError(f"unknown type '{kind}'; known types: stdio, http, sse")
    settings: dict[str, Any] = {"transport": _TRANSPORTS[kind]} if kind else {}
    if command:
        settings.update(command=command, args=args, env={str(key): str(value) for key, value in env.items()})
        if table.get("cwd"):
            settings["cwd"] = table["cwd"]
    elif url:
        headers = table.get("headers") or table.get("http_headers") or {}
        settings.update(url=url, headers={str(key): str(value) for key, value in headers.items()})
    return settings
