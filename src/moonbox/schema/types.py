"""Types of schemas as short text; a type that several places share is written once, under a name.

    Order = {id: string, items: Item[], note?: string|null}

A schema is read into templates (see `type_reader`): text with gaps, where each gap is an object type. Object types that
look the same are one type. A type gets a name if that makes the text shorter, or if it contains itself. The name comes
from the schema's title, its place in `$defs`, or the field that holds it. It is a plain identifier with a capital.

The text depends on the schemas and their order alone, byte for byte.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Hashable, Iterable

from msgspec import Struct, structs

from moonbox.languages.language import SHORT, Notation

_MOST_FIELDS = 60
_SMALL = 30  # characters of a type without a title that says more than a name would
_MOST_COPIES = 32  # of a type without a name: types within types would grow without end
_LONGEST_NAME = 40
_MOST_WORDS = 5
_RESERVED = frozenset({"Fn"})
NO_NAME = "Type"
"""The name of a type that its places call differently."""


class Remark(str):
    """A remark within a template: it says nothing about the type."""


Template = tuple[str | int, ...]
"""Text, and the numbers of object types between it."""


class Shape(Struct):
    """One object type as it stands at one place of a schema."""

    body: Template = ()
    hint: str = ""
    titled: bool = False
    """Whether the hint is a name that the schema gives, rather than the field's."""
    is_map: bool = False
    kind: int = -1
    """Equal for shapes that are the same type; -1 until it is known."""


