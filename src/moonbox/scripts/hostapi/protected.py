"""Protected files: configuration, scripts, trails and programs, which no grant makes writable.

A script that could write them would grant itself more, change another script, or erase what it did.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from moonbox.audit.sinks import default_path
from moonbox.errors import Denied

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["CONFIG_NAMES", "Protected"]

CONFIG_NAMES = frozenset({"moonbox.toml"})
"""Read from any folder above the one that a person works in: nowhere may a script make one."""
_SIDE_FILES = ("", "-wal", "-shm", "-journal", ".new")
_IMPORTABLE = frozenset({".py", ".pyc", ".pyd", ".so", ".pth"})


class Protected:
    """Decides whether an entry of an open folder may be created, changed or removed.

    The folder is looked at as it is at that moment, however the script named it: a link, another spelling, or a
    second name of the same folder lead to the same answer.
    """

    def __init__(self, paths: Iterable[str] = ()) -> None:
        # The folder of moonbox's own state: the trail of the command line, and which projects are trusted.
        self._paths = [*(Path(path) for path in paths), default_path().parent]

    def check(self, folder: int, name: str, text: str) -> None:
        """Raises Denied for an entry that is protected; `text` is the path as the script wrote it."""
        if name.casefold() in CONFIG_NAMES:
            raise _refusal(text, "it is a configuration of moonbox")
        real = _path_of(folder)
        target = real / name
        if target.suffix.lower() in _IMPORTABLE and (_is_import_folder(real) or str(target) in _loaded()):
            raise _refusal(text, "Python would import it")
        around = {_identity(place) for place in (real, *real.parents)} - {None}
        for path in self._spellings():
            # The entry itself, something in it, or a folder on the way to it.
            if _is_within(target, path) or _is_within(path, target) or _identity(path) in around:
                raise _refusal(text, "moonbox itself uses it")

    def check_open(self, fd: int, text: str) -> None:
        """Raises Denied for a file that is open for writing and is protected, by whatever name it was opened."""
        opened = os.fstat(fd)
        for path in self._spellings():
            try:
                if os.path.samestat(opened, path.stat()):
                    raise _refusal(text, "moonbox itself uses it")
            except OSError:
                continue
        real = _path_of(fd)
        if real.name.casefold() in CONFIG_NAMES:
            raise _refusal(text, "it is a configuration of moonbox")

    def _spellings(self) -> Iterator[Path]:
        """Each path as it is written, with the links above it followed, and with all links followed."""
        for path in self._paths:
            parent = Path(os.path.realpath(path.parent))
            for suffix in _SIDE_FILES:
                yield parent / (path.name + suffix)
            yield Path(os.path.realpath(path))


def _refusal(text: str, why: str) -> Denied:
    return Denied(f"{text[:1000]} cannot be written, whatever is granted: {why}", code="protected")


def _path_of(fd: int) -> Path:
    """Where an open file or folder is now."""
    if sys.platform == "darwin":
        import fcntl

        return Path(os.fsdecode(fcntl.fcntl(fd, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0")))
    return Path(os.path.realpath(f"/proc/self/fd/{fd}"))


def _is_within(path: Path, folder: Path) -> bool:
    """In any letter case: some file systems do not tell them apart."""
    return Path(str(path).casefold()).is_relative_to(str(folder).casefold())


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        info = path.stat()
    except OSError:
        return None
    return info.st_dev, info.st_ino


def _is_import_folder(folder: Path) -> bool:
    return any(Path(os.path.realpath(entry)) == folder for entry in sys.path if isinstance(entry, str))


def _loaded() -> set[str]:
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return {os.path.realpath(file) for file in files if isinstance(file, str)}
