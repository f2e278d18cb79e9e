"""Host and Origin checks, as both servers use them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from moonbox.config.sections import ServeSettings
from moonbox.http.guard import Access, ApiGuard
from moonbox.mcp.server.web import guarded
from moonbox.net.addresses import is_loopback
from moonbox.net.guard import Callers, Guard

LOCAL = [(b"host", b"127.0.0.1:8808")]


async def application(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})


def ask(app: Any, headers: list[tuple[bytes, bytes]], path: str = "/") -> tuple[int, dict[str, Any]]:
    """The status and the error that an ASGI application answers with."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {"type": "http", "method": "GET", "path": path, "headers": headers, "client": ("127.0.0.1", 1)}
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], json.loads(sent[1]["body"]).get("error", {})


SERVERS = {
    "the HTTP API": ApiGuard(application, Access(origins=("https://good.example",))),
    "the MCP server": guarded(application, ServeSettings(origins=("https://good.example",))),
}


@pytest.fixture(params=SERVERS.values(), ids=list(SERVERS))
def server(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8808", "localhost", "LOCALHOST:1", "[::1]", "[::1]:9", "localhost:"]
)
def test_own_names_are_answered(server: Any, host: str) -> None:
    assert ask(server, [(b"host", host.encode())]) == (200, {})


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        [""],
        ["evil.example"],
        ["127.0.0.1.evil.example"],
        ["localhost.evil.example:80"],
        ["[::1].evil.example"],
        ["[::1]evil.example"],
        ["127.0.0.1:80:80"],
        ["127.0.0.1:port"],
        ["127.0.0.1@evil.example"],
        ["localhost/evil"],
        ["localhost "],
        ["127.0.0.1", "evil.example"],
        ["evil.example", "127.0.0.1"],
        ["127.0.0.1", "127.0.0.1"],
    ],
)
def test_other_hosts_and_several_are_refused(server: Any, hosts: list[str]) -> None:
    status, error = ask(server, [(b"Host", host.encode()) for host in hosts])
    assert (status, error["code"]) == (421, "wrong_host")
    assert error["message"] == "this server does not answer to that Host header"


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:8000",
        "http://localhost",
        "https://localhost:443",
        "http://127.0.0.1:3000",
        "http://[::1]:5173",
        "https://good.example",
    ],
)
def test_pages_of_this_machine_and_chosen_origins_may_ask(server: Any, origin: str) -> None:
    assert ask(server, [*LOCAL, (b"origin", origin.encode())]) == (200, {})


@pytest.mark.parametrize(
    "origins",
    [
        ["https://evil.example"],
        ["null"],
        [""],
        ["file://"],
        ["http://localhost.evil.example"],
        ["http://127.0.0.1.evil.example:8000"],
        ["http://evil.example@localhost"],
        ["http://localhost@evil.example"],
        ["http://localhost:8000@evil.example"],
        ["http://localhost/evil"],
        ["http://localhost:8000 http://evil.example"],
        ["chrome-extension://localhost"],
        ["http://[::1]evil.example"],
        ["http://127.0.0.2"],
        ["https://good.example.evil.example"],
        ["http://good.example"],
        ["http://localhost:8000", "https://evil.example"],
    ],
)
def test_pages_of_other_origins_are_refused(server: Any, origins: list[str]) -> None:
    status, error = ask(server, [*LOCAL, *((b"origin", origin.encode()) for origin in origins)])
    assert (status, error["code"]) == (403, "wrong_origin")


def test_a_server_that_is_not_local_knows_no_local_pages() -> None:
    app = Guard(application, Callers(frozenset({"Tools.Example"})).check)
    host = (b"host", b"tools.example")
    assert ask(app, [host])[0] == 200
    assert ask(app, [host, (b"origin", b"http://localhost:8000")])[0] == 403


def test_any_host_may_be_answered() -> None:
    app = Guard(application, Callers(frozenset()).check)
    assert ask(app, [(b"host", b"whatever.example")])[0] == 200
    assert ask(app, [(b"host", b"a"), (b"host", b"b")])[0] == 421


@pytest.mark.parametrize(
    "headers",
    [
        [],
        *([(b"authorization", b"Bearer " + wrong)] for wrong in (b"wrong", b"\xb2", b"", b"a token of its own 2")),
        [(b"authorization", b"Basic a token of its own")],
        [(b"authorization", b"a token of its own")],
        [(b"authorization", b"Bearer a token of its own"), (b"authorization", b"Bearer a token of its own")],
    ],
)
def test_the_token_is_sent_once_and_right(headers: list[tuple[bytes, bytes]]) -> None:
    app = ApiGuard(application, Access(token="a token of its own"))
    assert ask(app, [*LOCAL, *headers])[0] == 401
    assert ask(app, [*LOCAL, (b"authorization", b"bearer a token of its own")])[0] == 200


@pytest.mark.parametrize(
    ("lengths", "status"),
    [
        ([b"1000000"], 200),
        ([b"1000001"], 413),
        ([b"0000000000000000000000000000000000000001"], 200),
        ([b"9" * 5000], 413),
        ([b"1", b"1000001"], 413),
        ([b"\xb2"], 200),
        ([b"none"], 200),
    ],
)
def test_announced_lengths(lengths: list[bytes], status: int) -> None:
    """What is no number is left to the server, which reads the body; the body has its bound too."""
    app = ApiGuard(application, Access())
    assert ask(app, [*LOCAL, *((b"content-length", length) for length in lengths)])[0] == status


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("::ffff:127.0.0.1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.1", False),
        ("localhost.evil.example", False),
        ("", False),
    ],
)
def test_which_hosts_are_this_machine_alone(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
