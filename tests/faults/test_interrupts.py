"""Ctrl-C: it stops the script at once, reaches the caller, and leaves the Repl usable."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Pause, Sandbox, tool
from moonbox.audit.sinks import MemorySink
from tests.long import times
from tests.runs import ISOLATIONS, error_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Ctrl-C may come between the making of a socket and its assignment: CPython then closes it and says so in a warning.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket object:ResourceWarning")
release = threading.Event()


@tool
def ready(after: float = 0.0) -> None:
    """Press Ctrl-C a moment from now."""
    press(after)


@tool
def quick() -> int:
    """Nothing that takes time."""
    return 1


@tool
def blocked(press_first: bool = False) -> None:
    """Wait for long."""
    if press_first:
        press(0)
    release.wait(20)


@tool
async def ablocked(press_first: bool = False) -> None:
    """Wait for long, asynchronously."""
    if press_first:
        press(0)
    await asyncio.Event().wait()


def press(after: float = 0.02) -> None:
    threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()


class Keyboard:
    """Ctrl-C interrupts what runs inside `with keyboard:`, and nothing else: never the test runner."""

    def __init__(self) -> None:
        self.connected = False

    def interrupt(self, number: int, frame: Any) -> None:
        if self.connected:
            raise KeyboardInterrupt

    def __enter__(self) -> None:
        self.connected = True

    def __exit__(self, *exc: object) -> None:
        self.connected = False


keyboard = Keyboard()


def join_timers() -> None:
    keyboard.connected = False
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join()


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, keyboard.interrupt)
    release.clear()
    yield
    join_timers()
    release.set()
    signal.signal(signal.SIGINT, before)


@pytest.fixture(params=ISOLATIONS)
def box(request: Any) -> Iterator[Sandbox]:
    with Sandbox([ready, quick, blocked, ablocked], isolation=request.param, limits=Limits(timeout=30)) as box:
        yield box


SCRIPTS = {
    "a loop": "tools.ready{ after = 0.02 } while true do end",
    "a loop that catches": "tools.ready{ after = 0.02 } while true do pcall(function() while true do end end) end",
    "a blocking tool": "tools.ready{ after = 0.02 } tools.blocked()",
    "an async tool": "tools.ablocked{ press_first = true }",
    "several tools": "parallel{ tools.blocked, tools.ablocked, function() tools.blocked{ press_first = true } end }",
    "a tool that a pcall protects": "tools.ready{ after = 0.02 } while true do pcall(tools.blocked) end",
    "calls one after another": "tools.ready{ after = 0.05 } while true do tools.quick() os.clock() end",
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_interrupt_keeps_the_state(box: Sandbox, script: str) -> None:
    with box.repl() as repl:
        assert repl.run("x = 1").ok
        pid = repl.worker_pid
        with pytest.raises(KeyboardInterrupt), keyboard:
            repl.run("x = x + 1 " + script, limits=Limits(timeout=30, max_tool_calls=None))
        after = repl.run("return x")
        assert (after.values, after.error, after.state_lost) == ((2,), None, False)
        assert repl.worker_pid == pid


@pytest.mark.parametrize("way", ["run", "start"])
def test_interrupt_before_anything_is_called(box: Sandbox, way: str) -> None:
    with box.repl() as repl:
        assert repl.run("x = 1").ok
        with pytest.raises(KeyboardInterrupt), keyboard:
            press()
            getattr(repl, way)("while true do end")
        for _ in range(3):
            assert repl.run("return x").value == 1


def test_interrupt_of_what_cannot_be_stopped() -> None:
    with Sandbox([ready], limits=Limits(timeout=30)) as box, box.repl() as repl:
        assert repl.run("x = 1").ok
        with pytest.raises(KeyboardInterrupt), keyboard:
            repl.run("tools.ready{ after = 1 } return ('a'):rep(50):find(('a-'):rep(20) .. 'b')")
        after = repl.run("return x")
        assert (after.values, after.error, after.state_lost) == ((None,), None, True)


def test_two_interrupts() -> None:
    with Sandbox(limits=Limits(timeout=30)) as box, box.repl() as repl:
        for _ in range(times(4)):
            assert repl.run("x = 1").ok
            press(0.02)
            press(0.03)
            with contextlib.suppress(KeyboardInterrupt), keyboard:
                repl.run("return ('a'):rep(50):find(('a-'):rep(20) .. 'b')")
            join_timers()
            for number in range(3):
                assert repl.run(f"return {number}").value == number


def test_interrupt_while_stepping(box: Sandbox) -> None:
    with box.repl() as repl:
        assert repl.run("x = 1").ok
        pause = repl.start("tools.blocked() x = 2 while true do end")
        assert isinstance(pause, Pause)
        with pytest.raises(KeyboardInterrupt), keyboard:
            press(0.3)
            pause.resume([None])
        assert repl.run("return x").value == 2


def test_the_record_says_cancelled() -> None:
    keep = MemorySink()
    with Sandbox([quick, blocked], audit=keep, limits=Limits(timeout=30)) as box, box.repl() as repl:
        with pytest.raises(KeyboardInterrupt), keyboard:
            repl.run("print('before') tools.quick() tools.blocked{ press_first = true }")
        (run,) = keep.runs()
        assert error_of(run).kind == "cancelled"
        assert run.output == "before\n"
        assert [(call.tool, call.status) for call in run.calls] == [("quick", "ok"), ("blocked", "in_flight")]
        assert not run.state_lost


def test_interrupt_while_a_repl_wakes(tmp_path: Path) -> None:
    with Sandbox(journal=tmp_path / "state.db", limits=Limits(timeout=30)) as box, box.repl() as repl:
        assert repl.run("n = (n or 0) + 1 return n").ok
        assert repl.run("local sum = 0 for i = 1, 100000000 do sum = sum + i end return sum").ok  # it takes a while
        assert repl.sleep()
        with pytest.raises(KeyboardInterrupt), keyboard:
            press(0.2)
            repl.run("return n")
        after = repl.run("return n")
        assert (after.value, after.state_lost) == (1, False)
