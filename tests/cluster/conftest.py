"""A real Ray cluster on this machine, for the tests that need one."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import TYPE_CHECKING

import pytest

from tests.cluster.local_cluster import LocalCluster
from tests.postgres import postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["postgres"]


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalCluster]:
    """Three nodes; the one that is the head has no room for workers of its own to be killed with."""
    pytest.importorskip("ray", reason="Ray is not installed here: pip install 'moonbox[ray]'")
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp" if os.path.isdir("/tmp") else None)  # noqa: PTH112 - a short path: Ray puts sockets into it
    try:
        with LocalCluster(folder) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)
