"""A soak: many calls over many Repls amid errors, timeouts, cancellations and kills, each once in the trail.

python benchmarks/soak.py [--calls 100000] [--repls 50] [--seed 1]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moonbox import Limits, Run, Sandbox, ToolError, tool
from moonbox.errors import WorkerError

if TYPE_CHECKING:
    from collections.abc import Callable

SCRIPT = Path(__file__).with_name("soak.lua").read_text(encoding="utf-8")
CALLS_A_RUN = 20
SLOW, TOOL_TIMEOUT, RUN_TIMEOUT = 0.06, 0.02, 2.0
TROUBLES = ("endless", "slow", "slow_awaited")


@dataclass
class Trail:
    """An audit sink that keeps what the accounts need of each run."""

    runs: Counter[str] = field(default_factory=Counter)
    calls: list[tuple[str, str, Any, str]] = field(default_factory=list)
    """Token, status, result and error code of each call."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def write(self, run: Run) -> None:
        how = "ok" if run.error is None else run.error.limit or run.error.kind
        with self._lock:
            self.runs[how] += 1
            self.calls.extend(
                (_token(call.arguments), call.status, call.result, call.error.code if call.error else "")
                for call in run.calls
            )

    def close(self) -> None:
        """Nothing to let go of."""


def _token(arguments: Any) -> str:
    """A call that ended before its arguments were looked at has them as the script gave them: in a list."""
    named = arguments[0] if isinstance(arguments, list) else arguments
    token: str = named["token"]
    return token


class Host:
    """The tools, and what they themselves wrote down: the other side of the accounts."""

    def __init__(self, run_timeout: float = RUN_TIMEOUT) -> None:
        self._run_timeout = run_timeout
        self.log: list[str] = []
        self.raised: set[str] = set()
        self.busy = 0
        self._lock = threading.Lock()

    def tools(self) -> list[Any]:
        @tool
        def plain(token: str, fail: bool = False) -> str:
            """Answer, or fail."""
            return self._answer(token, fail)

        @tool
        async def awaited(token: str, fail: bool = False) -> str:
            """The same on the event loop."""
            await asyncio.sleep(0)
            return self._answer(token, fail)

        @tool(timeout=TOOL_TIMEOUT)
        def slow(token: str) -> str:
            """Takes longer than it may, in a thread that cannot be stopped."""
            return self._late(token, time.sleep)

        @tool(timeout=TOOL_TIMEOUT)
        async def slow_awaited(token: str) -> str:
            """Takes longer than it may, and is cancelled."""
            self._note(token)
            await asyncio.sleep(SLOW)
            return token.upper()

        @tool
        def endless(token: str) -> str:
            """Outlasts the run."""
            return self._late(token, lambda _: time.sleep(self._run_timeout * 1.3))

        return [plain, awaited, slow, slow_awaited, endless]

    def _answer(self, token: str, fail: bool) -> str:
        self._note(token)
        if fail:
            self.raised.add(token)
            raise ToolError("as it was told to", code="told_to")
        return token.upper()

    def _late(self, token: str, wait: Callable[[float], None]) -> str:
        with self._lock:
            self.busy += 1
        try:
            self._note(token)
            wait(SLOW)
            return token.upper()
        finally:
            with self._lock:
                self.busy -= 1

    def _note(self, token: str) -> None:
        self.log.append(token)  # atomic


@dataclass(frozen=True)
class Figures:
    """What happened."""

    seconds: float
    invoked: int
    recorded: int
    statuses: dict[str, int]
    runs: dict[str, int]
    kills: int
    cancellations: int
    problems: list[str]


