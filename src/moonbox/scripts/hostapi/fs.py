"""Functions fs.read, .list, .exists and .stat, and with a write grant fs.write, .append, .mkdir and .remove."""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from moonbox.audit.sinks import default_path
from moonbox.errors import ArgumentError, Denied, ToolError
from moonbox.scripts.hostapi.functions import Host, HostFunction, Parameter, options
from moonbox.scripts.hostapi.paths import FOLDER, Folders, GrantedPath, refuse_special, translated
from moonbox.values import text_or_bytes

_LAST_OFFSET = 2**62
_PATH = Parameter("path", "data", 'such as "data/notes.txt", relative to the configuration file', required=True)
_FOLDER = Parameter("path", "data", 'such as "data", relative to the configuration file', required=True)
_DATA = Parameter("data", "data", "text or binary", required=True)
CONFIG_NAMES = frozenset({"moonbox.toml"})
"""Files that are read from any parent folder of the working folder: a script cannot create them anywhere."""
_SIDE_FILES = ("", "-wal", "-shm", "-journal", ".new")
_IMPORTABLE = frozenset({".py", ".pyc", ".pyd", ".so", ".pth"})


def functions(host: Host) -> list[HostFunction]:
    reading, writing = _Reading(host), _Writing(host)
    most = host.limits.max_file
    part = options(
        Parameter("offset", "integer", "first byte to read, 0 by default", default=0, least=0),
        Parameter("length", "integer", "bytes to read, all by default", least=0, most=most),
    )

    def function(
        grant: str, name: str, summary: str, run: Any, parameters: tuple[Parameter, ...], returns: str
    ) -> HostFunction:
        return HostFunction(f"fs.{name}", summary, run, parameters, returns, needs=(grant,), refuses=True)

    read, write = functools.partial(function, "read"), functools.partial(function, "write")
    whole = f"The contents of a file, at most {most:,} bytes at once."
    listed = "array of {name, type, size, modified}"
    added = "Add to the end of a file, which is created if it does not exist."
    created = "boolean, false if it existed already"
    return [
        read("read", whole, reading.read, (_PATH, part), "string"),
        read("list", "The entries of a folder, by name.", reading.list, (_FOLDER,), listed),
        read("exists", "Whether a file or folder exists.", reading.exists, (_PATH,), "boolean"),
        read("stat", "Type (file, folder, other), size and time of change.", reading.stat, (_PATH,), _STAT),
        write("write", "Write a file in one step, replacing its contents.", writing.write, (_PATH, _DATA), _WRITTEN),
        write("append", added, writing.append, (_PATH, _DATA), _WRITTEN),
        write("mkdir", "Create a folder and its parents.", writing.mkdir, (_FOLDER,), created),
        write("remove", "Remove a file, a link or an empty folder.", writing.remove, (_PATH,), "null"),
    ]


_STAT = "{type, size, modified}"
_WRITTEN = "bytes written"


class _Reading:
    def __init__(self, host: Host) -> None:
        self._folders = Folders(host, "read")
        self._limits = host.limits

    def read(self, given: bytes, options: dict[str, Any]) -> str | bytes:
        path = self._folders.find(given)
        most = self._limits.max_file if options["length"] is None else options["length"]
        with self._folders.regular(path, os.O_RDONLY) as fd:
            pieces: list[bytes] = []
            at, left = min(options["offset"], _LAST_OFFSET), most + 1
            while left > 0 and (piece := os.pread(fd, min(left, 1 << 20), at)):
                pieces.append(piece)
                at, left = at + len(piece), left - len(piece)
        data = b"".join(pieces)
        if options["length"] is None and len(data) > most:
            advice = "read it in parts with {offset = …, length = …}"
            raise ToolError(f"{path.text} is larger than {most:,} bytes; {advice}", code="too_large")
        return text_or_bytes(data[:most])

    def list(self, given: bytes) -> list[dict[str, Any]]:
        path = self._folders.find(given, is_folder=True)
        most = self._limits.max_entries
        with self._folders.opened(path, path.inside, os.O_RDONLY | os.O_DIRECTORY) as fd, os.scandir(fd) as entries:
            listed: list[dict[str, Any]] = []
            for entry in entries:
                if len(listed) == most:
                    raise ToolError(f"{path.text} has more than {most:,} entries", code="too_large")
                with contextlib.suppress(FileNotFoundError):  # removed since
                    about = _described(entry.stat(follow_symlinks=False))
                    listed.append({"name": text_or_bytes(os.fsencode(entry.name)), **about})
        return sorted(listed, key=lambda entry: os.fsencode(entry["name"]))

    def exists(self, given: bytes) -> bool:
        path = self._folders.find(given)
        try:
            with self._folders.opened(path, path.inside):
                return True
        except ToolError as problem:
            if problem.code in ("not_found", "not_a_folder"):
                return False
            raise

    def stat(self, given: bytes) -> dict[str, Any]:
        path = self._folders.find(given)
        with self._folders.opened(path, path.inside) as fd:
            return _described(os.fstat(fd))


