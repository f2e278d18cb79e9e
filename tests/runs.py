"""Runs of scripts in tests: blocking or awaited, at the same time, and how they failed."""

from __future__ import annotations

import asyncio
import functools
import threading
from typing import TYPE_CHECKING, Any

from moonbox import Limits, Pause, Run, Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from moonbox import Repl

WAYS = ["run", "arun"]
ISOLATIONS = ["process", "inline"]
SECONDS = 120


def play(way: str, source: str, tools: Any = (), **options: Any) -> Run:
    """Run one script in a Sandbox of its own, blocking or awaited."""
    with Sandbox(tools, **{"limits": Limits(timeout=20), **options}) as box:
        return box.run(source) if way == "run" else asyncio.run(box.arun(source))


def blocking(repl: Repl, source: str, **options: Any) -> Run:
    return repl.run(source, **options)


def awaited(repl: Repl, source: str, **options: Any) -> Run:
    return asyncio.run(repl.arun(source, **options))


def stepped(repl: Repl, source: str, **options: Any) -> Run:
    """moonbox runs the tools of every batch."""
    step = repl.start(source, **options)
    while isinstance(step, Pause):
        step = step.resume()
    return step


def stepped_awaited(repl: Repl, source: str, **options: Any) -> Run:
    async def main() -> Run:
        step = await repl.astart(source, **options)
        while isinstance(step, Pause):
            step = await step.aresume()
        return step

    return asyncio.run(main())


DRIVES = [blocking, awaited, stepped, stepped_awaited]
"""A run in a Repl, with each of the drivers."""


def either(is_async: bool, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function, or an async one that does the same."""

    async def later(argument: Any) -> Any:
        await asyncio.sleep(0)
        return function(argument)

    return later if is_async else function


def error_of(failed: Any) -> Any:
    """Why a run or a call failed, as it must have."""
    assert failed.error is not None
    return failed.error


def asynchronous(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test on an event loop of its own."""

    @functools.wraps(test)
    def run(*args: Any, **fixtures: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **fixtures), SECONDS))

    return run


def at_once(*works: Callable[[], object]) -> None:
    """Do each in a thread of its own, all at the same time; they must end, and raise nothing."""
    problems: list[BaseException] = []

    def do(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as problem:  # noqa: BLE001 - told to the test's thread
            problems.append(problem)

    threads = [threading.Thread(target=do, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()
    assert problems == []
