"""A worker whose machine fails: its Repl and its run go on elsewhere, and no call is made twice."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Sandbox, tool
from moonbox.cluster import host, source, wire
from moonbox.cluster.source import ClusterSource
from moonbox.cluster.wire import HostLost
from moonbox.durable.backends import SqliteBackend
from moonbox.durable.store import Journal
from moonbox.errors import UsageError, WorkerError
from tests.cluster.host_processes import HostProcesses, Network
from tests.faults.processes import lives
from tests.runs import awaited, blocking, stepped
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from moonbox.runs.events import Record
    from moonbox.sandbox.repl import Repl

LOOP = """
print("begin")
local sum = before or 0
for i = 1, 6 do sum = sum + tools.add{a = i, b = 0} print(i) end
total = sum
return sum, math.random(1, 1000000)
"""
TOGETHER = """
return parallel{{function() return tools.slow{{seconds = {}}} end, function() return tools.add{{a = 7, b = 1}} end}}
"""

LONG = "local n = tools.add{a = 3, b = 4} for i = 1, 300000000 do end return n + tools.add{a = 4, b = 5}"
"""The worker takes a moment to end with its host."""


class World:
    """Tools that count, on a cluster of hosts that can be killed."""

    def __init__(self, hosts: HostProcesses) -> None:
        self.hosts = hosts
        self.calls: Counter[tuple[int, int]] = Counter()
        self.kill_at: tuple[str, int] = ("", 0)
        self.stop_at = self.cut_at = 0
        self.cut: Network | None = None
        self.stopped: list[int] = []
        self.heard = ""
        self.told: list[str] = []

    def add(self, a: int, b: int) -> int:
        """The sum."""
        if self.kill_at == ("during", a):
            self.hosts.kill(self.hosts.busiest())
        if a == self.stop_at and not self.stopped:
            self.stopped = self.hosts.stop(self.hosts.busiest())
        if a == self.cut_at and self.cut is None:
            self.cut = self.hosts.networks[self.hosts.busiest()]
            self.cut.cut()
        self.calls[a, b] += 1
        return a + b

    def slow(self, seconds: float) -> float:
        """Takes a while."""
        threading.Event().wait(seconds)
        self.calls[0, 0] += 1
        return seconds

    def on_call(self, entry: object) -> None:
        self.told.append(entry.status)  # type: ignore[attr-defined]

    def hear(self, text: str) -> None:
        self.heard += text
        if self.kill_at[0] == "output" and text.strip() == str(self.kill_at[1]):
            self.hosts.kill(self.hosts.busiest())


@pytest.fixture
def world() -> Iterator[World]:
    with HostProcesses(2) as hosts:
        yield World(hosts)


def sandbox(world: World, journal: Path | Journal | None, **options: object) -> Sandbox:
    workers = ClusterSource(world.hosts, {})  # type: ignore[arg-type]  # it has what a Membership has
    return Sandbox([tool(world.add), tool(world.slow)], isolation=workers, journal=journal, min_workers=0, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("drive", [blocking, awaited, stepped])
@pytest.mark.parametrize("moment", [("during", 3), ("during", 1), ("during", 6), ("output", 4)], ids=str)
def test_a_run_goes_on_elsewhere(world: World, tmp_path: Path, drive: Any, moment: tuple[str, int]) -> None:
    with sandbox(world, tmp_path / "state.db") as box, box.repl() as repl:
        repl.run("before = tools.add{a = 100, b = 0} function double(x) return 2 * x end").unwrap()
        world.kill_at = moment
        run = drive(repl, LOOP, on_output=world.hear, on_call=world.on_call)
        assert run.ok, run.error
        assert run.values[0] == 121 and len(run.calls) == 6
        assert not run.state_lost
        assert set(world.calls.values()) == {1} and len(world.calls) == 7
        assert world.heard == run.output == "begin\n1\n2\n3\n4\n5\n6\n"
        assert world.told.count("ok") == 6
        assert repl.run("return double(total)").value == 242


@pytest.mark.parametrize("drive", [blocking, awaited, stepped])
def test_a_hung_node_is_left_and_fenced(tmp_path: Path, drive: Any) -> None:
    with HostProcesses(2, silence=1.5) as hosts, sandbox(world := World(hosts), tmp_path / "state.db") as box:
        with box.repl() as repl:
            repl.run("before = tools.add{a = 100, b = 0}").unwrap()
            worker = repl.worker_pid
            world.stop_at = 3
            run = drive(repl, LOOP, timeout=300)
            assert run.ok, run.error
            assert (run.values[0], len(run.calls), run.state_lost) == (121, 6, False)
            assert worker in world.stopped and repl.worker_pid not in world.stopped
            hosts.go_on(world.stopped)  # it answers again
            wait_until(lambda: not lives(worker), "a worker of the node that was left lives on")
            assert repl.run("return total").value == 121
        assert set(world.calls.values()) == {1} and len(world.calls) == 7


def test_a_node_whose_network_is_cut_is_left_and_fenced(tmp_path: Path) -> None:
    with HostProcesses(2, silence=1.5) as hosts, sandbox(world := World(hosts), tmp_path / "state.db") as box:
        with box.repl() as repl:
            repl.run("before = tools.add{a = 100, b = 0}").unwrap()
            worker = repl.worker_pid
            assert worker is not None
            world.cut_at = 3
            run = repl.run(LOOP, timeout=300)
            assert (run.ok, run.values[0], len(run.calls), run.state_lost) == (True, 121, 6, False)
            assert world.cut is not None and lives(worker)
            world.cut.mend()  # the answer to the call and the end of the connection arrive
            wait_until(lambda: not lives(worker), "a worker of the node that was left lives on")
            assert repl.run("return total").value == 121
        assert set(world.calls.values()) == {1} and len(world.calls) == 7


def test_an_idle_repl_of_a_hung_node_is_restored_elsewhere(tmp_path: Path) -> None:
    with HostProcesses(2, silence=1.5) as hosts, sandbox(world := World(hosts), tmp_path / "state.db") as box:
        with box.repl() as repl:
            repl.run("x = tools.add{a = 1, b = 2}").unwrap()
            stopped = hosts.stop(hosts.busiest())
            assert repl.run("return x", timeout=300).value == 3
            assert repl.worker_pid not in stopped
            hosts.go_on(stopped)
        assert world.calls == {(1, 2): 1}


def test_calls_under_way_are_waited_for_and_not_repeated(world: World, tmp_path: Path) -> None:
    with sandbox(world, tmp_path / "state.db") as box, box.repl() as repl:
        world.kill_at = ("during", 7)
        run = repl.run(TOGETHER.format(0.7))
        assert run.value == [0.7, 8], run.error
        assert world.calls == {(0, 0): 1, (7, 1): 1}


def test_a_run_that_is_cancelled_while_it_moves_leaves_its_repl_usable(world: World, tmp_path: Path) -> None:
    async def cancel(repl: Repl) -> None:
        task = asyncio.create_task(repl.arun("tools.add{a = 3, b = 0} while true do end"))
        while not world.calls[3, 0]:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with sandbox(world, tmp_path / "state.db") as box, box.repl() as repl:
        repl.run("local n = 0 for i = 1, 100000000 do n = n + i end x = 7").unwrap()  # restoring it takes a while
        world.kill_at = ("during", 3)
        asyncio.run(cancel(repl))
        run = repl.run("return x")
        assert (run.value, run.state_lost) == (7, False)
        assert set(world.calls.values()) == {1}


def test_a_run_that_is_interrupted_while_it_moves_is_cancelled(world: World, tmp_path: Path) -> None:
    class Interrupting(Journal):
        """Ctrl-C comes while a run that moves reads what it must repeat."""

        def read(self, repl: str) -> list[list[Record]]:
            if world.calls[3, 4] == 1:
                world.calls[3, 4] = -1
                raise KeyboardInterrupt
            return super().read(repl)

    with sandbox(world, Interrupting(SqliteBackend(tmp_path / "state.db"))) as box, box.repl() as repl:
        repl.run("x = 7").unwrap()
        world.kill_at = ("during", 3)
        with pytest.raises(KeyboardInterrupt):
            repl.run(LONG)
        assert box.journal.runs()[0].state == "cancelled"
        run = repl.run("return x")
        assert (run.value, run.state_lost) == (7, False)
        assert world.calls == {(3, 4): -1}


def test_a_run_that_no_host_takes_can_be_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with HostProcesses(1) as hosts, sandbox(world := World(hosts), tmp_path / "state.db") as box:
        with box.repl() as repl:
            world.kill_at = ("during", 3)
            monkeypatch.setattr(source, "START_SECONDS", 0.5)
            with pytest.raises(WorkerError, match="no node of the cluster has room"):
                repl.run(LONG, run_id="moved")
            hosts.add()
            with pytest.raises(UsageError, match="has not ended; continue it with resume"):
                repl.run("return 1")
        world.kill_at = ("", 0)
        assert [run.run_id for run in box.interrupted()] == ["moved"]
        assert box.resume("moved").value == 16
        assert set(world.calls.values()) == {1}


def test_a_run_keeps_its_time_limit_when_its_host_is_lost(world: World, tmp_path: Path) -> None:
    with sandbox(world, tmp_path / "state.db") as box, box.repl() as repl:
        repl.run("x = 5").unwrap()
        world.kill_at = ("during", 7)
        run = repl.run(TOGETHER.format(30), limits=Limits(timeout=1.5))
        assert run.error is not None and run.error.limit == "time"
        assert repl.run("return x").value == 5


def test_a_worker_starts_where_there_is_most_room(world: World) -> None:
    hosts = world.hosts.connections()
    for roomy, other in (hosts, hosts[::-1]):
        roomy.status.room, other.status.room = 10**6, 1
        with sandbox(world, None) as box, box.repl() as repl:
            assert repl.run("return 1").ok
            counts = {each.node: each.refresh().workers for each in hosts}
            assert counts == {roomy.node: 1, other.node: 0}
        wait_until(lambda: not any(each.refresh().workers for each in hosts))


def test_workers_are_spread_in_proportion_to_the_room_of_nodes() -> None:
    with HostProcesses(2, silence=600) as hosts, sandbox(World(hosts), None) as box, ExitStack() as repls:
        small, large = hosts.connections()
        small.status.room, large.status.room = 4, 12
        for _ in range(8):
            assert repls.enter_context(box.repl()).run("return 1").ok
        assert (small.refresh().workers, large.refresh().workers) == (2, 6)


def test_a_node_takes_no_more_workers_than_its_operator_wants() -> None:
    """Also where many start at the same time. A place that is given back is taken again."""
    with HostProcesses(0, silence=2) as hosts, sandbox(World(hosts), None) as box:
        hosts.add(places=2)
        (small,) = hosts.connections()
        repls = [box.repl() for _ in range(8)]
        with ThreadPoolExecutor(8) as threads:
            begun = [threads.submit(repl.run, "return 1") for repl in repls]
            wait_until(lambda: sum(each.done() for each in begun) == 2)
            assert (small.refresh().workers, small.status.room) == (2, 0)
            next(repl for repl, each in zip(repls, begun, strict=True) if each.done()).close()
            wait_until(lambda: sum(each.done() for each in begun) == 3)
            assert (small.refresh().workers, small.status.room) == (2, 0)
            hosts.add()
            assert all(each.result(60).ok for each in begun)
            assert small.refresh().workers == 2
        for repl in repls:
            repl.close()


def test_an_interrupted_order_does_not_leave_its_answer_to_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> list[object]:
        raise KeyboardInterrupt

    first, other = world.hosts.connections()
    with monkeypatch.context() as patch:
        patch.setattr(wire, "receive", interrupt)
        with pytest.raises(KeyboardInterrupt):
            first.refresh()
    with pytest.raises(HostLost):
        first.refresh()
    assert world.hosts.connections() == [other] and other.kill(1) == ""


def test_a_connection_that_no_worker_gets_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its front end has failed before it asked for the worker."""
    monkeypatch.setattr(host, "UNCLAIMED_SECONDS", 0.1)
    address, token, _ = host.NodeHost("127.0.0.1").where()
    with wire.connect(address, token, wire.WORKER, bytes(wire.NAME_SIZE), 60) as sock:
        assert sock.recv(1) == b""


