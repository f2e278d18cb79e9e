"""A layer's outcome, and how layers are planned before a fork and put in force after it."""

from __future__ import annotations

import ctypes
import os
from collections import namedtuple

TYPE_CHECKING = False  # the jail is imported by every zygote: no typing, no dataclasses
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Call = Callable[[], object]


class Unavailable(OSError):
    """This platform or kernel lacks a layer; the message says why."""


class Layer(namedtuple("Layer", ("name", "active", "detail"))):
    """One protection: whether it is in force, and how, or why it is not."""

    __slots__ = ()
    if TYPE_CHECKING:
        name: str
        active: bool
        detail: str

    @classmethod
    def read(cls, greeting: bytes) -> tuple[Layer, ...]:
        """The layers of which a worker tells in its greeting."""
        parts = [line.split("\t") for line in greeting.decode("utf-8", "replace").splitlines()]
        return tuple(cls(part[0], part[1] == "1", part[2]) for part in parts if len(part) == 3)


class Step:
    """A layer that each worker puts in force itself, by calls that are ready to be made.

    Each call returns nothing or 0; -1 with errno set or an exception says that it failed, another number that the
    thread of that number did. `reasons` says what an errno means here; `keep` is the memory that the calls point to.
    """

    __slots__ = ("calls", "keep", "layer", "reasons")

    def __init__(
        self, layer: Layer, *calls: Call, reasons: Mapping[int, str] | None = None, keep: object = None
    ) -> None:
        self.layer = layer
        self.calls = calls
        self.reasons = reasons or {}
        self.keep = keep


class Plan:
    """Steps, all of their calls in order, and their layers as they are reported if nothing fails.

    A fresh process pays for each page that it touches first, so almost everything is computed before the fork.
    """

    __slots__ = ("calls", "layers", "steps")

    def __init__(self, steps: Iterable[Step | Layer]) -> None:
        self.steps = tuple(steps)
        self.calls = tuple(call for step in self.steps if isinstance(step, Step) for call in step.calls)
        self.layers = tuple(step.layer if isinstance(step, Step) else step for step in self.steps)


def attempt(name: str, apply: Callable[[], str]) -> Layer:
    """Put a layer in force at once: `apply` returns the detail, or raises `Unavailable` or OSError."""
    try:
        return Layer(name, True, apply())
    except (OSError, ValueError) as error:
        return Layer(name, False, _reason(error, {}))


def plan(name: str, make: Callable[[], Step]) -> Step | Layer:
    """The step that `make` returns, or the layer that says why there is none."""
    try:
        return make()
    except Unavailable as reason:
        return Layer(name, False, str(reason))


def enforce(planned: Plan) -> tuple[Layer, ...]:
    """Make every call, whether or not others fail, and tell how each layer stands."""
    failures = None
    for call in planned.calls:
        try:
            result = call()
        except (OSError, ValueError) as error:  # setrlimit turns some of its errors into ValueErrors
            result = error
        if result:
            failures = failures or {}
            failures[call] = result if result != -1 else OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return planned.layers if failures is None else tuple(_outcome(step, failures) for step in planned.steps)


def outcomes(planned: Plan, results: list[int]) -> tuple[Layer, ...]:
    """How each layer stands after the native part has made the calls; a result is 0, an errno, or minus a thread's."""
    failures: dict[Call, object] = {
        call: OSError(result, os.strerror(result)) if result > 0 else -result
        for call, result in zip(planned.calls, results, strict=True)
        if result
    }
    return planned.layers if not failures else tuple(_outcome(step, failures) for step in planned.steps)


def _outcome(step: Step | Layer, failures: Mapping[Call, object]) -> Layer:
    if isinstance(step, Layer):
        return step
    for call in step.calls:
        if call in failures:
            return Layer(step.layer.name, False, _reason(failures[call], step.reasons))
    return step.layer


def _reason(failure: object, reasons: Mapping[int, str]) -> str:
    if isinstance(failure, OSError):
        return reasons.get(failure.errno or 0) or failure.strerror or str(failure)
    if isinstance(failure, ValueError):
        return str(failure)
    return f"thread {failure} is under a filter of its own and could not be brought under this one"
