"""Conversations: one Repl for each, kept while it is used, ended when it is idle for long or there are too many."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from moonbox.sandbox.repl import Repl

__all__ = ["Conversations"]


class Conversations:
    """Repls by the conversation that they belong to. One that is in use is never ended to make room."""

    def __init__(self, make: Callable[[], Repl], *, idle_seconds: float | None, most: int) -> None:
        self._make = make
        self._idle = idle_seconds
        self._most = most
        self._lock = threading.Lock()
        self._kept: dict[str, _Kept] = {}

    @contextlib.contextmanager
    def use(self, conversation: str) -> Iterator[Repl]:
        """Its Repl, new if need be, for one run."""
        kept = self._get(conversation, users=1)
        try:
            yield kept.repl
        finally:
            with self._lock:
                kept.users -= 1
                kept.used = time.monotonic()

    def get(self, conversation: str) -> Repl:
        """Its Repl, new if need be."""
        return self._get(conversation, users=0).repl

    def has(self, conversation: str, repl: Repl) -> bool:
        """Whether a conversation still has this Repl."""
        with self._lock:
            kept = self._kept.get(conversation)
        return kept is not None and kept.repl is repl

    def end(self, conversation: str) -> bool:
        """End one; whether there was one."""
        with self._lock:
            kept = self._kept.pop(conversation, None)
        if kept is not None:
            kept.repl.close()
        return kept is not None

    def end_all(self) -> None:
        with self._lock:
            kept, self._kept = self._kept, {}
        for item in kept.values():
            item.repl.close()

    def names(self) -> tuple[str, ...]:
        """The conversations that have a Repl, the most recently used last."""
        with self._lock:
            return tuple(self._kept)

    def _get(self, conversation: str, users: int) -> _Kept:
        now = time.monotonic()
        with self._lock:
            ended = self._outdated(now, conversation)
            kept = self._kept.pop(conversation, None) or _Kept(self._make(), now)
            kept.used = now
            kept.users += users
            self._kept[conversation] = kept  # the most recently used is last
        for old in ended:
            old.repl.close()
        return kept

    def _outdated(self, now: float, current: str) -> list[_Kept]:
        free = [name for name, kept in self._kept.items() if name != current and not kept.users]
        idle = [name for name in free if self._idle is not None and now - self._kept[name].used > self._idle]
        others = len(self._kept) - (current in self._kept) - len(idle)
        rest = [name for name in free if name not in idle]
        return [self._kept.pop(name) for name in (*idle, *rest[: max(0, others + 1 - self._most)])]


@dataclass(slots=True)
class _Kept:
    repl: Repl
    used: float
    users: int = 0
