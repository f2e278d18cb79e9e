"""New files from templates: a tool script, and a configuration."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from moonbox.config import FILE_NAME
from moonbox.errors import UsageError
from moonbox.languages.names import is_identifier

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["write_config", "write_tool"]


def write_tool(name: str, folder: Path) -> Path:
    """A commented tool script; never replaces a file."""
    if not is_identifier(name):
        raise UsageError(f"invalid tool name {name!r}; use letters, digits and _")
    return _write(folder / f"{name}.lua", _template("tool.lua").replace("@NAME@", name))


def write_config(folder: Path) -> Path:
    """A commented moonbox.toml and the folder for tools; never replaces a file."""
    path = _write(folder / FILE_NAME, _template(FILE_NAME))
    (folder / "tools").mkdir(exist_ok=True)
    return path


def _template(name: str) -> str:
    return resources.files("moonbox.scripts").joinpath("files", name).read_text(encoding="utf-8")


def _write(path: Path, text: str) -> Path:
    if path.parent.exists() and not path.parent.is_dir():
        raise UsageError(f"{path.parent} is a file, not a folder; nothing was changed")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} exists already; nothing was changed") from None
    except OSError as problem:
        raise UsageError(f"{path} cannot be written: {problem.strerror or problem}") from None
    return path
