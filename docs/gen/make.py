"""Writes the generated pages: `python docs/gen/make.py`. A test compares what is committed with what this makes."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(DOCS))  # so that the folder is found as the package `gen`

from gen import api, commands, configuration, functions  # noqa: E402 - the path must be set before

PAGES = {
    "reference/python.md": api.page,
    "reference/commands.md": commands.page,
    "reference/configuration.md": configuration.page,
    "reference/host-functions.md": functions.page,
}


def main() -> None:
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
