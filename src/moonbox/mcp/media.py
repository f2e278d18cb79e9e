"""Media: images, audio and files that tools returned, kept for a while under an unguessable address."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass

__all__ = ["PREFIX", "Media", "Medium"]

PREFIX = "moonbox://media/"
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Medium:
    """One image, audio clip or file, as base64."""

    kind: str
    """image, audio or resource."""
    mime_type: str
    data: str


class Media:
    """The latest media; the oldest are dropped when there are too many."""

    def __init__(self, max_bytes: int = 64 * _MIB, max_count: int = 1000) -> None:
        self._max_bytes = max_bytes
        self._max_count = max_count
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Medium] = OrderedDict()
        self._size = 0

    def keep(self, medium: Medium) -> str | None:
        """Its address; None if it is too large to keep."""
        size = len(medium.data)
        if size > self._max_bytes // 4:
            return None
        address = PREFIX + secrets.token_urlsafe(16)
        with self._lock:
            self._kept[address] = medium
            self._size += size
            while self._size > self._max_bytes or len(self._kept) > self._max_count:
                _, old = self._kept.popitem(last=False)
                self._size -= len(old.data)
        return address

    def get(self, address: str) -> Medium | None:
        return self._kept.get(address)
