"""Our entry for a client's configuration, and how it gets there without disturbing what is there."""

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

from moonbox.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moonbox.mcp.clients.known import Client

__all__ = ["Entry", "Outcome", "install", "snippet"]


@dataclass(frozen=True, slots=True)
class Entry:
    """How a client starts moonbox."""

    name: str
    command: str
    args: tuple[str, ...] = ("serve",)
    env: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def make(cls, name: str, *, config: Path | None = None, mcp_config: Sequence[Path] = ()) -> Entry:
        """With whole paths: clients start it in a folder of their own, with an environment of their own."""
        args = ["serve"]
        if config is not None:
            args += ["--config", str(config.resolve())]
        for file in mcp_config:
            args += ["--mcp-config", str(file.resolve())]
        program = Path(sys.executable).with_name("moonbox")
        if program.is_file():
            return cls(name, str(program), tuple(args))
        found = shutil.which("moonbox")
        if found is not None:
            return cls(name, str(Path(found).resolve()), tuple(args))
        return cls(name, sys.executable, ("-m", "moonbox", *args))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done."""

    path: Path
    done: str
    """created, added, replaced or unchanged."""
    backup: Path | None = None


def snippet(client: Client, entry: Entry) -> str:
    """The entry alone, as it stands in the client's file."""
    shaped = client.shape(entry)
    if client.form == "toml":
        return _toml(client, entry.name, shaped)
    data: dict[str, Any] = {entry.name: shaped}
    for key in reversed(client.root):
        data = {key: data}
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def install(client: Client, entry: Entry, path: Path) -> Outcome:
    """Write the entry; everything else stays as it is, and the file as it was is kept beside it."""
    path = path.resolve()  # a link stays a link: what it leads to is changed
    before = _read(path)
    if client.form == "toml":
        after, done = _in_toml(client, entry, before, path)
    else:
        after, done = _in_json(client, entry, before, path)
    if done == "unchanged":
        return Outcome(path, done)
    backup = _backup(path) if before is not None else None
    _write(path, after)
    return Outcome(path, done if before is not None else "created", backup)


def _in_json(client: Client, entry: Entry, before: str | None, path: Path) -> tuple[str, str]:
    text = before if before is not None and before.strip() else "{}"
    try:
        data = json.loads(text)
    except ValueError:
        raise ConfigError(
            f"{path} has comments or mistakes in it, which would be lost; add this by hand:\n\n{snippet(client, entry)}"
        ) from None
    place = data
    for key in client.root:
        if not isinstance(place, dict) or not isinstance(place.setdefault(key, {}), dict):
            raise ConfigError(f"{path}: {'.'.join(client.root)} is not an object; it was left alone")
        place = place[key]
    shaped = client.shape(entry)
    if place.get(entry.name) == shaped:
        return text, "unchanged"
    done = "replaced" if entry.name in place else "added"
    place[entry.name] = shaped
    return json.dumps(data, indent=_indent(text), ensure_ascii=False) + "\n", done


def _in_toml(client: Client, entry: Entry, before: str | None, path: Path) -> tuple[str, str]:
    text = before or ""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise ConfigError(f"{path} is not valid TOML ({problem}); it was left alone") from None
    shaped = client.shape(entry)
    table = data.get(client.root[0], {})
    if isinstance(table, dict) and table.get(entry.name) == shaped:
        return text, "unchanged"
    block = _toml(client, entry.name, shaped)
    header = re.compile(
        rf"^\[{re.escape(client.root[0])}\.(?:{re.escape(entry.name)}|\"{re.escape(entry.name)}\")(?:\.[^\]]*)?\]\s*$"
    )
    lines, kept, inside = text.splitlines(keepends=True), [], False
    for line in lines:
        if line.lstrip().startswith("["):
            inside = header.match(line.strip()) is not None
        if not inside:
            kept.append(line)
    done = "added" if len(kept) == len(lines) else "replaced"
    made = "".join(kept).rstrip("\n") + ("\n\n" if "".join(kept).strip() else "") + block
    if not _is_safe(data, made, client.root[0], entry.name, shaped):
        raise ConfigError(f"{path} is written in a way that cannot be changed safely; add this by hand:\n\n{block}")
    return made, done


def _is_safe(before: dict[str, Any], made: str, root: str, name: str, shaped: Any) -> bool:
    """Whether the new text says just what the old one said, and our entry."""
    try:
        after = tomllib.loads(made)
    except tomllib.TOMLDecodeError:
        return False
    if not isinstance(after.get(root), dict):
        return False
    mine = after[root].pop(name, None)
    others = {key: value for key, value in before.get(root, {}).items() if key != name}
    return mine == shaped and after == {**before, root: others}


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
    """As the file has it."""
    found = re.search(r"^\{\s*\n([ \t]+)\"", text)
    if found is None:
        return 2
    return "\t" if found.group(1).startswith("\t") else len(found.group(1))


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
        raise ConfigError(f"{path} cannot be copied to {copy.name} first, so it was left alone: {problem}") from None
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
