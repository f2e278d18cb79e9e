"""Connections of the HTTP server: one whose client reads no answers is closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

UNREAD_SECONDS = 30.0
"""How long a client may read less than LEAST_BYTES of an answer that waits for it."""
LEAST_BYTES = 16_384


class ReadConnection(H11Protocol):
    """uvicorn's connection, which ends when the client does not read.

    A client that sends requests and reads no answers would hold the slots of its calls for as long as it likes.
    """

    _timer: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        self._stop_watching()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        super().connection_lost(exc)

    def _watch(self) -> None:
        self._stop_watching()
        self._timer = self.loop.call_later(UNREAD_SECONDS, self._check, self.transport.get_write_buffer_size())

    def _stop_watching(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _check(self, before: int) -> None:
        if before - self.transport.get_write_buffer_size() < LEAST_BYTES:
            self.transport.abort()
        else:
            self._watch()
