"""What is wrong with a call's arguments, in words that let a model correct the call.

The validator says whether arguments fit; this says why not. It walks value and schema together, follows at
each union only the branch that was most likely meant, and so stays linear where listing every branch's
errors would not. It stops after a fixed amount of work: then fewer problems are named, and the
arguments are refused all the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from moonbox import compact
from moonbox.languages.language import REST, UNKNOWN, is_identifier
from moonbox.schema.tree import SchemaNode, accepts, best_branch, kind_of
from moonbox.schema.type_reader import type_text
from moonbox.suggest import nearest, suggestion
from moonbox.wording import counted

MOST_PROBLEMS = 12
_MOST_STEPS = 5_000
_LONGEST_KEY = 100
_MOST_WORK = 1_000_000  # values within values that are looked at to explain, all looks together
Path = tuple[str | int, ...]
Fits = Callable[[dict[str, Any], Any], bool]
"""Whether a value fits a small schema."""


def is_known(value: Any) -> bool:
    """Whether no part of a value is UNKNOWN."""
    if isinstance(value, dict):
        return REST not in value and all(map(is_known, value.values()))
    return all(map(is_known, value)) if isinstance(value, list) else value is not UNKNOWN


def find_problems(node: SchemaNode, value: Any, fits: Fits, *, first_index: int = 0, name: str = "") -> list[str]:
    """At most `MOST_PROBLEMS` problems as lines such as `items[3].price: expected number, got "x" (string)`.

    `name` is what the value itself is called.
    """
    walker = _Walker(lambda rule, part: not is_known(part) or fits(rule, part), first_index)
    walker.walk(node, value, (name,) if name else ())
    lines = [f"{path}: {text}" if path else text for path, text in walker.problems]
    if len(lines) > MOST_PROBLEMS:
        lines[MOST_PROBLEMS:] = ["… and more"]
    return lines


def path_text(path: Path, first_index: int = 0) -> str:
    """`items[3].price`."""
    text = ""
    for part in path:
        if isinstance(part, str) and len(part) > _LONGEST_KEY:
            part = part[:_LONGEST_KEY] + "…"
        if isinstance(part, int):
            text += f"[{part + first_index}]"
        elif is_identifier(part):
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(part, ensure_ascii=False)}]" if text else part
    return text


def short(value: Any, longest: int = 60) -> str:
    """A value as it came, bounded: `"7" (string)`, `[1,2] (array)`, `null`."""
    if isinstance(value, bytes):
        return "a string that is not UTF-8"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, list) and len(value) > 20:
        return f"an array of {len(value):,} items"
    if isinstance(value, dict) and len(value) > 20:
        return f"an object of {len(value):,} keys"
    return f"{compact.short(value, longest)} ({kind_of(value)})"


class _Walker:
    def __init__(self, fits: Fits, first_index: int) -> None:
        self.fits, self.first_index = fits, first_index
        self.problems: list[tuple[str, str]] = []
        self.open: set[tuple[int, Path]] = set()
        self.steps = 0
        self.work = 0
        self.sizes: dict[int, int] = {}

    def walk(self, node: SchemaNode, value: Any, path: Path) -> None:
        if value is UNKNOWN:
            return
        self.steps += 1
        node = node.target
        if self.steps > _MOST_STEPS or len(self.problems) > MOST_PROBLEMS:
            return
        if node.is_false:
            self.note(path, f"no value is allowed here, got {short(value)}")
        if not node.says or (id(node), path) in self.open:
            return
        self.open.add((id(node), path))
        if (reason := self.wrong_type(node, value)) is not None:
            self.note(path, f"expected {type_text(node, nested=0)}, got {reason}")
            return
        for text in self.own_rules(node, value):
            self.note(path, text)
        for part in node.parts:
            self.walk(part, value, path)
        for keyword in node.unions:
            self.union(node, keyword, value, path)
        if isinstance(value, dict):
            self.table(node, value, path)
        elif isinstance(value, list):
            self.array(node, value, path)

    def breaks(self, keyword: str, node: SchemaNode, value: Any) -> bool:
        """Whether the value does not fit one keyword; False where that would cost too much to say."""
        self.work += self.size(value)
        return self.work <= _MOST_WORK and not self.fits({keyword: node.says[keyword]}, value)

    def size(self, value: Any) -> int:
        """How many values are in it, counted once for each."""
        if not isinstance(value, list | dict):
            return 1
        if id(value) not in self.sizes:
            items = value.values() if isinstance(value, dict) else value
            self.sizes[id(value)] = 1 + sum(map(self.size, items))
        return self.sizes[id(value)]

    def note(self, path: Path, text: str) -> None:
        entry = (path_text(path, self.first_index), text)
        if entry not in self.problems:
            self.problems.append(entry)

    def wrong_type(self, node: SchemaNode, value: Any) -> str | None:
        """How a value of another type is called; None for one of a right type."""
        wanted = node.kinds
        if isinstance(value, float) and not math.isfinite(value) and wanted is not None:
            return f"{value}, which is not a JSON number"
        if isinstance(value, bytes) and not _takes_bytes(node):
            return short(value)
        kind = kind_of(value)
        if kind == "number" and isinstance(value, float) and value.is_integer() and accepts(wanted, "integer"):
            kind = "integer"
        if accepts(wanted, kind):
            return None
        if kind == "object" and wanted and "array" in wanted and any(isinstance(key, int) for key in value):
            return f"{short(value)}; the indexes of an array run from 1 without gaps"
        return short(value)

    def own_rules(self, node: SchemaNode, value: Any) -> Iterator[str]:
        options = node.says.get("enum")
        if isinstance(options, list) and self.breaks("enum", node, value):
            yield f"expected {_listed(options)}, got {short(value)}{_meant(value, options)}"
        for keyword, wording in _RULES.items():
            if keyword in node.says and self.breaks(keyword, node, value):
                rule = node.says[keyword]
                rule = json.dumps(rule, ensure_ascii=False) if keyword == "const" else rule
                yield f"expected {_bound(wording, rule)}, got {_amount(keyword, value)}"

    def union(self, node: SchemaNode, keyword: str, value: Any, path: Path) -> None:
        before = len(self.problems)
        branches = node.unions[keyword]
        if not is_known(value):
            fitting = [branch for branch in branches if accepts(branch.kinds, kind_of(value))]
            if len(fitting) == 1:
                self.walk(fitting[0], value, path)
            return
        if not self.breaks(keyword, node, value):
            return
        if (tag := _tag(branches, value)) is not None:
            self.tag(*tag, value, path)
        elif (at := best_branch(branches, value)) is not None:
            self.walk(branches[at], value, path)
        if len(self.problems) == before:
            how = "exactly one" if keyword == "oneOf" else "one"
            self.note(path, f"expected {how} of {type_text(node, nested=1)}, got {short(value)}")

    def tag(self, name: str, options: list[Any], value: dict[Any, Any], path: Path) -> None:
        """The key that tells the branches of a union apart has a value that belongs to none of them."""
        listed = _listed(options)
        if name not in value:
            self.note((*path, name), f"missing, expected {listed}")
        else:
            self.note((*path, name), f"expected {listed}, got {short(value[name])}{_meant(value[name], options)}")

    def table(self, node: SchemaNode, value: dict[Any, Any], path: Path) -> None:
        for name in node.needed:
            if len(self.problems) > MOST_PROBLEMS:  # more would not be read, and each is compared with those before it
                return
            if name not in value and REST not in value:
                expected = type_text(node.named.get(name, node.tree.node(True)), nested=1)
                self.note((*path, name), "missing" + (f", expected {expected}" if expected != "any" else ""))
        if isinstance(rule := node.says.get("propertyNames"), dict):
            self.keys(rule, value, path)
        for name, item in value.items():
            if len(self.problems) > MOST_PROBLEMS:
                return
            if name in node.named:
                self.walk(node.named[name], item, (*path, name))
            elif node.rest.schema is False and name is not REST:
                self.note((*path, str(name)), self.unknown(str(name), node.named, value, path))
            elif node.rest.schema is not True and name is not REST:
                self.walk(node.rest, item, (*path, str(name)))

    def keys(self, rule: dict[str, Any], value: dict[Any, Any], path: Path) -> None:
        """Keys that a rule for `propertyNames` refuses; `closing` makes such rules."""
        parts = [part for part in (rule, *(rule.get("anyOf") or ())) if isinstance(part, dict)]
        named = next((part["enum"] for part in parts if "enum" in part), ())
        for name in value:
            if len(self.problems) > MOST_PROBLEMS:
                return
            if name is not REST and not self.fits({"propertyNames": rule}, {name: None}):
                self.note((*path, str(name)), self.unknown(str(name), dict.fromkeys(named), value, path))

    def unknown(self, name: str, named: Mapping[str, SchemaNode | None], value: dict[Any, Any], path: Path) -> str:
        if not path:
            inside = [f"{outer}.{name}" for outer, part in named.items() if part is not None and name in part.fields]
            return "unknown parameter" + (f"; did you mean '{inside[0]}'?" if inside else suggestion(name, named))
        close = nearest(name, [option for option in named if option not in value] or named, parts=True)
        if close:
            return f"unknown key; did you mean '{close[0]}'?"
        return "unknown key" + (f"; known keys: {', '.join(list(named)[:20])}" if named else "")

    def array(self, node: SchemaNode, value: list[Any], path: Path) -> None:
        heads = node.heads
        if len(value) > len(heads) and node.items.schema is False:
            self.note(path, f"expected at most {counted(len(heads), 'item')}, got {len(value)}")
        for index, item in enumerate(value):
            if len(self.problems) > MOST_PROBLEMS:
                return
            part = heads[index] if index < len(heads) else node.items
            if isinstance(part.schema, dict):
                self.walk(part, item, (*path, index))


def _tag(branches: list[SchemaNode], value: Any) -> tuple[str, list[Any]] | None:
    """The key whose listed values tell all branches of a union for objects apart, and those values.

    None where there is no such key, or where it has one of the values.
    """
    objects = [branch.fields for branch in branches if accepts(branch.kinds, "object")]
    if not isinstance(value, dict) or len(objects) < 2:
        return None
    for name in objects[0]:
        listings = [(fields[name].listed if name in fields else None) or () for fields in objects]
        options = list(dict.fromkeys(option for listing in listings for option in listing if isinstance(option, str)))
        if all(listing and all(isinstance(option, str) for option in listing) for listing in listings):
            return None if name in value and value[name] in options else (name, options)
    return None


def _listed(options: list[Any]) -> str:
    texts = ", ".join(json.dumps(option, ensure_ascii=False) for option in options[:20])
    return f"one of {texts}{', …' if len(options) > 20 else ''}"


def _meant(value: Any, options: list[Any]) -> str:
    return suggestion(value, [str(option) for option in options]) if isinstance(value, str) else ""


def _takes_bytes(node: SchemaNode) -> bool:
    """Whether a string that is not text may stand here: where anything may, or where the schema says binary."""
    branches = [branch for choices in node.unions.values() for branch in choices]
    return node.kinds is None or any(part.says.get("format") == "binary" for part in (node, *branches))


def _bound(wording: str, rule: Any) -> str:
    """A rule in words; a noun behind the number is in the singular or the plural."""
    start, noun, end = wording.partition("{} ")
    return f"{start}{counted(rule, end.removesuffix('s'))}" if noun and isinstance(rule, int) else wording.format(rule)


def _amount(keyword: str, value: Any) -> str:
    if keyword in {"minItems", "maxItems", "minProperties", "maxProperties"} and isinstance(value, list | dict):
        return str(len(value))
    if keyword in {"minLength", "maxLength"} and isinstance(value, str):
        return f"{len(value)} in {short(value)}" if value else "the empty string"
    return short(value)


_RULES = {
    "const": "{}",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "pattern": "text that matches {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "uniqueItems": "items without duplicates",
    "minProperties": "at least {} keys",
    "maxProperties": "at most {} keys",
}
