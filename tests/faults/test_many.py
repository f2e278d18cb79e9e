"""Hundreds of Repls at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from moonbox import Limits, Sandbox, tool
from tests.long import times

from .processes import nothing_leaks

REPLS, RUNS, THREADS = 200, times(2_000) // 200 * 200, 8


def test_thousands_of_runs_over_hundreds_of_repls() -> None:
    lock = threading.Lock()
    seen: list[int] = []

    @tool
    def note(number: int) -> int:
        """Write it down."""
        with lock:
            seen.append(number)
        return number * 2

    with nothing_leaks(), Sandbox([note], limits=Limits(timeout=60), max_workers=REPLS) as box:
        repls = [box.repl(timeout=60) for _ in range(REPLS)]
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda index: repls[index].run(f"me = {index} runs = 0"), range(REPLS)))

            def one(number: int) -> None:
                index = number % REPLS
                run = repls[index].run(f"runs = runs + 1 return me, runs, tools.note({number})")
                assert run.error is None
                me, _, doubled = run.values
                assert (me, doubled) == (index, number * 2)

            list(pool.map(one, range(RUNS)))
            counts = [run.value for run in pool.map(lambda repl: repl.run("return runs"), repls)]
        assert counts == [RUNS // REPLS] * REPLS
        assert sorted(seen) == list(range(RUNS))
        assert len({repl.worker_pid for repl in repls}) == REPLS
