"""Fixtures for the tests of host functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from moonbox.scripts.hostapi import Grants, HostApi
from tests.loopback_servers import serve, serve_raw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["make_api", "serve", "serve_raw"]


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
