"""The stepped driver: a run that stops at each batch of calls and hands them to the caller, who answers them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from moonbox.audit.records import Run
from moonbox.errors import ToolError, UsageError
from moonbox.sandbox.call_entry import failure
from moonbox.sandbox.decisions import Answer, ToolCall
from moonbox.sandbox.environment import HostFunction
from moonbox.worker.protocol import REASON_CANCELLED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from moonbox.sandbox.blocking import BlockingDriver
    from moonbox.sandbox.call_entry import CallEntry
    from moonbox.sandbox.execution import Execution


class Pause:
    """A run that waits for answers. `Repl.start` and `resume` give it.

    While it waits, its clock stands still and no thread is held.
    """

    def __init__(self, driver: SteppedDriver, calls: tuple[ToolCall, ...]) -> None:
        self._driver = driver
        self.calls = calls
        """The calls to answer."""
        self._used = False

    def resume(self, answers: Mapping[int, Any] | Sequence[Any] | Answer | None = None) -> Run | Pause:
        """Answer every call and go on: a list in the order of `calls`, or a mapping from `call.id`.

        An answer is `Answer.value(x)`, `Answer.error(message, code=…)` or `Answer.run()` (moonbox runs the tool);
        anything else stands for `Answer.value` of itself. With no argument moonbox runs them all.
        """
        self._check_unused()
        prepared = self._answers(answers)
        self._used = True
        return self._driver.go_on(prepared)

    async def aresume(self, answers: Mapping[int, Any] | Sequence[Any] | Answer | None = None) -> Run | Pause:
        """The same, awaited."""
        return await asyncio.to_thread(self.resume, answers)

    def cancel(self) -> Run:
        """Give the run up: the script is stopped, the Repl stays usable."""
        self._check_unused()
        self._used = True
        return self._driver.cancel()

    def _check_unused(self) -> None:
        if self._used:
            raise UsageError("this Pause was resumed or cancelled before")

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


class SteppedDriver:
    """Drives a run from pause to pause. Its bytes are moved, and its tools run, by a blocking driver."""

    def __init__(
        self,
        driver: BlockingDriver,
        execution: Execution,
        set_paused: Callable[[bool], None],
        end: Callable[[Execution, BaseException | None], Run | None],
        move: Callable[[Execution], tuple[BlockingDriver, Execution]],
    ) -> None:
        self._driver = driver
        self._execution = execution
        self._set_paused = set_paused
        self._end = end
        self._move = move
        self._waiting: dict[int, CallEntry] = {}

    def begin(self) -> Run | Pause:
        return self._until_pause(lambda: None)

    def go_on(self, answers: dict[int, Answer]) -> Run | Pause:
        self._execution.clock.go_on()
        return self._until_pause(lambda: self._answer(answers))

    def cancel(self) -> Run:
        self._execution.clock.go_on()
        run = self._until_pause(self._cancel)
        assert isinstance(run, Run)
        return run

    def _until_pause(self, first: Callable[[], None]) -> Run | Pause:
        """Do `first`, then drive on to the next pause or the end."""
        self._set_paused(False)
        try:
            first()
            while self._is_under_way():
                self._driver.advance()
                calls = self._look_at_calls()
                if calls and not self._execution.over:
                    self._execution.clock.pause()
                    self._set_paused(True)
                    return Pause(self, calls)
        except BaseException as problem:
            self._end(self._execution, problem)
            raise
        run = self._end(self._execution, None)
        assert run is not None
        return run

    def _is_under_way(self) -> bool:
        """Whether the run is not over. One whose worker went with its host goes on in another."""
        while self._execution.moving:
            self._driver, self._execution = self._move(self._execution)
        return not self._execution.over

    def _look_at_calls(self) -> tuple[ToolCall, ...]:
        """Validate the new calls; a wrong one is answered right away and never reaches the caller."""
        execution = self._execution
        calls = []
        while execution.starting and not execution.over:
            entry = execution.starting.popleft()
            try:
                target = execution.calls.prepare(entry)
            except ToolError as error:
                execution.answer(entry, *failure(error))
                continue
            tool = None if isinstance(target, HostFunction) else target
            calls.append(execution.calls.view(tool, entry, execution.record))
            self._waiting[entry.id] = entry
        return tuple(calls)

    def _answer(self, answers: dict[int, Answer]) -> None:
        """Answer the whole batch at once: what the script does next does not depend on which tool was quicker."""
        execution, waiting = self._execution, self._waiting
        self._waiting = {}
        execution.ledger.holds_answers = True
        self._driver.carry_out([waiting[call] for call, answer in answers.items() if answer.kind == "run"])
        for call, answer in answers.items():
            if answer.kind != "run":
                execution.answer(waiting[call], *execution.calls.answered(answer, waiting[call]))
        execution.ledger.holds_answers = False

    def _cancel(self) -> None:
        for entry in self._waiting.values():
            self._execution.ledger.cancel(entry)
        self._driver.stop(REASON_CANCELLED)


def _answer(value: Any) -> Answer:
    return value if isinstance(value, Answer) else Answer.value(value)
