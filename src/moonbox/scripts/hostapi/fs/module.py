"""Functions fs.read, .list, .exists and .stat, and with a write grant fs.write, .append, .mkdir and .remove."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from moonbox.errors import ArgumentError, ToolError
from moonbox.scripts.hostapi.arguments import Parameter
from moonbox.scripts.hostapi.fs.folders import Folders, Place, refuse_special, translated
from moonbox.scripts.hostapi.function import Host, HostFunction
from moonbox.scripts.hostapi.text import text_or_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moonbox.scripts.hostapi.fs.beneath import Opener

__all__ = ["functions"]

_PATH = Parameter("path", "data", 'such as "data/notes.txt", relative to the configuration file', required=True)
_FOLDER = Parameter("path", "data", 'such as "data", relative to the configuration file', required=True)
_DATA = Parameter("data", "data", "text or binary", required=True)


def functions(host: Host, opener: Opener | None = None) -> list[HostFunction]:
    reading, writing = _Reading(host, opener), _Writing(host, opener)
    most = host.limits.max_file
    part = Parameter(
        "options",
        "options",
        options=(
            Parameter("offset", "integer", "first byte to read, 0 unless given", default=0, least=0),
            Parameter("length", "integer", "bytes to read, all unless given", least=0, most=most),
        ),
    )

    def read(name: str, summary: str, run: Any, parameters: tuple[Parameter, ...], returns: str) -> HostFunction:
        return HostFunction(
            f"fs.{name}", summary, run, parameters, returns, needs=("read",), refuses=True, blocking=True
        )

    def write(name: str, summary: str, run: Any, parameters: tuple[Parameter, ...], returns: str) -> HostFunction:
        return HostFunction(
            f"fs.{name}", summary, run, parameters, returns, needs=("write",), refuses=True, blocking=True
        )

    return [
        read("read", f"The contents of a file, at most {most:,} bytes at once.", reading.read, (_PATH, part), "string"),
        read(
            "list",
            "The entries of a folder, by name.",
            reading.list,
            (_FOLDER,),
            "array of {name, type, size, modified}",
        ),
        read("exists", "Whether there is a file or folder.", reading.exists, (_PATH,), "boolean"),
        read("stat", "Type (file, folder, other), size and time of change.", reading.stat, (_PATH,), _STAT),
        write("write", "Write a file in one step, replacing what it held.", writing.write, (_PATH, _DATA), _WRITTEN),
        write(
            "append", "Add to the end of a file, which is made if missing.", writing.append, (_PATH, _DATA), _WRITTEN
        ),
        write(
            "mkdir", "Make a folder and those it is in.", writing.mkdir, (_FOLDER,), "boolean, false if it was there"
        ),
        write("remove", "Remove a file, a link or an empty folder.", writing.remove, (_PATH,), "null"),
    ]


_STAT = "{type, size, modified}"
_WRITTEN = "bytes written"


class _Reading:
    def __init__(self, host: Host, opener: Opener | None) -> None:
        self._folders = Folders(host, "read", opener)
        self._limits = host.limits

    def read(self, path: bytes, options: dict[str, Any]) -> str | bytes:
        place = self._folders.find(path)
        most = self._limits.max_file if options["length"] is None else options["length"]
        with self._folders.regular(place, os.O_RDONLY) as fd:
            pieces: list[bytes] = []
            at, left = options["offset"], most + 1
            while left > 0 and (piece := os.pread(fd, min(left, 1 << 20), at)):
                pieces.append(piece)
                at, left = at + len(piece), left - len(piece)
        data = b"".join(pieces)
        if options["length"] is None and len(data) > most:
            advice = "read it in parts with {offset = …, length = …}"
            raise ToolError(f"{place.shown} is larger than {most:,} bytes; {advice}", code="too_large")
        return text_or_bytes(data[:most])

    def list(self, path: bytes) -> list[dict[str, Any]]:
        place = self._folders.find(path)
        most = self._limits.max_entries
        with self._folders.opened(place, place.inside, os.O_RDONLY | os.O_DIRECTORY) as fd, os.scandir(fd) as entries:
            found: list[dict[str, Any]] = []
            for entry in entries:
                if len(found) == most:
                    raise ToolError(f"{place.shown} has more than {most:,} entries", code="too_large")
                with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                    found.append({"name": text_or_bytes(os.fsencode(entry.name)), **_described(_lstat(entry))})
        return sorted(found, key=lambda entry: os.fsencode(entry["name"]))

    def exists(self, path: bytes) -> bool:
        place = self._folders.find(path)
        try:
            with self._folders.opened(place, place.inside):
                return True
        except ToolError as problem:
            if problem.code in ("not_found", "not_a_folder"):
                return False
            raise

    def stat(self, path: bytes) -> dict[str, Any]:
        place = self._folders.find(path)
        with self._folders.opened(place, place.inside) as fd:
            return _described(os.fstat(fd))


class _Writing:
    def __init__(self, host: Host, opener: Opener | None) -> None:
        self._folders = Folders(host, "write", opener)
        self._limits, self._entropy = host.limits, host.entropy
        self._written = 0
        self._counting = threading.Lock()

    def write(self, path: bytes, data: bytes) -> int:
        place = self._file(path)
        self._spend(place, len(data))
        with self._parent(place) as parent:
            mode = self._replaced_mode(place, parent)
            temporary = f".{self._entropy(8).hex()}.tmp"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(temporary, flags, 0o666, dir_fd=parent)
            try:
                with os.fdopen(fd, "wb") as file:
                    file.write(data)
                    if mode is not None:
                        os.fchmod(fd, mode)
                os.rename(temporary, place.name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=parent)
                raise
        return len(data)

    def append(self, path: bytes, data: bytes) -> int:
        place = self._file(path)
        self._spend(place, len(data))
        with self._folders.regular(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666) as fd:
            info = os.fstat(fd)
            if info.st_nlink > 1:
                # Its other name may lie outside the folder. (A write replaces the file and leaves the other alone.)
                raise ToolError(f"{place.shown} has more than one name; append only to files with one", code="linked")
            if info.st_size + len(data) > self._limits.max_file:
                raise ToolError(f"{place.shown} would be larger than {self._limits.max_file:,} bytes", code="too_large")
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
        return len(data)

    def mkdir(self, path: bytes) -> bool:
        place = self._folders.find(path)
        made = False
        inside = "."
        for part in place.inside.split("/"):
            with self._folders.folder(place, inside) as parent:
                try:
                    if part != ".":
                        os.mkdir(part, dir_fd=parent)
                        made = True
                except FileExistsError:
                    made = False
            inside = f"{inside}/{part}"
        with self._folders.folder(place, place.inside):  # what was there may be a file
            return made

    def remove(self, path: bytes) -> None:
        place = self._file(path.rstrip(b"/") or path)
        with self._parent(place) as parent:
            info = os.stat(place.name, dir_fd=parent, follow_symlinks=False)
            if stat.S_ISDIR(info.st_mode):
                os.rmdir(place.name, dir_fd=parent)
            else:
                os.unlink(place.name, dir_fd=parent)

    @contextlib.contextmanager
    def _parent(self, place: Place) -> Iterator[int]:
        folder = replace(place, shown=f"the folder of {place.shown}", inside=place.parent)
        with self._folders.folder(folder, folder.inside) as fd, translated(place):
            yield fd

    def _file(self, path: bytes) -> Place:
        place = self._folders.find(path)
        if place.inside == ".":
            raise ArgumentError(f"{place.shown} is the granted folder itself", code="invalid_path")
        if path.endswith((b"/", b"/.")):
            raise ArgumentError(f"{place.shown} ends with a slash, so it names a folder", code="invalid_path")
        return place

    def _replaced_mode(self, place: Place, parent: int) -> int | None:
        """The permissions of the file that is about to be replaced."""
        try:
            info = os.stat(place.name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if stat.S_ISLNK(info.st_mode):
            return None
        refuse_special(place, info)
        return stat.S_IMODE(info.st_mode) & 0o777

    def _spend(self, place: Place, size: int) -> None:
        if size > self._limits.max_file:
            raise ToolError(
                f"{place.shown} would have {size:,} bytes; at most {self._limits.max_file:,} can be written",
                code="too_large",
            )
        with self._counting:
            if self._written + size > self._limits.max_written:
                raise ToolError(
                    f"no more than {self._limits.max_written:,} bytes can be written in all", code="too_large"
                )
            self._written += size


def _lstat(entry: os.DirEntry[str]) -> os.stat_result:
    return entry.stat(follow_symlinks=False)


def _described(info: os.stat_result) -> dict[str, Any]:
    kind = "file" if stat.S_ISREG(info.st_mode) else "folder" if stat.S_ISDIR(info.st_mode) else "other"
    if stat.S_ISLNK(info.st_mode):
        kind = "link"
    return {"type": kind, "size": info.st_size, "modified": info.st_mtime}
