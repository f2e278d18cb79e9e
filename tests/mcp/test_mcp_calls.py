"""The registry of calls: what is in the background stays its owner's, on every front end that shares the journal."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import mcp_types as types
import pytest

from moonbox import CodeMode, Sandbox, tool
from moonbox.config.sections import ServeSettings
from moonbox.durable.handles import Handles
from moonbox.mcp.server.calls import OpenCalls
from moonbox.mcp.server.sessions import McpClient
from moonbox.mcp.server.tools import ToolRunner, ToolViews
from moonbox.runs.decisions import ToolCall
from moonbox.schema.learned import LOCAL
from tests.waiting import await_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SOON = ServeSettings(answer_within=1e-9)
WAIT = "lua_repl_wait"
SECONDS = 60


def client(owner: str = "alice", *, modern: bool = False) -> McpClient:
    capabilities = types.ClientCapabilities(elicitation=types.ElicitationCapability()) if modern else None
    channel: Any = None
    return McpClient(owner, "session", "127.0.0.1", modern, capabilities, channel, None, False)


def registry(settings: ServeSettings = SOON, journal: Any = None) -> OpenCalls:
    return OpenCalls(settings, lambda _: None, journal)


def result(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)])


def text(answer: Any) -> str:
    return str(answer.content[0].text)


class Work:
    """A call that goes on until it is released, and that takes a while to stop."""

    def __init__(self) -> None:
        self.release, self.may_stop = asyncio.Event(), asyncio.Event()
        self.begun = False
        self.interruptions = 0

    async def __call__(self, *_: Any) -> types.CallToolResult:
        self.begun = True
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.interruptions += 1
            try:
                async with asyncio.timeout(SECONDS):
                    await self.may_stop.wait()
            except asyncio.CancelledError:
                self.interruptions += 1
            raise
        return result("done")


async def begun(calls: OpenCalls, by: McpClient, work: Any) -> Any:
    """The result of a new call of a script, or its first question."""
    return await calls.resume(calls.start(by, work, script=True, wait_tool=WAIT), by)


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Sandbox]:
    with Sandbox(journal=str(tmp_path / "journal.db"), min_workers=0) as sandbox:
        yield sandbox


def test_a_task_is_waited_for_only_as_long_as_the_client_wants() -> None:
    async def main() -> None:
        calls, work = registry(), Work()
        task = calls.start(client(), work, script=True)
        task.enter_background(60)
        answer: Any = await calls.wait(client(), {"run_id": task.id, "seconds": 0}, WAIT)
        assert answer.structured_content == {"run": task.id, "calls": 0, "running": True}
        assert f'call {WAIT} with run_id = "{task.id}"' in text(answer)
        work.release.set()
        while (answer.structured_content or {}).get("running"):
            answer = await calls.wait(client(), {"run_id": task.id}, WAIT)
        assert text(answer) == "done"

    asyncio.run(asyncio.wait_for(main(), SECONDS))


def test_a_script_whose_client_does_not_come_back_is_stopped_once() -> None:
    """What a script saves when it is stopped must not be interrupted by the next look at the registry."""

    async def main() -> None:
        calls, work = registry(ServeSettings(answer_within=1e-9, answer_seconds=0.01)), Work()

        async def asking(call: Any) -> types.CallToolResult:
            await call.answer(ToolCall(tool="t", definition=None, arguments={}, index=1, run_id="", repl_id=""))
            return await work(call)

        answer: Any = await begun(calls, client(modern=True), asking)
        run_id = answer.structured_content["run"]
        while answer.result_type != "input_required":
            answer = await calls.wait(client(modern=True), {"run_id": run_id}, WAIT)
        await await_until(lambda: work.begun)
        await await_until(lambda: calls.sweep() or work.interruptions)
        for _ in range(3):
            calls.sweep()
            await asyncio.sleep(0)
        work.may_stop.set()
        answer = await calls.wait(client(modern=True), {"run_id": run_id}, WAIT)
        assert (text(answer), work.interruptions) == (f"The run {run_id} was stopped.", 1)

    asyncio.run(asyncio.wait_for(main(), SECONDS))


def test_a_cancelled_task_is_known_as_cancelled_while_it_stops(box: Sandbox) -> None:
    async def main() -> None:
        calls, work = registry(journal=box.journal), Work()
        answer: Any = await begun(calls, client(), work)
        run_id = answer.structured_content["run"]
        await await_until(lambda: work.begun)
        call = await calls.find_kept(run_id, client())
        assert call is not None
        assert calls.suspended() == [run_id]
        call.cancel()
        assert calls.suspended() == [], "after a restart nobody continues it"
        await calls.give_up(run_id, client())
        for _ in range(3):
            await calls.stop_given_up()
        assert (await calls.find_kept(run_id, client()), work.interruptions) == (call, 1)
        work.may_stop.set()
        await calls.close()

    asyncio.run(asyncio.wait_for(main(), SECONDS))


def test_a_request_that_is_given_up_before_the_client_knows_the_id_stops_its_script(
    box: Sandbox, tmp_path: Path
) -> None:
    async def main() -> None:
        calls, work = registry(journal=box.journal), Work()
        await asyncio.to_thread(box.run, "return 1")  # the journal is there
        with sqlite3.connect(tmp_path / "journal.db", isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")  # the handle cannot be written now
            request = asyncio.create_task(begun(calls, client(), work))
            await await_until(lambda: work.begun and calls.of(client()))
            request.cancel()
            await asyncio.wait([request])
            work.may_stop.set()
            await await_until(lambda: work.interruptions)
            assert calls.of(client()) == []
            other.execute("ROLLBACK")
        other.close()

    asyncio.run(asyncio.wait_for(main(), SECONDS))


def test_a_result_is_given_by_one_front_end(box: Sandbox) -> None:
    async def main() -> None:
        here, elsewhere = registry(journal=box.journal), registry(journal=box.journal)
        run = await asyncio.to_thread(box.run, "return 1")
        Handles(box.journal.backend).keep(run.id, "alice")

        async def recover(*_: Any) -> types.CallToolResult:
            return result("done")

        here.recover = elsewhere.recover = recover
        assert await here.find_kept(run.id, client()) is not None
        for calls in (here, elsewhere):
            assert await calls.find_kept(run.id, client("bob")) is None
            refused: Any = await calls.wait(client("bob"), {"run_id": run.id, "cancel": True}, WAIT)
            assert refused.is_error
        answer: Any = await elsewhere.wait(client(), {"run_id": run.id, "seconds": 1}, WAIT)
        while (answer.structured_content or {}).get("running"):
            answer = await elsewhere.wait(client(), {"run_id": run.id, "seconds": 1}, WAIT)
        assert text(answer) == "done"
        await here.stop_given_up()
        answer = await here.wait(client(), {"run_id": run.id}, WAIT)
        assert answer.is_error

    asyncio.run(asyncio.wait_for(main(), SECONDS))


def test_what_is_decided_about_calls_in_doubt_counts_however_the_client_came_to_know(box: Sandbox) -> None:
    """A client may ask for the run as a task first; that has begun to continue it, and was refused."""

    async def main() -> None:
        calls, decided = registry(journal=box.journal), []
        run = await asyncio.to_thread(box.run, "return 1")
        Handles(box.journal.backend).keep(run.id, "alice")

        async def recover(call: Any, _: McpClient, in_flight: str | None) -> types.CallToolResult:
            decided.append(in_flight)
            call.cut_off = in_flight is None
            return result("done" if in_flight else f"decide with {call.wait_tool}")

        calls.recover = recover
        task = await calls.find_kept(run.id, client(), WAIT)
        assert task is not None
        assert text(await task.task) == f"decide with {WAIT}"
        answer: Any = await calls.wait(client(), {"run_id": run.id, "in_flight": "retry"}, WAIT)
        while (answer.structured_content or {}).get("running"):
            answer = await calls.wait(client(), {"run_id": run.id}, WAIT)
        assert (text(answer), decided) == ("done", [None, "retry"])

    asyncio.run(asyncio.wait_for(main(), SECONDS))


class Watched:
    """A journal in which another front end holds a Repl until somebody has looked where it is."""

    def __init__(self, journal: Any) -> None:
        self._journal, self.backend, self.look_up = journal, journal.backend, journal.look_up
        self.held: Any = None

    def known(self, run: str) -> Any:
        found = self._journal.known(run)
        if self.held is not None:
            self._journal.release(self.held)
            self.held = None
        return found


def test_front_ends_that_continue_a_script_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Each sees that nobody has the script; the slower one waits for the faster one."""
    path, run_id = str(tmp_path / "journal.db"), "a" * 32

    async def main(mode: Any, elsewhere: Watched, other: Any) -> None:
        repl_id = mode.sandbox.journal.known(run_id).repl
        calls = registry(journal=elsewhere)
        attempts = []

        class Mode:
            sandbox, sessions, settings = mode.sandbox, mode.sessions, mode.settings

            async def aresume(self, run: str, in_flight: str | None, options: Any) -> Any:
                attempts.append(run)
                if len(attempts) == 1:
                    elsewhere.held = await asyncio.to_thread(other.take, repl_id)
                return await mode.aresume(run, in_flight, options=options)

        resuming: Any = Mode()
        calls.recover = ToolRunner(resuming, SOON, calls, lambda *_: None).recover
        Handles(other.backend).keep(run_id, "alice")
        answer: Any = await calls.wait(client(), {"run_id": run_id}, WAIT)
        while (answer.structured_content or {}).get("running"):
            answer = await calls.wait(client(), {"run_id": run_id}, WAIT)
        assert (text(answer), len(attempts)) == ("1", 2)

    with Sandbox(journal=path, min_workers=0) as box, Sandbox(journal=path, min_workers=0) as second:
        box.journal.suspended.add(run_id)
        with box.repl() as repl:
            repl.run("return 1", run_id=run_id)
        with CodeMode(box) as mode:
            asyncio.run(asyncio.wait_for(main(mode, Watched(second.journal), second.journal), SECONDS))


