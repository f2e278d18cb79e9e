"""Types of schemas as short text; a type that several places share is written once, under a name.

    Order = {id: string, items: Item[], note?: string|null}

A schema is read into templates, all levels deep, with what descriptions say of fields: text with gaps, where each gap
is an object type. Object types that look the same are one type. A type gets a name if that makes the text shorter, or
if it contains itself. The name comes from its title, its place in `$defs`, or the field that holds it. It is a plain
identifier with a capital.

The text depends on the schemas and their order alone, byte for byte.
"""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from moonbox.languages.language import SHORT, Notation
from moonbox.schema.facts import allowed_values, remark

if TYPE_CHECKING:
    from moonbox.schema.tree import SchemaNode

_MOST_FIELDS = 60
_SMALL = 30  # characters of a type without a title that says more than a name would
_MOST_COPIES = 32  # of a type without a name: types within types would grow without end
_LONGEST_NAME = 40
_MOST_WORDS = 5
_RESERVED = frozenset({"Fn"})
_PLAIN = frozenset({"string", "integer", "number", "boolean", "null"})
_MOST_CHOICES = 20
_LONGEST_CHOICES = 200
_MOST_SUBSCHEMAS = 1000  # of one schema; a server's schema may be built to grow without end
_DEEPEST = 30
_MOST_BRANCHES = 16
_LONGEST_DEFAULT = 30  # characters
_MOST_FIELDS_IN_MESSAGES = 16
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


def type_text(node: SchemaNode, *, nested: int = 1, notation: Notation = SHORT) -> str:
    """A schema as a short type, so many levels deep: `integer|null`, `"a"|"b"`, `{id: integer, tags?: string[]}`."""
    book = TypeBook(most_fields=_MOST_FIELDS_IN_MESSAGES, notation=notation)
    return book.text(Reader(book, depth=nested).read(node))


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


