"""The data files of the languages, which the npm package has too."""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def table(path: str) -> dict[str, Any]:
    """What is in a TOML file of this folder."""
    import tomllib  # here: slow to load, as `pathlib` is, and a script without a slip needs neither
    from pathlib import Path

    return tomllib.loads((Path(__file__).parent / path).read_text(encoding="utf-8"))
