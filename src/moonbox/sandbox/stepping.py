"""Stepping: a run that stops at each batch of calls and hands them to the caller, who answers them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any

from moonbox.audit.records import Run
from moonbox.errors import ToolError, UsageError, WorkerError
from moonbox.sandbox.blocking import BlockingDrive
from moonbox.sandbox.decisions import Answer, ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moonbox.limits import Limits
    from moonbox.sandbox.exchange import Job, Step
    from moonbox.sandbox.pipeline import Reply
    from moonbox.sandbox.repl import Repl

__all__ = ["Pause", "Stepper"]


class Pause:
    """A run that waits for answers. While it waits, its clock stands still and no thread is held."""

    def __init__(self, stepper: Stepper, calls: tuple[ToolCall, ...]) -> None:
        self._stepper = stepper
        self.calls = calls
        """The calls to answer."""
        self._used = False

    def resume(self, answers: Mapping[int, Any] | Sequence[Any] | Answer | None = None) -> Run | Pause:
        """Answer every call and go on: a list in the order of `calls`, or a mapping from `call.id`.

        An answer is `Answer.value(x)`, `Answer.error(message, code=…)` or `Answer.run()` (moonbox runs the tool);
        anything else stands for `Answer.value` of itself. With no argument moonbox runs them all.
        """
        if self._used:
            raise UsageError("this pause was resumed or cancelled before")
        prepared = self._answers(answers)
        self._used = True
        return self._stepper.go_on(prepared)

    async def aresume(self, answers: Mapping[int, Any] | Sequence[Any] | Answer | None = None) -> Run | Pause:
        """The same, awaited."""
        return await asyncio.to_thread(self.resume, answers)

    def cancel(self) -> Run:
        """Give the run up: the script is stopped, the Repl stays usable."""
        if self._used:
            raise UsageError("this pause was resumed or cancelled before")
        self._used = True
        return self._stepper.cancel()

    def _answers(self, answers: Any) -> dict[int, Answer]:
        if answers is None:
            answers = Answer.run()
        if isinstance(answers, Answer):
            return {call.id: answers for call in self.calls}
        if isinstance(answers, dict):
            unknown = [key for key in answers if key not in {call.id for call in self.calls}]
            missing = [call.id for call in self.calls if call.id not in answers]
            if unknown or missing:
                raise UsageError(
                    f"the answers must be for the calls {[call.id for call in self.calls]}; "
                    f"unknown: {unknown}, missing: {missing}"
                )
            return {key: _answer(value) for key, value in answers.items()}
        if not isinstance(answers, list | tuple) or len(answers) != len(self.calls):
            raise UsageError(
                f"there are {len(self.calls)} calls to answer; give a list of as many answers, or a mapping by call.id"
            )
        return {call.id: _answer(value) for call, value in zip(self.calls, answers, strict=True)}


class Stepper(BlockingDrive):
    """Drives a run from pause to pause."""

    def __init__(self, repl: Repl, source: str, limits: Limits) -> None:
        self._repl = repl
        self._attempt = repl._attempt(source, limits)
        sandbox = repl._sandbox
        super().__init__(self._attempt.link, self._attempt.exchange, sandbox._threads, sandbox._loop)
        self._jobs: dict[int, Job] = {}
        self._left = False

    def begin(self) -> Run | Pause:
        if self._attempt.refused is not None:
            return self._over(self._attempt.refused)
        return self._guarded(lambda: self._send(self._attempt.opening))

    def go_on(self, answers: dict[int, Answer]) -> Run | Pause:
        self._clock.go_on()
        return self._guarded(lambda: self._reply(self._carry_out(answers)))

    def cancel(self) -> Run:
        from moonbox.worker import protocol

        self._clock.go_on()
        self.stop(protocol.REASON_CANCELLED)
        for job in self._jobs.values():
            job.entry.abandon("cancelled")
        result = self._guarded(lambda: None)
        assert isinstance(result, Run)
        return result

    def _guarded(self, first: Any) -> Run | Pause:
        """Do `first`, then drive on to the next pause or the end."""
        self._repl._paused = False
        try:
            with self._link.in_use():
                first()
                return self._drive_on()
        except WorkerError as problem:
            lost = self._lost(problem)
            return self._over(self._attempt.gone(lost.reason, lost.how))
        except KeyboardInterrupt:
            self._after_interrupt()
            raise
        except BaseException:
            if not self.drained:
                self._repl._held.lose()  # something of ours failed: nobody knows what the worker is doing now
            self._leave()
            raise

    def _after_interrupt(self) -> None:
        self._interrupt()
        with contextlib.suppress(WorkerError, KeyboardInterrupt), self._link.in_use():
            self._drain()
        self._exchange.abandon_all()
        self._repl._held.loss_unseen = not self.drained
        self._over(self._attempt.cancelled(drained=self.drained))

    def _drive_on(self) -> Run | Pause:
        while True:
            step: Step = self._next()
            if step.ended is not None:
                self._exchange.abandon_all()
                return self._over(self._attempt.ended(step.ended))
            replies = list(step.replies)
            calls = []
            for job in step.jobs:
                reply, call = self._look_at(job)
                if call is None:
                    replies.append(reply)
                else:
                    calls.append(call)
                    self._jobs[job.request.id] = job
            self._reply(replies)
            if calls:
                self._clock.pause()
                self._repl._paused = True
                return Pause(self, tuple(calls))

    def _look_at(self, job: Job) -> tuple[Any, ToolCall | None]:
        """Validate a call; a wrong one is answered right away and never reaches the caller."""
        pipeline, recorder = self._exchange.pipeline, self._exchange.recorder
        try:
            target = pipeline.prepare(job.request, job.entry)
        except ToolError as error:
            job.entry.fail(error)
            return (job.request.id, False, pipeline.error_value(error, job.entry)), None
        tool = None if not hasattr(target, "path") else target
        return None, pipeline.view(tool, job.entry, recorder)  # type: ignore[arg-type]

    def _carry_out(self, answers: dict[int, Answer]) -> list[Reply]:
        pipeline = self._exchange.pipeline
        replies: list[Reply] = []
        own: list[Job] = []
        for call, answer in answers.items():
            job = self._jobs.pop(call)
            if answer.kind == "run":
                own.append(job)
            else:
                replies.append(pipeline.answered(job.request, job.entry, answer))
        finished = threading.Semaphore(0)

        def run(job: Job) -> None:
            replies.append(self._perform(job))
            finished.release()

        for job in own:
            self._threads.submit(lambda job=job: run(job))  # type: ignore[misc]
        for _ in own:
            finished.acquire(timeout=self._clock.remaining())
        return list(replies)

    def _over(self, run: Run) -> Run:
        try:
            return self._repl._conclude(self._attempt, run)
        finally:
            self._leave()

    def _leave(self) -> None:
        """Let the next run in, once."""
        if not self._left:
            self._left = True
            self._repl._gate.leave()


def _answer(value: Any) -> Answer:
    return value if isinstance(value, Answer) else Answer.value(value)
