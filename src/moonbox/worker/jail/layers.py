"""A layer's outcome, and the two ways of putting one in force."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Layer", "Step", "Unavailable", "attempt", "run_step"]


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
    """A layer that each worker puts in force itself: system calls that are ready to be made.

    Everything is worked out before the fork, because what costs time in a fresh process is each page of memory that
    it is the first to touch.
    """

    layer: Layer
    """What to say when every call succeeded."""
    calls: tuple[Callable[[], object], ...]
    """Each returns nothing or 0; -1 with errno set or an OSError says that it failed, a number that a thread did."""
    reasons: Mapping[int, str] = field(default_factory=dict)
    """What an errno means here."""
    keep: object = None
    """The memory that the calls point to."""


def attempt(name: str, apply: Callable[[], str]) -> Layer:
    """Put a layer in force in the zygote: `apply` returns the detail, or raises `Unavailable` or OSError."""
    try:
        return Layer(name, True, apply())
    except OSError as error:
        return Layer(name, False, error.strerror or str(error))


def run_step(step: Step | Layer) -> Layer:
    """Put a layer in force in the worker. A Layer in place of a Step says that this was not possible."""
    if isinstance(step, Layer):
        return step
    try:
        for call in step.calls:
            if result := call():
                return Layer(step.layer.name, False, _failure(step, ctypes.get_errno(), result))
    except OSError as error:
        return Layer(step.layer.name, False, _failure(step, error.errno or 0, error.strerror or error))
    return step.layer


def _failure(step: Step, number: int, result: object) -> str:
    if result == -1:
        result = os.strerror(number)
    elif isinstance(result, int):
        return f"thread {result} is under a filter of its own and could not be brought under this one"
    return step.reasons.get(number, str(result))
