"""Schemas read into templates of types: all levels deep, with what descriptions say of fields."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any

from moonbox.languages.language import SHORT, Notation
from moonbox.schema.facts import allowed_values, remark
from moonbox.schema.types import Remark, Shape, Template, TypeBook, joined, type_name

if TYPE_CHECKING:
    from moonbox.schema.tree import SchemaNode

_PLAIN = frozenset({"string", "integer", "number", "boolean", "null"})
_MOST_CHOICES = 20
_LONGEST_CHOICES = 200
_MOST_SUBSCHEMAS = 1000  # of one schema; a server's schema may be built to grow without end
_DEEPEST = 30
_MOST_BRANCHES = 16
_LONGEST_DEFAULT = 30  # characters
_MOST_FIELDS_IN_MESSAGES = 16


def type_text(node: SchemaNode, *, nested: int = 1, notation: Notation = SHORT) -> str:
    """A schema as a short type, so many levels deep: `integer|null`, `"a"|"b"`, `{id: integer, tags?: string[]}`."""
    book = TypeBook(most_fields=_MOST_FIELDS_IN_MESSAGES, notation=notation)
    return book.text(Reader(book, depth=nested).read(node))


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
        """The type of a schema that contains itself, or that comes after too many others, in a few words."""
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
