"""What the tests of the knowledge base share: folders of documents, stores, and a web server."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.knowledge import Item, KnowledgeBase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from moonbox.knowledge.records import Scanned


class Listed:
    """A connector over a list that a test may change."""

    def __init__(self, *scanned: Any) -> None:
        self.scanned: list[Any] = list(scanned)
        self.known: dict[str, str] = {}
        self.fails: BaseException | None = None

    def scan(self, known: Mapping[str, str]) -> Iterator[Scanned]:
        self.known = dict(known)
        yield from self.scanned
        if self.fails is not None:
            raise self.fails


def item(source_id: str, body: str, **more: Any) -> Item:
    return Item(source_id=source_id, body=body, **more)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store" / "knowledge.db"


@pytest.fixture
def filled(store: Path) -> Iterator[Callable[..., KnowledgeBase]]:
    """A knowledge base with some items in the source `notes`."""
    opened = []

    def fill(*scanned: Any, **more: Any) -> KnowledgeBase:
        base = KnowledgeBase(store, sources={"notes": Listed(*scanned)}, **more)
        opened.append(base)
        report = base.sync("notes")
        assert report.ok, report
        assert not report.problems, report.problems
        return base

    yield fill
    for base in opened:
        base.close()


@dataclass
class Site:
    """A web site on loopback: a path leads to an answer, or to a function of the request that gives one."""

    url: str = ""
    pages: dict[str, Any] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def put(self, path: str, body: str | bytes, content_type: str = "text/html", **headers: str) -> None:
        data = body.encode() if isinstance(body, str) else body
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.pages[path] = (200, {"content-type": content_type, **named}, data)

    def asked(self) -> list[str]:
        return [path for path, _ in self.requests if path != "/robots.txt"]


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.answer(b"")

        def do_POST(self) -> None:
            self.answer(self.rfile.read(int(self.headers["content-length"])))

        def answer(self, body: bytes) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            headers["port"] = str(self.client_address[1])
            site.requests.append((self.path, headers))
            found = site.pages.get(self.path, (404, {}, b"not here"))
            status, more, data = found(headers, body) if callable(found) else found
            self.send_response(status)
            for name, value in {"content-length": str(len(data)), **more}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    site.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield site
    server.shutdown()
    thread.join()
    server.server_close()
