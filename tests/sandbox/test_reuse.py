"""One-off runs that share workers: `Sandbox(reuse_workers=True)`."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Sandbox
from moonbox.native import extension
from moonbox.worker import pool
from moonbox.worker.sources import ProcessSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moonbox.worker.link import Link

if extension("worker._wire") is None or os.sysconf("SC_PAGE_SIZE") != 4096:
    pytest.skip("only native workers serve again", allow_module_level=True)


class Counted(ProcessSource):
    """Knows the workers that it has made."""

    def __init__(self) -> None:
        super().__init__({})
        self.pids: list[int | None] = []

    def spawn(self) -> Link:
        link = super().spawn()
        self.pids.append(link.pid)
        return link


def double(n: int) -> int:
    """Twice the number."""
    return n * 2


def fail() -> None:
    """Always fails."""
    raise ValueError("no")


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that wait for another run wait as long as a busy machine takes."""
    monkeypatch.setattr(pool, "REST", 3600.0)


@pytest.fixture
def source() -> Counted:
    return Counted()


def sandbox(source: Counted, **options: Any) -> Sandbox:
    return Sandbox([double, fail], isolation=source, **{"min_workers": 0, "reuse_workers": True, **options})


@pytest.fixture
def box(source: Counted) -> Iterator[Sandbox]:
    with sandbox(source) as box:
        yield box


def test_runs_share_a_worker_and_nothing_else(box: Sandbox, source: Counted) -> None:
    assert box.run("left = 1; return left").value == 1
    runs = [box.run("local was = left; left = 2; return was") for _ in range(10)]
    assert [run.value for run in runs] == [None] * 10
    assert {run.number for run in runs} == {1} and len({run.seed for run in runs}) == 10
    assert len(source.pids) == 1


def test_by_default_every_run_has_a_process(source: Counted) -> None:
    with sandbox(source, reuse_workers=False) as box:
        assert [box.run("return 1").value for _ in range(3)] == [1, 1, 1]
    assert len(source.pids) == 3


def test_runs_that_call_tools_share_it_too(box: Sandbox, source: Counted) -> None:
    both = "parallel{ function() return tools.double(1) end, function() return tools.double(2) end }"
    for _ in range(5):
        run = box.run(f"print('x') local t = {both} return t[1], t[2], tools.double{{ n = 4 }}")
        assert run.values == (2, 4, 8) and len(run.calls) == 3 and run.output == "x\n"
    assert len(source.pids) == 1


def test_awaited_runs_share_it_too(box: Sandbox, source: Counted) -> None:
    async def both() -> list[Any]:
        return [(await box.arun("x = (x or 0) + 1 return x, tools.double(x)")).values for _ in range(3)]

    assert asyncio.run(both()) == [(1, 2)] * 3
    assert len(source.pids) == 1


@pytest.mark.parametrize(
    "script",
    [
        "error('no')",
        "return (",
        "local t = {} while true do t[#t + 1] = ('x'):rep(100) .. #t end",
        "for i = 1, 1000 do print(('x'):rep(1000)) end",
        "while true do end",
        "pcall(tools.fail)",
        "return json.decode('[1]')",
        "return ('x'):rep(1 << 20):len()",
    ],
)
def test_what_is_not_ordinary_has_its_worker_to_itself(script: str, source: Counted) -> None:
    with sandbox(source, limits=Limits(max_memory=8 << 20, timeout=2)) as box:
        box.run(script)
        assert box.run("return 1").value == 1
    assert len(source.pids) == 2


@pytest.mark.parametrize(
    "options", [{"inputs": {"n": 1}}, {"limits": Limits(max_string=500)}], ids=["inputs", "limits"]
)
def test_a_run_with_options_of_its_own_is_the_last_of_its_worker(
    options: dict[str, Any], box: Sandbox, source: Counted
) -> None:
    assert box.run("return 1").value == 1
    assert box.run("return n, #('x'):rep(400)", **options).ok
    assert box.run("return n, ('x'):rep(600)").values == (None, "x" * 600)
    assert len(source.pids) == 2


def test_a_repl_has_a_process_that_nobody_had_before(box: Sandbox, source: Counted) -> None:
    box.run("return 1")
    with box.repl() as repl:
        assert repl.run("x = 1 return x").value == 1
        assert repl.run("return x").value == 1
        assert repl.worker_pid == source.pids[1]
    box.run("return 1")
    assert len(source.pids) == 2


def test_no_more_workers_than_allowed(source: Counted) -> None:
    with sandbox(source, max_workers=1) as box:
        assert box.run("return 1").value == 1
        with box.repl(timeout=60) as repl:  # the worker that could serve again makes room
            assert repl.run("return 2").value == 2
        assert box.run("return 3").value == 3
    assert len(source.pids) == 3


def test_many_threads_never_see_each_other(box: Sandbox, source: Counted) -> None:
    seen: list[Any] = []

    def work(number: int) -> None:
        for turn in range(20):
            run = box.run(f"local was = left; left = {number}; return was, tools.double({number + turn})")
            seen.append(run.values == (None, 2 * (number + turn)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [True] * 80
    assert len(source.pids) <= 4


def test_a_worker_that_dies_while_it_waits_is_not_used(box: Sandbox, source: Counted) -> None:
    box.run("return 1")
    assert source.pids[0] is not None
    source.kill(source.pids[0])
    assert box.run("return 2").value == 2
    assert len(source.pids) == 2


def test_one_that_waits_in_vain_ends(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "REST", 0.01)
    box.run("return 1")
    deadline = time.monotonic() + 60
    while box.workers.live:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert box.run("return 2").value == 2
