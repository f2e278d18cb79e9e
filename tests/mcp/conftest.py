"""Peers, homes and clients for the tests of MCP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.loopback_servers import serve, serve_raw
from tests.mcp import peers
from tests.mcp.mcp_driver import Driver, bearer, over_http, served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from tests.mcp.mcp_driver import Session

__all__ = ["serve", "serve_raw"]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Install the peers before the first test, whose time limit is not meant for that."""
    here = Path(__file__).parent
    if peers.missing() is None and any(here in item.path.parents for item in session.items):
        peers.install()


@pytest.fixture(autouse=True)
def _need_peers() -> None:
    if (reason := peers.missing()) is not None:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def driver() -> Iterator[Driver]:
    made = Driver()
    yield made
    made.close()


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp(request.module.__name__.rpartition(".")[2])


@pytest.fixture(scope="module")
def url(request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    """A server over HTTP with the CONFIG and the TOOLS of the module that uses this."""
    with served(folder, request.module.CONFIG, request.module.TOOLS) as address:
        yield address


@pytest.fixture
def as_(driver: Driver, url: str) -> Callable[..., AbstractContextManager[Session]]:
    """Connects a client, by its name, to the server at `url`."""

    def connected(name: str, mode: str = "auto", **callbacks: Any) -> AbstractContextManager[Session]:
        return driver.session(over_http(url, bearer(name)), mode=mode, **callbacks)

    return connected


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own place for the trail and for listings."""
    monkeypatch.setenv("MOONBOX_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def env(home: Path) -> dict[str, str]:
    return {"MOONBOX_HOME": str(home), "MOONBOX_TRUST": "1"}


@pytest.fixture
def configured(tmp_path: Path) -> Callable[[str], Path]:
    """Write a configuration; `{time}` and the like stand for the programs of reference servers."""

    def write(text: str, **more: Any) -> Path:
        path = tmp_path / "moonbox.toml"
        path.write_text(filled(text, **more))
        return path

    return write


def filled(text: str, **more: Any) -> str:
    for name in ("everything", "filesystem", "memory", "sequential-thinking", "time", "git", "fetch"):
        text = text.replace(f"<{name}>", peers.server(name))
    for name, value in more.items():
        text = text.replace(f"<{name}>", str(value))
    return text
