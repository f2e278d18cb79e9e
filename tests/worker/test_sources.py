"""The zygote as its host starts it: at once or ahead of time, and again when it has died."""

from __future__ import annotations

import marshal
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Sandbox
from moonbox.errors import WorkerError
from moonbox.worker.sources import ProcessSource
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

if os.name != "posix":
    pytest.skip("workers are processes", allow_module_level=True)


def _config(values: list[Any]) -> dict[str, Any]:
    limits = {**Limits().to_dict(), "allow_nan": False}
    return {
        "limits": limits,
        "environment": {"tools": [], "functions": [], "values": values, "features": [], "runtime": None},
    }


@pytest.fixture(params=[0, 200_000], ids=["small", "larger than a socket takes"])
def source(request: pytest.FixtureRequest) -> Iterator[ProcessSource]:
    source = ProcessSource(_config([("text", "x" * request.param)]))
    yield source
    source.close()


def _spawns(source: ProcessSource) -> bool:
    link = source.spawn()
    try:
        link.wait_until_ready(time.monotonic() + 60)
        return link.pid is not None
    finally:
        link.close()


def test_nothing_runs_before_it_is_needed(source: ProcessSource) -> None:
    assert source.zygote_pid is None
    assert _spawns(source)
    assert source.zygote_pid is not None


def test_a_zygote_that_was_begun_is_the_one_that_serves(source: ProcessSource) -> None:
    source.begin()
    begun = source.zygote_pid
    assert begun is not None
    source.begin()
    assert source.zygote_pid == begun
    assert _spawns(source) and _spawns(source)
    assert source.zygote_pid == begun


def test_a_zygote_that_dies_before_it_serves_is_replaced(source: ProcessSource) -> None:
    source.begin()
    begun = source.zygote_pid
    assert begun is not None
    os.kill(begun, signal.SIGKILL)
    assert _spawns(source)
    assert source.zygote_pid not in (None, begun)


def test_the_worker_of_a_zygote_that_died_is_not_taken_for_one_of_its_successor(source: ProcessSource) -> None:
    """Both have the same serial number. A Repl that found its worker dead killed that of another Repl."""
    with Sandbox(isolation=source, min_workers=0) as box, box.repl() as first, box.repl() as second:
        first.run("x = 1").unwrap()
        killed = source.zygote_pid
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        # A worker of the killed one may live long enough for another run.
        wait_until(lambda: second.run("y = 2").ok and source.zygote_pid != killed)
        assert first.run("return x").state_lost
        after = second.run("return y")
        assert (after.value, after.state_lost) == (2, False)


def test_a_new_configuration_reaches_one_that_was_begun(source: ProcessSource) -> None:
    source.begin()
    source.configure(_config([("other", "y")]))
    assert _spawns(source)


@pytest.mark.parametrize("size", [0, 200_000])
def test_one_that_is_started_before_its_configuration_is_known(size: int) -> None:
    source = ProcessSource.started()
    begun = source.zygote_pid
    with Sandbox(isolation=source, globals={"text": "x" * size}, limits=Limits(max_memory=4 << 20)) as box:
        assert box.run("return #text").value == size
        run = box.run("return #string.rep('x', 5000000)")
        assert run.error is not None and run.error.limit == "memory"
        assert source.zygote_pid == begun
        assert begun is not None


def test_one_that_dies_before_its_configuration_is_known_is_replaced() -> None:
    source = ProcessSource.started()
    begun = source.zygote_pid
    assert begun is not None
    os.kill(begun, signal.SIGKILL)
    os.waitid(os.P_PID, begun, os.WEXITED | os.WNOWAIT)
    with Sandbox(isolation=source) as box:
        assert box.run("return 6 * 7").value == 42
        assert source.zygote_pid not in (None, begun)


def test_closing_ends_one_that_was_begun(source: ProcessSource) -> None:
    source.begin()
    begun = source.zygote_pid
    assert begun is not None
    source.close()
    with pytest.raises(ProcessLookupError):
        os.kill(begun, 0)
    source.begin()
    assert source.zygote_pid is None
    with pytest.raises(WorkerError, match="closed"):
        source.spawn()


def test_what_keeps_it_from_beginning_is_told_by_who_needs_it(
    source: ProcessSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    source.begin()
    assert source.zygote_pid is None
    with pytest.raises(WorkerError, match="a worker cannot be started"):
        source.spawn()


def test_an_interrupted_request_does_not_leave_its_answer_to_the_next(
    source: ProcessSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _spawns(source)

    class Interrupted:
        """In the place of `marshal`: somebody presses Ctrl-C before the answer is read."""

        dumps = staticmethod(marshal.dumps)

        @staticmethod
        def loads(_: bytes) -> object:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("moonbox.worker.sources.marshal", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            source.spawn()
    first, second = source.spawn(), source.spawn()
    try:
        for link in (first, second):
            link.wait_until_ready(time.monotonic() + 60)
        assert first.pid != second.pid
        assert first.kill().endswith("(SIGKILL)")
    finally:
        first.close()
        second.close()
