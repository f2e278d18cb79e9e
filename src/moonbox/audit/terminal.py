"""Text for terminals: what scripts wrote made harmless, and readable figures."""

from __future__ import annotations

import unicodedata

__all__ = ["seconds", "size", "visible"]


def visible(text: str, *, keep: str = "\n\t") -> str:
    """Text that is safe on a terminal: a script's escape codes and direction marks are shown, not obeyed."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(mark if mark in keep or not _is_hidden(mark) else _escaped(mark) for mark in text)


def seconds(duration: float) -> str:
    """A length of time in its natural unit."""
    if duration < 0.0009995:
        return f"{duration * 1e6:.0f} µs"
    if duration < 0.9995:
        return f"{duration * 1e3:.3g} ms"
    return f"{duration:.1f} s" if duration < 600 else f"{duration / 60:.1f} min"


def size(count: float) -> str:
    """A number of bytes in its natural unit."""
    for unit in ("B", "kB", "MB"):
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


def _is_hidden(mark: str) -> bool:
    return unicodedata.category(mark) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _escaped(mark: str) -> str:
    code = ord(mark)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
