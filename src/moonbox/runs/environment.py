"""The environment that a worker is configured with, made from toolbox, functions and values."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from moonbox.errors import ConversionError, UsageError
from moonbox.languages.language import is_identifier
from moonbox.tools.paging import paging_form
from moonbox.values import plain

if TYPE_CHECKING:
    from moonbox.languages.registry import Language
    from moonbox.tools.toolbox import Toolbox

_SHOW_DOC = (
    "show(x): gives the model x besides the result; an image, audio clip or file (what a tool returned with a field "
    "`media`) it sees as such. A medium that the script returns is shown too. Pass one to another tool as it is."
)
_PROGRESS_DOC = "progress(done, total, text): tells the client how far the script is; total and text may be left out."
GLOBAL_TOOLS = ("llm",)
"""Tools that scripts call also by their bare names."""
_LONGEST_DOC = 4_000  # characters of a function's own docstring
_PART = "\x1f"  # separates the parts of a name; a tool's own name may contain dots


class AddedFunction(Struct, frozen=True):
    """A function of the host that scripts call by its bare name, with positional arguments."""

    name: str
    call: Callable[..., Any]
    doc: str = ""
    counted: bool = True
    """Whether it is spent from `max_tool_calls`."""
    cleaned: bool = True
    """Whether the secrets of the Sandbox are replaced in its results."""


def _show(*_: Any) -> None:
    """Never called: the run itself takes the values."""


SHOW = AddedFunction("show", _show, _SHOW_DOC, counted=False)
"""Scripts give the model values and media besides the result with it. It is not a call: no record, no count."""


PROGRESS = AddedFunction("progress", _show, _PROGRESS_DOC, counted=False)
"""Scripts say how far they are with it. It is not a call either."""


SLEEP = AddedFunction(
    "sleep",
    _show,
    "sleep(seconds): waits, also for hours or days: the script goes on then, with all its variables.",
    counted=False,
)
SLEEP_UNTIL = AddedFunction(
    "sleep_until", _show, 'sleep_until(time): waits until a time in seconds, or "2027-01-31T08:00:00Z".', counted=False
)
_OWN = (SHOW, PROGRESS, SLEEP, SLEEP_UNTIL)


_REVISIONS = itertools.count(1)
_ASKING = frozenset(("sys", "docs"))


class Additions(Struct, frozen=True):
    """What was added to one Sandbox or Repl beside its tools. A value: a Repl keeps what its Sandbox had."""

    functions: Mapping[str, AddedFunction] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    docs: Mapping[str, str] = field(default_factory=dict)
    revision: int = 0
    """Another one with every change that workers need to know of."""

    @classmethod
    def standard(cls, *, waits: bool = False) -> Additions:
        """What every script finds. Only where runs have a journal, the documentation says that they can wait."""
        documented = _OWN if waits else (SHOW, PROGRESS)
        return cls(functions={each.name: each for each in _OWN}, docs={each.name: each.doc for each in documented})

    def is_question(self, target: str) -> bool:
        """Whether the run answers it: about the clock or the documentation, `show`, `progress` or `sleep`. No call."""
        space, _, name = target.partition(".")
        return space in _ASKING or (space == "fn" and self.functions.get(name) in _OWN)

    def define(
        self, language: Language, name: str, value: Any, doc: str = "", *, counted: bool = True, cleaned: bool = True
    ) -> Additions:
        """With a value, or a function that scripts call with positional arguments."""
        _check_name(name, value, language, dotted=True)
        replaced = {
            key
            for key in (*self.functions, *self.values)
            if key == name or key.startswith(f"{name}.") or name.startswith(f"{key}.")  # a table, or in one
        }
        functions = {key: item for key, item in self.functions.items() if key not in replaced}
        values = {key: item for key, item in self.values.items() if key not in replaced}
        if callable(value):
            functions[name] = AddedFunction(name, value, doc, counted, cleaned)
        else:
            values[name] = _lowered(name, value)
        text = doc or _own_doc(value)
        described = self.document(name, text) if text else self
        return Additions(functions, values, described.docs, next(_REVISIONS))

    def document(self, name: str, text: str) -> Additions:
        """With an entry of the documentation; without the entry where the text is empty."""
        if not isinstance(name, str) or not isinstance(text, str):
            raise UsageError(f"documentation is text under a name: {name!r} has {type(text).__name__}")
        others = {key: item for key, item in self.docs.items() if key != name}
        return replace(self, docs={**others, name: text} if text.strip() else others)


def _own_doc(value: Any) -> str:
    """A function's docstring. That of another callable is its class's, and says nothing of the call."""
    if not callable(value):
        return ""
    import inspect  # slow to load, and a program may define no function

    text = (inspect.getdoc(value) or "") if inspect.isroutine(value) else ""
    return text if len(text) <= _LONGEST_DOC else f"{text[: _LONGEST_DOC - 1]}…"


def lower_inputs(inputs: Mapping[str, Any] | None, language: Language) -> list[tuple[str, Any]]:
    """The inputs of a run as plain values. Their names must hide nothing of what scripts find."""
    if not inputs:
        return []
    if not isinstance(inputs, Mapping):
        raise UsageError(f"inputs must be a mapping from names to values, not {type(inputs).__name__}")
    for name, value in inputs.items():
        _check_name(name, value, language, dotted=False)
    return [(name, _lowered(name, value)) for name, value in inputs.items()]


def _lowered(name: str, value: Any) -> Any:
    try:
        return plain(value, path=name)
    except ConversionError as problem:
        raise UsageError(f"the global {name!r} cannot be defined: {problem}") from None


def describe_environment(
    toolbox: Toolbox, additions: Additions, features: Iterable[str], language: Language, *, with_runtime: bool = False
) -> dict[str, Any]:
    """What the worker needs to know: names, values, the parameters for paging, and what the language adds."""
    tools = []
    for tool in toolbox:
        if tool.policy == "direct":
            continue
        name = tool.name if tool.namespace is None else tool.namespace + _PART + tool.name
        alias = toolbox.alias(tool)
        other = language.texts.identifiers(alias)
        aliases = [each.replace(".", _PART) for each in (alias, other) if each not in toolbox or each == tool.path]
        form = paging_form(tool)
        about = [f"tools.{tool.path}"] if form is None else [f"tools.{tool.path}", form]
        tools += [[each, *about] for each in dict.fromkeys((name, *aliases))]
    environment: dict[str, Any] = {
        "tools": tools,
        "functions": [
            *([name, f"tools.{name}"] for name in GLOBAL_TOOLS if name in toolbox),
            *([name.replace(".", _PART), f"fn.{name}"] for name in additions.functions),
        ],
        "values": [[name.replace(".", _PART), value] for name, value in additions.values.items()],
        "features": sorted(features),
    }
    if with_runtime and language.runtime is not None:
        environment["runtime"] = language.runtime().encode()
    if language.describe is not None:
        environment |= language.describe(toolbox)
    return environment


def _check_name(name: Any, value: Any, language: Language, *, dotted: bool) -> None:
    """Raise UsageError where a script cannot write the name, or finds something else under it.

    The name is an identifier, or several with dots for a table.
    """
    texts, parts = language.texts, name.split(".") if dotted and isinstance(name, str) else [name]
    # In a language that is compiled to Lua, variables and functions have names apart from one another.
    is_variable = language.runtime is not None and not callable(value)
    keywords = language.keywords or {*texts.reserved.split()}.difference(() if is_variable else language.docs)
    if not all(isinstance(part, str) and is_identifier(part) and part not in keywords for part in parts):
        more = " (and . between parts)" if dotted else ""
        raise UsageError(f"{name!r} is not a name that a script can write; use letters, digits and _{more}")
    if is_variable and len(parts) > 1:
        raise UsageError(f"a value has a name without dots, not {name!r}")
    hides = parts[0] in (SHOW.name, PROGRESS.name) or (parts[0] in language.docs and not is_variable)
    if callable(value) or len(parts) > 1:
        hides = hides or parts[0] in f"{texts.reserved} {texts.taken}".split()
    if hides:
        raise UsageError(f"{name!r} would hide what scripts find as {parts[0]!r}: choose another name")
