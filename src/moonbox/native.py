"""The native parts: extensions in C that are optional; whether they are wanted, and one of them by its name."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

__all__ = ["SWITCH", "extension", "wanted"]

SWITCH = "MOONBOX_NATIVE"
"""The environment variable that turns them off where it is 0."""


def wanted() -> bool:
    """Whether the native parts are to be used where they were built."""
    return os.environ.get(SWITCH) != "0"


def extension(name: str) -> Any:
    """That extension of the package; None where it was not built or is not wanted."""
    if not wanted():
        return None
    try:
        return import_module(f"moonbox.{name}")
    except ImportError:
        return None
