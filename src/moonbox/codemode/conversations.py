"""Conversations: one Repl for each, kept while it is used, ended when it is idle for long or there are too many."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.sandbox.repl import Repl

__all__ = ["Conversations"]


class Conversations:
    """Repls by the conversation that they belong to."""

    def __init__(self, make: Callable[[], Repl], *, idle_seconds: float | None, most: int) -> None:
        self._make = make
        self._idle = idle_seconds
        self._most = most
        self._lock = threading.Lock()
        self._repls: dict[str, tuple[Repl, float]] = {}

    def get(self, conversation: str) -> Repl:
        """Its Repl, new if need be."""
        now = time.monotonic()
        with self._lock:
            ended = self._outdated(now, conversation)
            found = self._repls.pop(conversation, None)
            repl = found[0] if found is not None else self._make()
            self._repls[conversation] = (repl, now)  # the most recently used is last
        for old in ended:
            old.close()
        return repl

    def end(self, conversation: str) -> bool:
        """End one; whether there was one."""
        with self._lock:
            found = self._repls.pop(conversation, None)
        if found is not None:
            found[0].close()
        return found is not None

    def end_all(self) -> None:
        with self._lock:
            repls, self._repls = self._repls, {}
        for repl, _ in repls.values():
            repl.close()

    def __len__(self) -> int:
        return len(self._repls)

    def _outdated(self, now: float, current: str) -> list[Repl]:
        names = [
            name
            for name, (_, used) in self._repls.items()
            if name != current and self._idle is not None and now - used > self._idle
        ]
        rest = [name for name in self._repls if name not in names and name != current]
        names += rest[: max(0, len(rest) + 1 - self._most)]
        return [self._repls.pop(name)[0] for name in names]
