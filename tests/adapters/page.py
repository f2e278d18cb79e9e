"""Runs the code of one page of the documentation, with a model on loopback in place of the provider's.

    python tests/adapters/page.py docs/frameworks/langchain.md

Blocks that are a file are written to a folder of their own. What the blocks print is printed.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

from loopback import answer, environment  # noqa: E402 - found through the path above
from wire import serve  # noqa: E402

from tests.docs.pages import blocks  # noqa: E402
from tests.docs.running import Page  # noqa: E402


def main(page: Path) -> None:
    with serve(answer) as wire, tempfile.TemporaryDirectory() as folder:
        os.environ.update(environment(wire.url))
        sys.path.insert(0, folder)
        running = Page(Path(folder), Path(folder))
        for block in blocks(page):
            if block.language == "python":
                running.run(block)
        assert wire.refused == [], wire.refused


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(ROOT / sys.argv[1])
