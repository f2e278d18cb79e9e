"""A layer's outcome, and how layers are planned before a fork and put in force after it."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["Layer", "Plan", "Step", "Unavailable", "attempt", "enforce", "plan"]


class Unavailable(OSError):
    """This platform or kernel lacks a layer; the message says why."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One protection: whether it is in force, and how, or why it is not."""

    name: str
    active: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Step:
    """A layer that each worker puts in force itself, by calls that are ready to be made."""

    layer: Layer
    """What to say when every call succeeded."""
    calls: tuple[Callable[[], object], ...]
    """Each returns nothing or 0; -1 with errno set or an OSError says that it failed, a number that a thread did."""
    reasons: Mapping[int, str] = field(default_factory=dict)
    """What an errno means here."""
    keep: object = None
    """The memory that the calls point to."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps with their calls in one row and their layers as they will be told if nothing fails.

    What costs time and memory in a fresh process is each page that it is the first to touch, so almost everything is
    done before the fork.
    """

    steps: tuple[Step | Layer, ...]
    calls: tuple[Callable[[], object], ...]
    layers: tuple[Layer, ...]


def attempt(name: str, apply: Callable[[], str]) -> Layer:
    """Put a layer in force at once: `apply` returns the detail, or raises `Unavailable` or OSError."""
    try:
        return Layer(name, True, apply())
    except OSError as error:
        return Layer(name, False, error.strerror or str(error))


def plan(steps: Iterable[Step | Layer]) -> Plan:
    """Steps to be taken together. A Layer among them stands for one that cannot be had, or is in force already."""
    steps = tuple(steps)
    calls = tuple(call for step in steps if isinstance(step, Step) for call in step.calls)
    return Plan(steps, calls, tuple(step.layer if isinstance(step, Step) else step for step in steps))


def enforce(planned: Plan) -> tuple[Layer, ...]:
    """Make every call, whether or not others fail, and tell how each layer stands."""
    failures = None
    for call in planned.calls:
        try:
            result = call()
        except OSError as error:
            result = error
        if result:
            failures = failures or {}
            failures[call] = _Failure(ctypes.get_errno(), result)
    return planned.layers if failures is None else tuple(_outcome(step, failures) for step in planned.steps)


@dataclass(frozen=True, slots=True)
class _Failure:
    errno: int
    result: object

    def reason(self, reasons: Mapping[int, str]) -> str:
        if isinstance(self.result, OSError):
            return reasons.get(self.result.errno or 0) or self.result.strerror or str(self.result)
        if self.result == -1:
            return reasons.get(self.errno) or os.strerror(self.errno)
        return f"thread {self.result} is under a filter of its own and could not be brought under this one"


def _outcome(step: Step | Layer, failures: Mapping[Callable[[], object], _Failure]) -> Layer:
    if isinstance(step, Layer):
        return step
    for call in step.calls:
        if call in failures:
            return Layer(step.layer.name, False, failures[call].reason(step.reasons))
    return step.layer
