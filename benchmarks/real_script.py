"""What one script of a model costs beside pydantic-monty: a new text each time, two calls, some output.

    python benchmarks/real_script.py [--rounds 5] [--no-write]

It writes a section of results.md. Both run in this interpreter, in turn, and each figure is the best of the rounds: use
an optimised CPython, and the package's extra `python`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pydantic_monty as monty

from moonbox import Sandbox, tool
from moonbox.runs.blocking import BlockingDriver
from moonbox.runs.execution import Execution
from moonbox.runs.runner import Runner
from moonbox.runs.script_check import ScriptCheck

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PAGE = Path(__file__).resolve().parent / "results.md"
BEGIN = "## A script as models write them"
"""Begins the section; compare.py keeps what comes from here on."""
ITEMS = [{"category": "travel", "amount": 100}, {"category": "meals", "amount": 20}]
ROWS = {
    "new": "a new script of 16 lines, two calls, checked",
    "typed": "the same, beside Monty with its type check",
    "unchecked": "the same, unchecked",
    "same": "the same text again",
    "call": "a run with one call",
    "quick": "a run with one call of a tool with `thread=False`",
    "spaced": "a new script, 0.3 s after the last",
    "one_off": "one-off: a fresh Repl each, in a row",
    "spaced_one_off": "one-off, 0.3 s apart",
    "eight": "eight Repls in eight threads, for each script",
    "awaited": "`arun`, one async tool",
    "text": "a text of 1 MB out",
    "first": "a program from its start to its first result and its end",
}
_RECORD = "Each run leaves a complete record, and arguments and results of calls are validated."
_PROCESS = "Each script gets a jailed process that no other script has used. Monty uses its processes again."
REASONS = {
    "new": "moonbox checks the script, and reports mistakes before anything runs. `check=False` leaves that out.",
    "typed": "",
    "unchecked": _RECORD,
    "same": _RECORD,
    "call": "Tools have a thread, so that none outlasts the run's timeout. `@tool(thread=False)` leaves that out.",
    "quick": _RECORD,
    "spaced": "Caches are cold by then, and two processes must wake. Python reads more memory than compiled code does.",
    "one_off": _PROCESS,
    "spaced_one_off": _PROCESS,
    "eight": "Python runs one thread at a time. Several processes, or a cluster, use more processors.",
    "awaited": _RECORD,
    "text": "The text is JSON, which is checked before it is decoded.",
    "first": "Python loads about 100 modules, then starts a second interpreter, locks it in, and forks it.",
}
"""What a user gets where moonbox is slower."""


@tool
def get_expenses(employee_id: int) -> list[dict[str, Any]]:
    """Expense items of one employee."""
    return ITEMS


@tool(thread=False)
def get_quickly(employee_id: int) -> list[dict[str, Any]]:
    """Expense items of one employee."""
    return ITEMS


@tool
async def get_later(employee_id: int) -> list[dict[str, Any]]:
    """Expense items of one employee."""
    return ITEMS


def lua(n: int) -> str:
    return f"""local total = {n}
local by = {{}}
for id = 1, 2 do
  local items = tools.get_expenses{{employee_id = id}}
  for _, item in ipairs(items) do
    total = total + item.amount
    by[item.category] = (by[item.category] or 0) + item.amount
    if item.amount > {n} and item.category ~= "x{n}" then
      print(string.format("%d %s", item.amount, item.category))
    end
  end
