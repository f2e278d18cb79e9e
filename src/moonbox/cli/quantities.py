"""Quantities as people type them: `10s`, `64MB`, `none`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moonbox.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Quantity", "byte_count", "count", "duration"]

_NUMBER = re.compile(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?)\s*([a-zµ]*)\s*", re.IGNORECASE)
_SECONDS = {"": 1, "s": 1, "ms": 0.001, "m": 60, "min": 60, "h": 3600}
_BYTES = {"": 1, "b": 1, "k": 1024, "kib": 1024, "kb": 1000, "m": 1024**2, "mib": 1024**2, "mb": 1000**2}
_BYTES |= {"g": 1024**3, "gib": 1024**3, "gb": 1000**3}
_TIMES = {"": 1, "k": 1000, "m": 1_000_000}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A limit that was given; None stands for "no limit"."""

    value: float | None


def duration(text: str) -> Quantity:
    """Seconds: `10`, `10s`, `500ms`, `2m`, `none`."""
    return _quantity(text, _SECONDS, "a length of time such as 10, 500ms, 2m or none", whole=False)


def byte_count(text: str) -> Quantity:
    """Bytes: `65536`, `64k`, `64MiB`, `64MB`."""
    return _quantity(text, _BYTES, "a number of bytes such as 65536, 64k, 64MiB or 64MB")


def count(text: str) -> Quantity:
    """How many: `50`, `10_000`, `10k`, `none`."""
    return _quantity(text, _TIMES, "a whole number such as 50, 10_000, 10k or none")


def _quantity(text: str, units: Mapping[str, float], wanted: str, *, whole: bool = True) -> Quantity:
    if text.strip().lower() == "none":
        return Quantity(None)
    found = _NUMBER.fullmatch(text)
    factor = units.get(found[2].lower()) if found else None
    if found is None or factor is None:
        raise UsageError(f"{text!r} is not {wanted}")
    value = float(found[1]) * factor
    if not whole:
        return Quantity(value)
    if value != int(value):
        raise UsageError(f"{text!r} is not {wanted}")
    return Quantity(int(value))