class TypeBook:
    """Types of any number of schemas, each written with the names of all."""

    def __init__(
        self, *, taken: Iterable[str] = (), most_fields: int = _MOST_FIELDS, notation: Notation = SHORT
    ) -> None:
        self.notation = notation
        self.most_fields = most_fields
        self.shapes: list[Shape] = []
        self._taken = {*_RESERVED, *taken}
        self._classified = 0
        self._kinds: dict[Hashable, int] = {}
        self._first: dict[int, Shape] = {}
        self._roots: list[Template] = []
        self._names: dict[int, str] | None = None
        self._used: dict[int, None] = {}
        self._defined: set[int] = set()
        self._said: set[tuple[str, str]] = set()

    def enter(self, template: Template) -> Template:
        """Take in what a Reader of this book has read, and what will be written once."""
        self._classify()
        self._roots.append(template)
        self._names = None
        return template

    def text(self, template: Template) -> str:
        """A template with its types, by their names where they have names."""
        return "".join(piece if isinstance(piece, str) else self._gap(piece) for piece in template)

    def definitions(self) -> list[str]:
        """`Name = {…}` for each type that was used by name since the last time, and for those within."""
        lines = []
        while new := [kind for kind in self._used if kind not in self._defined]:
            for kind in new:
                self._defined.add(kind)
                lines.append(f"{self._chosen()[kind]} = {self.text(self._first[kind].body)}")
        return lines

    def without_facts(self) -> TypeBook:
        """The same types without remarks, none of them written yet."""
        other = copy.copy(self)
        other._first = {kind: structs.replace(shape, body=bare(shape.body)) for kind, shape in self._first.items()}
        other._names, other._used, other._defined = None, {}, set()
        return other

    def is_new(self, name: str, said: str) -> bool:
        """Whether this is not said yet of a field of that name."""
        known = len(self._said)
        self._said.add((name, said))
        return len(self._said) > known

    def _gap(self, number: int) -> str:
        kind = self.shapes[number].kind
        if kind not in self._chosen():
            return self.text(self._first[kind].body)
        self._used.setdefault(kind)
        return self._chosen()[kind]

    def _classify(self) -> None:
        """Tell which shapes are the same type. A type that contains itself is compared with all that it reaches."""
        pending = [at for at in range(self._classified, len(self.shapes)) if self.shapes[at].kind < 0]
        keys = [self._key(at) for at in pending]
        for at, key in zip(pending, keys, strict=True):
            self._settle(at, key)
        self._classified = len(self.shapes)

    def _settle(self, at: int, key: Hashable) -> None:
        shape = self.shapes[at]
        shape.kind = self._kinds.setdefault(key, len(self._kinds))
        self._first.setdefault(shape.kind, shape)
        self.suggest(at, shape.hint, titled=shape.titled)

    def close(self, at: int) -> None:
        """The shape is complete: it is classified now, unless it contains what is not complete."""
        gaps = [piece for piece in self.shapes[at].body if isinstance(piece, int)]
        if all(self.shapes[gap].kind >= 0 for gap in gaps):
            self._settle(at, self._key(at))

    def suggest(self, at: int, hint: str, *, titled: bool) -> None:
        """Take in another name for a type: a title, or else what the names of its fields have in common."""
        first = self._first.get(self.shapes[at].kind, self.shapes[at])
        if hint and not first.titled:
            unnamed = titled or not first.hint
            first.hint = hint if unnamed else _common_end(first.hint, hint) or NO_NAME
            first.titled = titled

    def _key(self, start: int) -> Hashable:
        numbers = {start: 0}
        queue = [start]
        key: list[Hashable] = []
        for at in queue:
            key.append(None)
            for piece in self.shapes[at].body:
                if isinstance(piece, str):
                    key += () if isinstance(piece, Remark) else (piece,)
                elif self.shapes[piece].kind >= 0:
                    key.append((self.shapes[piece].kind,))
                else:
                    if piece not in numbers:
                        numbers[piece] = len(numbers)
                        queue.append(piece)
                    key.append(numbers[piece])
        return tuple(key)

    def _chosen(self) -> dict[int, str]:
        """The types that have names."""
        if self._names is None:
            self._names = self._choose()
        return self._names

    def _choose(self) -> dict[int, str]:
        order, looped = self._order()
        uses = Counter(self._gaps(self._roots))
        names: dict[int, str] = {}
        used = set(self._taken)
        for kind in order:  # what holds a type is before it
            shape = self._first[kind]
            name = _free(type_name(shape.hint) or NO_NAME, used)
            times = uses[kind]
            size = sum(len(piece) if isinstance(piece, str) else 8 for piece in shape.body)
            saves = (times - 1) * size > (times + 1) * len(name) + 6 and not shape.is_map
            saves = saves and (shape.titled or size > _SMALL)
            if saves or kind in looped or times > _MOST_COPIES:
                names[kind] = name
                used.add(name)
                times = 1
            for inner in self._gaps([shape.body]):
                uses[inner] += times
        return names

    def _order(self) -> tuple[list[int], set[int]]:
        """The types from the outside in, in the order of their first use, and those that contain themselves."""
        done: dict[int, None] = {}
        open_: set[int] = set()
        looped: set[int] = set()
        for root in reversed(self._gaps(self._roots)):
            stack = [(root, False)]
            while stack:
                kind, leaving = stack.pop()
                if leaving:
                    open_.discard(kind)
                    done[kind] = None
                elif kind in open_:
                    looped.add(kind)
                elif kind not in done:
                    open_.add(kind)
                    stack.append((kind, True))
                    stack += [(inner, False) for inner in self._gaps([self._first[kind].body])]
        return list(reversed(done)), looped

    def _gaps(self, templates: Iterable[Template]) -> list[int]:
        return [self.shapes[piece].kind for template in templates for piece in template if isinstance(piece, int)]


def type_name(text: str) -> str:
    """A title, a key or a field's name as the name of a type; empty where nothing can be made of it."""
    words = re.findall(r"[A-Za-z0-9]+", text)
    if not words or len(words) > _MOST_WORDS:
        return ""
    name = "".join(word[0].upper() + word[1:] for word in words)[:_LONGEST_NAME]
    return f"T{name}" if name[0].isdigit() else name


def bare(template: Template) -> Template:
    """A template without remarks."""
    return tuple(piece for piece in template if not isinstance(piece, Remark))


def joined(between: str, parts: list[Template]) -> Template:
    """The templates with that text between them."""
    return tuple(piece for at, part in enumerate(parts) for piece in ((between, *part) if at else part))


def _common_end(left: str, right: str) -> str:
    """The last words that two names share: the address of `address` and `billing_address`."""
    if left == right:
        return left
    words, others = (re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name) for name in (left, right))
    shared = 0
    while shared < min(len(words), len(others)) and words[-1 - shared].lower() == others[-1 - shared].lower():
        shared += 1
    return "_".join(words[len(words) - shared :])


def _free(name: str, used: set[str]) -> str:
    number, free = 1, name
    while free in used:
        number += 1
        free = f"{name}{number}"
    return free
