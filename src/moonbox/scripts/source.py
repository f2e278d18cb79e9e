"""The text of a script file, bounded and readable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moonbox.errors import ToolDefinitionError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_source", "stamp"]

_LARGEST_FILE = 1_000_000


def read_source(path: Path) -> str:
    try:
        if not path.is_file() and path.exists():
            raise ToolDefinitionError(f"{path} is not a file")
        if path.stat().st_size > _LARGEST_FILE:
            raise ToolDefinitionError(f"{path} is larger than {_LARGEST_FILE:,} bytes")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ToolDefinitionError(f"there is no file {path}") from None
    except UnicodeDecodeError:
        raise ToolDefinitionError(f"{path} is not UTF-8 text") from None
    except OSError as problem:
        raise ToolDefinitionError(f"{path} cannot be read: {problem}") from None


def stamp(path: Path) -> tuple[int, int]:
    """What changes when the file does."""
    try:
        status = path.stat()
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)
