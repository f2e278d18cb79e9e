"""Connections that go only to checked addresses and end with the deadline of their request.

The connection library asks this backend for a connection by name and port. The name is resolved here, once, all its
addresses are checked, and the socket is opened to one of those: there is no second resolution that could answer
differently. TLS still verifies the certificate against the name.
"""

from __future__ import annotations

import contextlib
import functools
import select
import socket
import ssl
import threading
import time
from typing import TYPE_CHECKING, Any

import httpcore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from moonbox.scripts.hostapi.http.gate import Gate

__all__ = ["CheckedBackend", "Deadlines", "default_ssl_context"]


@functools.cache
def default_ssl_context() -> ssl.SSLContext:
    """The certificates of the system and of certifi, read once: that takes longer than many a request."""
    return httpcore.default_ssl_context()


class Deadlines:
    """The deadline of the request that the current thread is making.

    Timeouts for single reads would let a server that sends a byte now and then keep a request open for ever.
    """

    def __init__(self) -> None:
        self._local = threading.local()

    @contextlib.contextmanager
    def until(self, moment: float) -> Iterator[None]:
        self._local.moment = moment
        try:
            yield
        finally:
            del self._local.moment

    def left(self) -> float:
        """Seconds; raises TimeoutError when there are none."""
        left: float = self._local.moment - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request took too long")
        return left


class CheckedBackend(httpcore.NetworkBackend):
    """Opens sockets to the addresses that the gate lets through."""

    def __init__(self, gate: Gate, deadlines: Deadlines) -> None:
        self._gate, self._deadlines = gate, deadlines

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        problem: OSError | None = None
        for address in self._gate.addresses(host, port, self._deadlines.left()):
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            connection = socket.socket(family, socket.SOCK_STREAM)
            try:
                connection.settimeout(self._deadlines.left())
                connection.connect((address, port))
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return _Stream(connection, self._deadlines)
            except OSError as failed:
                connection.close()
                problem = failed
        assert problem is not None  # the gate gives at least one address or raises
        raise problem

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        raise OSError("scripts reach no local sockets")


class _Stream(httpcore.NetworkStream):
    """A socket whose every operation ends with the deadline."""

    def __init__(self, connection: socket.socket, deadlines: Deadlines) -> None:
        self._socket, self._deadlines = connection, deadlines

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._socket.settimeout(self._deadlines.left())
        return self._socket.recv(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        rest = memoryview(buffer)
        try:
            while rest:
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
        self._socket.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        try:
            self._socket.settimeout(self._deadlines.left())
            return _Stream(ssl_context.wrap_socket(self._socket, server_hostname=server_hostname), self._deadlines)
        except BaseException:
            self.close()
            raise

    def get_extra_info(self, info: str) -> Any:
        match info:
            case "ssl_object" if isinstance(self._socket, ssl.SSLSocket):
                return self._socket
            case "socket":
                return self._socket
            case "is_readable":
                return _is_readable(self._socket)
        return None


def _is_readable(connection: socket.socket) -> bool:
    """Whether an idle connection was closed by the other side, or was never valid."""
    if connection.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
