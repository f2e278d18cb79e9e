"""Connections that go only to checked addresses and end with the deadline of their request.

The connection library asks this backend for a connection by name and port. The name is resolved here, once, all its
addresses are checked, and the socket is opened to one of those: there is no second resolution that could answer
differently. TLS still verifies the certificate against the name.
"""

from __future__ import annotations

import contextlib
import functools
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import httpcore

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable, Iterator


class Deadlines(threading.local):
    """The deadline of the request that the current thread is making.

    Timeouts for single reads would let a server that sends a byte now and then keep a request open for ever. The
    connection library hands single timeouts through, but no deadline: hence one for each thread.
    """

    @contextlib.contextmanager
    def until(self, moment: float) -> Iterator[None]:
        self._moment = moment
        try:
            yield
        finally:
            del self._moment

    def left(self) -> float:
        """Seconds; raises TimeoutError when there are none."""
        left = self._moment - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request took too long")
        return left


def connection_pool(
    addresses: Callable[[str, int, float], list[str]], deadlines: Deadlines, ssl_context: ssl.SSLContext | None
) -> httpcore.ConnectionPool:
    """A pool whose connections go to what `addresses(host, port, timeout)` gives."""
    return httpcore.ConnectionPool(
        ssl_context=ssl_context or _default_ssl_context(),
        max_connections=20,
        max_keepalive_connections=5,
        keepalive_expiry=4.0,
        network_backend=CheckedBackend(addresses, deadlines),
    )


@functools.cache
def _default_ssl_context() -> ssl.SSLContext:
    """The certificates of the system and of certifi, read once: that takes longer than many a request."""
    return httpcore.default_ssl_context()


class CheckedBackend(httpcore.SyncBackend):
    """Opens sockets to checked addresses."""

    def __init__(self, addresses: Callable[[str, int, float], list[str]], deadlines: Deadlines) -> None:
        self._addresses, self._deadlines = addresses, deadlines

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        problem: Exception = OSError(f"{host} has no usable address")
        for address in self._addresses(host, port, self._deadlines.left()):
            try:
                return _Stream(super().connect_tcp(address, port, self._deadlines.left()), self._deadlines)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as failed:
                problem = failed
        raise problem


class _Stream(httpcore.NetworkStream):
    """A connection whose every operation ends with the deadline."""

    def __init__(self, inner: httpcore.NetworkStream, deadlines: Deadlines) -> None:
        self._inner, self._deadlines = inner, deadlines
        self._socket: socket.socket = inner.get_extra_info("socket")

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._deadlines.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        rest = memoryview(buffer)
        try:
            while rest:  # not the library's own loop, in which each step may take the whole time
                self._socket.settimeout(self._deadlines.left())
                rest = rest[self._socket.send(rest) :]
        except TimeoutError:
            raise
        except OSError as problem:
            # The library then still reads the answer that a server gave before it stopped listening.
            raise httpcore.WriteError(str(problem)) from problem

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes a thread that still waits for it
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, self._deadlines.left()), self._deadlines)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
