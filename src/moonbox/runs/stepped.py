"""The stepped driver: a run that stops at each batch of calls and hands them to the caller, who answers them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any

from moonbox.audit.records import Run
from moonbox.errors import ToolError, UsageError
from moonbox.runs.call_entry import CallEntry, failure
from moonbox.runs.decisions import Answer, ToolCall
from moonbox.runs.environment import AddedFunction
from moonbox.threads import in_thread, own_thread
from moonbox.wording import counted
from moonbox.worker.protocol import REASON_CANCELLED

if TYPE_CHECKING:
    from moonbox.runs.execution import Execution
    from moonbox.runs.runner import Runner
    from moonbox.worker.link import Link


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
        """The same, awaited. If that is cancelled, the run is given up at its next calls."""
        return await in_thread(self.resume, answers, start=own_thread, left=give_up)

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
        ids = [call.id for call in self.calls]
        if isinstance(answers, list | tuple) and len(answers) == len(ids):
            answers = dict(zip(ids, answers, strict=True))
        if not isinstance(answers, dict) or answers.keys() != set(ids):
            raise UsageError(
                f"{counted(len(ids), 'call')} to answer: give a list of as many answers, or a mapping by call.id "
                f"with an answer for each of {ids}"
            )
        return {key: value if isinstance(value, Answer) else Answer.value(value) for key, value in answers.items()}


def give_up(step: Run | Pause) -> None:
    """Cancel a step whose caller has stopped waiting."""
    if isinstance(step, Pause):
        step.cancel()


class SteppedDriver:
    """Drives a run from pause to pause. Its bytes are moved, and its tools run, by a blocking driver."""

    def __init__(self, runner: Runner, link: Link, execution: Execution, repl: object) -> None:
        self._runner = runner
        self._repl = repl  # its Sandbox, when it is closed, ends the pauses of Repls that are alive
        self._turns = runner.turns
        self._driver = runner.driver(link, execution)
        self._execution = execution
        self._waiting: dict[int, CallEntry] = {}
        self._lock = RLock()  # held by the thread that ends a pause
        self._run: Run | None = None  # where the Repl was closed during a pause

    def begin(self) -> Run | Pause:
        return self._until_pause(self._ask_first)

    def _ask_first(self) -> None:
        """Where a person must allow the script, ask them: that is no call for the caller to answer."""
        starting = self._execution.starting
        if starting:
            self._driver.carry_out([starting.popleft()])

    def go_on(self, answers: dict[int, Answer]) -> Run | Pause:
        return self._until_pause(lambda: self._answer(answers))

    def cancel(self) -> Run:
        run = self._until_pause(self._cancel)
        assert isinstance(run, Run)
        return run

    def _until_pause(self, first: Callable[[], None]) -> Run | Pause:
        """Do `first`, then drive on to the next pause or the end."""
        with self._lock:
            if self._run is not None:
                return self._run
            if self._turns.end_pause is not None:
                self._turns.end_pause = None
                self._execution.clock.go_on()
        pauses = False
        try:
            first()
            while self._is_under_way():
                self._driver.advance()
                calls = self._look_at_calls()
                if calls and not self._execution.over:
                    self._execution.clock.pause()
                    pauses, self._turns.end_pause = True, self._close
                    if self._turns.closed:  # a moment ago, when there was no pause to end
                        self._close()
                    return self._run or Pause(self, calls)
            return self._runner.finish(self._execution)
        except BaseException as problem:
            self._runner.give_up(self._execution, problem)
            raise
        finally:
            if not pauses:  # otherwise what ends the pause does it
                self._turns.leave()

    def _close(self) -> None:
        """End the run, which is paused, because its Repl was closed. With a journal, it can be resumed later."""
        with self._lock:
            if self._turns.end_pause is not None and self._execution.record.journal is None:
                self._run = self.cancel()

    def _is_under_way(self) -> bool:
        """Whether the run is not over. One whose worker went with its host goes on in another."""
        while self._execution.moving:
            link, self._execution = self._runner.recorded().move(self._execution)
            self._driver = self._runner.driver(link, self._execution)
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
            tool = None if isinstance(target, AddedFunction) else target
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
