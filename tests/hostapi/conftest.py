"""Fixtures for the tests of host functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from moonbox.errors import ToolError
from moonbox.scripts.hostapi.api import HostApi
from moonbox.scripts.hostapi.grants import Grants
from tests.loopback_servers import Answer, serve, serve_raw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["make_api", "refused", "serve", "serve_raw"]


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


@pytest.fixture
def fetch(serve: Callable[..., Any], make_api: Callable[..., HostApi]) -> Callable[..., Any]:
    """Sends a request to a server that gives this answer, or what a function makes of the request."""

    def send(answer: Any, method: str = "GET", **options: Any) -> Any:
        server = serve({"/": answer if callable(answer) else lambda _: answer})
        return make_api({"http": [server.grant]}).call("http.request", [method, f"{server.url}/", options])

    return send


def refused(api: HostApi, name: str, *args: Any) -> ToolError:
    """The error of a call that must fail."""
    with pytest.raises(ToolError) as caught:
        api.call(name, args)
    return caught.value


def body(data: bytes, **headers: str) -> Answer:
    """An answer with this body; underscores in the names of headers are dashes."""
    return Answer(body=data, headers={name.replace("_", "-"): value for name, value in headers.items()})
