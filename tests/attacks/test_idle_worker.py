"""Attacks between runs: a worker that somebody has taken over computes, or holds memory, while nobody uses it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Pause, Run, Sandbox, tool
from moonbox.worker.sources import ProcessSource
from tests.waiting import wait_until

if TYPE_CHECKING:
    from moonbox.worker.link import Link

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
HELD = "kept = {} for i = 1, 8 do kept[i] = ('x'):rep(6e6) .. i end return #kept"


@tool
def echo(value: int) -> int:
    """Give it back."""
    return value


class WatchedSource:
    """Ordinary workers, whose links a test can look at."""

    def __init__(self) -> None:
        self.links: list[Link] = []
        self._source: ProcessSource | None = None

    def configure(self, config: dict[str, Any]) -> None:
        self._source = ProcessSource(config)

    def spawn(self) -> Link:
        assert self._source is not None
        self.links.append(self._source.spawn())
        return self.links[-1]

    def close(self) -> None:
        if self._source is not None:
            self._source.close()


def state(pid: int | None) -> str:
    """As the kernel tells it: T stands for frozen, "" for no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def wait_for_state(pid: int | None, *states: str) -> None:
    wait_until(lambda: state(pid) in states, f"the state is not one of {states}")


def test_an_idle_worker_is_frozen_and_goes_on() -> None:
    """Though it holds all that scripts may hold."""
    with Sandbox([echo]) as box, box.repl() as repl:
        assert repl.run(HELD).value == 8
        wait_for_state(repl.worker_pid, "T")
        run = repl.run("return tools.echo(#kept)")
        assert (run.value, run.state_lost) == (8, False)
        wait_for_state(repl.worker_pid, "T")
        assert asyncio.run(repl.arun("return tools.echo(#kept)")).value == 8
        wait_for_state(repl.worker_pid, "T")
        assert repl.globals() == {"kept": "table"}


def test_a_worker_that_waits_step_by_step_is_frozen() -> None:
    """While the caller has a Pause in hand, which may be for days, the worker has nothing to do."""
    with Sandbox([echo]) as box, box.repl() as repl:
        pause = repl.start("return tools.echo(1) + tools.echo(2)")
        assert isinstance(pause, Pause)
        wait_for_state(repl.worker_pid, "T")
        pause = pause.resume([10])
        assert isinstance(pause, Pause)
        wait_for_state(repl.worker_pid, "T")
        run = pause.resume([20])
        assert isinstance(run, Run)
        assert run.value == 30


def test_a_frozen_worker_ends_with_its_repl_and_is_missed_when_it_is_killed() -> None:
    with Sandbox([echo]) as box:
        repls = [box.repl() for _ in range(4)]
        for repl in repls:
            repl.run("x = 5")
        pids = [repl.worker_pid or 0 for repl in repls]
        for pid in pids:
            wait_for_state(pid, "T")
        repls[0].close()
        repls[1].reset()
        os.kill(pids[2], signal.SIGKILL)
        for pid in pids[:3]:
            wait_for_state(pid, "", "Z")
        run = repls[2].run("return x")
        assert (run.value, run.state_lost) == (None, True)
        assert state(pids[3]) == "T"
        box.close()
        wait_for_state(pids[3], "", "Z")


def test_a_worker_that_holds_more_than_its_scripts_may_is_ended() -> None:
    source = WatchedSource()
    with Sandbox([echo], isolation=source, min_workers=0) as box, box.repl() as repl:
        assert repl.run(HELD).value == 8
        pid = repl.worker_pid
        source.links[0].memory = 1 << 20  # as if it had been told that scripts may hold so little
        wait_for_state(pid, "", "Z")
        run = repl.run("return kept")
        assert (run.value, run.state_lost) == (None, True)
