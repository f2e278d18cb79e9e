"""Attacks through http: requests that try to reach what is not granted, and servers that try to harm the host."""

from __future__ import annotations

import gzip
import json
import threading
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.errors import ArgumentError, Denied, ToolError
from tests.hostapi.conftest import body, refused
from tests.loopback_servers import Answer, RawServer, Server, ignore

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.scripts.hostapi.api import HostApi

    Serve = Callable[..., Server]
    ServeRaw = Callable[..., RawServer]
    MakeApi = Callable[..., HostApi]
    Fetch = Callable[..., Any]

AMBIGUOUS = Path(__file__).with_name("ambiguous_urls.txt")
"""URLs that readers understand differently, each as a JSON string."""


def test_ambiguous_urls_are_refused_before_any_lookup(make_api: MakeApi) -> None:
    def never(*_: object) -> list[str]:
        raise AssertionError("looked up")

    api = make_api({"http": ["*:*", "127.0.0.1:*"]}, resolver=never)
    urls = [json.loads(line) for line in AMBIGUOUS.read_text().splitlines()]
    for url in (*urls, f"http://{'a' * 9000}.test/"):
        error = refused(api, "http.get", url)
        assert (type(error), error.code) == (ArgumentError, "invalid_url"), url


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/",
        "http://127.0.0.1.:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "http://[::ffff:7f00:1]:{port}/",
        "http://[0:0:0:0:0:ffff:127.0.0.1]:{port}/",
        "http://[::127.0.0.1]:{port}/",
        "http://[64:ff9b::7f00:1]:{port}/",
        "http://[2002:7f00:1::]:{port}/",
        "http://0.0.0.0:{port}/",
        "http://169.254.169.254:{port}/latest/meta-data/",
        "http://168.63.129.16:{port}/",
        "http://[fd00:ec2::254]:{port}/",
        "http://[::1]:{port}/",
    ],
)
def test_addresses_are_refused_even_where_every_public_host_is_granted(
    serve: Serve, make_api: MakeApi, url: str
) -> None:
    server = serve({"/": lambda _: Answer(body=b"internal")})
    with pytest.raises(Denied, match="which must be granted by address"):
        make_api({"http": ["*:*"]}).call("http.get", [url.format(port=server.port)])
    assert server.requests == []
    assert server.connections == 0


@pytest.mark.parametrize("host", ["localhost", "localhost.", "LOCALHOST", "x.localhost"])
def test_localhost_is_granted_by_address_alone(serve: Serve, make_api: MakeApi, host: str) -> None:
    server = serve({"/": lambda _: Answer()})
    error = refused(make_api({"http": ["api.test"]}), "http.get", f"http://{host}:{server.port}/")
    shown = host.lower().rstrip(".")
    assert isinstance(error, Denied) and str(error) == (
        f"http access to {shown}:{server.port} by name is not granted; "
        f'add "127.0.0.1:{server.port}" to http under [tools.script.weather]'
    )
    # Granted as one of all names, it still has a loopback address.
    with pytest.raises(Denied, match="a loopback address"):
        make_api({"http": ["*:*"]}, resolver=lambda *_: ["127.0.0.1"]).call(
            "http.get", [f"http://{host}:{server.port}/"]
        )
    assert server.connections == 0


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["10.0.0.5"],
        ["93.184.216.34", "127.0.0.1"],
        ["127.0.0.1", "93.184.216.34"],
        ["::1"],
        ["::ffff:127.0.0.1"],
        ["fe80::1%eth0"],
        ["169.254.169.254"],
        ["0.0.0.0"],
    ],
)
def test_names_that_resolve_to_private_addresses(serve: Serve, make_api: MakeApi, addresses: list[str]) -> None:
    server = serve({"/": lambda _: Answer(body=b"internal")})
    api = make_api({"http": [f"granted.test:{server.port}"]}, resolver=lambda *_: addresses)
    with pytest.raises(Denied, match=r"^granted\.test has the address .*, which must be granted by address"):
        api.call("http.get", [f"http://granted.test:{server.port}/"])
    assert server.connections == 0


