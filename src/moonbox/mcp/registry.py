"""The registry: servers added to and removed from moonbox.toml, with everything else in the file left as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moonbox.config.mcp import ServerSettings
from moonbox.errors import UsageError
from moonbox.mcp import files
from moonbox.suggest import unknown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_ROOT = ("mcp", "servers")


def add(path: Path, servers: Mapping[str, Mapping[str, Any]], *, replace: bool = False) -> list[str]:
    """Add tables [mcp.servers.<name>]; the names that were new. UsageError if one exists and `replace` is not set."""
    for name, table in servers.items():
        ServerSettings.from_dict(name, dict(table))  # what is invalid is refused before anything is written
    text = files.read(path) or ""
    known = files.tables(text, _ROOT, path)
    taken = [name for name in servers if name in known]
    if taken and not replace:
        raise UsageError(f"the MCP server '{taken[0]}' exists already in {path}; use --replace to replace it")
    files.write(path, files.with_tables(text, _ROOT, servers, path))
    return [name for name in servers if name not in taken]


def names(path: Path) -> list[str]:
    """The servers that the file has."""
    return list(files.tables(files.read(path) or "", _ROOT, path))


def remove(path: Path, name: str) -> None:
    """Remove the table of a server."""
    known = names(path)
    if name not in known:
        raise UsageError(f"{path}: {unknown('MCP server', name, known)}")
    files.write(path, files.without_tables(files.read(path) or "", _ROOT, [name], path))
