"""Servers for the tests of sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.loopback_servers import serve
from tests.sources.shop import Shop

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["serve", "shop"]


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    """A FastAPI server with a specification of its own."""
    with Shop() as server:
        yield server
