"""The process that uses Ray for a front end: clusters that cannot be reached. No cluster is needed."""

from __future__ import annotations

import os
import socket
import sys
from importlib.util import find_spec

import pytest

from moonbox import Sandbox
from moonbox.cluster import ray_process
from moonbox.errors import MissingExtra, UsageError, WorkerError
from tests.faults.processes import descendants

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed here: pip install 'moonbox[ray]'")


@needs_ray
def test_a_cluster_that_does_not_answer_is_one_error(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Ray itself waits for minutes, and writes to stderr meanwhile."""
    monkeypatch.setattr(ray_process, "JOIN_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        with pytest.raises(WorkerError) as failed:
            Sandbox(cluster=address)
    assert str(failed.value) == f"the cluster '{address}' cannot be reached: it did not answer within 1 seconds"
    assert capfd.readouterr() == ("", "")
    assert "ray" not in sys.modules


@needs_ray
def test_an_address_that_is_none_is_one_error(capfd: pytest.CaptureFixture[str]) -> None:
    before = descendants(os.getpid())
    with pytest.raises(WorkerError, match=r"^the cluster 'ray:/nowhere' cannot be reached: .*$") as failed:
        Sandbox(cluster="ray:/nowhere")
    assert "\n" not in str(failed.value)
    assert capfd.readouterr() == ("", "")
    assert descendants(os.getpid()) <= before


def test_ray_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_process, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"moonbox\[ray\]"):
        Sandbox(cluster="auto")


@pytest.mark.parametrize("address", ["", 7])
def test_an_address_is_text(address: object) -> None:
    with pytest.raises(UsageError, match=r'^cluster must be "auto", "ray://host:port" or "host:port", not '):
        Sandbox(cluster=address)  # type: ignore[arg-type]
