"""The bounded client: one deadline over everything, bounds on what is read, each hop and each address checked."""

from __future__ import annotations

import gzip
import threading
from itertools import repeat
from typing import TYPE_CHECKING

import pytest

from moonbox.knowledge.connectors.web import fetch_page
from moonbox.net import client
from moonbox.net.addresses import NameLookup, NetError, follow, parse_target
from moonbox.net.client import Client, PublicAddresses, Response, read_body
from tests.loopback_servers import Answer, RawServer, Request, Server, drip, ignore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from moonbox.net.addresses import Address, Target

    Serve = Callable[..., Server]
    ServeRaw = Callable[..., RawServer]

HANDSHAKE = b"\x16\x03\x03\x40\x00"
"""The head of a TLS record of 16 kB, as a server's answer to a handshake begins."""


def get(url: str, *, timeout: float = 20, max_bytes: int = 1_000_000, redirects: int = 5) -> Response:
    with Client(PublicAddresses(allow_private=True)) as web:
        request = client.Request(parse_target(url))
        return web.send(request, timeout=timeout, max_bytes=max_bytes, redirects=redirects)


def fails(url: str, **more: float) -> NetError:
    with pytest.raises(NetError) as caught:
        get(url, **more)  # type: ignore[arg-type]  # the numbers that the test chose
    return caught.value


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (b"", b"H"),
        (b"HTTP/1.1 200 OK\r\nx: ", b"y"),
        (b"HTTP/1.1 200 OK\r\n", b"x: y\r\n"),
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n", gzip.compress(b"")),
    ],
    ids=["status line", "header", "headers", "interim answers", "body", "chunks", "empty gzip members"],
)
def test_an_answer_that_drips_ends_with_the_deadline(serve_raw: ServeRaw, start: bytes, more: bytes) -> None:
    server = serve_raw(drip(start, more, pause=0.02))
    error = fails(f"{server.url}/", timeout=0.3)
    assert (error.code, error.retryable) == ("timeout", True)
    assert error.message == "127.0.0.1 did not answer within 0.3 seconds"


def test_a_handshake_that_drips_ends_with_the_deadline(serve_raw: ServeRaw) -> None:
    server = serve_raw(drip(HANDSHAKE, b"x", pause=0.02), reads_head=False)
    assert fails(server.url.replace("http:", "https:"), timeout=0.3).code == "timeout"


def test_a_server_that_never_answers_ends_with_the_deadline(serve_raw: ServeRaw) -> None:
    server = serve_raw(ignore)
    assert fails(f"{server.url}/", timeout=0.2).code == "timeout"


def test_the_fetcher_sends_international_addresses_in_their_ascii_form(serve: Serve) -> None:
    server = serve({"/k%C3%A4se%20sorten": lambda _: Answer(body=b"Gouda")})
    with Client(PublicAddresses(allow_private=True)) as client:
        response = fetch_page(client, 20, 1000, f"{server.url}/käse sorten", {})
        assert (response.url, response.body) == (f"{server.url}/k%C3%A4se%20sorten", b"Gouda")
        with pytest.raises(NetError, match=r"the host is not a valid international name$"):
            fetch_page(client, 20, 1000, "http://" + "ä" * 400 + ".example/", {})


