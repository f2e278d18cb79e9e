"""Names that come into scope and go out of it again."""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["Names"]

T = TypeVar("T")


class Names(Generic[T]):
    """A stack of names with a value each; the latest of a name is found at once, however many there are."""

    def __init__(self) -> None:
        self._entries: list[tuple[str, T]] = []
        self._places: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def push(self, name: str, value: T) -> None:
        self._places.setdefault(name, []).append(len(self._entries))
        self._entries.append((name, value))

    def find(self, name: str) -> int:
        """Where the latest of that name is; -1 if there is none."""
        places = self._places.get(name)
        return places[-1] if places else -1

    def value(self, at: int) -> T:
        return self._entries[at][1]

    def replace(self, at: int, value: T) -> None:
        self._entries[at] = (self._entries[at][0], value)

    def cut(self, size: int) -> None:
        """Forget all but the first `size`."""
        while len(self._entries) > size:
            self._places[self._entries.pop()[0]].pop()
