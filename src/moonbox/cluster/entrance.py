"""Where a host takes connections: one thread reads their greetings, and hands over those that give the token."""

from __future__ import annotations

import asyncio
import hmac
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from moonbox.cluster import wire

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

GREETING_SECONDS = 5.0
MOST_STRANGERS = 64
"""Connections that have not given the token yet; of more, the oldest is closed."""
_AGAIN_SECONDS = 0.01


class Entrance:
    """Calls `admit` with each connection that gave the token, its kind and its name."""

    def __init__(
        self, listener: socket.socket, token: bytes, admit: Callable[[socket.socket, bytes, bytes], object]
    ) -> None:
        self._listener = listener
        self._token = token
        self._admit = admit
        self._strangers: dict[asyncio.Task[bool], None] = {}  # in the order in which they came
        listener.setblocking(False)
        threading.Thread(target=lambda: asyncio.run(self._run()), name="moonbox-entrance", daemon=True).start()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, _ = await loop.sock_accept(self._listener)
            except OSError:  # it went away; or no descriptors are left
                self._close_oldest()
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            task = loop.create_task(self._greet(sock))
            self._strangers[task] = None
            task.add_done_callback(partial(self._leave, sock))
            if len(self._strangers) > MOST_STRANGERS:
                self._close_oldest()
            await asyncio.sleep(0)  # for those that are there

    async def _greet(self, sock: socket.socket) -> bool:
        """Read a greeting; whether the connection was handed over."""
        loop, greeting = asyncio.get_running_loop(), b""
        with suppress(OSError):  # also where it takes too long
            async with asyncio.timeout(GREETING_SECONDS):
                while len(greeting) < wire.GREETING.size:
                    more = await loop.sock_recv(sock, wire.GREETING.size - len(greeting))
                    if not more:
                        return False
                    greeting += more
            token, kind, name = wire.GREETING.unpack(greeting)
            if hmac.compare_digest(token, self._token) and kind in (wire.CONTROL, wire.WORKER):
                sock.setblocking(True)
                wire.watch(sock)
                self._admit(sock, kind, name)
                return True
        return False

    def _leave(self, sock: socket.socket, task: asyncio.Task[bool]) -> None:
        self._strangers.pop(task, None)
        if task.cancelled() or not task.result():
            sock.close()

    def _close_oldest(self) -> None:
        if self._strangers:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.cancel()
