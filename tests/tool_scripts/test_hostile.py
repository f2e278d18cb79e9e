"""Hostile tool scripts: what they try is refused, and nothing of the host leaks."""

from __future__ import annotations

import http.server
import threading
from typing import TYPE_CHECKING, Any

import pytest

from moonbox.audit.sinks import MemorySink
from moonbox.scripts.configured import ScriptSettings, ToolsSettings
from moonbox.scripts.hostapi import Grants
from moonbox.scripts.library import ScriptLibrary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SECRET = "correct-horse-battery"


class _Echo(http.server.BaseHTTPRequestHandler):
    """Sends back what it was sent."""

    def do_GET(self) -> None:
        body = str(self.headers).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Echo", self.headers.get("X-Key", ""))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Echo) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield httpd.server_address[1]
        httpd.shutdown()


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", SECRET)


def execute(tmp_path: Path, body: str, grants: Mapping[str, Any]) -> tuple[object, str, str]:
    """What the script returned, its error, and everything that was written down about it."""
    path = tmp_path / "evil.lua"
    path.write_text(f"tool = {{}}\nfunction tool.execute(params, context)\n{body}\nend\n")
    settings = ScriptSettings("evil", path, 10.0, Grants.from_dict(grants, tmp_path))
    sink = MemorySink()
    with ScriptLibrary(ToolsSettings((settings,)), audit=sink) as lib:
        assert lib.scripts[0].problem is None
        run = lib.execute(lib.scripts[0], {})
    trail = "".join(item.to_json() for item in sink.runs())
    return run.value, "" if run.error is None else run.error.message, trail


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ('return http.get("http://127.0.0.1:1/")', "http access"),
        ('return http.get("http://localhost/")', "http access"),
        ('return fs.read("/etc/passwd")', "not granted"),
        ('return env.get("KEY")', "not granted"),
        ('return secret("KEY")', "not granted"),
        ('return fs.write("x", "y")', "not granted"),
    ],
)
def test_nothing_is_granted_by_default(tmp_path: Path, body: str, says: str) -> None:
    value, error, trail = execute(tmp_path, body, {})
    assert value is None
    assert says in error
    assert SECRET not in trail


@pytest.mark.parametrize(
    "body",
    [
        'return http.get(url, {headers = {["X-Key"] = secret("KEY")}})',
        'return http.get(url, {headers = {["X-Key"] = secret("KEY")}}).body',
        'return http.get(url, {headers = {["X-Key"] = secret("KEY")}}).headers["x-echo"]',
        'print(http.get(url, {headers = {["X-Key"] = secret("KEY")}}).body)',
        'log.info(http.get(url, {headers = {["X-Key"] = secret("KEY")}}).body)',
        'error(http.get(url, {headers = {["X-Key"] = secret("KEY")}}).body)',
        'local b = http.get(url, {headers = {["X-Key"] = secret("KEY")}}).body return b:reverse()',
        'local b = http.get(url, {headers = {["X-Key"] = secret("KEY")}}).body return base64.encode(b)',
        'return tostring(secret("KEY")), json.encode(secret("KEY")), secret("KEY")',
        'return http.get(url .. "?" .. tostring(secret("KEY")))',
    ],
)
def test_a_secret_does_not_come_out(tmp_path: Path, server: int, body: str) -> None:
    grants = {"http": [f"127.0.0.1:{server}"], "secrets": {"KEY": [f"127.0.0.1:{server}"]}}
    full = f'local url = "http://127.0.0.1:{server}/"\n{body}'
    value, error, trail = execute(tmp_path, full, grants)
    for text in (str(value), error, trail):
        assert SECRET not in text
        assert SECRET[::-1] not in text
        assert "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5" not in text
