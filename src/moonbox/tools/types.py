"""Types of schemas as short text; a type that several places share is written once, under a name.

    Order = {id: string, items: Item[], note?: string|null}

A schema is read into templates: text with gaps, where each gap is an object type. Object types that look the same are
one type. A type gets a name if that makes the text shorter, or if it contains itself. The name comes from the schema's
title, its place in `$defs`, or the field that holds it. It is always a plain identifier with a capital.

The text depends on the schemas and their order alone, byte for byte.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from moonbox.languages.language import is_identifier
from moonbox.tools.facts import allowed_values, remark

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from moonbox.tools.document import Document, Schema

_PLAIN = frozenset({"string", "integer", "number", "boolean", "null"})
_MOST_CHOICES = 20
_LONGEST_CHOICES = 200
_MOST_FIELDS = 60
_MOST_SUBSCHEMAS = 1000  # of one schema; a server's schema may be built to grow without end
_MOST_BRANCHES = 16
_LONGEST_NAME = 40
_MOST_WORDS = 5
_LONGEST_CHAIN = 32
_WORDS = frozenset({"$ref", "$defs", "definitions", "title", "description", "default", "examples", "$schema"})
_RESERVED = frozenset({"Fn"})


class Fact(str):
    """A remark within a template: it says nothing about the type."""


Template = tuple[str | int, ...]
"""Text, and the numbers of object types between it."""


class _Shape(Struct):
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

    def __init__(self, *, taken: Iterable[str] = (), most_fields: int = _MOST_FIELDS) -> None:
        self.most_fields = most_fields
        self.shapes: list[_Shape] = []
        self._taken = {*_RESERVED, *taken}
        self._kinds: dict[Hashable, int] = {}
        self._first: dict[int, _Shape] = {}
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

    def plain(self, template: Template) -> str:
        """A template that a Reader with a depth has read, without names."""
        return "".join(piece if isinstance(piece, str) else self.plain(self.shapes[piece].body) for piece in template)

    def definitions(self) -> list[str]:
        """`Name = {…}` for each type that was used by name since the last time, and for those within."""
        lines = []
        while new := [kind for kind in self._used if kind not in self._defined]:
            for kind in new:
                self._defined.add(kind)
                lines.append(f"{self._chosen()[kind]} = {self.text(self._first[kind].body)}")
        return lines

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
        pending = [at for at, shape in enumerate(self.shapes) if shape.kind < 0]
        keys = {at: self._key(at) for at in pending}
        for at in pending:
            self._settle(at, keys[at])

    def _settle(self, at: int, key: Hashable) -> None:
        shape = self.shapes[at]
        shape.kind = self._kinds.setdefault(key, len(self._kinds))
        first = self._first.setdefault(shape.kind, shape)
        if not first.titled and (shape.titled or not first.hint):
            first.hint, first.titled = shape.hint, shape.titled

    def close(self, at: int) -> None:
        """The shape is complete: it is classified now, unless it contains what is not complete."""
        gaps = [piece for piece in self.shapes[at].body if isinstance(piece, int)]
        if all(self.shapes[gap].kind >= 0 for gap in gaps):
            self._settle(at, self._key(at))

    def _key(self, start: int) -> Hashable:
        numbers = {start: 0}
        queue = [start]
        key: list[Hashable] = []
        for at in queue:
            shape = self.shapes[at]
            key.append(None)
            for piece in shape.body:
                if isinstance(piece, str):
                    key += () if isinstance(piece, Fact) else (piece,)
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
            name = _free(type_name(shape.hint) or "Type", used)
            times = uses[kind]
            size = sum(len(piece) if isinstance(piece, str) else 8 for piece in shape.body)
            saves = (times - 1) * size > (times + 1) * len(name) + 6
            if kind in looped or (saves and not shape.is_map):
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


class Reader:
    """Reads the schemas of one document into templates of a book; only so deep where a depth is given."""

    def __init__(self, book: TypeBook, document: Document, *, facts: bool = False, depth: int | None = None) -> None:
        self._book = book
        self._document = document
        self._facts = facts
        self._depth = depth
        self._shapes: dict[int, int] = {}
        self._read: dict[int, Template] = {}
        self._open: set[int] = set()
        self._left = _MOST_SUBSCHEMAS

    def read(self, schema: Schema, hint: str = "", *, titled: bool = False) -> Template:
        """One schema; `hint` is a name for it."""
        if isinstance(schema, dict) and isinstance(ref := schema.get("$ref"), str) and type_name(ref.split("/")[-1]):
            hint, titled = ref.split("/")[-1], True
        schema = self._target(schema)
        if schema is False:
            return ("never",)
        if not isinstance(schema, dict):
            return ("any",)
        if id(schema) in self._read:
            return self._read[id(schema)]
        if id(schema) in self._open or self._left <= 0:
            return self._again(schema)
        if isinstance(title := schema.get("title"), str) and type_name(title):
            hint, titled = title, True
        self._left -= 1
        self._open.add(id(schema))
        chosen = self._choices(schema)
        template = (chosen,) if chosen else self._union(schema, hint, titled) or self._typed(schema, hint, titled)
        self._open.discard(id(schema))
        if self._depth is None:
            self._read[id(schema)] = template
        return template

    def field(self, name: str, schema: Schema, *, required: bool) -> Template:
        """`name?: type`, with the values that its description allows, and what else that says."""
        template = self.read(schema, name)
        part = self._document.deref(schema)
        description = part.get("description") if isinstance(part, dict) else None
        words = description if isinstance(description, str) else ""
        if any(piece in _OF_TEXT for piece in template[:1]) and (values := allowed_values(words)):
            template = (_with_values(str(template[0]), values), *template[1:])
        said = remark(name, words, part.get("format") if isinstance(part, dict) else None) if self._facts else ""
        fact = (Fact(f" ({said})"),) if said and self._book.is_new(name, said) else ()
        return (f"{key_text(name)}{'' if required else '?'}: ", *template, *fact)

    def _target(self, schema: Schema) -> Schema:
        """What a reference leads to: the same object wherever nothing but words stands beside the reference."""
        for _ in range(_LONGEST_CHAIN):
            if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str) or schema.keys() - _WORDS:
                break
            schema = self._document.pointer(schema["$ref"])
        return self._document.deref(schema)

    def _again(self, schema: dict[str, Any]) -> Template:
        """A schema within itself, or one for which there is no more room."""
        if id(schema) not in self._shapes:
            return (self._kinds_text(schema),)
        others = sorted((self._document.kinds(schema) or frozenset()) - {"object"})
        return _either([(self._shapes[id(schema)],), *((kind,) for kind in others)])

    def _kinds_text(self, schema: dict[str, Any]) -> str:
        return "|".join(sorted(self._document.kinds(schema) or ())) or "any"

    def _choices(self, schema: dict[str, Any]) -> str:
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if not isinstance(values, list) or not values:
            return ""
        text = "|".join(minified(value) for value in values)
        if len(values) <= _MOST_CHOICES and len(text) <= _LONGEST_CHOICES:
            return text
        return self._kinds_text(schema)

    def _union(self, schema: dict[str, Any], hint: str, titled: bool) -> Template:
        for keyword in ("anyOf", "oneOf"):
            branches = schema.get(keyword)
            if isinstance(branches, list) and branches and not schema.get("properties"):
                return _either([self.read(branch, hint) for branch in branches[:_MOST_BRANCHES]])
        parts = schema.get("allOf")
        if not isinstance(parts, list) or "type" in schema or "properties" in schema:
            return ()
        if len(parts) == 1:
            return self.read(parts[0], hint, titled=titled)
        if self._document.properties(schema):
            return ()
        return next((text for part in parts if (text := self.read(part, hint)) != ("any",)), ("any",))

    def _typed(self, schema: dict[str, Any], hint: str, titled: bool) -> Template:
        declared = schema.get("type")
        if isinstance(declared, str):
            kinds = [declared]
        elif isinstance(declared, list):
            kinds = [str(kind) for kind in declared]
        else:
            kinds = sorted(self._document.kinds(schema) or ())
        return _either([self._one(kind, schema, hint, titled) for kind in kinds]) or ("any",)

    def _one(self, kind: str, schema: dict[str, Any], hint: str, titled: bool) -> Template:
        if kind == "array":
            return self._array(schema, hint)
        if kind == "object":
            return self._object(schema, hint, titled)
        if kind == "string" and schema.get("contentMediaType") == "application/json":
            inner = schema.get("contentSchema")
            return ("string (JSON: ", *self.read(inner, hint), ")") if isinstance(inner, dict) else ("string (JSON)",)
        return (kind if kind in _PLAIN else "any",)  # a server's result schema may say anything

    def _array(self, schema: dict[str, Any], hint: str) -> Template:
        if isinstance(first := schema.get("prefixItems"), list):
            parts = [self.read(part, hint) for part in first[:_MOST_BRANCHES]]
            return ("[", *joined(", ", parts), "]")
        items = schema.get("items")
        if not isinstance(items, dict):
            return ("array",)
        inner = self.read(items, singular(hint))
        return ("(", *inner, ")[]") if _has_bar(inner) else (*inner, "[]")

    def _object(self, schema: dict[str, Any], hint: str, titled: bool) -> Template:
        named, must = self._document.properties(schema), set(self._document.required(schema))
        rest = schema.get("additionalProperties") or _first_value(schema.get("patternProperties"))
        others = isinstance(rest, dict) and bool(rest)
        if (not named and not others) or self._depth == 0:
            return ("object",)
        at = len(self._book.shapes)
        shape = _Shape(hint=hint, titled=titled, is_map=not named)
        self._book.shapes.append(shape)
        if self._depth is None:
            self._shapes[id(schema)] = at
            self._fill(shape, at, named, must, rest if others else None)
        else:
            self._depth -= 1
            self._fill(shape, at, named, must, rest if others else None)
            self._depth += 1
        return (at,)

    def _fill(self, shape: _Shape, at: int, named: dict[str, Schema], must: set[str], rest: Schema) -> None:
        most = self._book.most_fields
        fields = [self.field(name, part, required=name in must) for name, part in list(named.items())[:most]]
        if rest is not None:
            fields.append(("[string]: ", *self.read(rest, singular(shape.hint))))
        more: list[Template] = [("…",)] if len(named) > most else []
        shape.body = ("{", *joined(", ", fields + more), "}")
        self._book.close(at)


def type_name(text: str) -> str:
    """A title, a key or a field's name as the name of a type; empty where nothing can be made of it."""
    words = re.findall(r"[A-Za-z0-9]+", text)
    if not words or len(words) > _MOST_WORDS:
        return ""
    name = "".join(word[0].upper() + word[1:] for word in words)[:_LONGEST_NAME]
    return f"T{name}" if name[0].isdigit() else name


