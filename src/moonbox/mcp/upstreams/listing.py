"""Listings kept from the last time: what tools a server had, so that the catalog is whole before the server is up."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_types import Tool as Listed
from pydantic import ValidationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moonbox.config.mcp import ServerSettings

__all__ = ["Listings", "default_folder"]

_LARGEST = 8_000_000


def default_folder() -> Path:
    """Where they are kept: $MOONBOX_HOME, or else the user's folder for caches."""
    if home := os.environ.get("MOONBOX_HOME"):
        return Path(home).expanduser() / "mcp-tools"
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if Path(given).is_absolute() else Path.home() / ".cache"
    return base / "moonbox" / "mcp-tools"


class Listings:
    """One file for each server, by how it is reached. Losing them costs nothing but time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, settings: ServerSettings) -> list[Listed] | None:
        """The tools that the server had the last time; None when that is not known."""
        path = self._path(settings)
        try:
            if path.stat().st_size > _LARGEST:
                return None
            data = json.loads(path.read_bytes())
            return [Listed.model_validate(item, by_name=False) for item in data["tools"]]
        except (OSError, ValueError, KeyError, TypeError, ValidationError, RecursionError):
            return None

    def put(self, settings: ServerSettings, tools: Sequence[Listed]) -> None:
        """Keep them; where that is not possible, do without."""
        data = {"server": settings.name, "tools": [_dumped(item) for item in tools]}
        text = json.dumps(data, ensure_ascii=True).encode()
        if len(text) > _LARGEST:
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
        """Of secrets only the names go into the file's name."""
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


def _dumped(item: Listed) -> dict[str, Any]:
    return item.model_dump(mode="json", by_alias=True, exclude_none=True)
