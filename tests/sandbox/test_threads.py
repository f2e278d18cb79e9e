"""The threads that tools run in, and the event loop in a thread that blocking runs await async tools on."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

import moonbox
from moonbox.threads import LoopThread, Signal, Threads, in_thread, own_thread, unbroken
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable


async def answer() -> int:
    return 1


@pytest.mark.parametrize("is_started", [False, True])
@pytest.mark.parametrize("is_used", [False, True])
def test_an_interrupt_while_it_starts_leaves_no_loop(
    monkeypatch: pytest.MonkeyPatch, is_started: bool, is_used: bool
) -> None:
    started: list[threading.Thread] = []

    def interrupted(thread: threading.Thread) -> None:
        monkeypatch.undo()
        if is_started:
            thread.start()
            started.append(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    loop = LoopThread()
    with pytest.raises(KeyboardInterrupt):
        loop.submit(answer)
    assert not is_used or loop.submit(answer).result(60) == 1
    loop.close()
    for thread in started:
        thread.join(60)
        assert not thread.is_alive()


def test_the_loop_and_coroutines_are_made_in_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C interrupts the main thread alone."""
    places: set[threading.Thread] = set()
    new_loop = asyncio.new_event_loop

    def make(made: Callable[[], object] = answer) -> Any:
        places.add(threading.current_thread())
        return made()

    monkeypatch.setattr(asyncio, "new_event_loop", lambda: make(new_loop))
    loop = LoopThread()
    assert loop.submit(make).result(60) == 1
    loop.close()
    assert len(places) == 1 and threading.current_thread() not in places


def test_a_loop_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncio, "new_event_loop", Mock(side_effect=OSError("too many open files")))
    loop = LoopThread()
    with pytest.raises(OSError, match="too many open files"):
        loop.submit(answer)
    monkeypatch.undo()
    assert loop.submit(answer).result(60) == 1
    loop.close()


def test_a_signal_is_taken_once_for_each_time_that_it_is_given() -> None:
    signal = Signal()
    assert not signal.take(0)
    signal.give()
    signal.give()  # it has not been taken yet
    assert signal.take()
    assert not signal.take(0)


def test_an_interrupt_ends_the_wait_for_a_signal() -> None:
    thread = threading.Thread(target=lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        Signal().take()
    thread.join()


def test_the_thread_of_a_job_is_idle_when_its_signal_comes() -> None:
    user: ContextVar[str] = ContextVar("user")
    threads = Threads()
    seen: set[tuple[threading.Thread, str]] = set()
    for name in ("ada", "grace") * 20:
        ends = Signal()

        def job(ends: Signal = ends) -> Signal:
            seen.add((threading.current_thread(), user.get()))
            user.set("nobody")  # in a context of its own
            return ends

        user.set(name)
        threads.submit(job)
        assert ends.take(60)
        assert user.get() == name
    assert {name for _, name in seen} == {"ada", "grace"}
    (thread,) = {thread for thread, _ in seen}
    assert thread is not threading.current_thread()
    threads.close()
    thread.join(60)
    assert not thread.is_alive()


def test_no_more_threads_wait_than_may() -> None:
    threads, together = Threads(most_idle=2), threading.Barrier(6)
    places: list[threading.Thread] = []

    def job() -> None:
        places.append(threading.current_thread())
        together.wait(60)

    for _ in range(5):
        threads.submit(job)
    together.wait(60)
    wait_until(lambda: sum(thread.is_alive() for thread in places) <= 2)
    threads.close()


def test_threads_end_that_become_idle_after_the_close() -> None:
    threads = Threads()
    begun, go_on, ends = Signal(), Signal(), Signal()
    places: list[threading.Thread] = []

    def job() -> Signal:
        places.append(threading.current_thread())
        begun.give()
        while not go_on.take(60):
            pass
        return ends

    threads.submit(job)
    assert begun.take(60)
    threads.close()
    go_on.give()
    assert ends.take(60)
    places[0].join(60)
    assert not places[0].is_alive()


def test_no_other_module_has_a_way_off_a_loop_or_onto_one() -> None:
    others = re.compile(
        r"\b(?:to_thread|run_in_executor|call_soon_threadsafe|run_coroutine_threadsafe|run_sync|from_thread|BlockingPortal)\b"
    )
    root = Path(moonbox.__file__).parent
    found = {path.relative_to(root).as_posix() for path in root.rglob("*.py") if others.search(path.read_text("utf-8"))}
    assert found == {"threads.py"}


def test_functions_wait_for_one_of_forty_places_and_a_cancelled_one_keeps_its_place_to_its_end() -> None:
    ends = threading.Event()
    begun: list[int] = []

    def work(number: int) -> int:
        begun.append(number)
        ends.wait(60)
        return number

    async def main() -> None:
        tasks = [asyncio.create_task(in_thread(work, number)) for number in range(41)]
        while len(begun) < 40:
            await asyncio.sleep(0)
        tasks[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        assert await in_thread(lambda: "at once", start=own_thread) == "at once"
        assert await unbroken(str.upper, "at once") == "AT ONCE"
        assert len(begun) == 40
        ends.set()
        assert await asyncio.gather(*tasks[1:]) == [*range(1, 41)]
        assert await in_thread(threading.current_thread) is not threading.current_thread()

    asyncio.run(main())


def test_a_thread_of_its_own_is_reused_but_not_by_a_fork_which_does_not_have_it() -> None:
    program = """
import asyncio, os, signal, threading, time
from moonbox import threads

def where():
    return asyncio.run(threads.in_thread(threading.current_thread, start=threads.own_thread))

first = where()
while not threads._own_threads(os.getpid())._idle:
    time.sleep(0.01)
assert where() is first
if os.fork() == 0:
    signal.alarm(60)
    assert where() is not first
    os._exit(7)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "7\n"


def test_a_function_that_never_returns_does_not_keep_a_program_from_ending() -> None:
    program = """
import asyncio, threading
from moonbox.threads import in_thread

async def main():
    task = asyncio.create_task(in_thread(threading.Event().wait))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    print("cancelled")

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "cancelled\n"
