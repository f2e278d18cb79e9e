"""The cache of tool listings: which tools a server had last time, so that the catalog is complete before it is up."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_types import Tool as McpTool
from pydantic import ValidationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moonbox.mcp.upstreams.settings import ServerSettings

__all__ = ["ToolCache", "default_folder"]

_MAX_BYTES = 8_000_000


def default_folder() -> Path:
    """$MOONBOX_HOME/mcp-tools, or a folder in the user's cache."""
    if home := os.environ.get("MOONBOX_HOME"):
        return Path(home).expanduser() / "mcp-tools"
    cache = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache"
    return base / "moonbox" / "mcp-tools"


class ToolCache:
    """One file for each server. Losing a file costs nothing but time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, settings: ServerSettings) -> list[McpTool] | None:
        """The tools that the server had last time; None if they are not known."""
        path = self._path(settings)
        try:
            if path.stat().st_size > _MAX_BYTES:
                return None
            data = json.loads(path.read_bytes())
            return [McpTool.model_validate(item, by_name=False) for item in data["tools"]]
        except (OSError, ValueError, KeyError, TypeError, ValidationError, RecursionError):
            return None

    def put(self, settings: ServerSettings, tools: Sequence[McpTool]) -> None:
        """Store them, if possible."""
        listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
        text = json.dumps({"server": settings.name, "tools": listed}, ensure_ascii=True).encode()
        if len(text) > _MAX_BYTES:
            return
        path = self._path(settings)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if path.is_file() and path.read_bytes() == text:
                return
            handle, temporary = tempfile.mkstemp(dir=path.parent)
            with os.fdopen(handle, "wb") as file:
                file.write(text)
            os.replace(temporary, path)  # noqa: PTH105 - both are names, not Paths
        except OSError:
            return

    def _path(self, settings: ServerSettings) -> Path:
        """By how the server is reached; of variables and headers, which may be secret, only the names count."""
        key = [
            settings.name,
            settings.command,
            list(settings.args),
            settings.url,
            str(settings.cwd),
            sorted(settings.env),
            sorted(settings.headers),
        ]
        digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]
        return self._folder / f"{digest}.json"
