"""Known MCP clients: where each keeps its list of servers, and how an entry for moonbox is added to it."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from moonbox.errors import ConfigError, UsageError
from moonbox.mcp import files
from moonbox.suggest import unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class ClientProgram:
    """One client."""

    name: str
    title: str
    root: tuple[str, ...]
    """The keys that lead to the servers in the file."""
    shape: Callable[[ServerEntry], dict[str, Any]]
    """An entry in the client's form."""
    user: Callable[[], Path] | None = None
    """The user's file."""
    project: str | None = None
    """The file of a project, relative to the project's folder."""
    form: Literal["json", "toml"] = "json"

    def file(self, *, project: bool, folder: Path) -> Path:
        """The file to write to."""
        if project or self.user is None:
            if self.project is None:
                raise UsageError(f"{self.title} has no configuration file for projects; leave out --project")
            return folder / self.project
        return self.user()


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


def _home(*parts: str) -> Callable[[], Path]:
    return lambda: Path.home().joinpath(*parts)


def _application(*parts: str) -> Callable[[], Path]:
    """In the folder where applications of this platform keep their settings."""

    def path() -> Path:
        if sys.platform == "darwin":
            base = Path.home() / "Library" / "Application Support"
        elif sys.platform == "win32":
            base = Path(os.environ.get("APPDATA", Path.home() / "AppData" / "Roaming"))
        else:
            base = _config_home()
        return base.joinpath(*parts)

    return path


def _config(*parts: str) -> Callable[[], Path]:
    return lambda: _config_home().joinpath(*parts)


def _config_home() -> Path:
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    return Path(folder) if Path(folder).is_absolute() else Path.home() / ".config"


_CLINE = ("globalStorage", "saoudrizwan.claude-dev", "settings", "cline_mcp_settings.json")
_SERVERS = ("mcpServers",)

CLIENTS = (
    ClientProgram(
        "claude-desktop", "Claude Desktop", _SERVERS, _plain, _application("Claude", "claude_desktop_config.json")
    ),
    ClientProgram("claude-code", "Claude Code", _SERVERS, _typed, None, ".mcp.json"),
    ClientProgram("cursor", "Cursor", _SERVERS, _plain, _home(".cursor", "mcp.json"), ".cursor/mcp.json"),
    ClientProgram(
        "vscode", "VS Code", ("servers",), _typed, _application("Code", "User", "mcp.json"), ".vscode/mcp.json"
    ),
    ClientProgram("windsurf", "Windsurf", _SERVERS, _plain, _home(".codeium", "windsurf", "mcp_config.json")),
    ClientProgram("zed", "Zed", ("context_servers",), _zed, _config("zed", "settings.json"), ".zed/settings.json"),
    ClientProgram("cline", "Cline", _SERVERS, _plain, _application("Code", "User", *_CLINE)),
    ClientProgram(
        "gemini-cli", "Gemini CLI", _SERVERS, _plain, _home(".gemini", "settings.json"), ".gemini/settings.json"
    ),
    ClientProgram(
        "codex", "Codex", ("mcp_servers",), _plain, _home(".codex", "config.toml"), ".codex/config.toml", "toml"
    ),
    ClientProgram("lm-studio", "LM Studio", _SERVERS, _plain, _home(".lmstudio", "mcp.json")),
    ClientProgram("opencode", "OpenCode", ("mcp",), _opencode, _config("opencode", "opencode.json"), "opencode.json"),
    ClientProgram("amazon-q", "Amazon Q", _SERVERS, _plain, _home(".aws", "amazonq", "mcp.json"), ".amazonq/mcp.json"),
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
        return files.toml_block(client.root, entry.name, shaped)
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
    before = files.read(path)
    text = before or ""
    if client.form == "toml":
        known = files.tables(text, client.root, path)
    else:
        data, table = _parsed(client, text, path, by_hand)
        known = dict(table)
    if known == {name: value for name, value in {**known, **added}.items() if name not in removed}:
        return Installed(path, "unchanged")
    if client.form == "toml" and added:
        after = files.with_tables(text, client.root, added, path)
    elif client.form == "toml":
        after = files.without_tables(text, client.root, removed, path)
    else:
        table.update(added)
        for name in removed:
            table.pop(name, None)
        after = json.dumps(data, indent=_indent(text), ensure_ascii=False) + "\n"
    copy = files.backup(path) if before is not None else None
    files.write(path, after)
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


def _indent(text: str) -> int | str:
    """The indentation that the file uses."""
    first = re.search(r"^\{\s*\n([ \t]+)\"", text)
    if first is None:
        return 2
    return "\t" if first.group(1).startswith("\t") else len(first.group(1))
