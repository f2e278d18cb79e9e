"""A real tokenizer that ships its vocabulary: o200k_base, the one of OpenAI's current models."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "o200k_base"
CACHE = Path(__file__).resolve().parent.parent / ".cache" / "economy"


def token_counter() -> Callable[[str], int]:
    """Counts the tokens of a text; each text once."""
    library("tokenizer", ["bpe-openai>=0.1.4,<0.2"])
    import bpe_openai  # type: ignore[import-not-found]  # installed just now, beside the project

    encoding: Any = bpe_openai.get_encoding(NAME)

    @functools.cache
    def count(text: str) -> int:
        return len(encoding.encode_ordinary(text))

    return count


def library(name: str, packages: list[str], *, dependencies: bool = True) -> Path:
    """A folder with the packages, made when it is first asked for, and importable from now on."""
    folder = CACHE / name
    if not (folder / "ready").exists():
        print(f"installing {', '.join(packages)} …", file=sys.stderr)
        options = [] if dependencies else ["--no-deps"]
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--target", str(folder)]
        subprocess.run([*command, *options, *packages], check=True)
        (folder / "ready").touch()
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    return folder