class Reader:
    """Reads schemas into templates of a book; only so deep where a depth is given."""

    def __init__(self, book: TypeBook, *, facts: bool = False, depth: int | None = None) -> None:
        self._book = book
        self._notation = book.notation
        self._word = book.notation.word
        self._facts = facts
        self._depth = depth
        self._shapes: dict[int, int] = {}
        self._read: dict[int, Template] = {}
        self._open: set[int] = set()
        self._left = _MOST_SUBSCHEMAS
        text, null = (self._word("string"),), (self._word("null"),)
        forms: list[Callable[[Template], Template]] = [tuple, lambda inner: self._either([inner, null]), self._list]
        self._of_text = {form(text): form for form in forms}

    def read(self, node: SchemaNode, hint: str = "", *, titled: bool = False) -> Template:
        """One schema; `hint` is a name for it."""
        if node.reference is not None and type_name(last := node.reference.split("/")[-1]):
            hint, titled = last, True
        node = node.target
        if node.is_false:
            return (self._word("never"),)
        if not node.says:
            return (self._word("any"),)
        if (known := self._read.get(id(node))) is not None:
            if len(known) == 1 and isinstance(known[0], int):
                self._book.suggest(known[0], hint, titled=titled)
            return known
        if id(node) in self._open or self._left <= 0 or len(self._open) >= _DEEPEST:
            return self._again(node)
        if type_name(title := node.word("title")):
            hint, titled = title, True
        self._left -= 1
        self._open.add(id(node))
        chosen = self._choices(node)
        template = (chosen,) if chosen else self._union(node, hint, titled) or self._typed(node, hint, titled)
        self._open.discard(id(node))
        if self._depth is None:
            self._read[id(node)] = template
        return template

    def field(self, name: str, node: SchemaNode, *, required: bool) -> Template:
        """`name?: type`, with the values that its description allows, and what else that says."""
        return (f"{self._notation.key(name)}{'' if required else '?'}: ", *self._value(name, node))

    def parameter(self, name: str, node: SchemaNode, *, required: bool) -> Template:
        """The same as a parameter, which the notation may write in another way."""
        form = "{name}: {type}" if required else self._notation.optional
        before, after = form.replace("{name}", self._notation.parameter(name)).split("{type}")
        default = self._notation.constant(node.says["default"]) if "default" in node.says else "..."
        after = after.replace("{default}", default if len(default) <= _LONGEST_DEFAULT else "...")
        return (before, *self._value(name, node), *([after] if after else []))

    def _value(self, name: str, node: SchemaNode) -> Template:
        template = self.read(node, name)
        words = node.word("description")
        if (form := self._of_text.get(template)) and (values := allowed_values(words)):
            template = form((self._notation.either.join(map(self._notation.constant, values)),))
        said = remark(name, words, node.says) if self._facts else ""
        fact = (Remark(f" ({said})"),) if said and self._book.is_new(name, said) else ()
        return (*template, *fact)

    def _again(self, node: SchemaNode) -> Template:
        """A schema within itself, or one for which there is no more room."""
        if id(node) not in self._shapes:
            return (self._kinds_text(node),)
        others = sorted((node.kinds or frozenset()) - {"object"})
        return self._either([(self._shapes[id(node)],), *((self._word(kind),) for kind in others)])

    def _kinds_text(self, node: SchemaNode) -> str:
        kinds = [self._word(kind) for kind in sorted(node.kinds or ())]
        return self._notation.either.join(kinds) or self._word("any")

    def _choices(self, node: SchemaNode) -> str:
        if not node.listed:
            return ""
        text = self._notation.either.join(map(self._notation.constant, node.listed))
        return text if len(node.listed) <= _MOST_CHOICES and len(text) <= _LONGEST_CHOICES else self._kinds_text(node)

    def _union(self, node: SchemaNode, hint: str, titled: bool) -> Template:
        if not node.named:
            for branches in node.unions.values():
                return self._either([self.read(branch, hint) for branch in branches[:_MOST_BRANCHES]])
        if not node.parts or "type" in node.says or "properties" in node.says:
            return ()
        if len(node.parts) == 1:
            return self.read(node.parts[0], hint, titled=titled)
        if node.fields:
            return ()
        any_ = (self._word("any"),)
        return next((text for part in node.parts if (text := self.read(part, hint)) != any_), any_)

    def _typed(self, node: SchemaNode, hint: str, titled: bool) -> Template:
        declared = node.says.get("type")
        kinds = [declared] if isinstance(declared, str) else declared
        kinds = kinds if isinstance(kinds, list) else sorted(node.kinds or ())
        return self._either([self._one(str(kind), node, hint, titled) for kind in kinds]) or (self._word("any"),)

    def _one(self, kind: str, node: SchemaNode, hint: str, titled: bool) -> Template:
        if kind == "array":
            return self._array(node, hint)
        if kind == "object":
            return self._object(node, hint, titled)
        if kind == "string" and node.says.get("contentMediaType") == "application/json":
            inner = node.tree.node(node.says.get("contentSchema"))
            text = self._word("string")
            return (f"{text} (JSON: ", *self.read(inner, hint), ")") if inner.says else (f"{text} (JSON)",)
        return (self._word(kind if kind in _PLAIN else "any"),)  # a server's result schema may say anything

    def _array(self, node: SchemaNode, hint: str) -> Template:
        if node.heads:
            return ("[", *joined(", ", [self.read(part, hint) for part in node.heads[:_MOST_BRANCHES]]), "]")
        if not isinstance(node.items.schema, dict):
            return (self._word("array"),)
        return self._list(self.read(node.items, singular(hint)))

    def _list(self, inner: Template) -> Template:
        before, after = self._notation.around(self._notation.array)
        return ("(", *inner, f"){after}") if not before and _has_bar(inner) else _around(before, inner, after)

    def _either(self, templates: list[Template]) -> Template:
        unique = list(dict.fromkeys(templates))
        any_ = (self._word("any"),)
        return any_ if any_ in unique else joined(self._notation.either, unique)

    def _object(self, node: SchemaNode, hint: str, titled: bool) -> Template:
        patterns = node.says.get("patternProperties")
        rest = node.tree.node(next(iter(patterns.values()), True)) if isinstance(patterns, dict) else node.rest
        inside = rest if rest.says else None
        if (not node.fields and inside is None) or self._depth == 0:
            return (self._word("object"),)
        at = len(self._book.shapes)
        shape = Shape(hint=hint, titled=titled, is_map=not node.fields)
        self._book.shapes.append(shape)
        if self._depth is None:
            self._shapes[id(node)] = at
            self._fill(shape, at, node, inside)
        else:
            self._depth -= 1
            self._fill(shape, at, node, inside)
            self._depth += 1
        return (at,)

    def _fill(self, shape: Shape, at: int, node: SchemaNode, rest: SchemaNode | None) -> None:
        most, must = self._book.most_fields, set(node.required)
        fields = [self.field(name, part, required=name in must) for name, part in islice(node.fields.items(), most)]
        before, after = self._notation.around(self._notation.mapping)
        inside = () if rest is None else self.read(rest, singular(shape.hint))
        if inside and fields:
            fields.append((f"[{self._word('string')}]: ", *inside))
        more: list[Template] = [("…",)] if len(node.fields) > most else []
        shape.body = (
            ("{", *joined(", ", fields + more), "}") if fields or not inside else _around(before, inside, after)
        )
        self._book.close(at)


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


def singular(name: str) -> str:
    """The name of one element of a list of that name."""
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("xes", "x")):
        if name.endswith(ending) and len(name) > len(ending) + 1:
            return name[: -len(ending)] + instead
    return name[:-1] if re.search(r"[^su]s$", name) else name


def minified(value: Any) -> str:
    """JSON without spaces."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _around(before: str, inner: Template, after: str) -> Template:
    return (*([before] if before else []), *inner, after)


def _has_bar(template: Template) -> bool:
    """Whether a `|` stands outside all brackets and strings."""
    depth = 0
    for char in re.sub(_STRING, "", "".join(piece for piece in template if isinstance(piece, str))):
        depth += (char in "{[(") - (char in "}])")
        if char == "|" and depth == 0:
            return True
    return False


_STRING = r'"(?:[^"\\]|\\.)*"'
