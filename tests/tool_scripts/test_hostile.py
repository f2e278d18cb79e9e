"""Hostile tool scripts: what they try is refused, and nothing of the host leaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Sandbox
from moonbox.audit.sinks import MemorySink
from moonbox.scripts.configured import ScriptSettings, ToolsSettings
from moonbox.scripts.hostapi.grants import Grants
from moonbox.scripts.library import ScriptLibrary
from tests.loopback_servers import Answer, Request, Server, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__ = ["serve"]
SECRET = "correct-horse-battery"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", SECRET)


def execute(tmp_path: Path, body: str, grants: Mapping[str, Any]) -> tuple[object, str, str]:
    """What the script returned, its error, and everything that was written down about it."""
    path = tmp_path / "evil.lua"
    path.write_text(f"tool = {{}}\nfunction tool.execute(params, context)\n{body}\nend\n")
    settings = ScriptSettings("evil", path, 10.0, Grants.from_dict(grants, tmp_path))
    sink = MemorySink()
    with Sandbox(audit=sink) as box, ScriptLibrary(ToolsSettings((settings,)), box) as lib:
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
def test_a_secret_does_not_come_out(tmp_path: Path, serve: Callable[..., Server], body: str) -> None:
    """The server sends back what it was sent."""

    def echo(request: Request) -> Answer:
        return Answer(body=str(request.headers).encode(), headers={"x-echo": request.headers.get("x-key", "")})

    server = serve({"/": echo})
    grants = {"http": [server.grant], "secrets": {"KEY": [server.grant]}}
    full = f'local url = "{server.url}/"\n{body}'
    value, error, trail = execute(tmp_path, full, grants)
    for text in (str(value), error, trail):
        assert SECRET not in text
        assert SECRET[::-1] not in text
        assert "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5" not in text
