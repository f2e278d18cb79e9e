"""Direct calls: one tool called without a script, along the same way as from one."""

from __future__ import annotations

import asyncio
import threading
import uuid
from typing import TYPE_CHECKING, Any

from moonbox.errors import ScriptError, ToolError
from moonbox.sandbox.awaited import AwaitingExecutor
from moonbox.sandbox.blocking import BlockingExecutor, run_to_end
from moonbox.sandbox.clock import RunClock
from moonbox.sandbox.conversation import Request
from moonbox.sandbox.docs import Docs
from moonbox.sandbox.pipeline import Pipeline
from moonbox.sandbox.recorder import Recorder

if TYPE_CHECKING:
    from moonbox.audit.records import Run
    from moonbox.sandbox.pipeline import Reply
    from moonbox.sandbox.sandbox import Sandbox
    from moonbox.tools.toolbox import Toolbox

__all__ = ["DirectCall"]

_LOOK = 0.05


class DirectCall:
    """One call and its record: a Run whose language is "direct"."""

    def __init__(self, sandbox: Sandbox, tool: str, arguments: Any, toolbox: Toolbox | None = None) -> None:
        self._sandbox = sandbox
        toolbox = sandbox.toolbox if toolbox is None else toolbox
        self._pipeline = Pipeline(
            toolbox=toolbox,
            functions={},
            docs=Docs(toolbox, {}, sandbox.language),
            limits=sandbox.limits,
            middleware=sandbox._middleware,
            approve=sandbox._approve,
            slots=sandbox._slots,
            context=sandbox.context,
            allow_nan=sandbox.allow_nan,
            first_index=0,
            direct=True,
        )
        self._recorder = Recorder(
            run_id=uuid.uuid4().hex,
            repl="",
            number=1,
            source=tool,
            language="direct",
            seed=0,
            clock=RunClock(sandbox.limits.timeout),
            telemetry=sandbox._telemetry,
        )
        given = [] if arguments is None else [arguments]
        self._request = Request(1, f"tools.{tool}", given, 0)
        self._entry = self._pipeline.record(self._request, 1, self._recorder)

    def run(self) -> Run:
        """In a thread, so that a tool that never returns can be left behind."""
        done = threading.Event()
        replies: list[Reply] = []
        executor = BlockingExecutor(self._sandbox._loop)

        def job() -> None:
            replies.append(run_to_end(self._pipeline.perform(self._request, self._entry, self._recorder, executor)))
            done.set()

        self._sandbox._threads.submit(job)
        while not done.wait(self._rest()):
            if self._late():
                return self._finish(None)
        return self._finish(replies[0])

    async def arun(self) -> Run:
        executor = AwaitingExecutor(self._sandbox._threads)
        perform = self._pipeline.perform(self._request, self._entry, self._recorder, executor)
        task = asyncio.create_task(perform)
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=self._rest())
                if not task.done() and self._late():
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
                    return self._finish(None)
            return self._finish(task.result())
        except asyncio.CancelledError:
            task.cancel()
            self._entry.abandon("cancelled")
            self._finish(None, cancelled=True)
            raise

    def _rest(self) -> float | None:
        """Until something may have run out of time; looks again while the clock stands still."""
        clock = self._recorder.clock
        rest = clock.remaining()
        if rest is None:
            return _LOOK if clock.has_timeout or self._entry.deadline is not None else None
        tool = self._tool_rest()
        return max(0.0, rest if tool is None else min(rest, tool))

    def _tool_rest(self) -> float | None:
        deadline = self._entry.deadline
        return None if deadline is None else deadline - self._recorder.clock.now()

    def _late(self) -> bool:
        """Whether time has run out; then the call is over for us."""
        rest, tool = self._recorder.clock.remaining(), self._tool_rest()
        if (rest is None or rest > 0) and (tool is None or tool > 0):
            return False
        error = ToolError(f"{self._entry.tool} did not answer in time", code="timeout", retryable=True)
        if self._entry.fail(error, "timeout"):
            if self._entry.cancel is not None:
                self._entry.cancel()
            return True
        return False

    def _finish(self, reply: Reply | None, *, cancelled: bool = False) -> Run:
        values: tuple[Any, ...] = ()
        error: ScriptError | None = None
        if reply is not None and reply[1]:
            values = (reply[2],)
        elif cancelled:
            error = ScriptError("cancelled", "the call was cancelled")
        else:
            error = self._error()
        run = self._recorder.finish(ended=None, values=values, error=error, bytes_in=0, bytes_out=0, state_lost=False)
        self._sandbox._write(run)
        return run

    def _error(self) -> ScriptError:
        failed = self._entry.error
        assert failed is not None
        kind: Any = "denied" if self._entry.status == "denied" else "tool"
        return ScriptError(
            kind,
            failed.message,
            code=failed.code,
            tool=self._entry.tool,
            retryable=failed.retryable,
            data=failed.data,
        )
