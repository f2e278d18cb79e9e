"""Where a host takes connections: one thread reads their greetings, and hands over those that give the token."""

from __future__ import annotations

import hmac
import threading
from collections import OrderedDict
from contextlib import suppress
from selectors import EVENT_READ, DefaultSelector
from time import monotonic
from typing import TYPE_CHECKING

from moonbox.cluster import wire

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

GREETING_SECONDS = 5.0
MOST_STRANGERS = 64
"""Connections that have not given the token yet; of more, the oldest is closed."""
_TICK_SECONDS = 0.1


class Entrance:
    """Calls `admit` with each connection that gave the token, its kind and its name; and `tick` now and then."""

    def __init__(
        self,
        listener: socket.socket,
        token: bytes,
        admit: Callable[[socket.socket, bytes, bytes], object],
        tick: Callable[[], object],
    ) -> None:
        self._listener = listener
        self._token = token
        self._admit, self._tick = admit, tick
        self._strangers: OrderedDict[socket.socket, tuple[bytearray, float]] = OrderedDict()
        self._selector = DefaultSelector()
        listener.setblocking(False)
        self._selector.register(listener, EVENT_READ)
        threading.Thread(target=self._run, name="moonbox-entrance", daemon=True).start()

    def _run(self) -> None:
        while True:
            for key, _ in self._selector.select(_TICK_SECONDS):
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj in self._strangers:  # not closed a moment ago
                    self._read(key.fileobj)  # type: ignore[arg-type]  # sockets only
            now = monotonic()
            while self._strangers and next(iter(self._strangers.values()))[1] < now:
                self._close_oldest()
            self._tick()

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:  # it went away; or no descriptors are left
            if self._strangers:
                self._close_oldest()
            threading.Event().wait(_TICK_SECONDS / 10)
            return
        sock.setblocking(False)
        self._strangers[sock] = bytearray(), monotonic() + GREETING_SECONDS
        self._selector.register(sock, EVENT_READ)
        if len(self._strangers) > MOST_STRANGERS:
            self._close_oldest()

    def _read(self, sock: socket.socket) -> None:
        greeting = self._strangers[sock][0]
        with suppress(BlockingIOError):
            try:
                more = sock.recv(wire.GREETING_SIZE - len(greeting))
            except ConnectionError:
                more = b""
            greeting += more
            if len(greeting) < wire.GREETING_SIZE and more:
                return
            self._selector.unregister(sock)
            del self._strangers[sock]
            if not self._is_welcome(sock, bytes(greeting)):
                sock.close()

    def _is_welcome(self, sock: socket.socket, greeting: bytes) -> bool:
        token, kind, name = greeting[: wire.TOKEN_SIZE], greeting[wire.TOKEN_SIZE :][:1], greeting[-wire.NAME_SIZE :]
        if not hmac.compare_digest(token, self._token) or kind not in (wire.CONTROL, wire.WORKER):
            return False
        with suppress(OSError):
            sock.setblocking(True)
            wire.watch(sock)
            self._admit(sock, kind, name)
            return True
        return False

    def _close_oldest(self) -> None:
        sock, _ = self._strangers.popitem(last=False)
        self._selector.unregister(sock)
        sock.close()
