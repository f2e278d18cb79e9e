"""The words of Rhai: its functions, and what other languages write in their place; see vocabulary.toml."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from moonbox.dataclass import dataclass
from moonbox.languages.program import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RhaiWords", "rhai_vocabulary", "rhai_words"]


@dataclass(frozen=True, slots=True)
class RhaiWords:
    """What `vocabulary.toml` holds."""

    functions: frozenset[str]
    """Functions and methods of any type."""
    list_methods: Mapping[str, str]
    constants: Mapping[str, str]
    foreign_functions: Mapping[str, str]
    foreign_methods: Mapping[str, str]
    foreign_names: Mapping[str, str]

    def foreign_method(self, name: str, receiver: str, arguments: tuple[str, ...]) -> str | None:
        """What to write for a method of another language."""
        form = self.foreign_methods.get(name)
        if form is None:
            return None
        known = [argument if argument != "…" else "" for argument in (*arguments, "", "")]  # closures are not told
        holes = {
            "self": receiver,
            "0": known[0] or "x",
            "closure": known[1] or ("|total, x| …" if len(arguments) > 1 else "|total, x| total + x"),
            "mapped": f".map({known[0] or '|x| …'})" if arguments else "",
        }
        return _HOLE.sub(lambda hole: holes[hole[1]], form)

    def advice(self, name: str, called: bool) -> str | None:
        """What to write for a function or a name of another language."""
        return self.foreign_functions.get(name) if called else self.foreign_names.get(name)


_HOLE = re.compile(r"\{(self|0|closure|mapped)\}")


@cache
def rhai_words() -> RhaiWords:
    data = tomllib.loads(Path(__file__).with_name("vocabulary.toml").read_text(encoding="utf-8"))
    return RhaiWords(
        functions=frozenset(" ".join(data["functions"].values()).split()),
        list_methods={name: kind for kind, names in data["list_methods"].items() for name in names.split()},
        constants=data["constants"],
        foreign_functions=data["foreign_functions"],
        foreign_methods=data["foreign_methods"],
        foreign_names=data["foreign_names"],
    )


@cache
def rhai_vocabulary() -> Vocabulary:
    """The words of Rhai as scripts find them here."""
    words = rhai_words()
    return Vocabulary(
        globals=words.functions,
        constant=words.constants.get,
        advice=lambda name, called, arguments: words.advice(name, called),
        method_advice=lambda name, receiver, arguments: words.foreign_method(name, receiver, arguments),
        string_methods=words.functions,
        list_methods=words.functions,
        any_methods=words.functions,
        methods=words.list_methods,
        only_truth_values=True,
        nothing="unknown, and reading it is an error",
        forms={
            "call": "{}(#{…})",
            "closure": "|| {}",
            "length": "{}.len()",
            "element": "{}[0]",
            "number": "parse_float({})",
            "assign": "{} = …; without let",
            "search": 'docs_search("words")',
        },
    )
