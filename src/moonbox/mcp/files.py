"""Configuration files that people keep: read, copied, replaced at once, and tables added to and removed from TOML."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moonbox.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"{path} cannot be read: {problem}") from None


def backup(path: Path) -> Path:
    """Copy a file beside itself."""
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


def write(path: Path, text: str) -> None:
    """Replace a file at once, keeping its permissions; a new one is for its owner alone."""
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


def tables(text: str, root: Sequence[str], path: Path) -> dict[str, Any]:
    """The tables [root.name] of a TOML file, by name."""
    table: Any = _parsed(text, path)
    for key in root:
        table = table.get(key, {}) if isinstance(table, dict) else {}
    return table if isinstance(table, dict) else {}


def with_tables(text: str, root: Sequence[str], added: Mapping[str, Mapping[str, Any]], path: Path) -> str:
    """TOML with these tables [root.name] in place of those of the same names; ConfigError if more would change."""
    blocks = [toml_block(root, name, table) for name, table in added.items()]
    kept = _cut(text, root, list(added))
    after = "\n".join([*([kept.rstrip("\n") + "\n"] if kept.strip() else []), *blocks])
    _check_change(text, after, root, added, list(added), path, "add this by hand:\n\n" + "\n".join(blocks))
    return after


def without_tables(text: str, root: Sequence[str], names: Sequence[str], path: Path) -> str:
    """TOML without the tables [root.name] and those below them; ConfigError if that would change anything else."""
    after = _cut(text, root, names)
    entries = ", ".join(f"[{'.'.join(root)}.{name}]" for name in names)
    _check_change(text, after, root, {}, names, path, f"remove {entries} by hand")
    return after


def _check_change(
    text: str, after: str, root: Sequence[str], added: Mapping[str, Any], gone: Sequence[str], path: Path, by_hand: str
) -> None:
    """ConfigError unless the only difference is that these tables are gone and those are there."""
    table = wanted = _parsed(text, path)
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
        raise ConfigError(f"{path} cannot be changed safely; {by_hand}")


def toml_block(root: Sequence[str], name: str, table: Mapping[str, Any]) -> str:
    """A table as TOML writes it."""
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


def _parsed(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as problem:  # also for an integer of too many digits
        raise ConfigError(f"{path} is not valid TOML ({problem}); the file was not changed") from None


def _cut(text: str, root: Sequence[str], names: Sequence[str]) -> str:
    """The text without the lines of the tables [root.name] and those below them."""
    kept, inside = [], False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            parts = _table_name(line)
            inside = parts[: len(root)] == list(root) and parts[len(root) : len(root) + 1] in [[name] for name in names]
        if not inside:
            kept.append(line)
    return "".join(kept)


def _without_empty(value: Any) -> Any:
    """Tables without the empty ones: removing the last table of a table removes both."""
    if not isinstance(value, dict):
        return value
    inner = {key: _without_empty(item) for key, item in value.items()}
    return {key: item for key, item in inner.items() if item != {}}


def _table_name(line: str) -> list[str]:
    """The parts of a table's name in its header; empty if the line is not one."""
    try:
        table: Any = tomllib.loads(line)
    except (ValueError, RecursionError):
        return []
    parts = []
    while isinstance(table, dict | list) and table:
        if isinstance(table, list):
            table = table[0]
            continue
        key = next(iter(table))
        parts.append(key)
        table = table[key]
    return parts
