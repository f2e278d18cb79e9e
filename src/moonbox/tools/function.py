"""Python callables, looked at: their parameters, annotations, docstring and kind.

Understood are functions, methods, `functools.partial` (bound arguments vanish) and objects with `__call__`,
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
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

from moonbox.errors import ToolDefinitionError
from moonbox.tools.context import Context, Injected

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["CONTEXT", "EMPTY", "Function", "Parameter", "injections", "is_async", "look_at"]

EMPTY: Any = inspect.Parameter.empty
CONTEXT = "<context>"
"""The injection key of a parameter that receives the Context itself."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter that a call can fill or that the host injects."""

    name: str
    annotation: Any
    kind: Any
    default: Any = EMPTY
    injected: str | None = None
    """The key of `Context.extra` it is taken from, or CONTEXT; None for an ordinary parameter."""

    @property
    def has_default(self) -> bool:
        return self.default is not EMPTY


@dataclass(frozen=True, slots=True)
class Function:
    """What a callable looks like from outside."""

    name: str
    doc: str | None
    parameters: tuple[Parameter, ...]
    returns: Any
    is_async: bool
    unbound: bool
    """It is a method written in a class body, without its instance yet."""


def look_at(call: Callable[..., Any]) -> Function:
    """Inspect a callable; raises ToolDefinitionError where it cannot be a tool."""
    inner, fixed = _unwrap(call)
    name = _name(inner)
    if isinstance(inner, type):
        raise ToolDefinitionError(f"{name} is a class; give a function, a method, or an instance with __call__")
    if not callable(inner):
        raise ToolDefinitionError(f"{inner!r} is not callable")
    target = _caller(inner)
    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        raise ToolDefinitionError(f"{name} is a generator; a tool returns one value, so return a list instead")
    try:
        signature = inspect.signature(call)
    except (ValueError, TypeError):
        raise ToolDefinitionError(f"{name} has no signature that Python can read; use Tool.from_schema") from None
    hints = _hints(target, name)
    found = [_parameter(item, hints) for item in signature.parameters.values() if item.name not in fixed]
    unbound = bool(found) and found[0].name in {"self", "cls"} and _is_in_class(target) and not inspect.ismethod(inner)
    returns = hints.get("return", signature.return_annotation)
    doc = inspect.getdoc(target) or inspect.getdoc(inner)
    return Function(name, doc, tuple(found[1:] if unbound else found), returns, is_async(call), unbound)


def is_async(call: Any) -> bool:
    """Whether calling it gives something to await. (A plain function may still return an awaitable.)"""
    inner, _ = _unwrap(call)
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(_caller(inner))


def injections(call: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The injected parameters of a callable that takes its arguments as one dict."""
    inner, _ = _unwrap(call)
    target = _caller(inner)
    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        raise ToolDefinitionError(f"{_name(inner)} is a generator; a tool returns one value, so return a list instead")
    try:
        alone = len(inspect.signature(call).parameters) <= 1
    except (ValueError, TypeError):  # built in: it says nothing about itself, so it takes the dict and no more
        return ()
    return () if alone else tuple(item for item in look_at(call).parameters if item.injected is not None)


def injected_key(annotation: Any, name: str) -> str | None:
    """Where a parameter with this annotation gets its value from, if the host injects it."""
    if _is_context(annotation):
        return CONTEXT
    if get_origin(annotation) is not Annotated:
        return None
    inner, *marks = get_args(annotation)
    for mark in marks:
        if mark is Injected or isinstance(mark, Injected):
            key = mark.key if isinstance(mark, Injected) else None
            return key if key is not None else (CONTEXT if _is_context(inner) else name)
    return CONTEXT if _is_context(inner) else None


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


def _parameter(item: inspect.Parameter, hints: Mapping[str, Any]) -> Parameter:
    annotation = hints.get(item.name, item.annotation)
    if annotation is EMPTY or isinstance(annotation, str):
        annotation = Any
    return Parameter(item.name, annotation, item.kind, item.default, injected_key(annotation, item.name))


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
