"""The sandbox's own promises beside pydantic-monty and bare lupa: speed, memory, and how late a stop comes.

python benchmarks/foundation.py
"""

from __future__ import annotations

import time

from rivals import SUBJECTS, Running

from moonbox import Limits, Sandbox

ROUNDS = 8
ROWS = (
    ("fib", "fib(27)", "bare lupa", 1.10),
    ("empty", "empty run", "pydantic-monty", 1.0),
    ("open", "fresh Repl from the warm pool", "pydantic-monty", 1.0),
    ("fresh", "the same with its first run", "pydantic-monty", 1.0),
    ("call", "sequential tool call", "pydantic-monty", 1.0),
    ("batch", "tool call in batches of 20, against a sequential one", "pydantic-monty", 1 / 3),
    ("rows_in", "20,000 rows of five fields in", "pydantic-monty", 1.0),
    ("rows_out", "20,000 rows of five fields out", "pydantic-monty", 1.0),
)


def main() -> None:
    wanted = {"moonbox", "pydantic-monty", "bare lupa"}
    running = {subject.name: Running(subject) for subject in SUBJECTS if subject.name in wanted}
    try:
        for row, title, other, most in ROWS:
            theirs_row = "call" if row == "batch" else row
            ours, theirs = side_by_side((running["moonbox"], row), (running[other], theirs_row))
            ratio = ours / theirs
            verdict = "ok" if ratio <= most else f"above {most:.2f}"
            print(f"{title:55} {ours * 1e6:12,.1f} µs   {other} {theirs * 1e6:12,.1f} µs   {ratio:6.2f}   {verdict}")
        memory, _ = running["moonbox"].measure("memory") or (0.0, None)
        print(f"{'memory of an idle Repl (50 live)':55} {memory / 2**20:12.2f} MiB")
        (twenty,) = side_by_side((running["moonbox"], "parallel"))
        print(f"{'twenty tools of 50 ms in parallel':55} {twenty * 1e3:12.1f} ms")
    finally:
        for one in running.values():
            one.close()
    print(
        f"{'an endless loop ends after its deadline by':55} {overrun('while true do end') * 1e3:12.1f} ms, state kept"
    )
    hog = "return (('a'):rep(40)):find(('a-'):rep(8) .. 'b')"
    print(f"{'a C-bound hog ends after its deadline by':55} {overrun(hog, kept=False) * 1e3:12.1f} ms")


def side_by_side(*measured: tuple[Running, str]) -> list[float]:
    """The best of some rounds of each, in turns: the machine may be busy with other things for a while."""
    found: list[list[float]] = [[] for _ in measured]
    for _ in range(ROUNDS):
        for (one, row), values in zip(measured, found, strict=True):
            answer = one.measure(row)
            if answer is not None:
                values.append(answer[0])
    return [min(values) for values in found]


def overrun(source: str, *, kept: bool = True, timeout: float = 0.5) -> float:
    with Sandbox(limits=Limits(timeout=timeout)) as box, box.repl() as repl:
        repl.run("state = 1").unwrap()
        late = []
        for _ in range(3):
            began = time.perf_counter()
            run = repl.run(source)
            late.append(time.perf_counter() - began - timeout)
            assert run.error is not None
            assert run.error.limit == "time"
            if kept:
                assert repl.run("state").unwrap() == 1
        return min(late)


if __name__ == "__main__":
    main()
