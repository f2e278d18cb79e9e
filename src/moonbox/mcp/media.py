"""Media: images, sounds and files that tools returned, kept for a while under an address that cannot be guessed."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass

__all__ = ["PREFIX", "Media", "Medium"]

PREFIX = "moonbox://media/"
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Medium:
    """One of them, as it came: base64."""

    kind: str
    """image, audio or resource."""
    mime_type: str
    data: str


class Media:
    """The latest media; the oldest give way when there are too many."""

    def __init__(self, most_bytes: int = 64 * MIB, most: int = 1000) -> None:
        self._most_bytes = most_bytes
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Medium] = OrderedDict()
        self._size = 0

    def keep(self, medium: Medium) -> str | None:
        """Its address; None when it is too large to keep."""
        size = len(medium.data)
        if size > self._most_bytes // 4:
            return None
        address = PREFIX + secrets.token_urlsafe(16)
        with self._lock:
            self._kept[address] = medium
            self._size += size
            while self._size > self._most_bytes or len(self._kept) > self._most:
                _, old = self._kept.popitem(last=False)
                self._size -= len(old.data)
        return address

    def get(self, address: str) -> Medium | None:
        return self._kept.get(address)
