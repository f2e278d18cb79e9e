"""Packages that are imported when they are first used.

Every process of a test run collects all tests, and few run those that need a package which takes seconds to import:

    if TYPE_CHECKING:
        import pandas
    else:
        pandas = lazy("pandas")
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["lazy"]


class _Lazy:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith(("_", "pytest")):  # pytest looks for its own marks in whatever a module has
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)


def lazy(name: str) -> Any:
    """A module whose attributes import it."""
    return _Lazy(name)
