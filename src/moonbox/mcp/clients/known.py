"""The clients that moonbox knows: where each keeps its servers, and in which form."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from moonbox.errors import UsageError
from moonbox.suggest import suggestion

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.mcp.clients.entry import Entry

__all__ = ["CLIENTS", "Client", "find"]


@dataclass(frozen=True, slots=True)
class Client:
    """One client."""

    name: str
    title: str
    root: tuple[str, ...]
    """Where in the file its servers are."""
    shape: Callable[[Entry], dict[str, Any]]
    """Our entry in its form."""
    user: Callable[[], Path] | None = None
    """The file for everything that the user does."""
    project: str | None = None
    """The file for one project, below its folder."""
    form: Literal["json", "toml"] = "json"

    def file(self, *, project: bool, folder: Path) -> Path:
        """The file to write to."""
        if project or self.user is None:
            if self.project is None:
                raise UsageError(f"{self.title} has no configuration for a project; leave out --project")
            return folder / self.project
        return self.user()


def find(name: str) -> Client:
    for client in CLIENTS:
        if client.name == name.lower().replace("_", "-").replace(" ", "-"):
            return client
    names = [client.name for client in CLIENTS]
    raise UsageError(f"unknown client {name!r}{suggestion(name, names)}; known are: {', '.join(names)}")


def _plain(entry: Entry) -> dict[str, Any]:
    return {"command": entry.command, "args": list(entry.args), **({"env": dict(entry.env)} if entry.env else {})}


def _typed(entry: Entry) -> dict[str, Any]:
    return {"type": "stdio", **_plain(entry)}


def _zed(entry: Entry) -> dict[str, Any]:
    return {"source": "custom", **_plain(entry), "env": dict(entry.env)}


def _opencode(entry: Entry) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "local", "command": [entry.command, *entry.args], "enabled": True}
    return {**made, **({"environment": dict(entry.env)} if entry.env else {})}


def _home(*parts: str) -> Callable[[], Path]:
    return lambda: Path.home().joinpath(*parts)


def _application(*parts: str) -> Callable[[], Path]:
    """Below the folder in which applications of this platform keep their settings."""

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
    given = os.environ.get("XDG_CONFIG_HOME", "")
    return Path(given) if Path(given).is_absolute() else Path.home() / ".config"


_CLINE = ("globalStorage", "saoudrizwan.claude-dev", "settings", "cline_mcp_settings.json")
_SERVERS = ("mcpServers",)

CLIENTS = (
    Client("claude-desktop", "Claude Desktop", _SERVERS, _plain, _application("Claude", "claude_desktop_config.json")),
    Client("claude-code", "Claude Code", _SERVERS, _typed, None, ".mcp.json"),
    Client("cursor", "Cursor", _SERVERS, _plain, _home(".cursor", "mcp.json"), ".cursor/mcp.json"),
    Client("vscode", "VS Code", ("servers",), _typed, _application("Code", "User", "mcp.json"), ".vscode/mcp.json"),
    Client("windsurf", "Windsurf", _SERVERS, _plain, _home(".codeium", "windsurf", "mcp_config.json")),
    Client("zed", "Zed", ("context_servers",), _zed, _config("zed", "settings.json"), ".zed/settings.json"),
    Client("cline", "Cline", _SERVERS, _plain, _application("Code", "User", *_CLINE)),
    Client("gemini-cli", "Gemini CLI", _SERVERS, _plain, _home(".gemini", "settings.json"), ".gemini/settings.json"),
    Client("codex", "Codex", ("mcp_servers",), _plain, _home(".codex", "config.toml"), ".codex/config.toml", "toml"),
    Client("lm-studio", "LM Studio", _SERVERS, _plain, _home(".lmstudio", "mcp.json")),
    Client("opencode", "OpenCode", ("mcp",), _opencode, _config("opencode", "opencode.json"), "opencode.json"),
    Client("amazon-q", "Amazon Q", _SERVERS, _plain, _home(".aws", "amazonq", "mcp.json"), ".amazonq/mcp.json"),
)
