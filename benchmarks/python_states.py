"""The multi-turn tasks of the economy's workload as Python scripts: each must come to the ground truth's states.

python benchmarks/python_states.py [most]
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from tokens.bfcl import Leaderboard, Task
from tokens.conversation import Failed

from moonbox import Limits, Sandbox


def script(calls: Any) -> str:
    """A script that makes the calls in order and returns every result."""
    written = [
        f"tools.{name}({', '.join(f'{key}={value!r}' for key, value in given.items())})" for name, given in calls
    ]
    return "[" + ",\n".join(written) + "]"


def problem_with(board: Leaderboard, task: Task) -> str | None:
    """Why a task does not come to the same states; None where it does, "…" where its own ground truth is invalid."""
    if board.contradiction(task) is not None:
        return "…"
    instances = board.instances(task)
    check = board.check(task, instances, "python")
    limits = Limits(timeout=120)  # the machine may be busy
    with (
        Sandbox(board.tools(task, instances), language="python", min_workers=0, limits=limits) as box,
        box.repl() as repl,
    ):
        for number, turn in enumerate(task.turns):
            run = repl.run(script(turn.calls)) if turn.calls else None
            if run is not None and run.error is not None:
                return f"{task.id}: {run.error}"
            try:
                check(number, run.value if run is not None else [])
            except Failed as failed:
                return str(failed)
    return None


def main(most: int) -> None:
    board = Leaderboard()
    tasks = board.tasks("base")[:most]
    with ThreadPoolExecutor(2) as pool:
        problems = list(pool.map(lambda task: problem_with(board, task), tasks))
    for problem in problems:
        if problem not in (None, "…"):
            print(problem[:300])
    print(f"{problems.count(None)} of {len(tasks)} tasks equal; {problems.count('…')} break their own schemas")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
