"""Schemas read into templates of types: all levels deep, with what descriptions say of fields."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from moonbox.languages.language import SHORT
from moonbox.schema.document import listed
from moonbox.schema.facts import allowed_values, remark
from moonbox.schema.types import Remark, Shape, Template, TypeBook, joined, type_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.languages.language import Notation
    from moonbox.schema.document import Schema, SchemaDocument

_PLAIN = frozenset({"string", "integer", "number", "boolean", "null"})
_MOST_CHOICES = 20
_LONGEST_CHOICES = 200
_MOST_SUBSCHEMAS = 1000  # of one schema; a server's schema may be built to grow without end
_DEEPEST = 30
_MOST_BRANCHES = 16
_LONGEST_CHAIN = 32
_LONGEST_DEFAULT = 30  # characters
_MOST_FIELDS_IN_MESSAGES = 16
_WORDS = frozenset({"$ref", "$defs", "definitions", "title", "description", "default", "examples", "$schema"})


def type_text(schema: Schema, document: SchemaDocument, *, nested: int = 1, notation: Notation = SHORT) -> str:
    """A schema as a short type, so many levels deep: `integer|null`, `"a"|"b"`, `{id: integer, tags?: string[]}`."""
    book = TypeBook(most_fields=_MOST_FIELDS_IN_MESSAGES, notation=notation)
    return book.plain(Reader(book, document, depth=nested).read(schema))


class Reader:
    """Reads the schemas of one document into templates of a book; only so deep where a depth is given."""

    def __init__(
        self, book: TypeBook, document: SchemaDocument, *, facts: bool = False, depth: int | None = None
    ) -> None:
        self._book = book
        self._notation = book.notation
        self._word = book.notation.word
        self._document = document
        self._facts = facts
        self._depth = depth
        self._shapes: dict[int, int] = {}
        self._read: dict[int, Template] = {}
        self._open: set[int] = set()
        self._left = _MOST_SUBSCHEMAS
        text, null = (self._word("string"),), (self._word("null"),)
        forms: list[Callable[[Template], Template]] = [tuple, lambda inner: self._either([inner, null]), self._list]
        self._of_text = {form(text): form for form in forms}

    def read(self, schema: Schema, hint: str = "", *, titled: bool = False) -> Template:
        """One schema; `hint` is a name for it."""
        if isinstance(schema, dict) and isinstance(ref := schema.get("$ref"), str) and type_name(ref.split("/")[-1]):
            hint, titled = ref.split("/")[-1], True
        schema = self._target(schema)
        if schema is False:
            return (self._word("never"),)
        if not isinstance(schema, dict):
            return (self._word("any"),)
        if (known := self._read.get(id(schema))) is not None:
            if len(known) == 1 and isinstance(known[0], int):
                self._book.suggest(known[0], hint, titled=titled)
            return known
        if id(schema) in self._open or self._left <= 0 or len(self._open) >= _DEEPEST:
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
        return (f"{self._notation.key(name)}{'' if required else '?'}: ", *self._value(name, schema))

    def parameter(self, name: str, schema: Schema, *, required: bool) -> Template:
        """The same as a parameter, which the notation may write in another way."""
        form = "{name}: {type}" if required else self._notation.optional
        before, after = form.replace("{name}", self._notation.parameter(name)).split("{type}")
        part = self._document.deref(schema)
        default = self._notation.constant(part["default"]) if isinstance(part, dict) and "default" in part else "..."
        after = after.replace("{default}", default if len(default) <= _LONGEST_DEFAULT else "...")
        return (before, *self._value(name, schema), *([after] if after else []))

    def _value(self, name: str, schema: Schema) -> Template:
        template = self.read(schema, name)
        description = self._document.said(schema, "description")
        words = description if isinstance(description, str) else ""
        if (form := self._of_text.get(template)) and (values := allowed_values(words)):
            template = form((self._notation.either.join(map(self._notation.constant, values)),))
        said = remark(name, words, self._document.said(schema, "format")) if self._facts else ""
        fact = (Remark(f" ({said})"),) if said and self._book.is_new(name, said) else ()
        return (*template, *fact)

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
        return self._either([(self._shapes[id(schema)],), *((self._word(kind),) for kind in others)])

    def _kinds_text(self, schema: dict[str, Any]) -> str:
        kinds = [self._word(kind) for kind in sorted(self._document.kinds(schema) or ())]
        return self._notation.either.join(kinds) or self._word("any")

    def _choices(self, schema: dict[str, Any]) -> str:
        values = listed(schema)
        if not values:
            return ""
        text = self._notation.either.join(map(self._notation.constant, values))
        if len(values) <= _MOST_CHOICES and len(text) <= _LONGEST_CHOICES:
            return text
        return self._kinds_text(schema)

    def _union(self, schema: dict[str, Any], hint: str, titled: bool) -> Template:
        for keyword in ("anyOf", "oneOf"):
            branches = schema.get(keyword)
            if isinstance(branches, list) and branches and not schema.get("properties"):
                return self._either([self.read(branch, hint) for branch in branches[:_MOST_BRANCHES]])
        parts = schema.get("allOf")
        if not isinstance(parts, list) or "type" in schema or "properties" in schema:
            return ()
        if len(parts) == 1:
            return self.read(parts[0], hint, titled=titled)
        if self._document.properties(schema):
            return ()
        any_ = (self._word("any"),)
        return next((text for part in parts if (text := self.read(part, hint)) != any_), any_)

    def _typed(self, schema: dict[str, Any], hint: str, titled: bool) -> Template:
        declared = schema.get("type")
        if isinstance(declared, str):
            kinds = [declared]
        elif isinstance(declared, list):
            kinds = [str(kind) for kind in declared]
        else:
            kinds = sorted(self._document.kinds(schema) or ())
        return self._either([self._one(kind, schema, hint, titled) for kind in kinds]) or (self._word("any"),)

    def _one(self, kind: str, schema: dict[str, Any], hint: str, titled: bool) -> Template:
        if kind == "array":
            return self._array(schema, hint)
        if kind == "object":
            return self._object(schema, hint, titled)
        if kind == "string" and schema.get("contentMediaType") == "application/json":
            inner = schema.get("contentSchema")
            text = self._word("string")
            return (f"{text} (JSON: ", *self.read(inner, hint), ")") if isinstance(inner, dict) else (f"{text} (JSON)",)
        return (self._word(kind if kind in _PLAIN else "any"),)  # a server's result schema may say anything

    def _array(self, schema: dict[str, Any], hint: str) -> Template:
        if isinstance(first := schema.get("prefixItems"), list):
            parts = [self.read(part, hint) for part in first[:_MOST_BRANCHES]]
            return ("[", *joined(", ", parts), "]")
        items = schema.get("items")
        if not isinstance(items, dict):
            return (self._word("array"),)
        return self._list(self.read(items, singular(hint)))

    def _list(self, inner: Template) -> Template:
        before, after = self._notation.around(self._notation.array)
        return ("(", *inner, f"){after}") if not before and _has_bar(inner) else _around(before, inner, after)

    def _either(self, templates: list[Template]) -> Template:
        unique = list(dict.fromkeys(templates))
        any_ = (self._word("any"),)
        return any_ if any_ in unique else joined(self._notation.either, unique)

    def _object(self, schema: dict[str, Any], hint: str, titled: bool) -> Template:
        named, must = self._document.properties(schema), set(self._document.required(schema))
        rest = schema.get("additionalProperties") or _first_value(schema.get("patternProperties"))
        others = isinstance(rest, dict) and bool(rest)
        if (not named and not others) or self._depth == 0:
            return (self._word("object"),)
        at = len(self._book.shapes)
        shape = Shape(hint=hint, titled=titled, is_map=not named)
        self._book.shapes.append(shape)
        if self._depth is None:
            self._shapes[id(schema)] = at
            self._fill(shape, at, named, must, rest if others else None)
        else:
            self._depth -= 1
            self._fill(shape, at, named, must, rest if others else None)
            self._depth += 1
        return (at,)

    def _fill(self, shape: Shape, at: int, named: dict[str, Schema], must: set[str], rest: Schema) -> None:
        most = self._book.most_fields
        fields = [self.field(name, part, required=name in must) for name, part in list(named.items())[:most]]
        before, after = self._notation.around(self._notation.mapping)
        inside = () if rest is None else self.read(rest, singular(shape.hint))
        if inside and named:
            fields.append((f"[{self._word('string')}]: ", *inside))
        more: list[Template] = [("…",)] if len(named) > most else []
        shape.body = (
            _around(before, inside, after) if inside and not named else ("{", *joined(", ", fields + more), "}")
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


def _first_value(table: Any) -> Any:
    return next(iter(table.values()), None) if isinstance(table, dict) else None


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