def test_an_idle_repl_is_restored_elsewhere(world: World, tmp_path: Path) -> None:
    with sandbox(world, tmp_path / "state.db") as box, box.repl() as repl:
        repl.run("x = tools.add{a = 1, b = 2}").unwrap()
        world.hosts.kill(world.hosts.busiest())
        wait_until(lambda: repl.run("return x").value == 3)
        assert repl.globals() == {"x": "number"}
        assert world.calls == {(1, 2): 1}


@pytest.mark.parametrize("when", [0.0, 0.001, 0.01, 0.1])
def test_globals_are_asked_of_a_worker_that_has_them(world: World, tmp_path: Path, when: float) -> None:
    with sandbox(world, tmp_path / "state.db") as box, box.repl() as repl:
        repl.run("x = tools.add{a = 1, b = 2}").unwrap()
        world.hosts.kill(world.hosts.busiest())
        threading.Event().wait(when)
        assert repl.globals() == {"x": "number"}
        assert repl.run("return x").value == 3


def test_without_a_journal_the_run_says_that_its_node_is_gone(world: World) -> None:
    with sandbox(world, None) as box, box.repl() as repl:
        world.kill_at = ("during", 3)
        run = repl.run("tools.add{a = 3, b = 0} while true do end")
        assert run.error is not None and run.error.kind == "crashed" and run.state_lost
        assert "its node is gone" in run.error.message
        assert repl.run("return 1").value == 1


