"""Known MCP clients: where each keeps its list of servers, and how entries are added to such files and removed."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from moonbox.errors import ConfigError, UsageError
from moonbox.files import write_private_file
from moonbox.suggest import unknown


@dataclass(frozen=True, slots=True)
class ClientProgram:
    name: str
    title: str
    root: tuple[str, ...]
    """The keys that lead to the servers in the file."""
    shape: Callable[[ServerEntry], dict[str, Any]]
    user: str | None = None
    """The user's file: below one of _FOLDERS."""
    project: str | None = None
    """The file of a project, relative to the project's folder."""
    form: Literal["json", "toml"] = "json"

    def file(self, *, project: bool, folder: Path) -> Path:
        if project or self.user is None:
            if self.project is None:
                raise UsageError(f"{self.title} has no configuration file for projects; leave out --project")
            return folder / self.project
        place, _, rest = self.user.rpartition(":")
        return _FOLDERS[place]() / rest


def find(name: str) -> ClientProgram:
    for client in CLIENTS:
        if client.name == name.lower().replace("_", "-").replace(" ", "-"):
            return client
    raise UsageError(unknown("client", name, [client.name for client in CLIENTS]))


def _plain(entry: ServerEntry) -> dict[str, Any]:
    return {"command": entry.command, "args": list(entry.args), **({"env": dict(entry.env)} if entry.env else {})}


def _typed(entry: ServerEntry) -> dict[str, Any]:
    return {"type": "stdio", **_plain(entry)}


def _zed(entry: ServerEntry) -> dict[str, Any]:
    return {"source": "custom", **_plain(entry), "env": dict(entry.env)}


def _opencode(entry: ServerEntry) -> dict[str, Any]:
    environment = {"environment": dict(entry.env)} if entry.env else {}
    return {"type": "local", "command": [entry.command, *entry.args], "enabled": True, **environment}


def _config() -> Path:
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    return Path(folder) if Path(folder).is_absolute() else Path.home() / ".config"


def _applications() -> Path:
    """Where applications of this platform keep their settings."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA", Path.home() / "AppData" / "Roaming"))
    return _config()


_FOLDERS = {"home": Path.home, "config": _config, "app": _applications}
_SERVERS = ("mcpServers",)
_CLINE = "app:Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
CLIENTS = (
    ClientProgram("claude-desktop", "Claude Desktop", _SERVERS, _plain, "app:Claude/claude_desktop_config.json"),
    ClientProgram("claude-code", "Claude Code", _SERVERS, _typed, None, ".mcp.json"),
    ClientProgram("cursor", "Cursor", _SERVERS, _plain, "home:.cursor/mcp.json", ".cursor/mcp.json"),
    ClientProgram("vscode", "VS Code", ("servers",), _typed, "app:Code/User/mcp.json", ".vscode/mcp.json"),
    ClientProgram("windsurf", "Windsurf", _SERVERS, _plain, "home:.codeium/windsurf/mcp_config.json"),
    ClientProgram("zed", "Zed", ("context_servers",), _zed, "config:zed/settings.json", ".zed/settings.json"),
    ClientProgram("cline", "Cline", _SERVERS, _plain, _CLINE),
    ClientProgram("gemini-cli", "Gemini CLI", _SERVERS, _plain, "home:.gemini/settings.json", ".gemini/settings.json"),
    ClientProgram("codex", "Codex", ("mcp_servers",), _plain, "home:.codex/config.toml", ".codex/config.toml", "toml"),
    ClientProgram("lm-studio", "LM Studio", _SERVERS, _plain, "home:.lmstudio/mcp.json"),
    ClientProgram("opencode", "OpenCode", ("mcp",), _opencode, "config:opencode/opencode.json", "opencode.json"),
    ClientProgram("amazon-q", "Amazon Q", _SERVERS, _plain, "home:.aws/amazonq/mcp.json", ".amazonq/mcp.json"),
)


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """How a client starts moonbox."""

    name: str
    command: str
    args: tuple[str, ...] = ("serve",)
    env: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def make(cls, name: str, *, config: Path | None = None, mcp_config: Sequence[Path] = ()) -> ServerEntry:
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
        return cls(name, sys.executable, ("-m", "moonbox", *args))


@dataclass(frozen=True, slots=True)
class Installed:
    """What `install` did."""

    path: Path
    done: str
    """created, added, replaced, removed or unchanged."""
    backup: Path | None = None


def snippet(client: ClientProgram, entry: ServerEntry) -> str:
    """The entry alone, as it appears in the client's file."""
    shaped = client.shape(entry)
    if client.form == "toml":
        return toml_block(client.root, entry.name, shaped)
    data: dict[str, Any] = {entry.name: shaped}
    for key in reversed(client.root):
        data = {key: data}
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def install(client: ClientProgram, entry: ServerEntry, path: Path) -> Installed:
    """Write the entry; everything else in the file stays, and a backup of the file is kept next to it."""
    shaped = client.shape(entry)
    return _change(client, path, {entry.name: shaped}, (), f"add this by hand:\n\n{snippet(client, entry)}")


