"""Real servers on loopback, and the fixtures that start them: one answers by route, one speaks raw bytes."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Answer:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def json(cls, value: Any, **more: Any) -> Answer:
        return cls(body=json.dumps(value).encode(), headers={"content-type": "application/json"}, **more)

    @classmethod
    def redirect(cls, location: str, status: int = 302) -> Answer:
        return cls(status, b"elsewhere", {"location": location})


class Server:
    """Answers each path by the function given for it, and remembers what it was asked."""

    def __init__(
        self, routes: dict[str, Callable[[Request], Answer]], address: str, tls: ssl.SSLContext | None
    ) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                outer.connections += 1
                super().setup()

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.command, self.path, headers, body)
                outer.requests.append(request)
                route = routes.get(self.path.partition("?")[0], lambda _: Answer(404, b"nothing here"))
                answer = route(request)
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(answer.body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(answer.body)

            do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = handle_any

            def log_message(self, *_: Any) -> None: ...

        class Listener(ThreadingHTTPServer):
            daemon_threads = True
            address_family = socket.AF_INET6 if ":" in address else socket.AF_INET

            def handle_error(self, *_: Any) -> None: ...  # a client that goes away early is part of the tests

        self._listener = Listener((address, 0), Handler)
        if tls is not None:
            self._listener.socket = tls.wrap_socket(self._listener.socket, server_side=True)
        self.port: int = self._listener.server_address[1]
        host = f"[{address}]" if ":" in address else address
        self.grant = f"{host}:{self.port}"
        self.url = f"http://{self.grant}"
        self._thread = threading.Thread(
            target=self._listener.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown()
        self._listener.server_close()
        self._thread.join()


class RawServer:
    """Reads the head of each request (or just what comes first), then lets `speak` use the connection as it likes."""

    def __init__(self, speak: Callable[[socket.socket], None], *, reads_head: bool = True) -> None:
        self._speak, self._reads_head = speak, reads_head
        self._connections: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.grant = f"127.0.0.1:{self.port}"
        self.url = f"http://{self.grant}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:  # ends a `speak` that goes on for ever
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            with connection, contextlib.suppress(OSError):
                connection.settimeout(60)
                head = b""
                while b"\r\n\r\n" not in head and (self._reads_head or not head):
                    piece = connection.recv(65536)
                    if not piece:
                        break
                    head += piece
                self._speak(connection)


def drip(start: bytes, more: bytes, pause: float = 0.0) -> Callable[[socket.socket], None]:
    """Send `start`, then `more` again and again until the other side is gone."""
    never = threading.Event()

    def speak(connection: socket.socket) -> None:
        connection.sendall(start)
        while True:
            connection.sendall(more)
            never.wait(pause)

    return speak


def ignore(connection: socket.socket) -> None:
    """Neither read nor write until the other side is gone."""
    never = threading.Event()
    while connection.fileno() >= 0 and not _hung_up(connection):
        never.wait(0.01)


def _hung_up(connection: socket.socket) -> bool:
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLHUP | select.POLLRDHUP)
    return bool(poll.poll(0))


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Start a server: serve({"/path": lambda request: Answer(...)})."""
    servers: list[Server] = []

    def start(
        routes: dict[str, Callable[[Request], Answer]], address: str = "127.0.0.1", tls: ssl.SSLContext | None = None
    ) -> Server:
        servers.append(Server(routes, address, tls))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def serve_raw() -> Iterator[Callable[..., RawServer]]:
    """Start a server that speaks raw bytes: serve_raw(lambda connection: connection.sendall(b"…"))."""
    servers: list[RawServer] = []

    def start(speak: Callable[[socket.socket], None], *, reads_head: bool = True) -> RawServer:
        servers.append(RawServer(speak, reads_head=reads_head))
        return servers[-1]

    yield start
    for server in servers:
        server.close()
