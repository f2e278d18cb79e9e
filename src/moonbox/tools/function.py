"""Python functions as tools: what they look like, what the host fills in for them, and how they are called.

Functions, methods, `functools.partial` (bound arguments vanish) and objects with `__call__` are accepted,
synchronous and asynchronous. `*args: T` is a parameter that takes an array of T; `**kwargs: T` lets the
schema accept further parameters of type T. Generators and classes are refused.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
import types
import typing
from dataclasses import dataclass, field
from inspect import Parameter
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from msgspec import Struct

from moonbox.errors import ToolDefinitionError, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moonbox.tools.binding import Binder
    from moonbox.tools.schema import Converter

EMPTY: Any = Parameter.empty
"""Stands for a default or an annotation that there is none of."""
_CONTEXT = "<context>"
"""The injection key of a parameter that receives the Context itself."""
Injections = tuple[tuple[Parameter, str], ...]
"""Parameters that the host fills in, each with its key in `Context.extra`, or _CONTEXT."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The call that a tool is answering. A parameter annotated `Context` receives it and is not in the schema."""

    run_id: str = ""
    repl_id: str = ""
    tool: str = ""
    """The path of the tool that was called."""
    index: int = 0
    """1 for the first call of the run."""
    idempotency_key: str = ""
    """The same for every try of this call, also after a crash of the host, and of no other call."""
    extra: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """What the host's author gave to the Sandbox, and to the run, for its tools: a database, a user, a session."""
    cancelled: Callable[[], bool] = lambda: False
    """Whether the run has ended; a long synchronous tool should check this now and then and give up."""
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The labels of the run."""
    report: Callable[[Mapping[str, Any]], None] = lambda spent: None
    """Puts what the call spent, such as tokens, into its record."""


class Injected(Struct, frozen=True):
    """Marks a parameter as filled in by the host: it never appears in the schema.

    `Annotated[Database, Injected]` takes `context.extra[<parameter name>]`, `Annotated[Database, Injected("db")]`
    takes `context.extra["db"]`, and `Annotated[Context, Injected]` is the same as `Context`.
    """

    key: str | None = None


class InspectedFunction(Struct, frozen=True):
    """What a callable looks like from outside."""

    name: str
    doc: str | None
    parameters: tuple[Parameter, ...]
    """With their annotations evaluated."""
    injected: Injections
    returns: Any
    is_async: bool
    unbound: bool
    """It is a method written in a class body, without its instance yet."""


def inspect_function(call: Callable[..., Any]) -> InspectedFunction:
    """Inspect a callable; raises ToolDefinitionError where it cannot be a tool."""
    inner, fixed = _unwrap(call)
    name = _name(inner)
    if isinstance(inner, type):
        raise ToolDefinitionError(f"{name} is a class; give a function, a method, or an instance with __call__")
    if not callable(inner):
        raise ToolDefinitionError(f"{inner!r} is not callable")
    target = _caller(inner)
    try:
        signature = inspect.signature(call)
    except (ValueError, TypeError):
        raise ToolDefinitionError(f"{name} has no readable signature; use Tool.from_schema") from None
    hints = _hints(target, name)
    parameters = [_evaluated(item, hints) for item in signature.parameters.values() if item.name not in fixed]
    first = parameters[0].name if parameters else ""
    unbound = first in {"self", "cls"} and _is_in_class(target) and not inspect.ismethod(inner)
    returns = hints.get("return", signature.return_annotation)
    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        returns = _rows(returns)
    doc = inspect.getdoc(target) or inspect.getdoc(inner)
    keys = [(item, _injected_key(item.annotation, item.name)) for item in parameters[unbound:]]
    injected = tuple((item, key) for item, key in keys if key is not None)
    return InspectedFunction(name, doc, tuple(parameters[unbound:]), injected, returns, is_async(call), unbound)


def _rows(returns: Any) -> Any:
    """What a generator yields, as the list that crosses: Iterator[int] becomes list[int]."""
    yielded = get_args(returns)[:1]
    return list[yielded[0]] if yielded else list  # type: ignore[valid-type]  # a type made at run time


def is_async(call: Any) -> bool:
    """Whether calling it gives something to await. (A plain function may still return an awaitable.)"""
    inner, _ = _unwrap(call)
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(_caller(inner))


def injections(call: Callable[..., Any]) -> Injections:
    """The injected parameters of a callable that takes its arguments as one dict."""
    try:
        alone = len(inspect.signature(call).parameters) <= 1
    except (ValueError, TypeError):  # built in: it says nothing about itself, so it takes the dict and no more
        return ()
    return () if alone else inspect_function(call).injected


class CallPlan(Struct, frozen=True):
    """How a bound dict becomes the arguments of one function."""

    converter: Converter | None
    """None for a function that takes the whole dict as its one argument."""
    injected: Injections = ()
    positional: tuple[Parameter, ...] = ()
    """Parameters that must be passed by position, in order."""
    spread: str | None = None
    """The `*args` parameter."""
    by_name: Callable[[Any], dict[str, Any]] | None = None
    """All that most functions need: pydantic's conversion, which gives their arguments by name."""

    @property
    def takes_context(self) -> bool:
        """Whether the function gets the Context of each call."""
        return any(key == _CONTEXT for _, key in self.injected)

    def arguments(
        self, bound: dict[str, Any], context: Context | None, tool: str, binder: Binder, first_index: int = 0
    ) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments for the call; raises ArgumentError where a value does not convert."""
        if self.converter is None:
            return [dict(bound)], self._injections(context, tool)
        try:
            values = self.converter.convert(bound)
        except ValueError as error:  # pydantic's ValidationError is one, and only it is raised
            from moonbox.tools.schema import explain

            raise binder.error(explain(error, bound, first_index), tool) from None
        if self.injected:
            values.update(self._injections(context, tool))
        if not self.positional and self.spread is None:
            return [], values
        return self._place(values), values

    def _place(self, values: dict[str, Any]) -> list[Any]:
        """Take from `values` what goes by position; a gap is closed with the parameter's own default."""
        rest = values.pop(self.spread, []) if self.spread is not None else []
        last = (
            len(self.positional)
            if rest
            else max((at for at, item in enumerate(self.positional, 1) if item.name in values), default=0)
        )
        return [*(values.pop(item.name, item.default) for item in self.positional[:last]), *rest]

    def _injections(self, context: Context | None, tool: str) -> dict[str, Any]:
        filled: dict[str, Any] = {}
        if not self.injected:
            return filled
        context = context if context is not None else Context(tool=tool)
        for item, key in self.injected:
            if key == _CONTEXT:
                filled[item.name] = context
            elif key in context.extra:
                filled[item.name] = context.extra[key]
            elif item.default is EMPTY:
                message = f"{tool} needs {key!r}, which the host did not supply"
                raise ToolError(message, code="missing_context", tool=tool)
        return filled