def test_an_answer_of_the_resolver_that_is_no_address(make_api: MakeApi) -> None:
    api = make_api({"http": ["granted.test"]}, resolver=lambda *_: ["127.1"])
    with pytest.raises(ToolError, match=r"granted\.test has no usable address"):
        api.call("http.get", ["http://granted.test/"])


def test_rebinding_finds_no_second_lookup(serve: Serve, make_api: MakeApi) -> None:
    """The name is resolved once for each connection; what was checked is what is connected to."""
    server = serve({"/": lambda _: Answer(body=b"internal", headers={"connection": "close"})})
    answers = [["127.0.0.2"], ["127.0.0.1"]]
    looked: list[str] = []

    def resolver(host: str, port: int) -> list[str]:
        looked.append(host)
        return answers.pop(0)

    # Only 127.0.0.2, where nothing listens, is granted: a second look-up would reach the server.
    grants = {"http": [f"granted.test:{server.port}", f"127.0.0.2:{server.port}"]}
    api = make_api(grants, resolver=resolver)
    with pytest.raises(ToolError, match="Connection refused"):
        api.call("http.get", [f"http://granted.test:{server.port}/"])
    assert looked == ["granted.test"]
    # The next request looks up anew, and its own answer is checked.
    with pytest.raises(Denied, match=r"granted\.test has the address 127\.0\.0\.1, a loopback address"):
        api.call("http.get", [f"http://granted.test:{server.port}/"])
    assert server.connections == 0


def test_a_resolver_that_hangs_is_left_alone(make_api: MakeApi) -> None:
    leave = threading.Event()

    def slow(*_: object) -> list[str]:
        leave.wait(60)
        return ["127.0.0.1"]

    api = make_api({"http": ["granted.test"]}, resolver=slow)
    with pytest.raises(ToolError, match=r"resolving the name granted\.test took too long"):
        api.call("http.get", ["http://granted.test/", {"timeout": 0.1}])
    leave.set()


@pytest.mark.parametrize(
    ("location", "error"),
    [
        ("http://127.0.0.1:{inner}/", Denied),
        ("//127.0.0.1:{inner}/", Denied),
        ("http://[::ffff:127.0.0.1]:{inner}/", Denied),
        ("http://localhost:{inner}/", Denied),
        ("http://evil.test/", Denied),
        ("http://2130706433:{inner}/", ToolError),
        ("http://granted.test@127.0.0.1:{inner}/", ToolError),
        ("http:\\\\127.0.0.1:{inner}\\", ToolError),
        ("file:///etc/passwd", ToolError),
        ("ftp://127.0.0.1/", ToolError),
        ("javascript:alert(1)", ToolError),
    ],
)
def test_redirects_to_what_is_not_granted(
    serve: Serve, make_api: MakeApi, location: str, error: type[ToolError]
) -> None:
    inner = serve({"/": lambda _: Answer(body=b"internal")})
    outer = serve({"/": lambda _: Answer.redirect(location.format(inner=inner.port))})
    caught = refused(make_api({"http": [outer.grant]}), "http.get", f"{outer.url}/")
    assert type(caught) is error and "redirects" in str(caught)
    assert inner.connections == 0


def test_a_redirect_to_a_granted_name_with_a_private_address(serve: Serve, make_api: MakeApi) -> None:
    inner = serve({"/": lambda _: Answer(body=b"internal")})
    outer = serve({"/": lambda _: Answer.redirect(f"http://cdn.test:{inner.port}/")})
    http = {"resolver": lambda *_: ["127.0.0.1"]}
    api = make_api({"http": [outer.grant, f"*.test:{inner.port}"]}, **http)
    with pytest.raises(Denied, match=r"cdn\.test has the address 127\.0\.0\.1, a loopback address"):
        api.call("http.get", [f"{outer.url}/"])
    assert inner.connections == 0


