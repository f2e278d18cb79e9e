"""Fixtures for the tests of host functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hostapi_servers import Answer, RawServer, Request, Server

from moonbox.scripts.hostapi import Grants, HostApi

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable, Iterator
    from pathlib import Path


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
    servers: list[RawServer] = []

    def start(speak: Callable[[socket.socket], None]) -> RawServer:
        servers.append(RawServer(speak))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def make_api(tmp_path: Path) -> Iterator[Callable[..., HostApi]]:
    """A HostApi from grants as they stand in a configuration; paths are relative to tmp_path."""
    made: list[HostApi] = []

    def make(grants: dict[str, Any] | None = None, **more: Any) -> HostApi:
        more.setdefault("environ", {})
        made.append(HostApi(Grants.from_dict(grants or {}, tmp_path), name="weather", **more))
        return made[-1]

    yield make
    for api in made:
        api.close()
