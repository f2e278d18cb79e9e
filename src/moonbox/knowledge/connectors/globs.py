"""Globs that choose files by their path inside a source."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from moonbox.errors import ConfigError

__all__ = ["DOCUMENTS", "Globs"]

DOCUMENTS = (
    "*.md", "*.markdown", "*.mdown", "*.mkd", "*.mdx", "*.txt", "*.text", "*.rst", "*.adoc", "*.asciidoc", "*.org",
    "*.tex", "*.html", "*.htm", "*.xhtml", "*.pdf",
)  # fmt: skip
"""What a folder gives when nothing is said: documents, and no file that might hold a secret."""


@dataclass(frozen=True)
class Globs:
    """Paths that match one of `include` and none of `exclude`.

    `*` and `?` stay within a name, `**` spans folders, `{a,b}` is either. A pattern without a slash is matched against
    the name alone, and one that ends with a slash is a folder with all that is in it. Case counts.
    """

    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise ConfigError for a pattern that is none."""
        _ = self._include, self._exclude

    def chooses(self, path: str) -> bool:
        return bool(self._include.fullmatch(path)) and not self._exclude.fullmatch(path)

    def descends(self, folder: str) -> bool:
        """Whether there is any point in looking into a folder."""
        return not self._exclude.fullmatch(folder) and not self._exclude.fullmatch(folder + "/")

    @cached_property
    def _include(self) -> re.Pattern[str]:
        return _compiled(self.include)

    @cached_property
    def _exclude(self) -> re.Pattern[str]:
        return _compiled(self.exclude)


def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(_translated(pattern) for pattern in patterns) or r"(?!)", re.DOTALL)


_PARTS = re.compile(r"\*\*/|\*\*|\*|\?|\[!?\]?[^\]/]*\]|\{[^{}]*\}|.", re.DOTALL)


def _translated(pattern: str) -> str:
    if not pattern or pattern.startswith("/"):
        raise ConfigError(f"a glob must be a path inside the source, not {pattern!r}")
    folder = pattern.endswith("/")
    core = pattern.rstrip("/")
    anywhere = "" if "/" in core else "(?:.*/)?"
    try:
        found = anywhere + "".join(_part(part[0]) for part in _PARTS.finditer(core)) + ("/.*" if folder else "")
        re.compile(found)
    except re.error as error:
        raise ConfigError(f"the glob {pattern!r} is wrong: {error}") from None
    return found + ("|" + found.removesuffix("/.*") + "/" if folder else "")


def _part(part: str) -> str:
    if part == "**/":
        return "(?:.*/)?"
    if part == "**":
        return ".*"
    if part == "*":
        return "[^/]*"
    if part == "?":
        return "[^/]"
    if part.startswith("[") and len(part) > 1:
        inside = part[1:-1].replace("\\", "\\\\")
        return f"(?!/)[^{inside[1:]}]" if inside.startswith("!") else f"(?!/)[{inside}]"
    if part.startswith("{") and len(part) > 1:
        return "(?:" + "|".join(_alternative(choice) for choice in part[1:-1].split(",")) + ")"
    return re.escape(part)


def _alternative(text: str) -> str:
    return "".join(_part(part[0]) for part in _PARTS.finditer(text))
