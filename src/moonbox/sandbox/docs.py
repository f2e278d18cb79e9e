"""The documentation that scripts read through `docs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moonbox.errors import ArgumentError
from moonbox.languages.registry import language as language_named
from moonbox.tools.document import Document
from moonbox.tools.signature import render, type_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moonbox.tools.learned import LearnedShapes
    from moonbox.tools.search import ToolSearch
    from moonbox.tools.tool import Tool
    from moonbox.tools.toolbox import Toolbox

DISCOVERY_BUDGET = 1000
"""What one run may spend on questions to docs: they are answered by the host, beside its other work."""
_MOST_RESULTS = 50
_TOOLS_PER_UNIT = 20
_MOST_TEXT = 500
_MOST_NAMES = 10_000


class Docs:
    """Answers `docs[name]`, `docs.search` and `docs.describe` for one Repl."""

    def __init__(
        self,
        toolbox: Toolbox,
        entries: Mapping[str, str],
        language: str,
        learned: LearnedShapes | None = None,
        *,
        search: ToolSearch,
    ) -> None:
        self._toolbox = toolbox
        self._entries = entries
        self._language = language
        self._learned = toolbox.learned if learned is None else learned
        self._search = search

    def cost(self, what: str) -> int:
        """What a question costs: searching, and finding the nearest name, look at every tool."""
        return 1 if what == "get" else 1 + len(self._toolbox) // _TOOLS_PER_UNIT

    def answer(self, what: str, arguments: list[Any]) -> Any:
        """The value for the script; ToolError where the question is malformed."""
        if what == "names":
            return self.names()[:_MOST_NAMES]
        first = arguments[0] if arguments else None
        if what == "search" and isinstance(first, str) and not first.strip():
            return self.listing(self._limit(arguments, _MOST_RESULTS))
        if not isinstance(first, str) or not first.strip():
            raise ArgumentError(f'docs.{what} expects text, for example docs.{what}("…")', code="invalid")
        if len(first) > _MOST_TEXT:
            raise ArgumentError(
                f"docs.{what} expects at most {_MOST_TEXT} characters, got {len(first)}", code="invalid"
            )
        if what == "get":
            return self.get(first)
        if what == "describe":
            return self.describe(first)
        if what == "search":
            return self.search(first, min(self._limit(arguments, 10), _MOST_RESULTS))
        raise ArgumentError(f"docs has no '{what}'", code="unknown_function")

    def _limit(self, arguments: list[Any], default: int) -> int:
        limit = arguments[1] if len(arguments) > 1 and arguments[1] is not None else default
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
            raise ArgumentError("docs.search: the second argument is a whole number of results", code="invalid")
        return limit

    def listing(self, limit: int) -> list[dict[str, Any]]:
        """What there is, tools first, in the order in which they were added."""
        tools = [_of_tool(tool) for tool in self._toolbox if tool.policy != "direct"]
        texts = {**self._entries, **self._builtins()}
        return [*tools, *(_of_entry(name, text) for name, text in texts.items())][: min(limit, _MOST_NAMES)]

    def get(self, name: str) -> str | None:
        """The entry of that name: an added one, a tool, or a part of the environment."""
        if name in self._entries:
            return self._entries[name]
        tool = self._tool(name.removeprefix("tools.")) if name.startswith("tools.") else None
        if tool is None and name not in self._builtins():
            tool = self._tool(name)
        if tool is not None:
            return self._written(tool)
        return self._builtins().get(name) or language_named(self._language).library_docs.get(name)

    def describe(self, name: str) -> str:
        """One tool's full documentation, or an entry; an unknown name is an error that names the nearest."""
        text = self.get(name)
        if text is None:
            return self._written(self._toolbox.resolve(name.removeprefix("tools.")))
        return text

    def find_tools(self, words: str, limit: int) -> list[Tool]:
        """Tools that fit the words, best first."""
        return [tool for tool, _ in self._search.search(words, limit)]

    def search(self, words: str, limit: int) -> list[dict[str, Any]]:
        """Tools and entries that fit the words, best first."""
        matches = [_of_tool(tool) for tool in self.find_tools(words, limit) if tool.policy != "direct"]
        if len(matches) < limit:
            wanted = words.lower().split()
            for name, text in {**self._builtins(), **self._entries}.items():
                if all(word in f"{name} {text}".lower() for word in wanted):
                    matches.append(_of_entry(name, text))
            for name, text in language_named(self._language).library_docs.items():
                if all(word in name.lower() for word in wanted):
                    matches.append(_of_entry(name, text))
        return matches[:limit]

    def names(self) -> list[str]:
        """Every name that `get` answers."""
        tools = [f"tools.{tool.path}" for tool in self._toolbox if tool.policy != "direct"]
        library = language_named(self._language).library_docs
        return list(dict.fromkeys([*tools, *self._entries, *self._builtins(), *library]))

    def _written(self, tool: Tool) -> str:
        """One tool, with the shape of what it has returned where it does not say what it returns."""
        text = render(tool, "full")
        shape = self._learned.schema(tool.path) if tool.returns is None else None
        if not shape:
            return text
        return f"{text}\nreturned so far: {type_text(shape, Document(shape), nested=3)}"

    def _tool(self, path: str) -> Any:
        tool = self._toolbox.get(path)
        return tool if tool is not None and tool.policy != "direct" else None

    def _builtins(self) -> Mapping[str, str]:
        return builtin_docs(self._language)


def _of_tool(tool: Any) -> dict[str, Any]:
    summary = render(tool, "brief").partition(" — ")[2]
    return {"name": tool.path, "signature": render(tool, "signature"), "summary": summary}


def _of_entry(name: str, text: str) -> dict[str, Any]:
    return {"name": name, "signature": text.splitlines()[0], "summary": ""}


def builtin_docs(language: str) -> Mapping[str, str]:
    """The entries for what every script of that language finds."""
    return language_named(language).docs
