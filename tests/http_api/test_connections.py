"""Clients that go away, or read nothing: what they asked for ends."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from moonbox import Sandbox, tool
from moonbox.audit.sinks import MemorySink
from moonbox.http.app import Service, create_app
from moonbox.project import connections
from moonbox.project.connections import ReadConnection
from moonbox.project.serving import listen
from tests.runs import error_of
from tests.waiting import wait_until

from .conftest import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

entered, go = threading.Event(), threading.Event()


@tool
async def hold() -> str:
    """Wait until the test says so."""
    entered.set()
    while not go.is_set():
        await asyncio.sleep(0.01)
    return "released"


@pytest.fixture
def trail() -> Iterator[MemorySink]:
    entered.clear()
    go.clear()
    sink = MemorySink()
    yield sink
    go.set()


@pytest.fixture
def address(trail: MemorySink) -> Iterator[tuple[str, int]]:
    with Sandbox(tools=[hold], audit=trail) as box, serving(create_app(Service(box, trail=trail))) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        yield host, int(port)


def send(address: tuple[str, int], body: bytes, *, path: str = "/run") -> socket.socket:
    connection = socket.create_connection(address)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return connection


@pytest.mark.parametrize(("path", "body"), [("/run", {"source_code": "return tools.hold()"}), ("/tools/hold", {})])
def test_a_run_ends_with_its_client(path: str, body: Any, address: tuple[str, int], trail: MemorySink) -> None:
    with send(address, json.dumps(body).encode(), path=path):
        assert entered.wait(60)
    [ended] = wait_until(trail.list)
    assert error_of(trail.get(ended.id)).kind == "cancelled"


def test_a_run_in_the_background_does_not(address: tuple[str, int], trail: MemorySink) -> None:
    body = {"source_code": "return tools.hold()", "background": True}
    with send(address, json.dumps(body).encode()):
        assert entered.wait(60)
    go.set()
    [ended] = wait_until(trail.list)
    assert trail.get(ended.id).value == "released"


@pytest.mark.parametrize(("requests", "size"), [(1, 50_000_000), (5_000, 10_000)], ids=["one", "pipelined"])
def test_a_connection_whose_client_reads_nothing_is_closed(
    requests: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "UNREAD_SECONDS", 0.1)
    gone = threading.Event()

    class Watched(ReadConnection):
        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            gone.set()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(size)})

    with listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()) as client:
        options = uvicorn.Config(app, log_level="error", lifespan="off", http=Watched)
        server = uvicorn.Server(options)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        with suppress(ConnectionError):
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * requests)
        assert gone.wait(60), "its answer waits in the buffer, and nobody reads it"
        server.should_exit = True
        thread.join(60)
