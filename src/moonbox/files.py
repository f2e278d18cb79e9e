"""Files for their owner alone: made with their folders, and replaced in one step."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def create_private_file(path: Path) -> None:
    """Make a file and its folders where they are missing; raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # SQLite gives its side files the same mode.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def write_private_file(path: Path, data: bytes, *, keeps_mode: bool = False) -> None:
    """Replace a file, and make its folders where they are missing; with `keeps_mode` the permissions of the old one
    stay. Raises OSError."""
    import shutil  # these are slow to load
    import tempfile
    from pathlib import Path

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # made with mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if keeps_mode and path.exists():
            shutil.copymode(path, draft)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
