"""The tools as a script reaches them, and what is wrong with a call before it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moonbox.check import values as v
from moonbox.languages.facts import unknown_tool
from moonbox.languages.language import REST, UNKNOWN
from moonbox.languages.program import Constant, Expression, Record
from moonbox.schema.tree import SchemaNode

if TYPE_CHECKING:
    from moonbox.check.checker import Checked
    from moonbox.errors import ArgumentError
    from moonbox.languages.language import Language
    from moonbox.schema.learned import LearnedShapes
    from moonbox.tools.tool import Tool
    from moonbox.tools.toolbox import Toolbox

_DEEPEST = 12
_MOST_FITTING = 1_000


class ScriptTools:
    """One state of a toolbox, as scripts of one language see it."""

    def __init__(self, toolbox: Toolbox, language: Language, learned: LearnedShapes | None = None) -> None:
        self.revision = toolbox.revision
        self._toolbox = toolbox
        self.learned = toolbox.learned if learned is None else learned
        self._language = language
        self._aliases = toolbox.aliases()
        self.recent_checks: dict[tuple[Any, ...], Checked] = {}
        """What was found in the scripts that were checked last, by all that it depends on; the latest is the last."""
        self._results: dict[str, v.Data] = {}
        self._values: dict[str, v.ToolValue] = {}
        self._fitting: set[tuple[str, ...]] = set()  # tools, each with names that it takes all of
        self.root = v.ToolSpace(self._tree(), "")

    def written(self, path: str) -> str:
        """A tool as scripts of the language write it."""
        return self._language.tool_name(self._aliases.get(path, path))

    def member(self, space: v.ToolSpace, name: str) -> v.Value:
        """What `space.name` is; None where there is nothing of that name."""
        entry = space.members.get(name)
        if entry is None:
            return None
        if isinstance(entry, dict):
            return v.ToolSpace(entry, f"{space.path}.{name}" if space.path else name)
        value = self._values.get(entry.path)
        if value is None:
            value = self._values[entry.path] = v.ToolValue(entry, self.written(entry.path))
        return value

    def named(self, name: str) -> v.ToolValue | None:
        """The tool that a bare name means, in a language whose tools are functions."""
        member = self.member(self.root, name)
        return member if isinstance(member, v.ToolValue) else None

    def result(self, tool: Tool) -> v.Data | None:
        """What is known of the tool's result."""
        learned = tool.returns is None
        schema = self.learned.schema(tool.path) if learned else tool.returns
        known = self._results.get(tool.path)
        if known is None or known.node.schema is not schema:
            node = SchemaNode(schema) if learned else tool.returned
            known = self._results[tool.path] = v.Data(node, self.written(tool.path), learned, {})
        return known if schema else None

    def unknown(self, path: str) -> tuple[str, str | None]:
        """The message and hint for a tool that scripts cannot call."""
        tool = self._toolbox.get(path)
        if tool is not None and tool.policy == "direct":
            return f"the tool '{path}' cannot be called from a script: it is called directly", None
        aliases = ((self._toolbox.get(item), name) for item, name in self._aliases.items())
        callable_ = [name for tool, name in aliases if tool is not None and tool.policy != "direct"]
        assert self._language.vocabulary is not None
        search = self._language.vocabulary().form("search")
        return f"unknown tool '{path}'", unknown_tool(path, callable_, self._language.tool_name, search)

    def problem_with(self, tool: Tool, given: list[Any]) -> ArgumentError | None:
        """What the call itself would say of these arguments; UNKNOWN and REST stand for what only the run knows."""
        names = _only_names(given)
        if names is not None and (tool.path, *names) in self._fitting:
            return None
        problems = tool.binder.certain_problems(given, tool.path, self._language.first_index)
        if names is not None and not problems and len(self._fitting) < _MOST_FITTING:
            self._fitting.add((tool.path, *names))
        return tool.binder.error(problems, tool.path) if problems else None

    def is_name(self, name: str) -> str | None:
        """The tool, as scripts write it, that has this bare name; None where none or more than one has."""
        fitting = [alias for alias in self._aliases.values() if alias.rpartition(".")[2] == name]
        return self._language.tool_name(fitting[0]) if len(fitting) == 1 else None

    def _tree(self) -> dict[str, Any]:
        root: dict[str, Any] = {}
        for tool in self._toolbox:
            if tool.policy == "direct":
                continue
            parts = [tool.name] if tool.namespace is None else [tool.namespace, tool.name]
            alias = self._aliases[tool.path]
            other = self._language.texts.identifiers(alias)
            for path in (parts, alias.split("."), other.split(".") if other not in self._toolbox else parts):
                _put(root, path, tool)
        return root


def _put(root: dict[str, Any], path: list[str], tool: Tool) -> None:
    at: Any = root
    for part in path[:-1]:
        inner = at.get(part)
        if type(inner) is not dict:
            inner = at[part] = {}
        at = inner
    if type(at.get(path[-1])) is not dict:
        at[path[-1]] = tool


def _only_names(given: list[Any]) -> tuple[str, ...] | None:
    """The names of the arguments, where nothing is known of their values: many scripts make such a call."""
    if len(given) != 1 or type(given[0]) is not dict:
        return None
    named: dict[Any, Any] = given[0]
    is_open = all(value is UNKNOWN for value in named.values()) and all(type(name) is str for name in named)
    return tuple(named) if is_open else None


def literal(value: Expression, keeps_null: bool, depth: int = 0) -> Any:
    """A written value as data, UNKNOWN where only the run knows it; tables of Lua do not keep null."""
    if type(value) is Constant:
        return value.value
    if type(value) is not Record or depth > _DEEPEST:
        return UNKNOWN
    if value.is_list and value.exact:
        items = [literal(item, keeps_null, depth + 1) for _, item in value.entries]
        while items and items[-1] is None and not keeps_null:
            items.pop()
        return items
    table: dict[Any, Any] = {}
    position = 0
    for name, item in value.entries:
        position += name is None
        if name != "":
            table[position if name is None else name] = literal(item, keeps_null, depth + 1)
    if not value.exact:
        if position or not table:  # keys that only the run knows may be those of a list
            return UNKNOWN
        table[REST] = UNKNOWN
    return {name: item for name, item in table.items() if keeps_null or item is not None or type(name) is not str}