def plan_call(function: InspectedFunction, converter: Converter) -> CallPlan:
    """Work out once how a function is called that takes its arguments one by one."""
    parameters, injected = function.parameters, function.injected
    spread = next((item.name for item in parameters if item.kind is Parameter.VAR_POSITIONAL), None)
    kinds = (Parameter.POSITIONAL_ONLY, *([Parameter.POSITIONAL_OR_KEYWORD] if spread is not None else []))
    positional = tuple(item for item in parameters if item.kind in kinds)
    is_simple = not (injected or positional or spread or converter.hashed or converter.has_rest)
    return CallPlan(converter, injected, positional, spread, converter.validate if is_simple else None)


def _injected_key(annotation: Any, name: str) -> str | None:
    """Where a parameter with this annotation gets its value from, if the host injects it."""
    if _is_context(annotation):
        return _CONTEXT
    if get_origin(annotation) is not Annotated:
        return None
    inner, *marks = get_args(annotation)
    for mark in marks:
        if mark is Injected or isinstance(mark, Injected):
            key = mark.key if isinstance(mark, Injected) else None
            return key if key is not None else (_CONTEXT if _is_context(inner) else name)
    return _CONTEXT if _is_context(inner) else None


def _is_context(annotation: Any) -> bool:
    """`Context`, or `Context | None`."""
    if annotation is Context:
        return True
    if get_origin(annotation) in {typing.Union, types.UnionType}:
        return set(get_args(annotation)) == {Context, type(None)}
    return False


def _unwrap(call: Any) -> tuple[Any, set[str]]:
    """The callable inside partials and static methods, and the keyword arguments those have fixed."""
    fixed: set[str] = set()
    while True:
        if isinstance(call, functools.partial):
            fixed.update(call.keywords)
            call = call.func
        elif isinstance(call, staticmethod | classmethod):
            call = call.__func__
        else:
            return call, fixed


def _caller(inner: Any) -> Any:
    """The function that runs when the callable is called."""
    return inner if inspect.isroutine(inner) else type(inner).__dict__.get("__call__", type(inner).__call__)


def _name(inner: Any) -> str:
    name = getattr(inner, "__name__", None)
    if isinstance(name, str):
        return name
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(inner).__name__).lower()


def _evaluated(item: Parameter, hints: Mapping[str, Any]) -> Parameter:
    annotation = hints.get(item.name, item.annotation)
    return item.replace(annotation=Any if annotation is EMPTY or isinstance(annotation, str) else annotation)


def _is_in_class(target: Any) -> bool:
    outer = getattr(target, "__qualname__", "").rpartition(".")[0]
    return bool(outer) and not outer.endswith("<locals>")


def _hints(target: Any, name: str) -> dict[str, Any]:
    """Evaluated annotations; names local to the function that defines the tool are found through its frames."""
    while isinstance(target, types.MethodType):
        target = target.__func__
    target = inspect.unwrap(target)
    try:
        return typing.get_type_hints(target, include_extras=True)
    except NameError:
        pass
    except TypeError:
        return {}
    try:
        return typing.get_type_hints(target, localns=_callers_names(), include_extras=True)
    except NameError as error:
        raise ToolDefinitionError(
            f"{name} has an annotation that cannot be resolved: {error}; "
            "import the name at run time (not only under TYPE_CHECKING) or define it before the tool"
        ) from None


def _callers_names() -> dict[str, Any]:
    """The local names of the frames outside this package, innermost first."""
    names: dict[str, Any] = {}
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if not frame.f_globals.get("__name__", "").startswith("moonbox.tools"):
            for name, value in frame.f_locals.items():
                names.setdefault(name, value)
        frame = frame.f_back
    return names
