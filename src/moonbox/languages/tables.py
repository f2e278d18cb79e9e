"""The data files of the languages, which the npm package has too."""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def table(path: str) -> dict[str, Any]:
    """What is in a TOML file of this folder."""
    import tomllib  # here: slow to load, as `pathlib` is, and a script without a slip needs neither

    return tomllib.loads(text(path))


def text(path: str) -> str:
    """What is in a file of this folder."""
    from pathlib import Path

    return (Path(__file__).parent / path).read_text(encoding="utf-8")
