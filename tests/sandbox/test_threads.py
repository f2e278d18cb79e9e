"""The threads that tools run in, and the event loop in a thread that blocking runs await async tools on."""

from __future__ import annotations

import os
import signal
import threading
from contextvars import ContextVar

import pytest

from moonbox.sandbox.threads import LoopThread, PlainSignal, Signal, Threads

KINDS = list(dict.fromkeys([PlainSignal, Signal]))  # one where the native parts are not in use


async def answer() -> int:
    return 1


def test_an_interrupt_while_it_starts_leaves_no_loop_that_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: threading.Thread) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    loop = LoopThread()
    with pytest.raises(KeyboardInterrupt):
        loop.submit(answer)
    assert loop.submit(answer).result(60) == 1
    loop.close()


def test_a_coroutine_is_made_on_the_loop() -> None:
    places: list[threading.Thread] = []

    def make() -> object:
        places.append(threading.current_thread())
        return answer()

    loop = LoopThread()
    assert loop.submit(make).result(60) == 1  # type: ignore[arg-type] # it makes a coroutine
    assert places != [threading.current_thread()]
    loop.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_signal_is_taken_once_for_each_time_that_it_is_given(kind: type[PlainSignal]) -> None:
    one, other = kind(), kind()
    assert not one.take(0)
    one.give()
    one.give()  # nobody has taken it yet
    assert one.take(-1)
    assert not one.take(0)
    assert not one.give_and_take(other, 0)
    assert one.take(0)
    other.give()
    assert one.give_and_take(other, 60)
    assert not other.take(0)


@pytest.mark.parametrize("kind", KINDS)
def test_two_threads_take_turns(kind: type[PlainSignal]) -> None:
    there, back = kind(), kind()
    steps: list[int] = []

    def answer() -> None:
        assert there.take(60)
        for number in range(1, 100, 2):
            steps.append(number)
            if number < 99:
                assert back.give_and_take(there, 60)
        back.give()

    thread = threading.Thread(target=answer)
    thread.start()
    for number in range(0, 100, 2):
        steps.append(number)
        assert there.give_and_take(back, 60)
    thread.join()
    assert steps == list(range(100))


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupt_ends_the_wait_for_a_signal(kind: type[PlainSignal]) -> None:
    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    one, other = kind(), kind()
    for wait in (lambda: one.take(-1), lambda: one.give_and_take(other, 1000)):
        thread = threading.Thread(target=interrupt)
        with pytest.raises(KeyboardInterrupt):
            thread.start()
            while True:
                wait()
        thread.join()


def test_whoever_waited_for_a_job_finds_its_thread_idle() -> None:
    user: ContextVar[str] = ContextVar("user")
    threads = Threads()
    seen: set[tuple[threading.Thread, str]] = set()
    for name in ("ada", "grace") * 20:
        ends = Signal()

        def job(ends: PlainSignal = ends) -> PlainSignal:
            seen.add((threading.current_thread(), user.get()))
            user.set("nobody")  # in a context of its own
            return ends

        user.set(name)
        done = threads.submit(job, ends, 60)
        while not done:
            done = ends.take(60)
        assert user.get() == name
    assert {name for _, name in seen} == {"ada", "grace"}
    (thread,) = {thread for thread, _ in seen}
    assert thread is not threading.current_thread()
    threads.close()
    thread.join(60)
    assert not thread.is_alive()


def test_threads_end_that_become_idle_after_the_close() -> None:
    threads = Threads()
    begun, go_on, ends = Signal(), Signal(), Signal()
    places: list[threading.Thread] = []

    def job() -> PlainSignal:
        places.append(threading.current_thread())
        begun.give()
        while not go_on.take(60):
            pass
        return ends

    assert not threads.submit(job)
    assert begun.take(60)
    threads.close()
    go_on.give()
    assert ends.take(60)
    places[0].join(60)
    assert not places[0].is_alive()
