"""Text and binary data at the edge of a script, where both are strings."""

from __future__ import annotations

from moonbox.errors import ArgumentError

__all__ = ["bounded", "text_or_bytes"]


def text_or_bytes(data: bytes) -> str | bytes:
    """Text when it is valid UTF-8. Scripts see the same string either way."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def bounded(function: str, data: str | bytes, most: int) -> None:
    """Raises ArgumentError when the data is longer than a function may work on."""
    if len(data) > most:
        raise ArgumentError(f"{function} takes at most {most:,} bytes, not {len(data):,}", code="too_large")
