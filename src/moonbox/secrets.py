"""Secrets: known ones are replaced in values, in every spelling in which servers commonly echo them."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from moonbox.values import encode, mapped

MIN_SECRET = 6
"""A shorter text occurs by chance, so that replacing it would damage ordinary values."""

_SIGNS = (b"+", b"/", b"-", b"_")


class SecretRedactor:
    """Replaces each secret by `[secret NAME]`, in strings, binary strings, numbers, and keys and items of tables.

    It knows the text itself in any letter case, percent-encoded, JSON- and HTML-escaped, in hexadecimal, backwards,
    in UTF-16, and in base64 at any position inside a longer encoded text.
    """

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        self._needles: tuple[_Needle, ...] = ()
        self._digits: dict[str, str] = {}
        self._added: set[tuple[str, str]] = set()
        self._adding = threading.Lock()
        for name, text in (secrets or {}).items():
            self.add(name, text)

    def __bool__(self) -> bool:
        """Whether there is anything to replace."""
        return bool(self._needles)

    def add(self, name: str, text: str) -> None:
        """From now on replace this text; texts shorter than MIN_SECRET are left alone."""
        with self._adding:
            if len(text) < MIN_SECRET or (name, text) in self._added:
                return
            self._added.add((name, text))
            known = {needle.text for needle in self._needles}
            fresh = [needle for needle in _spellings(name, text) if needle.text not in known]
            self._needles = (*self._needles, *fresh)
            digits = text.lstrip("0")
            if digits.isascii() and digits.isdigit():  # zeros alone are the number 0, which occurs everywhere
                self._digits = {**self._digits, digits: name}

    def __call__(self, value: Any) -> Any:
        """The plain value without secrets; the very same object when it contains none."""
        if not self._needles or (isinstance(value, list | dict) and not self._suspects(value)):
            return value
        clean = mapped(value, self._redacted)
        return value if clean == value else clean

    def _suspects(self, value: Any) -> bool:
        """One search through everything at once: for a large table far quicker than one in each of its strings."""
        try:
            folded = encode(value).lower()
        except (TypeError, ValueError, OverflowError):  # half of a surrogate pair, or not plain
            return True
        return bool(self._digits) or any(needle.text in folded for needle in self._needles)

    def _redacted(self, value: Any) -> Any:
        if isinstance(value, str):
            data = value.encode("utf-8", "surrogatepass")
            clean = self._redacted_bytes(data)
            return value if clean is data else clean.decode("utf-8", "replace")
        if isinstance(value, bytes):
            return self._redacted_bytes(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and (digits := _whole(value)) in self._digits:
            return f"[secret {self._digits[digits]}]"
        return value

    def _redacted_bytes(self, data: bytes) -> bytes:
        folded = data.lower()
        spans: list[tuple[int, int, str]] = []
        for needle in self._needles:
            at = folded.find(needle.text)
            while at >= 0:
                end = at + len(needle.text)
                spans.append((*needle.widened(folded, at, end), needle.name))
                at = folded.find(needle.text, end)
        return _without(data, sorted(spans)) if spans else data


def _whole(value: float) -> str:
    """The digits of a number's whole part; none for one that is too large to be a secret, or not finite."""
    return str(int(value)) if abs(value) < 2**63 else ""


class _Needle(Struct, frozen=True):
    text: bytes
    name: str
    base64: bool = False

    def widened(self, data: bytes, start: int, end: int) -> tuple[int, int]:
        """In base64 the characters on either side may hold a few bits of the secret too."""
        if self.base64:
            start -= data[start - 1 : start].isalnum() or data[start - 1 : start] in _SIGNS
            end += data[end : end + 1].isalnum() or data[end : end + 1] in _SIGNS
        return start, end


def _spellings(name: str, text: str) -> list[_Needle]:
    import html  # here and below: only a Sandbox that has secrets needs these
    from urllib.parse import quote, quote_plus

    data = text.encode("utf-8", "surrogatepass")
    escaped = json.dumps(text)[1:-1]
    plain = {
        data,
        data[::-1],
        text.encode("utf-16-le", "surrogatepass"),
        text.encode("utf-16-be", "surrogatepass"),
        escaped.encode(),
        escaped.replace("/", "\\/").encode(),
        json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass"),
        html.escape(text).encode("utf-8", "surrogatepass"),
        html.escape(text, quote=False).encode("utf-8", "surrogatepass"),
        quote(data).encode(),
        quote(data, safe="").encode(),
        quote(quote(data, safe=""), safe="").encode(),
        quote_plus(data).encode(),
        "".join(f"%{byte:02x}" for byte in data).encode(),
        "".join(f"\\x{byte:02x}" for byte in data).encode(),
        "".join(f"\\u{ord(char):04x}" for char in text).encode(),
        data.hex().encode(),
        data.hex(" ").encode(),
        data.hex(":").encode(),
    }
    needles = {spelling.lower(): _Needle(spelling.lower(), name) for spelling in plain}
    for core in _base64_cores(data):
        needles.setdefault(core.lower(), _Needle(core.lower(), name, base64=True))
    return list(needles.values())


def _base64_cores(data: bytes) -> set[bytes]:
    """What stays the same in base64 whatever surrounds the data, for its three possible alignments."""
    from base64 import b64encode

    cores: set[bytes] = set()
    for offset in range(3):
        encoded = b64encode(bytes(offset) + data)
        core = encoded[-(-8 * offset // 6) : 8 * (offset + len(data)) // 6]
        cores |= {core, core.replace(b"+", b"-").replace(b"/", b"_")}
    return {core for core in cores if len(core) >= MIN_SECRET - 1}


def _without(data: bytes, spans: list[tuple[int, int, str]]) -> bytes:
    pieces: list[bytes] = []
    done = 0
    for start, end, name in spans:
        if end <= done:
            continue
        if start >= done:
            pieces += [data[done:start], f"[secret {name}]".encode()]
        done = end
    return b"".join([*pieces, data[done:]])
