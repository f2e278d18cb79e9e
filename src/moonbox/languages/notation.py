"""How types of JSON Schemas are written for a model: in a short form, or as a language writes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping


class Notation(Struct, frozen=True):
    """The words and forms of types; `{}` stands for the type inside."""

    words: Mapping[str, str] = {}
    """What types and constants are called; those that are not named have the names of JSON Schema."""
    array: str = "{}[]"
    mapping: str = "{[string]: {}}"
    either: str = "|"
    quoted: bool = False
    """Whether keys of objects are written as text; else identifiers are written as they are, others as `["a b"]`."""
    optional: str = "{name}?: {type}"
    """A parameter that may be left out; `{default}` is its value then, `...` where that is not known."""

    def word(self, name: str) -> str:
        return self.words.get(name, name)

    def constant(self, value: Any) -> str:
        """A value as it is written, on one line."""
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        return self.word(text)

    def around(self, form: str) -> tuple[str, str]:
        """What stands before and behind the type inside."""
        before, _, after = form.rpartition("{}")
        return before, after


SHORT = Notation()
"""For messages, and for languages without a form of their own."""
