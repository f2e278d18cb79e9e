"""Opening paths beneath a folder, whatever links or renames stand in the way.

On Linux the kernel does it in one step (openat2 with RESOLVE_BENEATH). Elsewhere, and where that call is missing or
forbidden, the path is walked one component at a time over open folders, without ever letting the system follow a
link. Both follow links that stay inside the folder and refuse those that lead out of it.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import stat
import sys
from typing import Protocol

__all__ = ["FOLDER", "Escape", "Opener", "best_opener", "open_in_one_step", "open_step_by_step"]

_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS, _RESOLVE_BENEATH = 0x02, 0x08
_MAX_LINKS = 40
FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)


class Escape(OSError):
    """The path leads out of the folder."""


class Opener(Protocol):
    """Opens `path`, relative and without "..", beneath the open folder `root`; raises Escape or another OSError."""

    def __call__(self, root: int, path: str, flags: int, mode: int = 0) -> int: ...


def best_opener() -> Opener:
    """The kernel's, where it works."""
    return open_in_one_step if _has_openat2() else open_step_by_step


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_in_one_step(root: int, path: str, flags: int, mode: int = 0) -> int:
    flags |= os.O_CLOEXEC
    how = _OpenHow(flags, mode if flags & os.O_CREAT else 0, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
    name = os.fsencode(path)
    for _ in range(100):
        fd = _libc().syscall(
            ctypes.c_long(_OPENAT2), root, name, ctypes.byref(how), ctypes.c_size_t(ctypes.sizeof(how))
        )
        if fd >= 0:
            return int(fd)
        code = ctypes.get_errno()
        if code not in (errno.EAGAIN, errno.EINTR):  # EAGAIN: something was renamed meanwhile
            break
    if code == errno.EXDEV:
        raise Escape(code, "it leads out of the granted folder", path)
    raise OSError(code, os.strerror(code), path)


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def open_step_by_step(root: int, path: str, flags: int, mode: int = 0) -> int:
    walk = _Walk(root)
    try:
        return walk.open(path.split("/"), flags | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    finally:
        walk.close()


class _Walk:
    """Folders open on the way from the root to the path."""

    def __init__(self, root: int) -> None:
        self._folders = [os.dup(root)]
        self._links = 0

    def open(self, parts: list[str], flags: int, mode: int) -> int:
        todo = [part for part in reversed(parts) if part not in ("", ".")]
        while todo:
            part = todo.pop()
            if part == "..":
                self._leave(part)
                continue
            link = self._link(part)
            if link is not None:
                todo += [step for step in reversed(link.split("/")) if step not in ("", ".")]
            elif todo:
                self._folders.append(os.open(part, FOLDER | os.O_NOFOLLOW, dir_fd=self._folders[-1]))
            else:
                # Should a link have taken its place since the look, O_NOFOLLOW makes this fail.
                return self._final(part, flags, mode)
        return os.open(".", flags & ~os.O_CREAT, dir_fd=self._folders[-1])

    def close(self) -> None:
        for folder in self._folders:
            os.close(folder)

    def _final(self, part: str, flags: int, mode: int) -> int:
        fd = os.open(part, flags, mode, dir_fd=self._folders[-1])
        if flags & getattr(os, "O_PATH", 0) and _is_link(fd):  # with O_PATH a link is opened, not refused
            os.close(fd)
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), part)
        return fd

    def _leave(self, part: str) -> None:
        if len(self._folders) == 1:
            raise Escape(errno.EXDEV, "it leads out of the granted folder", part)
        os.close(self._folders.pop())

    def _link(self, part: str) -> str | None:
        """What the link of this name says, or None when there is no such link."""
        try:
            text = os.readlink(part, dir_fd=self._folders[-1])
        except OSError as problem:
            if problem.errno in (errno.EINVAL, errno.ENOENT):
                return None
            raise
        self._links += 1
        if self._links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), part)
        if text.startswith("/"):
            raise Escape(errno.EXDEV, "it leads out of the granted folder", part)
        return text


def _is_link(fd: int) -> bool:
    return stat.S_ISLNK(os.fstat(fd).st_mode)


def _has_openat2() -> bool:
    if not sys.platform.startswith("linux"):
        return False
    try:
        root = os.open("/", FOLDER)
        try:
            os.close(open_in_one_step(root, ".", FOLDER))
        finally:
            os.close(root)
    except (OSError, AttributeError):  # an old kernel, a seccomp filter, or a C library without syscall()
        return False
    return True
