"""Direct calls: one tool called without a script, along the same path as from one."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from time import monotonic
from typing import TYPE_CHECKING, Any

from moonbox.errors import ScriptError, ToolError, is_denial
from moonbox.runs.awaited import AwaitingExecutor, until_ended
from moonbox.runs.blocking import BlockingExecutor
from moonbox.runs.call_entry import failure
from moonbox.runs.calls import CallPath, run_to_end
from moonbox.runs.environment import Additions
from moonbox.runs.execution import Execution
from moonbox.runs.options import RunOptions, merged
from moonbox.runs.record import RunRecord
from moonbox.threads import soon
from moonbox.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from moonbox.audit.records import Run
    from moonbox.runs.call_entry import CallResult
    from moonbox.runs.decisions import Answer
    from moonbox.runs.services import Services
    from moonbox.runs.settings import Settings


class DirectCall:
    """One call and its record: a Run whose language is "direct"."""

    def __init__(
        self,
        settings: Settings,
        services: Services,
        tool: str,
        arguments: Any,
        toolbox: Toolbox | None,
        options: RunOptions,
    ) -> None:
        self._services = services
        self._lock = threading.RLock()  # `on_call` may close the Sandbox, which closes this
        self._run: Run | None = None
        toolbox = settings.toolbox if toolbox is None else Toolbox.of(toolbox)
        given = merged(settings.run_options, options)
        self._on_call = given.get("on_call")
        limits = given.get("limits") or settings.limits
        self._calls = CallPath(settings, services, toolbox, Additions(), limits, direct=True)
        run_id = given.get("run_id") or services.new_id()
        record = RunRecord(self._calls, tool, run_id, settings.context, given, language="direct")
        record.intents, record.approve = services.records.intents(), settings.approve
        self._execution = Execution(record, telemetry=services.telemetry)
        positional = [] if arguments is None else [arguments]
        self._entry = self._execution.ledger.add(1, f"tools.{tool}", positional, batch=1, size=0)
        services.direct_calls.add(self)
        self._notify()

    def run(self) -> Run:
        """In a thread, so that a tool that never returns can be left behind."""
        changed = threading.Event()  # set by the tool's thread: it is done, or there is another deadline
        results: list[CallResult] = []
        execution, entry = self._execution, self._entry
        execution.clock.changed = changed.set
        executor = BlockingExecutor(self._services.loop.submit, changed.set)

        def job() -> None:
            results.append(run_to_end(self._calls.perform(entry, execution.record, executor)))
            changed.set()

        self._services.threads.submit(job)
        try:
            while not (results or self._run) and (seconds := self._seconds()) != 0:
                changed.wait(seconds)
                changed.clear()
        except KeyboardInterrupt:
            self.close()
            raise
        return self._finish(results[0] if results else None)

    async def arun(self) -> Run:
        """Awaited, on the caller's event loop."""
        changed = asyncio.Event()
        loop = asyncio.get_running_loop()
        execution, entry = self._execution, self._entry
        execution.clock.changed = lambda: soon(loop, changed.set)
        executor = AwaitingExecutor(self._services.threads, changed.set)
        task = asyncio.create_task(self._calls.perform(entry, execution.record, executor))
        task.add_done_callback(lambda _: changed.set())
        entry.cancel = lambda: soon(loop, task.cancel)
        try:
            while not (task.done() or self._run) and (seconds := self._seconds()) != 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await changed.wait()
                changed.clear()
            if not task.done() or task.cancelled():
                task.cancel()
                await until_ended([task])
                return self._finish(None)
            return self._finish(task.result())
        except asyncio.CancelledError:
            self.close()
            raise

    def answered(self, answer: Answer) -> Run:
        """Its record with an answer that the caller gives."""
        try:
            self._calls.prepare(self._entry)
        except ToolError as error:
            return self._finish(failure(error))
        return self._finish(self._calls.answered(answer, self._entry))

    def _seconds(self) -> float | None:
        """Until time runs out; 0 when it has, None where it never does."""
        with self._lock:
            deadline = self._execution.deadline()
        return None if deadline is None else max(0.0, deadline - monotonic())

    def _finish(self, result: CallResult | None) -> Run:
        """The record; without a result, time has run out."""
        execution, entry = self._execution, self._entry
        if result is None:
            error = ToolError(f"{entry.tool} did not answer in time", code="timeout", retryable=True)
            result = failure(error)
            entry.leave()
        with self._lock:
            if self._run is not None:  # it was closed
                return self._run
            execution.answer(entry, *result)
            failed, problem = entry.error, None
            if failed is not None:
                problem = ScriptError(
                    "denied" if is_denial(failed.code) else "tool",
                    failed.message,
                    code=failed.code,
                    tool=entry.tool,
                    retryable=failed.retryable,
                    data=failed.data,
                )
            return self._write((entry.result,) if failed is None else (), problem)

    def _write(self, values: tuple[Any, ...], error: ScriptError | None) -> Run:
        """Write the record before `on_call`, which may raise, hears of the end."""
        self._services.direct_calls.discard(self)
        self._run = self._services.records.write(self._execution.end_span(self._execution.record.finish(values, error)))
        self._notify()
        return self._run

    def _notify(self) -> None:
        if self._on_call is not None:
            self._on_call(self._entry)

    def close(self) -> None:
        """End the call, from any thread."""
        with self._lock:
            if self._run is None:
                self._execution.ledger.cancel(self._entry)
                self._write((), ScriptError("cancelled", "the call was cancelled"))
        if (changed := self._execution.clock.changed) is not None:
            changed()
