"""http.get and its kin against real servers: requests, answers, redirects, failures."""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import trustme

from moonbox.errors import ToolError
from tests.hostapi.conftest import body, refused
from tests.loopback_servers import Answer, RawServer, Request, Server

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.scripts.hostapi.api import HostApi

    Serve = Callable[..., Server]
    ServeRaw = Callable[..., RawServer]
    MakeApi = Callable[..., HostApi]
    Fetch = Callable[..., Any]


def echo(request: Request) -> Answer:
    seen = {"method": request.method, "path": request.path, "headers": request.headers}
    return Answer.json({**seen, "body": request.body.decode("latin-1")})


def test_a_get_returns_status_headers_body_and_json(serve: Serve, make_api: MakeApi) -> None:
    server = serve({"/items": lambda _: Answer.json({"n": [1, 2.5, None, "é"]})})
    answer = make_api({"http": [server.grant]}).call("http.get", [f"{server.url}/items#part"])
    assert answer["status"] == 200
    assert answer["ok"] is True
    assert answer["json"] == {"n": [1, 2.5, None, "é"]}
    assert json.loads(answer["body"]) == answer["json"]
    assert answer["headers"]["content-type"] == "application/json"
    assert answer["url"] == f"{server.url}/items"
    sent = server.requests[0].headers
    assert sent["host"] == server.grant
    assert sent["user-agent"].startswith("moonbox/")


def test_an_error_status_is_an_answer(fetch: Fetch) -> None:
    answer = fetch(Answer(404, b"nothing here"))
    assert (answer["status"], answer["ok"], answer["json"], answer["body"]) == (404, False, None, "nothing here")


@pytest.mark.parametrize("method", ["get", "post", "put", "patch", "delete"])
def test_each_method_is_sent(serve: Serve, make_api: MakeApi, method: str) -> None:
    server = serve({"/x": echo})
    seen = make_api({"http": [server.grant]}).call(f"http.{method}", [f"{server.url}/x", {"json": {"a": [1]}}])["json"]
    assert (seen["method"], seen["body"]) == (method.upper(), '{"a": [1]}')
    assert seen["headers"]["content-type"] == "application/json"


def test_params_headers_and_forms(serve: Serve, make_api: MakeApi) -> None:
    server = serve({"/x": echo})
    options = {
        "params": {"q": "a b&c", "tag": ["x", "y"], "on": True, "n": 3},
        "headers": {"X-One": "1", "X-Number": 5, "X-Joined": ["a", "b"]},
        "form": {"k": "ü"},
        "auth": ["me", "pass"],
    }
    seen = make_api({"http": [server.grant]}).call("http.post", [f"{server.url}/x?z=0", options])["json"]
    assert seen["path"] == "/x?z=0&n=3&on=true&q=a%20b%26c&tag=x&tag=y"
    assert (seen["headers"]["x-one"], seen["headers"]["x-number"], seen["headers"]["x-joined"]) == ("1", "5", "ab")
    assert seen["headers"]["authorization"] == "Basic bWU6cGFzcw=="
    assert seen["headers"]["content-type"] == "application/x-www-form-urlencoded"
    assert seen["body"] == "k=%C3%BC"


def test_bodies_are_binary_safe_and_head_has_none(fetch: Fetch) -> None:
    data = bytes(range(256))
    assert fetch(lambda request: Answer(body=request.body), "POST", body=data)["body"] == data
    assert fetch(Answer(body=data), "HEAD")["body"] == ""


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", lambda data: zlib.compress(data, wbits=-15)),
        ("identity", lambda data: data),
        ("gzip", lambda data: gzip.compress(data[:100]) + gzip.compress(data[100:])),
    ],
)
def test_compressed_bodies(fetch: Fetch, encoding: str, encode: Callable[[bytes], bytes]) -> None:
    text = "héllo " * 40_000
    assert fetch(body(encode(text.encode()), content_encoding=encoding))["body"] == text


@pytest.mark.parametrize("data", [b"not gzip at all", gzip.compress(b"x" * 1000, mtime=0)[:-9]])
def test_broken_compression_is_an_error(fetch: Fetch, data: bytes) -> None:
    with pytest.raises(ToolError, match="the response is not valid gzip data"):
        fetch(body(data, content_encoding="gzip"))


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"{", None),
        (b"[" * 100_000, None),
        (b"[NaN]", None),
        (b"[" + b"[]," * 600_000 + b"1]", None),
        (b"12345678901234567890", 12345678901234567890.0),
        (b"-9223372036854775808", -(2**63)),
        (b"1" * 5000, "1" * 5000),
        (b"[-1e400]", ["-1e400"]),
        (b'\xff"', None),
    ],
)
def test_json_that_scripts_cannot_hold(fetch: Fetch, data: bytes, value: Any) -> None:
    assert fetch(body(data, content_type="application/problem+json"))["json"] == value


def test_connections_are_kept_between_requests(serve: Serve, make_api: MakeApi) -> None:
    server = serve({"/x": echo})
    api = make_api({"http": [server.grant]})
    for _ in range(5):
        api.call("http.get", [f"{server.url}/x"])
    assert server.connections == 1


def test_requests_run_in_several_threads_at_once(serve: Serve, make_api: MakeApi) -> None:
    together = threading.Barrier(4, timeout=60)

    def wait(_: Request) -> Answer:
        together.wait()
        return Answer(body=b"done")

    server = serve({"/x": wait})
    api = make_api({"http": [server.grant]})
    with ThreadPoolExecutor(4) as pool:
        bodies = pool.map(lambda _: api.call("http.get", [f"{server.url}/x"])["body"], range(4))
    assert list(bodies) == ["done"] * 4


