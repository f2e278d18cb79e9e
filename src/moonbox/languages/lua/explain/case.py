"""One runtime error with everything that may explain it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moonbox.languages.names import is_identifier
from moonbox.suggest import nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from moonbox.languages.lua.explain.lexer import Token
    from moonbox.languages.lua.explain.listing import Listing
    from moonbox.languages.lua.explain.site import Complaint, Site

__all__ = ["Case", "Tools"]


@dataclass(frozen=True, slots=True)
class Case:
    """Where a runtime error happened and what is known there."""

    listing: Listing
    """The script in whose line it happened."""
    line: int | None
    message: str
    tools: Tools
    names: Collection[str] = ()
    """Globals, as far as the engine told them."""
    earlier: Sequence[Listing] = ()
    """Scripts of earlier runs."""
    functions: tuple[str, ...] = ()
    """The functions that were under way, innermost first."""
    complaint: Complaint | None = None
    site: Site | None = None

    def declarations(self, name: str) -> Iterator[Token]:
        yield from declared(self.listing, name)

    def is_local(self, name: str) -> bool:
        return next(self.declarations(name), None) is not None or self.parameter(name) is not None

    def parameter(self, name: str) -> Token | None:
        """Where a function of the script has a parameter of that name."""
        reading, tokens = self.listing.reading, self.listing.tokens
        return (
            next((tokens[index] for index in reading.parameters if tokens[index].text == name), None)
            if reading
            else None
        )

    def line_words(self) -> Sequence[Token]:
        return self.listing.words(self.line) if self.line is not None else ()


def declared(listing: Listing, name: str) -> Iterator[Token]:
    """Where a script declares a local of that name."""
    reading = listing.reading
    for index in reading.locals if reading else ():
        if listing.tokens[index].text == name:
            yield listing.tokens[index]


class Tools:
    """The tools' paths, such as `add` and `github.create_issue`."""

    def __init__(self, paths: Collection[str]) -> None:
        self._paths = frozenset(path.replace("\x1f", ".") for path in paths)

    def __len__(self) -> int:
        return len(self._paths)

    def called(self, name: str) -> list[str]:
        """Paths whose whole or last part is that name."""
        return sorted(path for path in self._paths if path == name or path.rpartition(".")[2] == name)

    def within(self, space: str) -> list[str]:
        return sorted(path for path in self._paths if path.startswith(f"{space}."))

    def nearest(self, path: str) -> list[str]:
        """Paths that were probably meant: one spelled alike, one of that name elsewhere, one with the same words."""
        same = [found for found in self.called(path.rpartition(".")[2]) if found != path]
        if same:
            return same[:3]
        return (
            nearest(path, self._paths, count=3)
            or self._by_last_part(path)
            or nearest(path, self._paths, parts=True, count=3)
        )

    def _by_last_part(self, path: str) -> list[str]:
        last = path.rpartition(".")[2]
        ends = {found.rpartition(".")[2]: found for found in sorted(self._paths, reverse=True)}
        return [ends[end] for end in nearest(last, ends, count=3)]

    def some(self, most: int = 12) -> list[str]:
        """All paths if there are few, else none."""
        return sorted(self._paths) if len(self._paths) <= most else []

    @staticmethod
    def written(path: str) -> str:
        """How a script names that tool."""
        return f"tools.{path}" if all(map(is_identifier, path.split("."))) else f'tools["{path}"]'
