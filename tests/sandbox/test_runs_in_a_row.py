"""Runs that follow a run with calls: a tool thread drives them from their beginning."""

from __future__ import annotations

import os
import signal
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING

import pytest

from moonbox import Sandbox, tool
from moonbox.audit.sinks import MemorySink
from moonbox.runs import blocking

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moonbox import Repl


@tool(thread=False)
def driver() -> int:
    """The thread that drives the run."""
    return threading.get_ident()


@tool
def call() -> int:
    """What has a thread of its own."""
    return 1


user: ContextVar[str] = ContextVar("user", default="nobody")


@pytest.fixture
def sink() -> MemorySink:
    return MemorySink()


@pytest.fixture
def repl(sink: MemorySink, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repl]:
    """A Repl whose latest run has made a call a moment ago, however slow the machine is."""
    monkeypatch.setattr(blocking, "WARM", 1000.0)
    monkeypatch.setattr(blocking, "SLOW", 1000.0)  # the caller's thread does not take the run back
    with Sandbox([driver, call], audit=sink) as box, box.repl() as repl:
        assert repl.run("kept = 41 return tools.call{}").value == 1
        yield repl


def test_a_tool_thread_drives_the_run_until_one_makes_no_calls(repl: Repl) -> None:
    me = threading.get_ident()
    assert repl.run("tools.call{} return tools.driver{}").value != me
    assert repl.run("return tools.driver{}").value != me
    assert repl.run("return tools.driver{}").value == me


def test_its_callbacks_have_the_callers_context(repl: Repl) -> None:
    heard: list[tuple[str, str]] = []
    token = user.set("ada")
    try:
        run = repl.run("print('hello') return kept + 1", on_output=lambda text: heard.append((user.get(), text)))
    finally:
        user.reset(token)
    assert (run.value, heard) == (42, [("ada", "hello\n")])


def test_what_a_callback_raises_reaches_the_caller_and_the_trail(repl: Repl, sink: MemorySink) -> None:
    def refuse(text: str) -> None:
        raise LookupError(text)

    with pytest.raises(LookupError, match="hello"):
        repl.run("print('hello') return kept", on_output=refuse)
    assert [run.error.kind for run in sink.runs() if run.error] == ["cancelled"]
    assert repl.run("return 1").state_lost


def test_an_interrupt_stops_the_script_and_leaves_the_repl_usable(repl: Repl, sink: MemorySink) -> None:
    def press(text: str) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        repl.run("print('hello') while true do end", on_output=press)
    assert [run.error.kind for run in sink.runs() if run.error] == ["cancelled"]
    assert repl.run("return kept + 1").value == 42


def test_an_interrupt_when_the_run_has_ended_loses_no_record(
    repl: Repl, sink: MemorySink, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = blocking.BlockingDriver._watch

    def interrupted(driver: blocking.BlockingDriver) -> None:
        watch(driver)
        raise KeyboardInterrupt

    monkeypatch.setattr(blocking.BlockingDriver, "_watch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        repl.run("return tools.call{} + 1")
    monkeypatch.undo()
    assert [(run.number, run.values) for run in sink.runs()] == [(1, (1,)), (2, (2,))]
    assert repl.run("return kept + 1").value == 42


def test_a_worker_that_ends_is_a_crash(repl: Repl) -> None:
    pid = repl.worker_pid
    assert pid is not None
    run = repl.run("print('hello') while true do end", on_output=lambda text: os.kill(pid, signal.SIGKILL))
    assert run.error is not None
    assert run.error.kind == "crashed"
    assert repl.run("return kept").value is None


def test_the_time_of_the_run_is_cut(repl: Repl) -> None:
    run = repl.run("while true do end", timeout=0.2)
    assert run.error is not None
    assert run.error.limit == "time"
    assert repl.run("return kept + 1").value == 42
