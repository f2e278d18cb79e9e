"""Who could have written a file: one that somebody else owns or can change is not ours to obey."""

from __future__ import annotations

import os
import stat
from pathlib import Path

__all__ = ["ownership_problem"]


def ownership_problem(path: Path) -> str | None:
    """Why a file may hold the words of somebody else, and what to do; None when only this user and root can write it.

    The folders above count too: whoever can write one of them can put another file in its place.
    """
    if not hasattr(os, "geteuid"):
        return None
    real = Path(os.path.realpath(path))
    for place in (real, *real.parents):
        try:
            info = place.stat()
        except OSError:
            return None  # whoever opens the file says what is wrong
        what = f"'{path}'" if place == real else f"the folder '{place}'"
        if info.st_uid not in (os.geteuid(), 0):
            return f"{what} belongs to {_user(info.st_uid)}; look at it, and `moonbox trust` the folder if you agree"
        if _others_can_write(info):
            return f"other users can write {what}; take that away with: chmod go-w '{place}'"
    return None


def _others_can_write(info: os.stat_result) -> bool:
    if stat.S_ISDIR(info.st_mode) and info.st_mode & stat.S_ISVTX:
        return False  # as in /tmp: others cannot replace what is not theirs
    if info.st_mode & stat.S_IWOTH:
        return True
    return bool(info.st_mode & stat.S_IWGRP) and info.st_gid not in (os.getegid(), 0)


def _user(uid: int) -> str:
    try:
        import pwd

        return f"the user '{pwd.getpwuid(uid).pw_name}'"
    except (ImportError, KeyError):
        return f"the user {uid}"
