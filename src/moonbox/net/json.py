"""JSON of a stranger: bodies of responses as values that scripts can have."""

from __future__ import annotations

import json
import math
from typing import Any

from moonbox.values import INT64_MAX, INT64_MIN

_MOST_VALUES = 1_000_000


def parse_json(data: bytes) -> Any:
    """The value, or None when the body is not JSON, is nested too deeply or contains too many values."""
    if sum(map(data.count, (b"[", b"{", b","))) > _MOST_VALUES:  # each would take far more memory than it has bytes
        return None
    try:
        return json.loads(data, parse_int=_whole, parse_float=_fraction, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _whole(digits: str) -> int | float | str:
    """Scripts have 64-bit integers; larger ones become floats, as most JSON readers do."""
    if len(digits) <= 20 and INT64_MIN <= int(digits) <= INT64_MAX:
        return int(digits)
    return _fraction(digits)


def _fraction(digits: str) -> float | str:
    """What no float can hold stays text, because infinity is not a JSON value."""
    value = float(digits)
    return value if math.isfinite(value) else digits


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
