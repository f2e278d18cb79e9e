"""Tools with `thread=False`, which only compute: they are called in the thread that drives the run."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Sandbox, Tool, Toolbox, tool
from moonbox.errors import ToolDefinitionError
from moonbox.runs.record import CLOCK

if TYPE_CHECKING:
    from pathlib import Path


async def answer() -> int:
    return 1


@tool(thread=False)
def here(n: int = 0) -> int:
    """The thread that calls it."""
    return threading.get_ident()


@tool
def elsewhere(n: int = 0) -> int:
    """The same, of a tool that may take its time."""
    return threading.get_ident()


SCRIPT = """
local first, second = tools.here{}, tools.here{n = 2}
local both = parallel{function() return tools.here{} end, function() return tools.elsewhere{} end}
return {first, second, both[1], both[2]}
"""


def test_a_tool_that_only_computes_is_called_in_the_thread_that_drives_the_run() -> None:
    with Sandbox(tools=[here, elsewhere]) as box:
        run = box.run(SCRIPT)
        me = threading.get_ident()
        assert run.unwrap()[:3] == [me] * 3
        assert run.value[3] != me
        assert [call.tool for call in run.calls] == ["here", "here", "here", "elsewhere"]
        assert all(call.status == "ok" for call in run.calls)


def test_it_is_called_on_the_event_loop_of_an_awaited_run() -> None:
    async def awaited() -> Any:
        async with Sandbox(tools=[here, elsewhere]) as box:
            return (await box.arun(SCRIPT)).unwrap()

    *own, other = asyncio.run(awaited())
    assert own == [threading.get_ident()] * 3
    assert other != threading.get_ident()


def test_the_clock_of_a_run_does_not_bind_the_later_work_of_its_thread(tmp_path: Path) -> None:
    """A database is opened in the thread that drove a run which is long over."""
    with Sandbox(tools=[here]) as box:
        assert box.run("return tools.here()", timeout=0.5).unwrap() == threading.get_ident()
    assert CLOCK.get() is None
    sqlite3.connect(tmp_path / "shop.db").close()
    time.sleep(0.6)  # the run's time is over
    assert {tool.name for tool in Toolbox.from_sql(f"sqlite:///{tmp_path}/shop.db")} == {"query", "tables"}


def test_an_interrupt_in_it_stops_the_run_and_leaves_the_repl_usable() -> None:
    @tool(thread=False)
    def busy() -> int:
        """Ctrl-C comes while it computes."""
        signal.raise_signal(signal.SIGINT)
        return 1

    with Sandbox(tools=[busy]) as box, box.repl() as repl:
        repl.run("x = 41")
        with pytest.raises(KeyboardInterrupt):
            repl.run("return tools.busy{}")
        assert repl.run("return x + 1").value == 42


def test_what_it_raises_is_the_scripts_to_handle() -> None:
    @tool(thread=False)
    def fails() -> int:
        """Raises."""
        raise SystemExit("no")

    with Sandbox(tools=[fails]) as box:
        run = box.run("local ok, e = pcall(tools.fails, {}) return {ok, e.tool}")
        assert run.value == [False, "fails"]


@pytest.mark.parametrize(
    "options",
    [{"timeout": 1.0}, {"max_concurrency": 1}, {"policy": "approve"}],
    ids=lambda options: next(iter(options)),
)
def test_it_has_no_option_that_needs_a_thread(options: dict[str, Any]) -> None:
    with pytest.raises(ToolDefinitionError, match="thread=False is for a function that only computes"):
        tool(thread=False, **options)(elsewhere.call)


def test_it_is_not_async() -> None:
    with pytest.raises(ToolDefinitionError, match="thread=False"):
        Tool.from_function(answer, thread=False)