end
local names = {{}}
for k, v in pairs(by) do names[#names + 1] = k .. "=" .. v end
table.sort(names)
return {{total = total, names = names}}"""


def python(n: int) -> str:
    return f"""total = {n}
by = {{}}
for id in range(1, 3):
    items = get_expenses(employee_id=id)
    for item in items:
        total = total + item["amount"]
        by[item["category"]] = by.get(item["category"], 0) + item["amount"]
        if item["amount"] > {n} and item["category"] != "x{n}":
            print(f'{{item["amount"]}} {{item["category"]}}')
names = []
for k, v in by.items():
    names.append(k + "=" + str(v))
names.sort()
{{"total": total, "names": names}}"""


def fresh() -> int:
    return random.randrange(10**9)


def timed(work: Callable[[], object], count: int) -> float:
    """Microseconds for each."""
    began = time.perf_counter()
    for _ in range(count):
        work()
    return (time.perf_counter() - began) / count * 1e6


def spaced(work: Callable[[], object]) -> float:
    """The median of single pieces of work with pauses between them, as an agent does them."""
    took = []
    for _ in range(5):
        time.sleep(0.3)
        took.append(timed(work, 1))
    return sorted(took)[2]


def together(works: Sequence[Callable[[], object]], count: int) -> float:
    """Microseconds for one piece of work where as many threads do theirs at the same time."""
    threads = [threading.Thread(target=timed, args=(work, count)) for work in works]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (time.perf_counter() - began) / count / len(works) * 1e6


STAGES = {
    "check": (ScriptCheck, "admit"),
    "worker, calls, hand-overs": (BlockingDriver, "run"),
    "record": (Execution, "finish"),
    "all": (Runner, "run"),
}
"""The parts of a run, and what takes each. Where runs follow one another, the second has the record too."""


@contextmanager
def clocked() -> Iterator[dict[str, list[float]]]:
    """Microseconds of each part of the runs that are made here."""
    took: dict[str, list[float]] = {stage: [] for stage in STAGES}
    plain = {stage: getattr(owner, name) for stage, (owner, name) in STAGES.items()}

    def timer(stage: str) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return plain[stage](*given, **named)
            finally:
                took[stage].append((time.perf_counter() - began) * 1e6)

        return call

    for stage, (owner, name) in STAGES.items():
        setattr(owner, name, timer(stage))
    try:
        yield took
    finally:
        for stage, (owner, name) in STAGES.items():
            setattr(owner, name, plain[stage])


def stages() -> list[str]:
    """A table of where the time of a new script goes."""
    lines = [f"| | {' | '.join(STAGES)} |", "|---" + "|---:" * len(STAGES) + "|"]
    with Sandbox(tools=[get_expenses]) as box, box.repl() as repl:
        for _ in range(20):
            repl.run(lua(fresh()))
        for name, runs, count, pause in (
            ("a Repl, in a row", repl, 200, 0.0),
            ("a Repl, 0.3 s apart", repl, 15, 0.3),
            ("one-off, in a row", box, 60, 0.0),
            ("one-off, 0.3 s apart", box, 15, 0.3),
        ):
            with clocked() as took:
                for _ in range(count):
                    time.sleep(pause)
                    runs.run(lua(fresh()))
            lines.append(f"| {name} | {' | '.join(f'{median(took[stage]):,.0f}' for stage in STAGES)} |")
    return lines


def program(code: str) -> float:
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", code]
    return timed(lambda: subprocess.run(command, env=environment, check=False, capture_output=True), 1)


def ours() -> dict[str, float]:
    """One round of moonbox."""
    rows = {}
    with Sandbox(tools=[get_expenses, get_quickly, get_later]) as box:
        with box.repl() as repl, box.repl(check=False) as unchecked:
            for _ in range(20):
                repl.run(lua(fresh()))
                unchecked.run(lua(fresh()))
            rows["new"] = rows["typed"] = timed(lambda: repl.run(lua(fresh())), 100)
            rows["unchecked"] = timed(lambda: unchecked.run(lua(fresh())), 100)
            rows["same"] = timed(lambda: repl.run(lua(0)), 100)
            rows["call"] = timed(lambda: repl.run("return tools.get_expenses{employee_id = 1}"), 100)
            rows["quick"] = timed(lambda: repl.run("return tools.get_quickly{employee_id = 1}"), 100)
            rows["text"] = timed(lambda: repl.run("return string.rep('x', 1000000)"), 10)
            rows["spaced"] = spaced(lambda: repl.run(lua(fresh())))
        rows["one_off"] = timed(lambda: box.run(lua(fresh())), 50)
        rows["spaced_one_off"] = spaced(lambda: box.run(lua(fresh())))
        repls = [box.repl() for _ in range(8)]
        for repl in repls:
            repl.run("return 1")
        rows["eight"] = together([lambda repl=repl: repl.run(lua(fresh())) for repl in repls], 50)  # type: ignore[misc]

    async def awaited() -> float:
        async with Sandbox(tools=[get_later]) as box:
            repl = box.repl()
            for _ in range(20):
                await repl.arun("return tools.get_later{employee_id = 1}")
            began = time.perf_counter()
            for _ in range(100):
                await repl.arun("return tools.get_later{employee_id = 1}")
            return (time.perf_counter() - began) / 100 * 1e6

    rows["awaited"] = asyncio.run(awaited())
    rows["first"] = program("import moonbox; moonbox.Sandbox().run('return 1')")
    return rows


def theirs() -> dict[str, float]:
    """One round of pydantic-monty."""
    rows: dict[str, float] = {}
    limits: Any = {"max_suspensions": 10**8}
    tools: dict[str, Any] = {"get_expenses": lambda employee_id: ITEMS}

    def run(session: Any, code: str) -> object:
        return session.feed_run(code, external_lookup=tools, print_callback=lambda *_: None)

    with monty.Monty(max_processes=12) as pool:

        def one_off() -> None:
            with pool.checkout(limits=limits) as session:
                run(session, python(fresh()))

        with pool.checkout(limits=limits) as session:
            for _ in range(20):
                run(session, python(fresh()))
            rows["new"] = rows["unchecked"] = timed(lambda: run(session, python(fresh())), 100)
            rows["same"] = timed(lambda: run(session, python(0)), 100)
            rows["call"] = rows["quick"] = timed(lambda: run(session, "get_expenses(employee_id=1)"), 100)
            rows["text"] = timed(lambda: run(session, "'x' * 1000000"), 10)
            rows["spaced"] = spaced(lambda: run(session, python(fresh())))
        stubs = "def get_expenses(employee_id: int) -> list[dict]: ..."
        with pool.checkout(limits=limits, type_check=True, type_check_stubs=stubs) as session:
            rows["typed"] = timed(lambda: run(session, python(fresh())), 5)
        rows["one_off"] = timed(one_off, 50)
        rows["spaced_one_off"] = spaced(one_off)
        sessions = [pool.checkout(limits=limits) for _ in range(8)]
        live = [each.__enter__() for each in sessions]
        rows["eight"] = together([lambda each=each: run(each, python(fresh())) for each in live], 50)  # type: ignore[misc]
        for each in sessions:
            each.__exit__(None, None, None)

    async def awaited() -> float:
        async def later(employee_id: int) -> Any:
            return ITEMS

        async with monty.AsyncMonty(max_processes=2) as pool, pool.checkout(limits=limits) as session:
            for _ in range(20):
                await session.feed_run("await get_later(employee_id=1)", external_lookup={"get_later": later})
            began = time.perf_counter()
            for _ in range(100):
                await session.feed_run("await get_later(employee_id=1)", external_lookup={"get_later": later})
            return (time.perf_counter() - began) / 100 * 1e6

    rows["awaited"] = asyncio.run(awaited())
    rows["first"] = program(
        "import pydantic_monty as m\nwith m.Monty() as p:\n with p.checkout() as s: s.feed_run('1')"
    )
    return rows


def section(rounds: int) -> str:
    """The table, and why moonbox loses where it does."""
    load, best = os.getloadavg()[0], dict[tuple[str, bool], float]()
    for number in range(2 * rounds):
        mine = number % 2 == 0
        for name, took in (ours() if mine else theirs()).items():
            best[name, mine] = min(took, best.get((name, mine), took))
    version = ".".join(map(str, sys.version_info[:3]))
    lines = [
        BEGIN,
        "",
        "A new text each time, two calls, some output and a table as value: microseconds, the best of",
        f"{rounds} rounds in which both take turns, on {os.cpu_count()} processors, CPython {version},",
        f"at a load of {load:.1f} before.",
        "`python benchmarks/real_script.py` makes this section.",
        "",
        "| | moonbox | pydantic-monty | moonbox ÷ Monty | where moonbox is slower: why |",
        "|---|---:|---:|---:|---|",
    ]
    for key, name in ROWS.items():
        own, other = best[key, True], best[key, False]
        reason = REASONS[key] if own > other else ""
        lines.append(f"| {name} | {own:,.0f} | {other:,.0f} | {own / other:.2f} | {reason} |")
    lines += ["", "Where moonbox's time goes with a new script, microseconds, the median of each part:", "", *stages()]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-write", action="store_true")
    options = parser.parse_args()
    made = section(options.rounds)
    print(made, flush=True)
    if not options.no_write:
        PAGE.write_text(f"{PAGE.read_text(encoding='utf-8').partition(BEGIN)[0].rstrip()}\n\n{made}", encoding="utf-8")
    os._exit(0)  # Monty's threads may end the interpreter with an abort


if __name__ == "__main__":
    main()