def test_a_script_that_waits_for_its_turn_elsewhere_is_known(tmp_path: Path) -> None:
    """Its client was told to come back before the script had begun, and asks another front end."""
    path, run_id = str(tmp_path / "journal.db"), "c" * 32

    async def main(mode: CodeMode, other: Sandbox) -> None:
        calls = registry(journal=mode.sandbox.journal)
        calls.recover = ToolRunner(mode, SOON, calls, lambda *_: None).recover
        Handles(other.journal.backend).keep(run_id, "alice")
        answer: Any = await calls.wait(client(), {"run_id": run_id}, WAIT)
        assert answer.structured_content["running"]
        with other.repl() as repl:
            await repl.arun("return 1", run_id=run_id)
        while (answer.structured_content or {}).get("running"):
            answer = await calls.wait(client(), {"run_id": run_id}, WAIT)
        assert text(answer) == "1"

    with (
        Sandbox(journal=path, min_workers=0) as box,
        Sandbox(journal=path, min_workers=0) as other,
        CodeMode(box) as mode,
    ):
        asyncio.run(asyncio.wait_for(main(mode, other), SECONDS))


@pytest.mark.parametrize("kept_first", [True, False])
def test_the_handle_of_a_deleted_repl_is_gone(tmp_path: Path, kept_first: bool) -> None:
    run_id = "d" * 32
    with Sandbox(journal=str(tmp_path / "journal.db"), min_workers=0) as box:
        handles = Handles(box.journal.backend)
        if kept_first:
            handles.keep(run_id, "alice")
        with box.repl() as repl:
            repl.run("return 1", run_id=run_id)
        if not kept_first:
            handles.keep(run_id, "alice")
        assert handles.has(run_id, "alice")
        assert box.journal.delete([repl.id]) == 1
        assert not handles.has(run_id, "alice")


