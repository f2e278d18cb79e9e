"""Words for people: counts with their nouns, figures in natural units, and text that is harmless on a terminal."""

from __future__ import annotations

from unicodedata import category


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """`1 call`, `2 calls`, `1,500 calls`; `plural` for nouns that do not just take an s."""
    return f"{number:,} {noun(number, singular, plural)}"


def noun(number: int, singular: str, plural: str | None = None) -> str:
    """The noun alone, in the form that fits the number."""
    return singular if number == 1 else plural or f"{singular}s"


def visible(text: str, *, keep: str = "\n\t", as_json: bool = False) -> str:
    """Text that is safe on a terminal: a script's escape codes and direction marks are shown, not obeyed.

    `as_json`: they are spelled as JSON spells them, so that a JSON text stays one.
    """
    if text.isascii() and text.isprintable():
        return text
    escape = _json_escaped if as_json else _escaped
    return "".join(mark if mark in keep or not _is_hidden(mark) else escape(mark) for mark in text)


def cut(text: str, longest: int) -> str:
    """The text, cut with `…` where it is longer."""
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def one_line(text: str, longest: int | None = None) -> str:
    """Text without what breaks, hides or turns a line, cut with `…` where it is longer."""
    if longest is not None:
        return cut(one_line(text[: 4 * longest]), longest)
    if not (text.isascii() and text.isprintable()):
        text = "".join(" " if _is_hidden(mark) else mark for mark in text)
    return " ".join(text.split())


def seconds(duration: float) -> str:
    """A length of time in its natural unit."""
    if duration < 0.0009995:
        return f"{duration * 1e6:.0f} µs"
    if duration < 0.9995:
        return f"{duration * 1e3:.3g} ms"
    for most, unit, name in ((600, 1, "s"), (7_200, 60, "min"), (172_800, 3_600, "h")):
        if duration < most:
            return f"{duration / unit:.1f} {name}"
    return f"{duration / 86_400:.1f} days"


def size(count: float) -> str:
    """A number of bytes in its natural unit."""
    for unit in ("B", "kB", "MB"):
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


def _is_hidden(mark: str) -> bool:
    """Whether a character cannot be seen, or breaks or turns a line."""
    return category(mark) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _escaped(mark: str) -> str:
    code = ord(mark)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"


def _json_escaped(mark: str) -> str:
    data = mark.encode("utf-16-be", "surrogatepass")  # in which JSON counts
    return "".join(f"\\u{int.from_bytes(data[place : place + 2]):04x}" for place in range(0, len(data), 2))
