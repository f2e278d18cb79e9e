"""The environment that a worker is configured with, made from toolbox, functions and values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moonbox.errors import ConversionError, UsageError
from moonbox.languages.names import RESERVED_WORDS
from moonbox.sandbox.pipeline import HostFunction
from moonbox.values import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moonbox.tools.toolbox import Toolbox

__all__ = ["Additions", "check_name", "describe_environment"]

_PART = "\x1f"  # separates the parts of a name; a tool's own name may contain dots


@dataclass(slots=True)
class Additions:
    """What was added to one Sandbox or Repl beside its tools."""

    functions: dict[str, HostFunction] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    docs: dict[str, str] = field(default_factory=dict)
    revision: int = 0

    def copy(self) -> Additions:
        return Additions(dict(self.functions), dict(self.values), dict(self.docs), self.revision)

    def define(self, name: str, value: Any, doc: str, *, counted: bool) -> None:
        """A value, or a function that scripts call with positional arguments."""
        check_name(name)
        if callable(value):
            self._set_function(HostFunction(name, value, doc, counted))
        else:
            self._set_value(name, value)
        if doc:
            self.docs[name] = doc

    def _set_value(self, name: str, value: Any) -> None:
        try:
            lowered = plain(value, path=name)
        except ConversionError as problem:
            raise UsageError(f"the global {name!r} cannot be defined: {problem}") from None
        self.functions.pop(name, None)
        self.values[name] = lowered
        self.revision += 1

    def _set_function(self, function: HostFunction) -> None:
        self.values.pop(function.name, None)
        self.functions[function.name] = function
        self.revision += 1


def describe_environment(
    toolbox: Toolbox,
    functions: Mapping[str, HostFunction],
    values: Mapping[str, Any],
    features: Iterable[str],
    runtime: str | None = None,
) -> dict[str, Any]:
    """What the worker needs to know: names and values, nothing of the tools themselves."""
    tools = []
    for tool in toolbox:
        if tool.policy == "direct":
            continue
        name = tool.name if tool.namespace is None else tool.namespace + _PART + tool.name
        alias = toolbox.alias(tool).replace(".", _PART)
        tools += [[each, f"tools.{tool.path}"] for each in dict.fromkeys((name, alias))]
    environment: dict[str, Any] = {
        "tools": tools,
        "functions": [[name.replace(".", _PART), f"fn.{name}"] for name in functions],
        "values": [[name.replace(".", _PART), value] for name, value in values.items()],
        "features": sorted(features),
    }
    if runtime is not None:
        environment["runtime"] = runtime.encode()
    return environment


def check_name(name: str) -> str:
    """A name under which a global can be defined: identifiers, joined by dots for functions in a table."""
    parts = name.split(".") if isinstance(name, str) else []
    if not parts or not all(part.isascii() and part.isidentifier() and part not in RESERVED_WORDS for part in parts):
        raise UsageError(
            f"{name!r} is not a name that a script can write; use letters, digits and _ (and . between parts)"
        )
    return name