def test_ipv6_addresses(serve: Serve, make_api: MakeApi) -> None:
    try:
        server = serve({"/x": echo}, address="::1")
    except OSError:
        pytest.skip("this machine has no IPv6")
    answer = make_api({"http": [server.grant]}).call("http.get", [f"{server.url}/x"])
    assert answer["json"]["headers"]["host"] == server.grant


@pytest.mark.parametrize(
    ("status", "method", "becomes", "body"),
    [
        (301, "POST", "GET", ""),
        (302, "POST", "GET", ""),
        (302, "PUT", "PUT", "data"),
        (303, "PUT", "GET", ""),
        (307, "POST", "POST", "data"),
        (308, "POST", "POST", "data"),
    ],
)
def test_redirects_are_followed(
    serve: Serve, make_api: MakeApi, status: int, method: str, becomes: str, body: str
) -> None:
    server = serve({"/a": lambda _: Answer.redirect("/b?x=1", status), "/b": echo})
    answer = make_api({"http": [server.grant]}).call("http.request", [method, f"{server.url}/a", {"body": "data"}])
    assert (answer["json"]["method"], answer["json"]["body"], answer["json"]["path"]) == (becomes, body, "/b?x=1")
    assert answer["url"] == f"{server.url}/b?x=1"


def test_redirects_may_be_left_alone(fetch: Fetch) -> None:
    answer = fetch(Answer.redirect("/b"), redirects=0)
    assert (answer["status"], answer["headers"]["location"]) == (302, "/b")


def test_a_name_is_reached_at_its_resolved_address_with_tls(serve: Serve, make_api: MakeApi) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("api.test").configure_cert(context)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    server = serve({"/x": echo}, tls=context)
    http = {"resolver": lambda *_: ["127.0.0.1"], "ssl_context": trusting}
    api = make_api({"http": [f"api.test:{server.port}", f"other.test:{server.port}", server.grant]}, **http)
    answer = api.call("http.get", [f"https://api.test:{server.port}/x"])
    assert answer["json"]["headers"]["host"] == f"api.test:{server.port}"
    error = refused(api, "http.get", f"https://other.test:{server.port}/x")
    assert (error.code, error.retryable) == ("tls", False)
    assert str(error).startswith("the certificate of other.test is not valid: Hostname mismatch")
    error = refused(make_api({"http": [server.grant]}), "http.get", f"https://127.0.0.1:{server.port}/x")
    assert str(error).startswith("the certificate of 127.0.0.1 is not valid: ")


def test_a_refused_connection_can_be_retried(make_api: MakeApi) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    error = refused(make_api({"http": [f"127.0.0.1:{port}"]}), "http.get", f"http://127.0.0.1:{port}/")
    assert str(error) == f"the connection to 127.0.0.1:{port} failed: Connection refused"
    assert (error.code, error.retryable, error.tool) == ("unavailable", True, "http.get")


def test_the_next_address_is_tried(serve: Serve, make_api: MakeApi) -> None:
    server = serve({"/x": echo})
    http = {"resolver": lambda *_: ["::1", "127.0.0.1"]}
    api = make_api({"http": [f"api.test:{server.port}", server.grant, f"[::1]:{server.port}"]}, **http)
    assert api.call("http.get", [f"http://api.test:{server.port}/x"])["ok"]


def test_a_name_that_does_not_resolve(make_api: MakeApi) -> None:
    def nothing(*_: Any) -> list[str]:
        raise socket.gaierror(-2, "Name or service not known")

    api = make_api({"http": ["api.test"]}, resolver=nothing)
    error = refused(api, "http.get", "https://api.test/")
    assert str(error) == "the connection to api.test failed: the name api.test cannot be resolved"
    assert (error.code, error.retryable) == ("unavailable", True)


@pytest.mark.parametrize(
    ("sent", "reason"),
    [(b"", "the server closed it without an answer"), (b"220 mail.example\r\n\r\n", "the answer is not valid HTTP")],
)
def test_answers_that_are_not_http(serve_raw: ServeRaw, make_api: MakeApi, sent: bytes, reason: str) -> None:
    server = serve_raw(lambda connection: connection.sendall(sent))
    error = refused(make_api({"http": [server.grant]}), "http.get", f"{server.url}/")
    assert (error.code, error.retryable) == ("unavailable", True)
    assert str(error) == f"the connection to {server.grant} failed: {reason}"


def test_an_answer_before_the_whole_request_was_read(serve_raw: ServeRaw, make_api: MakeApi) -> None:
    server = serve_raw(lambda connection: connection.sendall(b"HTTP/1.1 413 No\r\ncontent-length: 0\r\n\r\n"))
    answer = make_api({"http": [server.grant]}).call("http.post", [f"{server.url}/", {"body": b"x" * 100_000}])
    assert answer["status"] == 413


def test_closing_wakes_a_request_that_waits(serve: Serve, make_api: MakeApi) -> None:
    asked, leave = threading.Event(), threading.Event()

    def hang(_: Request) -> Answer:
        asked.set()
        leave.wait(60)
        return Answer()

    server = serve({"/x": hang})
    api = make_api({"http": [server.grant]})
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(api.call, "http.get", [f"{server.url}/x"])
        assert asked.wait(60)
        api.close()
        error = waiting.exception(60)
        leave.set()
    assert isinstance(error, ToolError) and error.code == "unavailable"
    with pytest.raises(ToolError, match="the host is closing"):
        api.call("http.get", [f"{server.url}/x"])
