"""What waiting runs cost: memory of their process, transactions while nothing happens, and how late they go on.

    python benchmarks/sleepers.py [--runs 10000] [--after 120] [--spread 120] [--questions] [--postgres]

One process begins the runs. Each sleeps until a time of its own, or asks a person. The times are spread over so many
seconds, and begin so many seconds after the start; questions are answered at such times, by another connection, and a
run is late by what passes from its answer to its end. The goals are 200 MB, no transaction in PostgreSQL, and one
second.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from moonbox import Sandbox, tool
from moonbox.durable.questions import Questions
from moonbox.durable.store import open_journal
from moonbox.runs import call_ledger

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.postgres import server, transactions

QUIET_SECONDS = 20.0
SETTLING = 15.0
"""Seconds after which PostgreSQL has counted the transactions."""


@tool(policy="approve")
def pay(cents: int) -> int:
    """Pay."""
    return cents


def memory() -> float:
    """MB of this process."""
    text = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024


def fall_asleep(box: Sandbox, runs: int, script: str, times: list[float]) -> list[Any]:
    """Begin the runs, 50 at a time."""
    handles: list[Any] = []
    for number in range(runs):
        handles.append(box.repl().submit(script.format(times[number])))
        if number % 50 == 49 or number == runs - 1:
            while any(each.status() == "running" for each in handles[-50:]):
                time.sleep(0.01)
    return handles


def measure(
    journal: str, *, runs: int, after: float, spread: float, asks: bool, quiet: float = QUIET_SECONDS
) -> dict[str, float]:
    """Have them wait and go on; what that cost."""
    script = "return tools.pay{{cents = 1}} -- {}" if asks else "sleep_until({!r}) return 1"
    with Sandbox([pay], journal=journal) as box:
        started, before = time.time(), memory()
        times = [started + after + spread * number / runs for number in range(runs)]
        handles = fall_asleep(box, runs, script, times)
        asleep, asleep_after = memory(), time.time() - started
        assert asleep_after + quiet + SETTLING < after, f"--after is too short: it took {asleep_after:.0f} s"
        time.sleep(SETTLING)
        done = transactions(journal) if "://" in journal else 0
        time.sleep(quiet)
        idle = max(0, transactions(journal) - done - 2) / quiet if done else 0.0  # without the look itself
        due = dict(zip((handle.run_id for handle in handles), times, strict=True))
        ended: dict[str, float] = {}
        for handle in handles:
            handle._future.add_done_callback(partial(lambda run, _: ended.update({run: time.time()}), handle.run_id))
        if asks:
            answer(journal, due)
        for handle in handles:
            assert handle.wait(after + spread + 300).unwrap() == 1
        most = memory()
    late = sorted(ended[run] - until for run, until in due.items())
    return {
        "before": before,
        "asleep": asleep,
        "most": most,
        "seconds": asleep_after,
        "transactions": idle,
        "median": statistics.median(late),
        "latest": late[-1],
    }


def answer(journal: str, times: dict[str, float]) -> None:
    """Answer the questions at their times, as another process does; when each was answered takes its place."""
    other = open_journal(journal)
    questions = Questions(other.backend)
    with other.backend.reading() as db:
        asked = {str(run): str(id) for id, run in db.rows("SELECT id, run FROM questions")}
    for run, until in times.items():
        time.sleep(max(0.0, until - time.time()))
        questions.answer(asked[run], {"kind": "allow", "by": "ann"})
        times[run] = time.time()
    other.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--after", type=float, default=120.0)
    parser.add_argument("--spread", type=float, default=120.0)
    parser.add_argument("--questions", action="store_true", help="the runs wait for a person")
    parser.add_argument("--postgres", action="store_true", help="in place of SQLite; with a server of its own")
    args = parser.parse_args()
    # A short wait gives the worker back, too, but not before a run that goes on has read its answer.
    call_ledger.HELD = 0.25
    with ExitStack() as stack:
        if args.postgres:
            # Its own look for what to clean up would count among the transactions.
            journal = stack.enter_context(server(autovacuum="off")).url
        else:
            journal = f"{stack.enter_context(tempfile.TemporaryDirectory())}/journal.db"
        found = measure(journal, runs=args.runs, after=args.after, spread=args.spread, asks=args.questions)
    print(
        "{runs:,} runs wait after {seconds:.0f} s: {asleep:.0f} MB, {before:.0f} without them; {transactions:.2f} "
        "transactions a second; late by {median:.2f} s in the middle, {latest:.2f} s at most; {most:.0f} MB in the "
        "end".format(runs=args.runs, **found)
    )


if __name__ == "__main__":
    main()