@pytest.mark.parametrize(
    ("start", "more", "code"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536, "too_large"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65536 + b"\r\n", "too_large"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n", b"x" * 65536, "too_large"),
        (b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n", gzip.compress(b"") * 1000, "too_large"),
        (b"HTTP/1.1 200 OK\r\n", b"a: " + b"x" * 1000 + b"\r\n", "unavailable"),
        (b"HTTP/1.1 200 OK\r\nlong: ", b"x" * 1000, "unavailable"),
        (b"", b"x" * 1000, "unavailable"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;", b"x" * 1000, "unavailable"),
    ],
    ids=["body", "chunks", "length", "empty gzip members", "headers", "header", "status line", "chunk extension"],
)
def test_an_answer_without_end_is_cut_off(serve_raw: ServeRaw, start: bytes, more: bytes, code: str) -> None:
    server = serve_raw(drip(start, more))
    assert fails(f"{server.url}/").code == code


BOMB = gzip.compress(bytes(50_000_000), 9)


@pytest.mark.parametrize(
    ("chunks", "most"),
    [
        ((BOMB[start : start + 100] for start in range(0, len(BOMB), 100)), 10),  # a hundred bytes unpack to 100,000
        (repeat(gzip.compress(b"") * 100), 100),
    ],
    ids=["a bomb", "empty members without end"],
)
def test_compressed_data_is_taken_no_further_than_its_bound(chunks: Iterator[bytes], most: int) -> None:
    taken: list[bytes] = []

    def watched() -> Iterator[bytes]:
        for chunk in chunks:
            taken.append(chunk)
            yield chunk

    with pytest.raises(NetError, match=r"^the response is larger than 100,000 bytes$"):
        read_body(watched(), "gzip", 100_000)
    assert len(taken) < most


def test_repeated_headers_are_joined(serve_raw: ServeRaw) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\na: 1\r\nA: 2\r\nset-cookie: x\r\nset-cookie: y\r\n\r\n"
    server = serve_raw(lambda connection: connection.sendall(head))
    response = get(f"{server.url}/")
    assert (response.headers["a"], response.headers["set-cookie"]) == ("1, 2", "x\ny")


class Watched:
    """A policy that lets everything pass and remembers what it was asked."""

    def __init__(self) -> None:
        self.targets: list[tuple[str, str | None]] = []
        self.addresses: list[str] = []

    def check_target(self, target: Target, redirected_by: str | None) -> None:
        self.targets.append((target.path, redirected_by))

    def check_address(self, host: str, address: Address, port: int) -> None:
        self.addresses.append(f"{host} {address}")


def test_every_hop_and_every_address_is_checked(serve: Serve) -> None:
    routes: dict[str, Callable[[Request], Answer]] = {
        "/a": lambda _: Answer.redirect("/b"),
        "/b": lambda _: Answer.redirect(f"http://other.test:{server.port}/c"),
        "/c": lambda _: Answer(body=b"there"),
    }
    server = serve(routes)
    policy = Watched()
    with Client(policy, resolver=lambda *_: ["127.0.0.1", "127.0.0.2"]) as web:
        request = client.Request(parse_target(f"http://one.test:{server.port}/a"))
        assert web.send(request, timeout=20, max_bytes=100).body == b"there"
    assert policy.targets == [("/a", None), ("/b", "one.test"), ("/c", "one.test")]
    assert policy.addresses[-2:] == ["other.test 127.0.0.1", "other.test 127.0.0.2"]


def test_lookups_that_hang_do_not_pile_up() -> None:
    leave = threading.Event()
    asked: list[str] = []

    def slow(host: str, port: int) -> list[str]:
        asked.append(host)
        leave.wait(30)
        return []

    try:
        with Client(PublicAddresses(), resolver=slow) as web:
            for number in range(20):
                with pytest.raises(NetError) as caught:
                    request = client.Request(parse_target(f"http://host{number}.test/"))
                    web.send(request, timeout=0.01, max_bytes=1)
                assert caught.value.code == "timeout"
    finally:
        leave.set()
    assert len(asked) <= 16, "the others waited for a place and found none"


def test_waiting_for_a_place_counts_towards_the_time_of_a_lookup() -> None:
    first, never = threading.Event(), threading.Event()

    def resolve(host: str, _: int) -> list[str]:
        first.wait(30.0) if host == "first.example" else never.wait(0.6)
        return ["93.184.216.34"]

    lookup = NameLookup(resolve, most_at_once=1)
    with pytest.raises(NetError):
        lookup.addresses("first.example", 80, 0.0)  # keeps its place
    freeing = threading.Timer(0.7, first.set)
    freeing.start()
    with pytest.raises(NetError) as caught:
        lookup.addresses("second.example", 80, 1.0)
    assert caught.value.code == "timeout"
    freeing.join()


def test_a_lookup_whose_thread_cannot_start_gives_its_place_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    lookup = NameLookup(lambda *_: ["93.184.216.34"], most_at_once=1)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(NetError, match=r"^the name a\.test cannot be resolved: can't start new thread$") as caught:
            lookup.addresses("a.test", 80, 1.0)
    assert (caught.value.code, caught.value.retryable) == ("unavailable", True)
    assert [str(address) for address in lookup.addresses("a.test", 80, 20.0)] == ["93.184.216.34"]


def test_a_long_location_is_refused_before_it_is_read() -> None:
    """Python's own reader takes quadratic time for a host of many accents, and keeps what it read."""
    target = parse_target("http://a.test/")
    with pytest.raises(NetError, match=r"it is longer than 8,000 characters$"):
        follow(target, "//a" + "\u0327\u0301" * 25_000)
    for broken in ("http://[x/", "//[", "http://a\u2100.test/"):
        with pytest.raises(NetError) as caught:
            follow(target, broken)
        assert caught.value.code == "invalid_url"


def test_a_closed_client_sends_nothing(serve: Serve) -> None:
    server = serve({"/": lambda _: Answer()})
    web = Client(PublicAddresses(allow_private=True))
    web.close()
    with pytest.raises(NetError, match=r"^the client is closed$"):
        web.send(client.Request(parse_target(f"{server.url}/")), timeout=20, max_bytes=1)
    assert server.connections == 0


def test_an_embedding_server_has_the_same_bounds(serve_raw: ServeRaw) -> None:
    from moonbox.knowledge.embedding import OpenAIEmbedder, OpenAIEmbeddings
    from moonbox.knowledge.records import EmbeddingError

    dripping = serve_raw(drip(b"HTTP/1.1 200 OK\r\nx: ", b"y", pause=0.02))
    embedder = OpenAIEmbedder(OpenAIEmbeddings(url=dripping.url, model="m", timeout=0.3, attempts=1))
    with pytest.raises(EmbeddingError, match=r"did not answer within 0\.3 seconds"):
        embedder.embed(["a"], "query")
    embedder.close()
    endless = serve_raw(drip(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 1_000_000))
    embedder = OpenAIEmbedder(OpenAIEmbeddings(url=endless.url, model="m", timeout=60, attempts=1))
    with pytest.raises(EmbeddingError, match=r"responded with more than 64,000,000 bytes"):
        embedder.embed(["a"], "query")
    embedder.close()


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (b"HTTP/1.1 200 OK\r\nx: ", b"y"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 100_000),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 200000\r\n\r\n", b"[" * 100_000),
    ],
    ids=["dripped header", "endless body", "nested"],
)
def test_an_authorization_server_has_the_same_bounds(serve_raw: ServeRaw, start: bytes, more: bytes) -> None:
    """A token that names an unknown key makes us ask; whatever comes, the token is refused."""
    import asyncio

    import jwt

    from moonbox.config.sections import OAuthSettings
    from moonbox.mcp.server.sessions import JwtVerifier

    issuer = serve_raw(drip(start, more, pause=0.01))
    settings = OAuthSettings(issuer=issuer.url, resource="https://tools.example.com/mcp")
    token = jwt.encode({"iss": issuer.url}, "secret-that-is-long-enough-for-hs256", headers={"kid": "one"})
    assert asyncio.run(JwtVerifier(settings, timeout=0.5).verify_token(token)) is None
