"""The native parts: extensions in C that are optional; whether they are wanted, and one of them by its name."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # a zygote imports this: no `typing`, no `importlib`
if TYPE_CHECKING:
    from typing import Any

SWITCH = "MOONBOX_NATIVE"
"""The environment variable that turns them off where it is 0."""
_REVISIONS = {"worker._wire": 5, "worker._native": 10}  # as in their sources


def wanted() -> bool:
    """Whether the native parts are to be used where they were built."""
    return os.environ.get(SWITCH) != "0"


def extension(name: str) -> Any:
    """That extension of the package; None where it is not wanted, not built, or built from an earlier source."""
    if not wanted():
        return None
    try:
        module = __import__(f"moonbox.{name}", fromlist=["REVISION"])
    except ImportError:
        return None
    return module if getattr(module, "REVISION", 0) == _REVISIONS[name] else None