def test_endless_redirects_end(serve: Serve, make_api: MakeApi) -> None:
    server = serve({"/": lambda request: Answer.redirect("/")})
    error = refused(make_api({"http": [server.grant]}), "http.get", f"{server.url}/", {"redirects": 7})
    assert (error.code, error.retryable) == ("redirects", False)
    assert str(error) == f"more than 7 redirects; the last one leads to {server.url}/"
    assert len(server.requests) == 8


def test_credentials_stay_with_their_origin(serve: Serve, make_api: MakeApi) -> None:
    other = serve({"/": lambda _: Answer()})
    server = serve({"/": lambda _: Answer.redirect(f"{other.url}/"), "/same": lambda _: Answer.redirect("/there")})
    headers = {"Authorization": "Bearer x", "Cookie": "a=b", "X-Api-Key": "k", "Accept": "text/plain"}
    api = make_api({"http": [server.grant, other.grant]})
    api.call("http.get", [f"{server.url}/", {"headers": headers}])
    kept = other.requests[0].headers
    assert kept["accept"] == "text/plain"
    assert not {"authorization", "cookie", "x-api-key"} & set(kept)
    api.call("http.get", [f"{server.url}/same", {"headers": headers}])
    assert server.requests[-1].headers["x-api-key"] == "k"


def test_proxies_of_the_environment_are_ignored(
    serve: Serve, make_api: MakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, server = serve({}), serve({"/": lambda _: Answer(body=b"direct")})
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy.url)
    assert make_api({"http": [server.grant]}).call("http.get", [f"{server.url}/"])["body"] == "direct"
    assert proxy.connections == 0


@pytest.mark.parametrize(
    ("encoding", "make_bomb"),
    [
        ("gzip", lambda: gzip.compress(bytes(200_000_000), 1)),
        ("deflate", lambda: zlib.compress(bytes(200_000_000), 1)),
        ("gzip", lambda: gzip.compress(bytes(1_000_000), 1) * 200),
    ],
    ids=["gzip", "deflate", "many members"],
)
def test_compressed_bombs_stop_at_the_bound(fetch: Fetch, encoding: str, make_bomb: Callable[[], bytes]) -> None:
    with pytest.raises(ToolError) as caught:
        fetch(body(make_bomb(), content_encoding=encoding))
    assert (str(caught.value), caught.value.code) == ("the response is larger than 10,000,000 bytes", "too_large")


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress"])
def test_encodings_that_were_not_asked_for(fetch: Fetch, encoding: str) -> None:
    with pytest.raises(ToolError) as caught:
        fetch(body(b"x", content_encoding=encoding))
    assert str(caught.value) == f"the response has the unexpected encoding '{encoding}'"


def test_a_server_that_reads_nothing_ends_with_the_timeout(serve_raw: ServeRaw, make_api: MakeApi) -> None:
    server = serve_raw(ignore)
    options = {"timeout": 0.3, "body": b"x" * 9_900_000}
    assert refused(make_api({"http": [server.grant]}), "http.post", f"{server.url}/", options).code == "timeout"


def test_the_timeout_covers_all_redirects_together(serve: Serve, make_api: MakeApi) -> None:
    def slow(_: object) -> Answer:
        never.wait(0.15)
        return Answer.redirect("/")

    never = threading.Event()
    server = serve({"/": slow})
    options = {"timeout": 0.4, "redirects": 10}
    assert refused(make_api({"http": [server.grant]}), "http.get", f"{server.url}/", options).code == "timeout"
    assert len(server.requests) < 10, "it did not wait for all the redirects"


def test_a_protocol_switch_is_refused(serve_raw: ServeRaw, make_api: MakeApi) -> None:
    server = serve_raw(lambda connection: connection.sendall(b"HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\ndata"))
    error = refused(make_api({"http": [server.grant]}), "http.get", f"{server.url}/", {"timeout": 2})
    assert error.code == "unavailable"
