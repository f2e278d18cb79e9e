"""The event loop in a thread that blocking runs await async tools on."""

from __future__ import annotations

import threading

import pytest

from moonbox.sandbox.threads import LoopThread


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
