"""The line on a terminal that shows tool calls as they happen."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING

from moonbox.audit.compact import short
from moonbox.audit.terminal import seconds, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from moonbox.sandbox.record import CallEntry

__all__ = ["CallLine"]

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PER_SECOND = 12


class CallLine:
    """Give it to a Sandbox as `on_call`. The line appears with the first call of a run and goes when the run ends."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = threading.RLock()
        self._live: Live | None = None
        self._watching = False
        self._hidden = 0
        self._began = 0.0
        self._made = self._failed = 0
        self._open: dict[int, CallEntry] = {}

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """For one run."""
        with self._lock:
            self._began, self._made, self._failed, self._open = time.monotonic(), 0, 0, {}
            self._watching = True
        try:
            yield
        finally:
            with self._lock:
                self._watching = False
                self._stop()

    @contextlib.contextmanager
    def hidden(self) -> Iterator[None]:
        """While a person is asked something."""
        with self._lock:
            self._hidden += 1
            self._stop()
        try:
            yield
        finally:
            with self._lock:
                self._hidden -= 1

    def __call__(self, entry: CallEntry) -> None:
        """A call has begun or ended; from any thread."""
        with self._lock:
            if not self._watching:
                return
            if entry.open:
                self._made += 1
                self._open[entry.index] = entry
            else:
                self._open.pop(entry.index, None)
                self._failed += entry.status != "ok"
            if self._live is None and not self._hidden:
                self._start()

    def _start(self) -> None:
        from rich.live import Live

        self._live = Live(
            get_renderable=self._line, console=self._console, refresh_per_second=_PER_SECOND, transient=True
        )
        self._live.start(refresh=True)

    def _stop(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def _line(self) -> Text:
        from rich.text import Text

        elapsed = time.monotonic() - self._began
        made, failed, waiting = self._made, self._failed, list(self._open.values())
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f"{_SPINNER[int(elapsed * _PER_SECOND) % len(_SPINNER)]} ", "cyan")
        line.append(f"{made} call{'s' * (made != 1)}", "bold")
        if failed:
            line.append(f", {failed} failed", "red")
        line.append(f" · {seconds(elapsed)}", "dim")
        if waiting:
            line.append(f" · {visible(waiting[0].tool, keep='')} ", "cyan")
            line.append(visible(short(waiting[0].arguments, 100), keep=""))
            if len(waiting) > 1:
                line.append(f" and {len(waiting) - 1} more", "dim")
        return line
