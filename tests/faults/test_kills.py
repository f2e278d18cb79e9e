"""Workers and zygotes that are killed or stopped at random moments under load."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Repl, Run, Sandbox, tool
from moonbox.errors import WorkerError
from tests.long import times
from tests.runs import at_once, error_of
from tests.waiting import SECONDS, wait_until

from .processes import descendants, lives, nothing_leaks, zygote_pid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

SCRIPT = """
local n = ...
seen = (seen or 0) + 1
local sum = 0
for i = 1, 2000 do sum = sum + i end
local a = tools.once({ key = KEY })
local b = parallel.map({ 1, 2, 3 }, function(i) return tools.double(i) end)
return a, sum, b[1] + b[2] + b[3], seen
"""


class Load:
    """Threads that run scripts without pause, and a record of what the tools saw."""

    def __init__(self, box_options: dict[str, Any], threads: int) -> None:
        self.asked: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.repls: list[Repl] = []
        self._threads = threads
        self.box = Sandbox([self.once, self.double], **box_options)

    def once(self, key: str) -> str:
        """Count the key and give it back."""
        with self._lock:
            self.asked[key] += 1
        return key

    def double(self, n: int) -> int:
        """Twice as much."""
        return n * 2

    def play(self, rounds: int) -> list[Run]:
        """Run scripts in every thread; check each result, and give back those that failed."""
        self.repls = [self.box.repl() for _ in range(self._threads)]
        with ThreadPoolExecutor(self._threads) as pool:
            results = [pool.submit(self._worker, repl, rounds) for repl in self.repls]
            return [run for result in results for run in result.result(60)]

    def play_until(self, rounds: int, enough: Callable[[], bool]) -> list[Run]:
        """Go on until enough has happened meanwhile: a fast machine is done with the rounds before."""
        failed = self.play(rounds)
        deadline = time.monotonic() + SECONDS
        while not enough():
            assert time.monotonic() < deadline, "too little happened while scripts ran"
            failed += self.play(20)
        return failed

    def _worker(self, repl: Repl, rounds: int) -> list[Run]:
        failed = []
        state = 0
        for number in range(rounds):
            key = f"{repl.id}-{number}"
            try:
                run = repl.run(SCRIPT.replace("KEY", f'"{key}"'))
            except WorkerError:  # three zygotes in a row were killed before they could fork
                state = 0
                continue
            state = 0 if run.state_lost else state + 1
            if run.error is None:
                if run.state_lost:
                    state = 1  # lost before this run, which began afresh
                assert run.values == (key, 2001000, 12, state)
                assert self.asked[key] == 1
            else:
                assert run.error.kind in ("crashed", "limit"), run.error
                assert run.state_lost
                assert run.values == ()
                assert self.asked[key] <= 1
                failed.append(run)
        return failed


@contextmanager
def killing(victim: Callable[[], int | None], least: float, longest: float) -> Iterator[list[int]]:
    """Kills a process every now and then; which ones it has killed."""
    done, killed, chance = threading.Event(), [], random.Random(1)

    def kill() -> None:
        while not done.wait(chance.uniform(least, longest)):
            pid = victim()
            if pid is not None and lives(pid):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield killed
    finally:
        done.set()
        killer.join()


def test_workers_killed_at_random() -> None:
    with nothing_leaks():
        load = Load({"limits": Limits(timeout=60), "min_workers": 2}, threads=4)
        chance = random.Random(1)
        with killing(lambda: chance.choice(load.repls).worker_pid if load.repls else None, 0, 0.02) as killed:
            failed = load.play_until(times(75), lambda: len(killed) > 10)
        assert failed
        assert all(run.error is not None and run.error.kind == "crashed" for run in failed)
        load.box.close()


def test_zygotes_killed_at_random() -> None:
    with nothing_leaks():
        load = Load({"limits": Limits(timeout=60), "min_workers": 1}, threads=3)
        orphans: set[int] = set()

        def victim() -> int | None:
            pid = zygote_pid()
            # One that is still starting is left alone: on a busy machine none would ever get to serve.
            if pid is None or len(workers := descendants(pid)) < 2:
                return None
            orphans.update(workers)
            return pid

        with killing(victim, 0.1, 0.3) as killed:
            load.play_until(times(150), lambda: len(killed) > 2)
        wait_until(lambda: not any(map(lives, orphans)), "the workers of dead zygotes are gone")  # the spares too
        assert load.box.run("return 1").value == 1
        load.box.close()


def test_a_stopped_worker_ends_at_the_deadline() -> None:
    with nothing_leaks(), Sandbox() as box:

        def one(_: int) -> Run:
            with box.repl() as repl:
                assert repl.run("x = 1").ok
                assert repl.worker_pid is not None
                os.kill(repl.worker_pid, signal.SIGSTOP)
                run = repl.run("return x", limits=Limits(timeout=0.3))
                again = repl.run("return x")
                assert (again.values, again.error) == ((None,), None)
                return run

        with ThreadPoolExecutor(6) as pool:
            for run in pool.map(one, range(times(24))):
                assert (error_of(run).kind, error_of(run).limit) == ("limit", "time")
                assert run.state_lost


def test_a_worker_stopped_and_continued_loses_nothing() -> None:
    with Sandbox(limits=Limits(timeout=20)) as box, box.repl() as repl:
        assert repl.run("x = 1").ok
        for _ in range(times(20)):
            assert repl.worker_pid is not None
            os.kill(repl.worker_pid, signal.SIGSTOP)
            timer = threading.Timer(0.01, os.kill, (repl.worker_pid, signal.SIGCONT))
            timer.start()
            run = repl.run("x = x + 1 return x")
            timer.join()
            assert run.ok
        assert repl.run("return x").value == times(20) + 1


def test_a_stopped_zygote_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moonbox.worker.sources.REPLY_SECONDS", 0.5)
    with nothing_leaks(), Sandbox(min_workers=0) as box:
        assert box.run("return 1").value == 1
        first = zygote_pid()
        assert first is not None
        os.kill(first, signal.SIGSTOP)
        assert box.run("return 2").value == 2
        assert zygote_pid() != first
        wait_until(lambda: not lives(first), "the stopped zygote lives on")


def test_a_worker_killed_while_its_tool_runs() -> None:
    entered, go_on = threading.Event(), threading.Event()

    @tool
    def wait() -> int:
        """Wait for the test."""
        entered.set()
        go_on.wait(60)
        return 1

    with nothing_leaks(), Sandbox([wait], limits=Limits(timeout=20)) as box, box.repl() as repl:
        assert repl.run("x = 1").ok
        pid = repl.worker_pid
        assert pid is not None

        def kill() -> None:
            entered.wait(60)
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not lives(pid), "the worker does not die")
            go_on.set()

        runs: list[Run] = []
        at_once(kill, lambda: runs.append(repl.run("return tools.wait()")))
        (run,) = runs
        assert error_of(run).kind == "crashed"
        assert [(call.tool, call.status) for call in run.calls] in ([("wait", "in_flight")], [("wait", "ok")])
        assert repl.run("return 5").value == 5


def test_a_worker_killed_between_runs_is_noticed() -> None:
    with Sandbox() as box, box.repl() as repl:
        assert repl.run("x = 1").ok
        assert repl.worker_pid is not None
        pid = repl.worker_pid
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not lives(pid), "the worker does not die")
        run = repl.run("return x")
        assert (run.values, run.error, run.state_lost) == ((None,), None, True)
        assert repl.run("return 1").value == 1


def test_spares_that_were_killed_are_not_handed_out() -> None:
    with Sandbox(min_workers=3) as box:
        box.warm()
        wait_until(lambda: box.workers.spare == 3, "no spares")
        for pid in box.workers.spare_pids:
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda pid=pid: not lives(pid), "the spare does not die")  # type: ignore[misc]
        for _ in range(5):
            assert box.run("return 1").value == 1


def test_more_than_a_worker_can_hold_ends_the_run_only() -> None:
    @tool
    def flood(count: int) -> list[str]:
        """Very much."""
        return ["x" * 4000] * count

    with nothing_leaks(), Sandbox([flood], limits=Limits(timeout=120, max_memory=8_000_000)) as box, box.repl() as repl:
        assert repl.run("x = 1").ok
        for _ in range(times(8)):
            run = repl.run("return #tools.flood(90000)")  # 360 MB, more than the worker's address space
            assert (error_of(run).kind, error_of(run).limit) in (("limit", "memory"), ("tool", None))
            assert repl.run("return x").value == 1