def test_a_script_that_ends_its_worker_is_not_moved(world: World, tmp_path: Path) -> None:
    with sandbox(world, tmp_path / "state.db") as box, box.repl() as repl:
        repl.run("return 1").unwrap()
        pid = repl.worker_pid
        assert pid is not None
        repl.define("end_worker", lambda: os.kill(pid, signal.SIGKILL))
        run = repl.run("end_worker() while true do end")
        assert run.error is not None and run.error.kind == "crashed" and "SIGKILL" in run.error.message


def test_idle_repls_go_to_sleep_by_themselves(world: World, tmp_path: Path) -> None:
    with sandbox(world, tmp_path / "state.db", sleep_after=0.2) as box, box.repl() as repl:
        repl.run("x = 1").unwrap()
        wait_until(lambda: repl.worker_pid is None)
        assert repl.run("return x").value == 1


def test_a_repl_sleeps_and_wakes(world: World, tmp_path: Path) -> None:
    with sandbox(world, tmp_path / "state.db") as box, box.repl() as repl:
        repl.run("x = tools.add{a = 1, b = 2} function f() return x end").unwrap()
        assert not repl.sleep(idle_for=60)
        assert repl.sleep() and not repl.sleep()
        assert repl.worker_pid is None and box.workers.in_use == 0
        with sandbox(world, tmp_path / "state.db") as other:  # another front end
            assert other.restore(repl.id).run("x = x + 1; return f()").value == 4
        assert repl.run("return f()").value == 4
        assert world.calls == {(1, 2): 1}
