"""Toolbox: an ordered set of tools, by path, that can change while it is used."""

from __future__ import annotations

import threading
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from moonbox.errors import ArgumentError, ToolDefinitionError, UsageError
from moonbox.schema.learned import LearnedShapes
from moonbox.suggest import unknown
from moonbox.tools.naming import LONGEST_NAME, aliases, check_name
from moonbox.tools.tool import Tool

if TYPE_CHECKING:
    from moonbox.tools.importers import Dispatch

ToolSource = Any
"""A Tool, a function, a Toolbox, a mapping from namespace to such, or an iterable of such.

In a mapping, the key of a lambda is its name.
"""

Listener = Callable[["Toolbox"], None]


class _Followed(Struct, frozen=True, eq=False):
    """Another toolbox whose tools belong to this one for as long as it has them."""

    source: Toolbox
    space: str | None


_Entry = Tool | _Followed


class Toolbox:
    """An ordered set of tools; iteration is in the order of addition, paths are unique.

    Safe to read and change from several threads. Every change raises `revision` and is reported to the listeners.
    """

    def __init__(self, tools: ToolSource = ()) -> None:
        self.library: Any = None
        """The ScriptLibrary behind `from_scripts`."""
        self.problems: tuple[str, ...] = ()
        """What of a specification or a database cannot be used, and why."""
        self.learned = LearnedShapes()
        """The shapes of what its tools have returned."""
        self.derived: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        """What objects that use the toolbox keep for its tools, by the object. A value must not refer to its object."""
        self._lock = threading.Lock()
        self._entries: list[_Entry] = []
        self._listeners: list[Listener] = []
        self._allowed: Callable[[Tool], Tool | bool] | None = None
        self.revision: int = 0
        """Grows with every change."""
        self._tools: dict[str, Tool] = {}  # this and the next are other objects after each change: readers keep theirs
        self._alias_of: dict[str, str] = {}
        self.by_name: Mapping[str, Tool] = {}
        """The tools by their paths and by their aliases, as `resolve` finds them; another object after each change."""
        if added := list(_tools(tools, None)):
            self._change(lambda entries: [*entries, *added])

    @classmethod
    def of(cls, tools: ToolSource) -> Toolbox:
        """The toolbox itself if one is given; else a new one, which follows the toolboxes among what is given."""
        if isinstance(tools, Toolbox):
            return tools
        box = cls()
        own: list[ToolSource] = []  # added together: with every change the aliases of all tools are found anew
        for space, item in _flat(tools, None):
            if not isinstance(item, Toolbox):
                own.append(item if space is None else _placed(item, space))
                continue
            if own:
                box.add(*own)
                own = []
            box.follow(item, namespace=space)
        return box.add(*own) if own else box

    @classmethod
    def from_scripts(cls, config: Any, **options: Any) -> Toolbox:
        """The tools of .lua tool scripts: from moonbox.toml (a path or a Config), or its [tools] table as a dict.

        The toolbox follows the files: `toolbox.library.refresh()` takes up what has changed.
        """
        library = _above("scripts").script_library(config, **options)
        box: Toolbox = library.toolbox
        box.library = library
        return box

    @classmethod
    def from_openapi(cls, spec: Any, *, namespace: str | None = None, **options: Any) -> Toolbox:
        """A tool for each operation of an OpenAPI specification (3.0, 3.1): a dict, a JSON or YAML file, or a URL.

        `options` are the settings of [openapi.<name>]. What cannot be used is in `toolbox.problems`.
        """
        return _above("openapi").from_openapi(spec, namespace=namespace, **options)  # type: ignore[no-any-return]

    @classmethod
    def from_sql(cls, url: str, *, namespace: str | None = None, **options: Any) -> Toolbox:
        """The tools `query` and `tables` of a SQLite, DuckDB or PostgreSQL database: read-only, and bounded.

        `options` are the settings of [sql.<name>].
        """
        return _above("sql").from_sql(url, namespace=namespace, **options)  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Tool]:
        return iter(tuple(self._tools.values()))

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, tool: object) -> bool:
        path = tool.path if isinstance(tool, Tool) else tool
        return path in self._tools

    def __getitem__(self, path: str) -> Tool:
        return self.resolve(path)

    def __repr__(self) -> str:
        paths = list(self._tools)
        more = f", … {len(paths) - 8} more" if len(paths) > 8 else ""
        return f"Toolbox({', '.join(paths[:8])}{more})"

    def get(self, path: str, default: Tool | None = None) -> Tool | None:
        """The tool with exactly this path."""
        return self._tools.get(path, default)

    def paths(self) -> tuple[str, ...]:
        """The paths of all tools, in their order."""
        return tuple(self._tools)

    def namespaces(self) -> tuple[str, ...]:
        """The namespaces, in order of first use."""
        return tuple(dict.fromkeys(tool.namespace for tool in self if tool.namespace is not None))

    def aliases(self) -> dict[str, str]:
        """Each path and the alias under which a script can write it as `tools.<alias>`; see `naming`."""
        return dict(self._alias_of)

    def alias(self, tool: Tool | str) -> str:
        """The alias of one tool."""
        path = tool if isinstance(tool, str) else tool.path
        return self._alias_of[self.resolve(path).path]

    def resolve(self, name: str) -> Tool:
        """The tool with this path or alias; raises ArgumentError (`unknown_tool`) that names the nearest ones."""
        tool = self.by_name.get(name)
        if tool is not None:
            return tool
        asked = str(name)[:LONGEST_NAME]
        message = unknown("tool", asked, self._alias_of.values(), count=3)
        raise ArgumentError(message, code="unknown_tool", tool=asked)

    def add(self, *tools: ToolSource, replace: bool = False) -> Toolbox:
        """Add tools; with `replace`, one of the same path gives way, in its place."""
        return self.merge(tools, replace=replace)

    def namespace(self, name: str, tools: ToolSource, *, replace: bool = False) -> Toolbox:
        """Add tools under a namespace: `create_issue` under `github` becomes `github.create_issue`."""
        return self.merge(tools, namespace=check_name(name, "namespace"), replace=replace)

    def set_namespace(self, name: str | None, tools: ToolSource) -> Toolbox:
        """Make these the only tools of the namespace, in one change: for a server whose list of tools changed."""
        added = list(_tools(tools, None if name is None else check_name(name, "namespace")))
        self._change(lambda entries: [*(item for item in entries if getattr(item, "namespace", None) != name), *added])
        return self

    def merge(self, other: ToolSource, *, namespace: str | None = None, replace: bool = False) -> Toolbox:
        """Add the tools that another toolbox has now."""
        added = list(_tools(other, namespace))
        self._change(lambda entries: _joined(entries, added, replace=replace))
        return self

    def follow(self, other: Toolbox, *, namespace: str | None = None) -> Toolbox:
        """Have what another toolbox has, now and after it changes.

        A path that this toolbox has already is an error now; where one appears later, the older tool stays.
        """
        if other is self:
            raise UsageError("a toolbox cannot follow itself")
        reference = weakref.ref(self, lambda _: stop())

        def changed(_: Toolbox) -> None:
            if (follower := reference()) is not None:
                follower._change()

        stop = other.subscribe(changed)
        try:
            self._change(lambda entries: [*entries, _Followed(other, namespace)])
        except ToolDefinitionError:
            stop()
            raise
        return self

    def only(self, allowed: Callable[[Tool], Tool | bool]) -> Toolbox:
        """Have no tool that is not allowed, neither now nor later, wherever it comes from.

        A tool that `allowed` returns takes the place of the one that it was given.
        """
        with self._lock:
            self._allowed = allowed
        self._change()
        return self

    def remove(self, *tools: str | Tool) -> Toolbox:
        """Take tools out, by path or alias."""
        paths = [self.resolve(tool if isinstance(tool, str) else tool.path).path for tool in tools]

        def without(entries: list[_Entry]) -> list[_Entry]:
            own = {item.path for item in entries if isinstance(item, Tool)}
            for path in paths:
                if path not in own:
                    raise UsageError(f"tool {path!r} comes from a toolbox that this one follows; remove it there")
            return [item for item in entries if not (isinstance(item, Tool) and item.path in paths)]

        self._change(without)
        return self

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Have the listener called with this toolbox after each change; returns what ends that."""
        self._listeners.append(listener)
        return lambda: self.unsubscribe(listener)

    def unsubscribe(self, listener: Listener) -> None:
        """End what `subscribe` began; nothing happens if it had ended."""
        with suppress(ValueError):  # without the lock: the garbage collector ends followers at any moment
            self._listeners.remove(listener)

    @classmethod
    def from_openai(cls, definitions: Iterable[Any], call: Dispatch, **options: Any) -> Toolbox:
        """Tools from OpenAI definitions (chat completions or responses) and the function(s) that answer them."""
        return cls(_importers().from_openai(definitions, call, **options))

    @classmethod
    def from_anthropic(cls, definitions: Iterable[Any], call: Dispatch, **options: Any) -> Toolbox:
        """Tools from Anthropic definitions and the function(s) that answer them."""
        return cls(_importers().from_anthropic(definitions, call, **options))

    @classmethod
    def from_gemini(cls, definitions: Iterable[Any], call: Dispatch, **options: Any) -> Toolbox:
        """Tools from Gemini function declarations and the function(s) that answer them."""
        return cls(_importers().from_gemini(definitions, call, **options))

    @classmethod
    def from_langchain(cls, tools: Iterable[Any], **options: Any) -> Toolbox:
        """Tools that you have in LangChain: `@tool` functions, StructuredTools, any BaseTool."""
        return cls(_importers().from_langchain(tools, **options))

    @classmethod
    def from_llamaindex(cls, tools: Iterable[Any], **options: Any) -> Toolbox:
        """Tools that you have in LlamaIndex: FunctionTools, QueryEngineTools, any BaseTool."""
        return cls(_importers().from_llamaindex(tools, **options))

    @classmethod
    def from_pydantic_ai(cls, tools: Iterable[Any], **options: Any) -> Toolbox:
        """Tools that you have in Pydantic AI: `pydantic_ai.Tool`s and FunctionToolsets."""
        return cls(_importers().from_pydantic_ai(tools, **options))

    def _change(self, edit: Callable[[list[_Entry]], list[_Entry]] | None = None) -> None:
        """Change the entries; without an edit, take over what followed toolboxes and `only` have made of them.

        Two tools of one path are an error of the edit. Where one appears later, the older tool stays.
        """
        with self._lock:
            entries = self._entries if edit is None else edit(self._entries)
            own = {item.path: item for item in entries if isinstance(item, Tool)}
            tools: dict[str, Tool] = {}
            for tool in _all(entries):
                if tool.unbound:
                    raise ToolDefinitionError(
                        f"{tool.path!r} is a method without its instance; use instance.{tool.name}"
                    )
                if tool.path in tools and edit is not None:
                    raise ToolDefinitionError(
                        f"there are two tools named {tool.path!r}; "
                        "rename one (name=…), give it a namespace, or add it with replace=True"
                    )
                tools.setdefault(tool.path, tool if edit is not None else own.get(tool.path, tool))
            self._entries = entries
            if self._allowed is not None:
                seen = ((path, tool, self._allowed(tool)) for path, tool in tools.items())
                tools = {path: found if isinstance(found, Tool) else tool for path, tool, found in seen if found}
            self._tools, self._alias_of = tools, aliases(tools)
            self.by_name = {**{alias: tools[path] for path, alias in self._alias_of.items()}, **tools}
            self.revision += 1  # last: code that reads it before the contents gets contents that are not older
        # Outside the lock: a listener may be another toolbox, whose own lock is held by someone who waits for this one.
        for listener in tuple(self._listeners):
            listener(self)


def _above(kind: str) -> Any:
    """The module behind `from_<kind>`: it is built on the sandbox and on this one, so that only the face names it."""
    import moonbox

    return moonbox.source_of_tools(kind)


def _importers() -> Any:
    from moonbox.tools import importers  # few programs need them

    return importers


def _joined(entries: list[_Entry], added: list[Tool], *, replace: bool) -> list[_Entry]:
    if not replace:
        return [*entries, *added]
    joined = list(entries)
    at = {item.path: index for index, item in enumerate(entries) if isinstance(item, Tool)}
    for tool in added:
        if tool.path in at:
            joined[at[tool.path]] = tool
        else:
            joined.append(tool)
    return joined


def _all(entries: Iterable[_Entry]) -> Iterator[Tool]:
    for entry in entries:
        if isinstance(entry, Tool):
            yield entry
        else:
            yield from _tools(entry.source, entry.space)


def _tools(source: ToolSource, space: str | None) -> Iterator[Tool]:
    """Every tool of a source, placed in its namespace."""
    for inner, item in _flat(source, space):
        if isinstance(item, Toolbox):
            for tool in item:
                yield _placed(tool, inner)
        else:
            yield _placed(item, inner)


def _flat(source: ToolSource, space: str | None) -> Iterator[tuple[str | None, Any]]:
    """The tools, functions and toolboxes within a source, each with its namespace."""
    if isinstance(source, Tool | Toolbox | types.FunctionType | types.MethodType):
        yield space, source
        return
    if not isinstance(source, list | tuple | dict | type):
        _importers().refuse_foreign(source)
    if isinstance(source, Mapping):
        for name, inner in source.items():
            if isinstance(inner, types.FunctionType) and inner.__name__ == "<lambda>":  # the key is its name
                yield space, Tool.from_function(inner, name=name)
                continue
            check_name(name, "namespace")
            yield from _flat(inner, name if space is None else f"{space}.{name}")
    elif callable(source):
        yield space, source
    elif isinstance(source, Iterable) and not isinstance(source, str | bytes):
        for item in source:
            yield from _flat(item, space)
    else:
        raise ToolDefinitionError(
            f"{source!r} is not a tool; give functions, Tools, Toolboxes, or a dict of namespaces"
        )


def _placed(source: Any, space: str | None) -> Tool:
    tool = Tool.from_function(source)
    if space is None:
        return tool
    return tool.with_(namespace=space if tool.namespace is None else f"{space}.{tool.namespace}")
