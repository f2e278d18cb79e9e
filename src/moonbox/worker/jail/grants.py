"""What the jail of a chore leaves open: files and folders that are named, and a connection that it has already."""

from __future__ import annotations

import os
import stat

from moonbox.worker.jail import landlock, seccomp
from moonbox.worker.jail.policy import ALLOWED, CHECKED, CONNECTED, FILES, NO_EXEC, Checked

TYPE_CHECKING = False  # see layers.py
if TYPE_CHECKING:
    from collections.abc import Iterable

    from moonbox.worker.jail.layers import Step
    from moonbox.worker.jail.libc import Libc

_O_PATH = 0o10000000
_WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_FILE, _MAKE_REG, _TRUNCATE = 1 << 1, 1 << 2, 1 << 3, 1 << 5, 1 << 8, 1 << 14


class JailGrants:
    """The files and folders that a chore may read or also write, and whether it holds a connection."""

    __slots__ = ("connected", "read", "write")

    def __init__(self, read: Iterable[str] = (), write: Iterable[str] = (), *, connected: bool = False) -> None:
        self.read, self.write, self.connected = tuple(read), tuple(write), connected

    @property
    def has_files(self) -> bool:
        return bool(self.read or self.write)

    def ruleset(self, libc: Libc) -> landlock.Ruleset:
        """A ruleset that allows what is granted and is there. A rule belongs to the file itself, not to its name."""
        ruleset = landlock.make_ruleset(libc)
        for paths, writes in ((("/dev/null", *self.read), False), (self.write, True)):
            for path in paths:
                self._allow(libc, ruleset, path, writes)
        return ruleset

    def _allow(self, libc: Libc, ruleset: landlock.Ruleset, path: str, writes: bool) -> None:
        try:
            fd = os.open(path, _O_PATH | os.O_CLOEXEC)
        except OSError:
            return
        try:
            rights = _READ_FILE | (_WRITE_FILE | (_TRUNCATE if ruleset.abi >= 3 else 0) if writes else 0)
            if stat.S_ISDIR(os.fstat(fd).st_mode):
                rights |= _READ_DIR | (_REMOVE_FILE | _MAKE_REG if writes else 0)
            landlock.allow(libc, ruleset, fd, rights)
        finally:
            os.close(fd)

    def filter(self, libc: Libc) -> Step:
        """The system calls that computing needs, those for files, and those for a connection."""
        allowed = (*ALLOWED, *(FILES if self.has_files else ()), *(CONNECTED if self.connected else ()))
        checked: tuple[Checked, ...] = CHECKED
        if self.has_files:  # files may be mapped; nothing becomes code
            checked = (*(rule for rule in CHECKED if rule.name != "mmap"), Checked("mmap", NO_EXEC))
        return seccomp.filter_calls(libc, allowed, checked)