class _Writing:
    def __init__(self, host: Host) -> None:
        self._folders = Folders(host, "write")
        self._limits, self._entropy = host.limits, host.entropy
        self._protected = Protected(host.grants.protected)
        self._written = 0
        self._counting = threading.Lock()

    def write(self, given: bytes, data: bytes) -> int:
        path = self._file(given)
        self._spend(path, len(data))
        with self._parent(path) as parent:
            self._protected.check(parent, path.name, path.text)
            mode = self._replaced_mode(path, parent)
            temporary = f".{self._entropy(8).hex()}.tmp"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(temporary, flags, 0o666, dir_fd=parent)
            try:
                with os.fdopen(fd, "wb") as file:
                    file.write(data)
                    if mode is not None:
                        os.fchmod(fd, mode)
                os.rename(temporary, path.name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=parent)
                raise
        return len(data)

    def append(self, given: bytes, data: bytes) -> int:
        path = self._file(given)
        self._spend(path, len(data))
        with self._parent(path) as parent:
            self._protected.check(parent, path.name, path.text)
            create = os.O_CREAT if _look(path.name, parent) is None else 0  # not what a link leads to
        with self._folders.regular(path, os.O_WRONLY | os.O_APPEND | create, 0o666) as fd:
            self._protected.check_open(fd, path.text)  # a link may have led elsewhere in the folder
            info = os.fstat(fd)
            if info.st_nlink > 1:
                # The other link may be outside the folder. (A write replaces the file and leaves the other link alone.)
                raise ToolError(f"{path.text} has hard links and cannot be appended to", code="linked")
            if info.st_size + len(data) > self._limits.max_file:
                raise ToolError(f"{path.text} would be larger than {self._limits.max_file:,} bytes", code="too_large")
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
        return len(data)

    def mkdir(self, given: bytes) -> bool:
        path = self._folders.find(given, is_folder=True)
        created, inside = False, "."
        for part in path.inside.split("/"):
            with self._folders.opened(path, inside, FOLDER) as parent, contextlib.suppress(FileExistsError):
                created = False
                if part != "." and _look(part, parent) is None:
                    self._protected.check(parent, part, path.text)
                    os.mkdir(part, dir_fd=parent)
                    created = True
            inside = f"{inside}/{part}"
        with self._folders.opened(path, path.inside, FOLDER):  # it may have been a file
            return created

    def remove(self, given: bytes) -> None:
        path = self._file(given.rstrip(b"/") or given)
        with self._parent(path) as parent:
            self._protected.check(parent, path.name, path.text)
            info = os.stat(path.name, dir_fd=parent, follow_symlinks=False)
            if stat.S_ISDIR(info.st_mode):
                os.rmdir(path.name, dir_fd=parent)
            else:
                os.unlink(path.name, dir_fd=parent)

    @contextlib.contextmanager
    def _parent(self, path: GrantedPath) -> Iterator[int]:
        folder = replace(path, text=f"the folder of {path.text}", inside=str(Path(path.inside).parent))
        with self._folders.opened(folder, folder.inside, FOLDER) as fd, translated(path):
            yield fd

    def _file(self, given: bytes) -> GrantedPath:
        path = self._folders.find(given)
        if path.inside == ".":
            raise ArgumentError(f"{path.text} is the granted folder itself", code="invalid_path")
        if given.endswith((b"/", b"/.")):
            raise ArgumentError(f"{path.text} ends with a slash, so it names a folder", code="invalid_path")
        return path

    def _replaced_mode(self, path: GrantedPath, parent: int) -> int | None:
        """The permissions of the file that is about to be replaced."""
        info = _look(path.name, parent)
        if info is None or stat.S_ISLNK(info.st_mode):
            return None
        refuse_special(path, info)
        return stat.S_IMODE(info.st_mode) & 0o777

    def _spend(self, path: GrantedPath, size: int) -> None:
        if size > self._limits.max_file:
            raise ToolError(
                f"{path.text} would have {size:,} bytes; at most {self._limits.max_file:,} can be written",
                code="too_large",
            )
        with self._counting:
            if self._written + size > self._limits.max_written:
                raise ToolError(
                    f"no more than {self._limits.max_written:,} bytes can be written in all", code="too_large"
                )
            self._written += size


def _look(name: str | Path, folder: int | None = None) -> os.stat_result | None:
    """What is there under a name; links are followed only where no folder is given. None where nothing is."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=folder is None)
    except FileNotFoundError:
        return None


def _described(info: os.stat_result) -> dict[str, Any]:
    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
    return {"type": kinds.get(stat.S_IFMT(info.st_mode), "other"), "size": info.st_size, "modified": info.st_mtime}


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
        self._check(_path_of(folder), name, text)

    def _check(self, real: Path, name: str, text: str) -> None:
        if name.casefold() in CONFIG_NAMES:
            raise _refusal(text, "it is a configuration of moonbox")
        target = real / name
        if target.suffix.lower() in _IMPORTABLE:
            folders = {os.path.realpath(entry) for entry in sys.path if isinstance(entry, str)}
            if str(real) in folders or str(target) in _loaded():
                raise _refusal(text, "Python would import it")
        around = {_identity(place) for place in (real, *real.parents)} - {None}
        for path in self._spellings():
            # The entry itself, something in it, or a folder on the way to it.
            if _is_within(target, path) or _is_within(path, target) or _identity(path) in around:
                raise _refusal(text, "moonbox itself uses it")

    def check_open(self, fd: int, text: str) -> None:
        """Raises Denied for a file that is open for writing and is protected, by whatever name it was opened."""
        opened, real = os.fstat(fd), _path_of(fd)
        if (opened.st_dev, opened.st_ino) in map(_identity, self._spellings()):
            raise _refusal(text, "moonbox itself uses it")
        self._check(real.parent, real.name, text)

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
    """The name in one letter case, because some file systems ignore case."""
    return Path(str(path).casefold()).is_relative_to(str(folder).casefold())


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        info = path.stat()
    except OSError:
        return None
    return info.st_dev, info.st_ino


def _loaded() -> set[str]:
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return {os.path.realpath(file) for file in files if isinstance(file, str)}
