"""Runs in the background, what scripts say of their progress, and forks of a Repl."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, Run, Sandbox, Toolbox, tool
from moonbox.errors import ClosedError, UsageError
from moonbox.runs.record import ScriptProgress

if TYPE_CHECKING:
    from pathlib import Path


@tool
def add(a: int, b: int) -> int:
    return a + b


def test_a_run_goes_on_in_the_background() -> None:
    go_on = threading.Event()

    @tool
    def wait() -> int:
        assert go_on.wait(60)
        return 7

    with Sandbox([wait]) as box, box.repl() as repl:
        handle = repl.submit("x = tools.wait{} return x")
        assert handle.status() == "running"
        with pytest.raises(TimeoutError, match=r"has not ended within 0\.01 seconds; it goes on"):
            handle.wait(0.01)
        go_on.set()
        run = handle.wait(60)
        assert (run.id, run.value, handle.status()) == (handle.run_id, 7, "ok")
        assert repl.run("return x").value == 7
        assert repl.submit("error('no')").wait(60).error is not None


def test_a_background_run_is_cancelled() -> None:
    started = threading.Event()
    with Sandbox(on_output=lambda _: started.set()) as box, box.repl() as repl:
        handle = repl.submit("x = 1 print('here') while true do end")
        assert started.wait(60)
        handle.cancel()
        with pytest.raises(ClosedError, match="was cancelled"):
            handle.wait(60)
        assert handle.status() == "cancelled"
        assert repl.run("return x").value == 1


def test_a_background_run_is_awaited() -> None:
    async def main() -> object:
        async with Sandbox([add]) as box, box.repl() as repl:
            return (await repl.submit("return tools.add{a = 1, b = 2}")).value

    assert asyncio.run(main()) == 3


@pytest.mark.parametrize("language", ["lua", "rhai", "python"])
def test_scripts_say_how_far_they_are(language: str) -> None:
    seen: list[ScriptProgress] = []
    scripts = {
        "lua": "progress(1, 3, 'first  step') progress(2)",
        "rhai": "progress(1, 3, `first  step`); progress(2);",
        "python": "progress(1, 3, 'first  step')\nprogress(2)",
    }
    with Sandbox(language=language) as box, box.repl() as repl:
        handle = repl.submit(scripts[language], on_progress=seen.append)
        run = handle.wait(60)
        assert run.ok, run.error
        assert (run.calls, run.usage.calls) == ((), 0)
    assert seen == [ScriptProgress(1, 3, "first step"), ScriptProgress(2)]
    assert handle.progress == ScriptProgress(2)


def test_progress_that_makes_no_sense_is_explained() -> None:
    with Sandbox() as box:
        error = box.run("progress('half')").error
    assert error is not None
    assert "write: progress(done, total, text)" in error.message


def test_a_fork_goes_its_own_way(tmp_path: Path) -> None:
    with Sandbox([add], journal=tmp_path / "journal.db") as box, box.repl() as repl:
        repl.run("x = tools.add{a = 1, b = 1}")
        with repl.fork() as twin:
            assert twin.id != repl.id
            assert twin.run("x = x + 1 return x").value == 3
            assert repl.run("return x").value == 2
            twin_id = twin.id
        with box.restore(twin_id) as again:
            assert again.run("return x").value == 3
    with Sandbox() as box, box.repl() as repl, pytest.raises(UsageError, match="no journal"):
        repl.fork()


def test_a_repl_that_was_deleted_is_not_forked(tmp_path: Path) -> None:
    with Sandbox(journal=tmp_path / "journal.db") as box, box.repl() as repl:
        repl.run("x = 1").unwrap()
        assert repl.sleep()
        box.journal.delete([repl.id])
        with pytest.raises(UsageError, match=f"has no Repl '{repl.id}'"):
            repl.fork()
        assert box.journal.repls() == ()


def test_a_fork_is_made_as_its_repl_was(tmp_path: Path) -> None:
    @tool
    def other() -> int:
        """Not for this Repl."""
        return 2

    kept: list[Run] = []
    with Sandbox([add, other], journal=tmp_path / "j.db") as box:
        options: Any = {"toolbox": Toolbox([add]), "labels": {"user": "ann"}, "limits": Limits(max_tool_calls=3)}
        with box.repl(**options, before_write=kept.append) as repl:
            with repl.fork() as early:
                assert [tool.path for tool in early.toolbox] == ["add"]
            repl.define("given", 5)
            repl.run("x = given").unwrap()
            with repl.fork() as twin:
                run = twin.run("return x, given, tools.other == nil")
        assert run.values == (5, 5, True) and run.labels == {"user": "ann"} and run in kept
        assert [known.id for known in box.journal.repls({"user": "ann"})] == [twin.id, repl.id]