def singular(name: str) -> str:
    """The name of one element of a list of that name."""
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("xes", "x")):
        if name.endswith(ending) and len(name) > len(ending) + 1:
            return name[: -len(ending)] + instead
    return name[:-1] if re.search(r"[^su]s$", name) else name


def key_text(name: str) -> str:
    """A field's name as scripts write it."""
    return name if is_identifier(name) else f"[{minified(name)}]"


def minified(value: Any) -> str:
    """JSON without spaces."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _free(name: str, used: set[str]) -> str:
    number, free = 1, name
    while free in used:
        number += 1
        free = f"{name}{number}"
    return free


def _with_values(kind: str, values: list[str]) -> str:
    listed = "|".join(minified(value) for value in values)
    return kind.replace("string[]", f"({listed})[]") if "[]" in kind else kind.replace("string", listed)


def _first_value(table: Any) -> Any:
    return next(iter(table.values()), None) if isinstance(table, dict) else None


def joined(between: str, parts: list[Template]) -> Template:
    """The templates with that text between them."""
    return tuple(piece for at, part in enumerate(parts) for piece in ((between, *part) if at else part))


def _either(templates: list[Template]) -> Template:
    unique = list(dict.fromkeys(templates))
    return ("any",) if ("any",) in unique else joined("|", unique)


def _has_bar(template: Template) -> bool:
    """Whether a `|` stands outside all brackets and strings."""
    depth = 0
    for char in re.sub(_STRING, "", "".join(piece for piece in template if isinstance(piece, str))):
        depth += (char in "{[(") - (char in "}])")
        if char == "|" and depth == 0:
            return True
    return False


_STRING = r'"(?:[^"\\]|\\.)*"'
_OF_TEXT = frozenset({"string", "string|null", "string[]"})