def test_a_script_that_may_not_be_continued_yet_is_continued_later(tmp_path: Path) -> None:
    """The client has used up its calls of the minute: it is told so, and comes back."""
    runs = ["a" * 32, "b" * 32]
    settings = ServeSettings(answer_within=1e-9, calls_per_minute=1)

    async def main(mode: CodeMode) -> None:
        calls = registry(settings, mode.sandbox.journal)
        for minute in range(2):
            calls.recover = ToolRunner(mode, settings, calls, lambda *_: None).recover
            answer: Any = None
            for run_id in runs[minute:]:
                answer = await calls.wait(client(), {"run_id": run_id}, WAIT)
                while (answer.structured_content or {}).get("running"):
                    answer = await calls.wait(client(), {"run_id": run_id}, WAIT)
            told = "error: this client may make 1 call a minute; try again in" if minute == 0 else "1"
            assert text(answer).startswith(told)

    with Sandbox(journal=str(tmp_path / "journal.db"), min_workers=0) as box:
        box.journal.suspended.update(runs)
        for run_id in runs:
            with box.repl() as repl:
                repl.run("return 1", run_id=run_id)
            Handles(box.journal.backend).keep(run_id, "alice")
        with CodeMode(box) as mode:
            asyncio.run(asyncio.wait_for(main(mode), SECONDS))


@pytest.mark.parametrize("meta", [None, {"moonbox/conversation": 5}], ids=["without a name", "a name that is none"])
def test_globals_that_nobody_can_continue_with_are_not_kept(meta: Any) -> None:
    """A client without a session gets its handle with the result: what it gives up before has none."""
    held = asyncio.Event()

    @tool
    async def hold() -> None:
        held.set()
        await asyncio.Event().wait()

    async def main(mode: CodeMode) -> None:
        settings = ServeSettings()
        calls, views = registry(settings), ToolViews(mode, settings)
        runner = ToolRunner(mode, settings, calls, lambda *_: None)
        alice = replace(client(LOCAL, modern=True), session=None)

        async def call(source: str, **more: Any) -> Any:
            params = types.CallToolRequestParams(name="lua_repl", arguments={"source_code": source, **more}, _meta=meta)
            call = calls.start(alice, lambda call: runner.run(call, alice, params, views.view()), script=True)
            return await calls.resume(call, alice)

        async def give_up(**more: Any) -> None:
            held.clear()
            request = asyncio.create_task(call("x = 1 tools.hold()", **more))
            await held.wait()
            request.cancel()
            await asyncio.wait([request])

        await call("return 1")
        await give_up()
        await await_until(lambda: len(mode.sessions) == 0)
        state = (await call("x = 1")).structured_content["state"]
        await give_up(state=state)
        assert (await call("return x", state=state)).structured_content["value"] == 1

    with Sandbox([hold], min_workers=0) as box, CodeMode(box) as mode:
        asyncio.run(asyncio.wait_for(main(mode), SECONDS))