class Soak:
    """Drivers in threads and on an event loop, and one that kills workers."""

    def __init__(self, calls: int, repls: int, seed: int, *, run_timeout: float = RUN_TIMEOUT) -> None:
        self.calls, self.repls, self.seed = calls, repls, seed
        self.host, self.trail = Host(run_timeout), Trail()
        self._run_timeout = run_timeout
        self.kills = self.cancellations = 0
        self._over = threading.Event()
        self._members: list[Any] = []

    def run(self) -> Figures:
        began = time.monotonic()
        limits = Limits(timeout=self._run_timeout, max_tool_calls=None)
        self._box = Sandbox(self.host.tools(), limits=limits, max_workers=self.repls + 8, audit=self.trail)
        with self._box:
            killer = threading.Thread(target=self._kill)
            killer.start()
            try:
                with ThreadPoolExecutor(self.repls) as pool:
                    threads = [pool.submit(self._thread, number) for number in range(self.repls // 2)]
                    asyncio.run(self._tasks(range(self.repls // 2, self.repls)))
                    for thread in threads:
                        thread.result()
            finally:
                self._over.set()
                killer.join()
        while self.host.busy:  # abandoned threads that still write nothing, but have not come back
            time.sleep(0.01)
        return self._figures(time.monotonic() - began)

    def _going_on(self) -> bool:
        return len(self.host.log) < self.calls

    def _thread(self, number: int) -> None:
        chance = random.Random(self.seed * 1000 + number)
        with self._box.repl() as repl:
            self._members.append(repl)
            turn = 0
            while self._going_on():
                turn += 1
                try:
                    repl.run(source(f"s{number}-{turn}", chance, trouble(number, turn, chance)))
                except WorkerError:
                    continue  # no worker could be had while zygotes were busy dying: nothing ran

    async def _tasks(self, numbers: range) -> None:
        await asyncio.gather(*(self._task(number) for number in numbers))

    async def _task(self, number: int) -> None:
        chance = random.Random(self.seed * 1000 + number)
        async with self._box.repl() as repl:
            self._members.append(repl)
            turn = 0
            while self._going_on():
                turn += 1
                script = source(f"a{number}-{turn}", chance, trouble(number, turn, chance))
                running = asyncio.create_task(repl.arun(script))
                if turn == 3 or chance.random() < 0.05:
                    await asyncio.sleep(chance.random() * 0.03)
                    running.cancel()
                try:
                    await running
                except asyncio.CancelledError:
                    self.cancellations += 1
                except WorkerError:
                    continue

    def _kill(self) -> None:
        chance = random.Random(self.seed)
        while not self._over.wait(chance.random() * 0.15):
            pid = chance.choice(self._members).worker_pid if self._members else None
            if pid is not None:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
                self.kills += 1

    def _figures(self, seconds: float) -> Figures:
        calls = self.trail.calls
        return Figures(
            seconds,
            len(self.host.log),
            len(calls),
            dict(Counter(status for _, status, _, _ in calls).most_common()),
            dict(self.trail.runs.most_common()),
            self.kills,
            self.cancellations,
            problems(self.host, self.trail),
        )


def trouble(number: int, turn: int, chance: random.Random) -> str:
    """The tool that takes too long in this run, if any; each Repl has some in any case."""
    if turn == 2:
        return TROUBLES[number % len(TROUBLES)]
    if turn == 4:
        return "endless"
    return chance.choices(("", *TROUBLES), (90, 2, 4, 4))[0]


def source(prefix: str, chance: random.Random, trouble: str) -> str:
    """A script of twenty calls, one in ten of which fails."""
    return (
        f'local prefix, seed, trouble = "{prefix}", {chance.randrange(2**31)}, "{trouble}"\n'
        f"local count = {CALLS_A_RUN}\n{SCRIPT}"
    )


def problems(host: Host, trail: Trail) -> list[str]:
    """Everything in which the two accounts differ."""
    invoked, recorded = Counter(host.log), Counter(token for token, _, _, _ in trail.calls)
    found = [f"{token} was invoked {times} times" for token, times in invoked.items() if times > 1]
    found += [f"{token} is recorded {times} times" for token, times in recorded.items() if times > 1]
    found += [f"{token} was invoked and is not recorded" for token in invoked.keys() - recorded.keys()]
    for token, status, result, code in trail.calls:
        match status:
            case "ok":
                wrong = token not in invoked or result != token.upper() or token in host.raised
            case "error":
                wrong = code != "told_to" or token not in host.raised
            case "timeout":
                wrong = code != "timeout" or token in host.raised
            case "cancelled" | "in_flight":
                wrong = result is not None  # whether it had begun is in the log, if so once
            case _:
                wrong = True
        if wrong:
            found.append(f"{token}: status {status}, result {result!r}, code {code!r}, invoked {invoked[token]} times")
    return found


def shown(figures: Figures) -> str:
    def list_of(counts: dict[str, int]) -> str:
        return ", ".join(f"{count:,} {name}" for name, count in counts.items())

    never = figures.recorded - figures.invoked
    speed = f"{figures.seconds:.1f} s ({figures.invoked / figures.seconds:,.0f}/s)"
    lines = [
        f"{figures.invoked:,} calls reached their tools in {speed}",
        f"{figures.recorded:,} calls are in the trail: {list_of(figures.statuses)}",
        f"{never:,} of these ended before their tool began",
        f"{sum(figures.runs.values()):,} runs: {list_of(figures.runs)}",
        f"{figures.kills:,} workers killed, {figures.cancellations:,} runs cancelled",
        *figures.problems[:20],
        f"{len(figures.problems)} differences between the tools' own log and the trail",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--repls", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    figures = Soak(options.calls, options.repls, options.seed).run()
    print(shown(figures))
    return 1 if figures.problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
