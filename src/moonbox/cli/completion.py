"""Completion at the prompt: globals, tools, members of libraries, entries of `docs`, commands."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prompt_toolkit.completion import Completer, Completion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from moonbox.sandbox.sandbox import Sandbox

__all__ = ["Names", "ScriptCompleter"]

_PATH = re.compile(r"[A-Za-z_][\w.]*:?\w*$", re.ASCII)
_DOCS_KEY = re.compile(r"""docs\[(["'])([^"']*)$""")
_COMMAND = re.compile(r":(\w*)$")
_COMMAND_ARGUMENT = re.compile(r":docs\s+(\S*)$")


@dataclass(slots=True)
class Names:
    """What can be written at the prompt, by the table that it is in; "" holds the globals."""

    members: dict[str, dict[str, str]] = field(default_factory=dict)
    """Table → member → a few words about it."""
    documented: tuple[str, ...] = ()
    """What `docs[…]` answers."""

    @classmethod
    def of(cls, sandbox: Sandbox) -> Names:
        """The names that every script of this Sandbox finds."""
        from moonbox.languages.registry import language as language_named
        from moonbox.sandbox.docs import Docs

        language = language_named(sandbox.language)
        names = cls(documented=tuple(Docs(sandbox.toolbox, {}, sandbox.language).names()))
        for name, text in language.docs.items():
            names.add(name, text.partition("\n")[0])
        for table, members in language.libraries(sandbox.lua_features).items():
            for member in members:
                names.add(f"{table}.{member}", "")
        for name in language.features.keys() - sandbox.lua_features:
            for hidden in language.features[name]:
                names.members[""].pop(hidden, None)
        for tool in sandbox.toolbox:
            if tool.policy != "direct":
                alias = sandbox.toolbox.alias(tool)
                written = language.tool_name(alias)
                names.add(written, tool.description.strip().partition("\n")[0])
        return names

    def add(self, path: str, about: str) -> None:
        """Add a name and the tables that it is in."""
        table, _, name = path.rpartition(".")
        if table:
            outer, _, inner = table.rpartition(".")
            self.members.setdefault(outer, {}).setdefault(inner, "")
        known = self.members.setdefault(table, {})
        known[name] = about or known.get(name, "")

    def with_globals(self, defined: Mapping[str, str]) -> Names:
        """The same, and what scripts have defined since."""
        return Names({**self.members, "": {**self.members.get("", {}), **defined}}, self.documented)


class ScriptCompleter(Completer):
    """Completes the word before the cursor."""

    def __init__(self, names: Names, keywords: Iterable[str], commands: Mapping[str, str]) -> None:
        self.names = names
        self._keywords = tuple(keywords)
        self._commands = commands

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if text.startswith(":"):
            return self._of_command(text)
        line = document.current_line_before_cursor
        found = _DOCS_KEY.search(line)
        if found is not None:
            ending = f"{found[1]}]"
            return _matching(dict.fromkeys(self.names.documented, ""), found[2], ending)
        word = _PATH.search(line)
        return self._of_word(word[0]) if word is not None else ()

    def _of_command(self, text: str) -> Iterator[Completion]:
        found = _COMMAND.fullmatch(text)
        if found is not None:
            return _matching(self._commands, found[1])
        argument = _COMMAND_ARGUMENT.fullmatch(text)
        return _matching(dict.fromkeys(self.names.documented, ""), argument[1] if argument else "\0")

    def _of_word(self, word: str) -> Iterator[Completion]:
        _, colon, method = word.partition(":")
        if colon:  # a value's methods are those of strings, the only values that have any
            return _matching(self.names.members.get("string", {}), method)
        table, _, beginning = word.rpartition(".")
        offered = self.names.members.get(table, {})
        if not table:
            offered = {**offered, **dict.fromkeys(self._keywords, "")}
        return _matching(offered, beginning)


def _matching(offered: Mapping[str, str], beginning: str, ending: str = "") -> Iterator[Completion]:
    for name in sorted(offered):
        if name.startswith(beginning):
            yield Completion(name + ending, -len(beginning), display=name, display_meta=offered[name])