def remove(client: ClientProgram, names: Sequence[str], path: Path) -> Installed:
    """Remove entries; everything else in the file stays, and a backup of the file is kept next to it."""
    entries = ", ".join(f"'{name}'" for name in names)
    return _change(client, path, {}, names, f"remove {entries} by hand")


def _change(
    client: ClientProgram, path: Path, added: dict[str, dict[str, Any]], removed: Sequence[str], by_hand: str
) -> Installed:
    path = path.resolve()  # a symbolic link stays one: its target is changed
    before = read_file(path)
    text = before or ""
    if client.form == "toml":
        known = toml_tables(text, client.root, path)
    else:
        data, table = _parsed(client, text, path, by_hand)
        known = dict(table)
    if known == {name: value for name, value in {**known, **added}.items() if name not in removed}:
        return Installed(path, "unchanged")
    if client.form == "toml":
        after = changed_toml(text, client.root, added, removed, path)
    else:
        table.update(added)
        for name in removed:
            table.pop(name, None)
        indent = re.search(r"^\{\s*\n([ \t]+)\"", text)  # that the file uses
        after = json.dumps(data, indent=2 if indent is None else indent[1], ensure_ascii=False) + "\n"
    copy = backup(path) if before is not None else None
    write_file(path, after)
    done = "removed" if removed else "replaced" if known.keys() & added.keys() else "added"
    return Installed(path, "created" if before is None else done, copy)


def _parsed(client: ClientProgram, text: str, path: Path, by_hand: str) -> tuple[Any, dict[str, Any]]:
    """The data of a file, and the servers in it."""
    try:
        data = json.loads(text if text.strip() else "{}")
        json.dumps(data, indent=2)  # nested too deeply to be written again
    except (ValueError, RecursionError):
        raise ConfigError(f"{path} contains comments or errors, which would be lost; {by_hand}") from None
    table = data
    for key in client.root:
        if not isinstance(table, dict) or not isinstance(table.setdefault(key, {}), dict):
            raise ConfigError(f"{path}: {'.'.join(client.root)} is not an object; the file was not changed")
        table = table[key]
    return data, table


# Configuration files that people keep

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def read_file(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"{path} cannot be read: {problem}") from None


def backup(path: Path) -> Path:
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


def write_file(path: Path, text: str) -> None:
    """Replace a file at once, keeping its permissions; a new one is for its owner alone."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private_file(path, text.encode(), keeps_mode=True)
    except OSError as problem:
        raise ConfigError(f"{path} cannot be written: {problem}") from None


def toml_tables(text: str, root: Sequence[str], path: Path) -> dict[str, Any]:
    """The tables [root.name] of a TOML file, by name."""
    return _below(_parsed_toml(text, path), root)


def _below(table: Any, root: Sequence[str]) -> dict[str, Any]:
    for key in root:
        table = table.get(key, {}) if isinstance(table, dict) else {}
    return table if isinstance(table, dict) else {}


def changed_toml(
    text: str, root: Sequence[str], added: Mapping[str, Mapping[str, Any]], removed: Sequence[str], path: Path
) -> str:
    """TOML with some tables [root.name] in place of those of the same names, and without others and those below them.

    ConfigError if anything else would change.
    """
    blocks = [toml_block(root, name, table) for name, table in added.items()]
    gone = [*added, *removed]
    after = _cut(text, root, gone)
    if blocks:
        after = "\n".join([*([after.rstrip("\n") + "\n"] if after.strip() else []), *blocks])
    table = wanted = _parsed_toml(text, path)
    try:
        for key in root:
            table = table.setdefault(key, {})
        for name in gone:
            table.pop(name, None)
        table.update({name: dict(item) for name, item in added.items()})
        same = _without_empty(tomllib.loads(after)) == _without_empty(wanted)
    except (ValueError, RecursionError, AttributeError, TypeError):
        same = False
    if not same:
        entries = ", ".join(f"[{'.'.join(root)}.{name}]" for name in removed)
        how = "add this by hand:\n\n" + "\n".join(blocks) if blocks else f"remove {entries} by hand"
        raise ConfigError(f"{path} cannot be changed safely; {how}")
    return after


def toml_block(root: Sequence[str], name: str, table: Mapping[str, Any]) -> str:
    lines = [f"[{'.'.join(root)}.{_key(name)}]", *(f"{_key(key)} = {_value(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    # The escapes of JSON are those of TOML, but for one.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _parsed_toml(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as problem:  # also for an integer of too many digits
        raise ConfigError(f"{path} is not valid TOML ({problem}); the file was not changed") from None


def _cut(text: str, root: Sequence[str], names: Sequence[str]) -> str:
    """The text without the lines of the tables [root.name] and those below them."""
    kept, inside = [], False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            inside = False
            with contextlib.suppress(ValueError, RecursionError):
                inside = any(name in _below(tomllib.loads(line), root) for name in names)
        if not inside:
            kept.append(line)
    return "".join(kept)


def _without_empty(value: Any) -> Any:
    """Tables without the empty ones: removing the last table of a table removes both."""
    if not isinstance(value, dict):
        return value
    inner = {key: _without_empty(item) for key, item in value.items()}
    return {key: item for key, item in inner.items() if item != {}}
