"""The pages of the documentation and their code blocks.

A block's language says how it is run; a title makes it a file that later blocks of the page find:

    python      executed; `expression  # → repr` is compared
    console     commands after `$ `, each followed by what it prints (`…` for anything)
    lua, rhai   run as a script with the sample tools; `-- → text` (`// → text`) in the last line is compared
    toml        read as a moonbox.toml: every key must be known
    json        must be JSON
    js          run in Node; `expression; // → value` is compared
    text        shown, not run

A block that cannot be run has `<!-- not run: reason -->` on the line above it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
RUN = ("python", "console", "lua", "rhai", "py", "toml", "json", "js")
SHOWN = ("text", "")

_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>[\w-]*)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_MARK = re.compile(r"<!-- not run: (?P<reason>.+) -->\n\Z")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int
    language: str
    title: str | None
    text: str
    not_run: str | None

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def all_pages() -> list[Path]:
    """The README, that of the npm package, the contribution guide's first page, and everything in docs/."""
    return [ROOT / "README.md", ROOT / "js" / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    source = page.read_text("utf-8")
    found = []
    for match in _BLOCK.finditer(source):
        before = source[: match.start()]
        mark = _MARK.search(before)
        indent = match["indent"]
        text = "\n".join(line.removeprefix(indent) for line in match["text"].split("\n"))
        found.append(
            Block(
                page, before.count("\n") + 1, match["language"], match["title"], text, mark["reason"] if mark else None
            )
        )
    return found
