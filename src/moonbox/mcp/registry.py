"""The registry: servers added to and removed from moonbox.toml, with everything else in the file left as it is."""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any

from moonbox.config.mcp import ServerSettings
from moonbox.errors import ConfigError, UsageError
from moonbox.mcp import files
from moonbox.suggest import unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["add", "names", "remove"]

_ROOT = ("mcp", "servers")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def add(path: Path, servers: Mapping[str, Mapping[str, Any]], *, replace: bool = False) -> list[str]:
    """Add tables [mcp.servers.<name>]; the names that were new. UsageError if one exists and `replace` is not set."""
    for name, table in servers.items():
        ServerSettings.from_dict(name, dict(table))  # what is invalid is refused before anything is written
    text = files.read(path) or ""
    known = _names(text, path)
    taken = [name for name in servers if name in known]
    if taken and not replace:
        raise UsageError(f"the MCP server '{taken[0]}' exists already in {path}; use --replace to replace it")
    kept = files.without_tables(text, _ROOT, taken, path) if taken else text
    blocks = [_block(name, table) for name, table in servers.items()]
    after = "\n".join([*([kept.rstrip("\n") + "\n"] if kept.strip() else []), *blocks])
    _check(path, text, after, servers)
    files.write(path, after)
    return [name for name in servers if name not in taken]


def names(path: Path) -> list[str]:
    """The servers that the file has."""
    return _names(files.read(path) or "", path)


def remove(path: Path, name: str) -> None:
    """Remove the table of a server."""
    text = files.read(path) or ""
    known = _names(text, path)
    if name not in known:
        raise UsageError(f"{path}: {unknown('MCP server', name, known)}")
    files.write(path, files.without_tables(text, _ROOT, [name], path))


def _names(text: str, path: Path) -> list[str]:
    try:
        servers = tomllib.loads(text).get("mcp", {}).get("servers", {})
    except (tomllib.TOMLDecodeError, AttributeError) as problem:
        raise ConfigError(f"{path} is not valid: {problem}; the file was not changed") from None
    return list(servers)


def _check(path: Path, before: str, after: str, servers: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse to write anything that does not contain exactly the old settings and the new servers."""
    wanted = tomllib.loads(before)
    try:
        tables = wanted.setdefault("mcp", {}).setdefault("servers", {})
        tables.update({name: dict(table) for name, table in servers.items()})
        same = tomllib.loads(after) == wanted
    except (tomllib.TOMLDecodeError, AttributeError):
        same = False
    if not same:
        blocks = "\n".join(_block(name, table) for name, table in servers.items())
        raise ConfigError(f"{path} cannot be changed safely; add this by hand:\n\n{blocks}")


def _block(name: str, table: Mapping[str, Any]) -> str:
    lines = [f"[mcp.servers.{_key(name)}]", *(f"{_key(key)} = {_value(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + " }"
    items: Iterable[Any] | None = value if isinstance(value, list | tuple) else None
    return json.dumps(value) if items is None else "[" + ", ".join(_value(item) for item in items) + "]"


def _text(text: str) -> str:
    """A basic string of TOML, whose escapes are those of JSON."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
