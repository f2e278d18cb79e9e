"""The native parts: extensions in C that are optional; whether they are wanted, and one of them by its name."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # a zygote imports this: no `typing`, no `importlib`
if TYPE_CHECKING:
    from typing import Any

SWITCH = "MOONBOX_NATIVE"
"""The environment variable that turns them off where it is 0."""
_REVISIONS = {"worker._wire": 6, "worker._native": 13}  # as in their sources


def wanted() -> bool:
    """Whether the native parts are to be used where they were built."""
    return os.environ.get(SWITCH) != "0"


def extension(name: str) -> Any:
    """That extension of the package; None where it is not wanted, not built, or built from an earlier source."""
    return _loaded(name)[0]


def why_missing() -> str:
    """Why the worker's loop is not the native one."""
    return _loaded("worker._native")[1] or "the native parts do not fit this version of lupa"


def _loaded(name: str) -> tuple[Any, str]:
    """An extension, or None and the reason."""
    if not wanted():
        return None, f"{SWITCH}=0 turns the native parts off"
    try:
        module = __import__(f"moonbox.{name}", fromlist=["REVISION"])
    except ModuleNotFoundError:
        return None, f"the native parts were not built: {_note()}"
    except ImportError as problem:
        return None, f"the native parts cannot be loaded: {problem}"
    if getattr(module, "REVISION", 0) != _REVISIONS[name]:
        return None, "the native parts were built from an earlier source; install moonbox again"
    return module, ""


def _note() -> str:
    """What the build left where it could not make them."""
    try:
        with open(os.path.join(os.path.dirname(__file__), "worker", "_native_missing.txt"), encoding="utf-8") as file:  # noqa: PTH118, PTH120, PTH123 - no pathlib in a zygote
            return file.read(500)
    except OSError:
        return "the reason is not known; install moonbox again with a C compiler and Python's headers"
