"""The documentation that scripts read through `docs`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from moonbox.errors import ArgumentError
from moonbox.languages.registry import language as language_named
from moonbox.schema.tree import SchemaNode
from moonbox.schema.type_reader import minified, type_text
from moonbox.tools.signature import Signatures, first_sentence, render, visible, worth_saying
from moonbox.wording import counted

if TYPE_CHECKING:
    from moonbox.languages.language import Notation
    from moonbox.schema.learned import LearnedShapes
    from moonbox.tools.search import ToolSearch
    from moonbox.tools.tool import Tool
    from moonbox.tools.toolbox import Toolbox

DISCOVERY_BUDGET = 1000
"""What one run may spend on questions to docs: they are answered by the host, beside its other work."""
_MOST_RESULTS = 50
_TOOLS_PER_UNIT = 20
_MOST_TEXT = 500
_MOST_NAMES = 10_000
_MOST_LOOKED_AT = 20  # tools for each one that is found: others may be the same in another group
_DEPTH = 6


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
        self._language = language_named(language)
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
            text = (
                "docs expects the name of an entry" if what == "get" else f'docs.{what} expects text: docs.{what}("…")'
            )
            raise ArgumentError(text, code="invalid")
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
        if not isinstance(limit, int | float) or isinstance(limit, bool) or not limit >= 1 or limit % 1:
            raise ArgumentError("docs.search: the second argument is a whole number of results", code="invalid")
        return int(limit)  # 10 / 2 is 5.0

    def listing(self, limit: int) -> list[dict[str, Any]]:
        """What there is, tools first, in the order in which they were added."""
        most = min(limit, _MOST_NAMES)
        texts = {**self._entries, **self._language.docs}
        found = _found([tool for tool in self._toolbox if tool.policy != "direct"], most, self._language.texts.types)
        return [*found, *(_of_entry(name, text) for name, text in texts.items())][:most]

    def added(self, standard: Mapping[str, str]) -> dict[str, str]:
        """The first sentence of each entry that was added to these, by name."""
        return {name: first_sentence(text) for name, text in self._entries.items() if standard.get(name) != text}

    def get(self, name: str) -> str | None:
        """The entry of that name: an added one, a tool, or a part of the environment."""
        if name in self._entries:
            return self._entries[name]
        tool = self._tool(name.removeprefix("tools.")) if name.startswith("tools.") else None
        if tool is None and name not in self._language.docs:
            tool = self._tool(name)
        if tool is not None:
            return self._written(tool)
        return self._language.docs.get(name) or self._language.library_docs.get(name)

    def describe(self, name: str) -> str:
        """The documentation of a tool, of a whole group, or an entry; the error of an unknown name has the nearest."""
        text = self.get(name) or self._group(name)
        return self._written(self._toolbox.resolve(name.removeprefix("tools."))) if text is None else text

    def _group(self, name: str) -> str | None:
        """The tools of a namespace: types, signatures, first sentences."""
        texts = self._language.texts
        space = name.removeprefix("tools.").replace(texts.separator, ".") + "."
        tools = [tool for tool in self._toolbox if tool.policy != "direct"]
        names = {tool.path: self._toolbox.alias(tool) for tool in tools}
        members = [tool for tool in tools if tool.path.startswith(space) or names[tool.path].startswith(space)]
        if not members:
            return None
        members = [tool.with_shape(self._learned.schema(tool.path)) for tool in members]
        signatures = Signatures(members, notation=texts.types, facts=True)
        written = {path: texts.written(alias) for path, alias in names.items()}
        lines = [
            f"- {signatures.signature(tool, written[tool.path])}{worth_saying(tool, facts=True)}" for tool in members
        ]
        call = texts.call.format(name=written[members[0].path])
        title = f"{visible(space[:-1])}: {counted(len(members), 'tool')}; a call is {call}"
        return "\n".join([title, *signatures.types(), *lines])

    def find_tools(self, words: str, limit: int) -> list[Tool]:
        """Tools that fit the words, best first."""
        return [tool for tool, _ in self._search.search(words, limit)]

    def search(self, words: str, limit: int) -> list[dict[str, Any]]:
        """Tools and entries that fit the words, best first."""
        ranked = self.find_tools(words, limit * _MOST_LOOKED_AT)
        matches = _found([tool for tool in ranked if tool.policy != "direct"], limit, self._language.texts.types)
        if len(matches) < limit:
            wanted = words.lower().split()
            for name, text in {**self._language.docs, **self._entries}.items():
                if all(word in f"{name} {text}".lower() for word in wanted):
                    matches.append(_of_entry(name, text))
            for name, text in self._language.library_docs.items():
                if all(word in name.lower() for word in wanted):
                    matches.append(_of_entry(name, text))
        return matches[:limit]

    def names(self) -> list[str]:
        """Every name that `get` answers."""
        tools = [f"tools.{tool.path}" for tool in self._toolbox if tool.policy != "direct"]
        library = self._language.library_docs
        return list(dict.fromkeys([*tools, *self._entries, *self._language.docs, *library]))

    def _written(self, tool: Tool) -> str:
        """One tool, with the shape of what it has returned where it does not say what it returns."""
        shape = self._learned.schema(tool.path)
        if tool.returns is not None or not shape:
            return render(tool.with_shape(shape), "full", notation=self._language.texts.types)
        returned = type_text(SchemaNode(shape), nested=_DEPTH, notation=self._language.texts.types)
        return f"{render(tool, 'full', notation=self._language.texts.types)}\nreturned so far: {returned}"

    def _tool(self, path: str) -> Any:
        tool = self._toolbox.get(path) or self._toolbox.get(path.replace("_.", ".").removesuffix("_"))
        return tool if tool is not None and tool.policy != "direct" else None


_LONGEST_SIGNATURE, _LONGEST_TYPES = 300, 1_000
"""Characters of one result of a search; what is longer, `docs.describe` has."""


def _found(tools: list[Tool], most: int, notation: Notation) -> list[dict[str, Any]]:
    """The tools as search results. The same tool of several groups is one, and a type is in the first that names it."""
    alike: dict[str, list[Tool]] = {}
    for tool in tools:
        alike.setdefault(minified([tool.name, tool.parameters, tool.returns]), []).append(tool)
    firsts = list(alike.values())[:most]
    signatures = Signatures([same[0] for same in firsts], notation=notation)
    results = []
    for tool, *others in firsts:
        signature = signatures.signature(tool, tool.path)
        types = signatures.types()
        if len(signature) > _LONGEST_SIGNATURE:
            signature = f"{signature[:_LONGEST_SIGNATURE]}… (docs.describe has all)"
        result: dict[str, Any] = {"name": tool.path, "signature": signature}
        result["summary"] = first_sentence(tool.description)
        if types and sum(map(len, types)) <= _LONGEST_TYPES:
            result["types"] = types
        if others:
            result["also_in"] = [other.namespace or "tools" for other in others]
        results.append(result)
    return results


def _of_entry(name: str, text: str) -> dict[str, Any]:
    return {"name": name, "signature": text.strip().splitlines()[0], "summary": ""}
