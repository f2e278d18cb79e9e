"""The answer to a call of the model's, and client-side calls: those of tools that have no function here.

Coroutines with a parameter `awaited` serve threads and tasks. Where it is False they block and never suspend, so that
`run_to_end` runs them.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from moonbox.audit.records import Run
from moonbox.errors import ClosedError, MoonboxError, PoolTimeout, UsageError, WorkerError
from moonbox.runs.calls import run_to_end
from moonbox.runs.decisions import Answer, ToolCall
from moonbox.threads import in_thread, own_thread
from moonbox.tools.results import to_tool_error

if TYPE_CHECKING:
    from moonbox.media import Media
    from moonbox.runs.slots import Turns
    from moonbox.runs.stepped import Pause

    Step: TypeAlias = "Pause | DirectStep"
    """What waits for answers: a script, or one direct call."""
    Answers = Mapping[int, Any] | Sequence[Any] | Answer
    Respond = Callable[[ToolCall], Any | Awaitable[Any]]
    Place = Callable[..., Awaitable["Reply | None"]]
    """(turn, *, awaited): waits for the turn of a script that continues, which ends with the stack `turn`. Returns a
    reply if the script cannot continue, else None."""


async def take_turn(turns: Turns, stack: ExitStack, *, awaited: bool) -> None:
    """Wait for a turn, which ends with the stack."""
    if awaited:
        await turns.aenter()
    else:
        turns.enter()
    stack.callback(turns.leave)


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one call of the model's."""

    text: str
    is_error: bool
    run: Run | None = None
    paused: Paused | None = None
    """What waits for your answers; then the text says so too."""

    @property
    def media(self) -> tuple[Media, ...]:
        """What the script returned or showed of images, audio and files, or the tool returned."""
        return () if self.run is None else self.run.media


class DirectStep:
    """One direct call of the model's that waits for its answer."""

    def __init__(self, call: ToolCall, finish: Callable[[Answer], Run]) -> None:
        self.calls = (call,)
        self._finish = finish
        self._used = False

    def resume(self, answers: dict[int, Any], /) -> Run:
        value = answers[self.calls[0].id]
        return self._end(value if isinstance(value, Answer) else Answer.value(value))

    def cancel(self) -> Run:
        return self._end(Answer.error("the client gave the call up", code="cancelled"))

    def _end(self, answer: Answer) -> Run:
        if self._used:
            raise UsageError("this call was answered or cancelled before")
        self._used = True
        return self._finish(answer)


class Paused(str):
    """What `handle` returns while calls wait for the caller. As text it says so; `resume` answers them and goes on.

    A script that waits keeps its conversation's worker, but no thread, and its clock stands still. It is given up with
    `cancel`, or when the conversation ends.
    """

    calls: tuple[ToolCall, ...]
    """The calls to answer: `call.tool`, `call.arguments`, `call.id`."""
    _step: Step
    _place: Place | None
    _owner: ClientCalls

    @classmethod
    def at(cls, step: Step, calls: tuple[ToolCall, ...], place: Place | None, owner: ClientCalls) -> Reply:
        names = ", ".join(dict.fromkeys(call.tool for call in calls))
        paused = cls(f"paused: waiting for the client's answer to {names}")
        paused.calls, paused._step, paused._place, paused._owner = calls, step, place, owner
        return Reply(paused, is_error=False, paused=paused)

    def resume(self, answers: Answers) -> str:
        """Answer the calls and go on: what goes back to the model, or another Paused.

        `answers` is a list in the order of `calls`, or a mapping from `call.id`. An answer is `Answer.value(x)` or
        `Answer.error(message)`; anything else stands for `Answer.value` of itself.
        """
        return self.reply(answers).text

    async def aresume(self, answers: Answers) -> str:
        """The same, awaited."""
        return (await self.areply(answers)).text

    def reply(self, answers: Answers) -> Reply:
        """Like `resume`, with the Run and whether it failed."""
        return run_to_end(self._reply(answers, awaited=False))

    async def areply(self, answers: Answers) -> Reply:
        """The same, awaited."""
        return await self._reply(answers, awaited=True)

    async def _reply(self, answers: Answers, *, awaited: bool) -> Reply:
        start = partial(_resume, self._step, self._by_id(answers))
        with ExitStack() as turn:
            refused = self._place and await self._place(turn, awaited=awaited)
            return refused or await self._owner.drive(start, self._place, turn, awaited=awaited)

    def cancel(self) -> None:
        """Give the script up; the conversation stays usable."""
        self._step.cancel()

    def _by_id(self, answers: Any) -> dict[int, Any]:
        ids = [call.id for call in self.calls]
        if isinstance(answers, Answer):
            return dict.fromkeys(ids, answers)
        if isinstance(answers, dict) and set(answers) == set(ids):
            return answers
        if isinstance(answers, list | tuple) and len(answers) == len(ids):
            return dict(zip(ids, answers, strict=True))
        raise UsageError(f"give one answer for each of the calls {ids}: a list in their order, or a mapping by call.id")


class ClientCalls:
    """Drives what may wait for the client, to its end or to a Paused."""

    def __init__(
        self,
        respond: Respond | None,
        *,
        finished: Callable[[Run], Reply],
        lost: Callable[[Exception], Reply],
    ) -> None:
        self._respond = respond
        self._finished, self._lost = finished, lost
        self.answered = respond is not None
        """Whether a function answers the calls; otherwise they pause."""

    async def drive(
        self, start: Callable[[], Run | Step], place: Place | None, turn: ExitStack, *, awaited: bool
    ) -> Reply:
        """Answer what the client is asked, or pause there; moonbox runs the other calls of a batch itself.

        A cancellation closes `turn` when nothing of it is under way any more.
        """
        try:
            while not isinstance(step := await _in_thread(start, turn) if awaited else start(), Run):
                mine = tuple(each for each in step.calls if each.definition and each.definition.answered_by_caller)
                if mine and self._respond is None:
                    return Paused.at(step, mine, place, self)
                try:
                    if awaited:
                        values = await asyncio.gather(*(_ask(self._respond, call, awaited=True) for call in mine))
                    else:
                        values = [await _ask(self._respond, call, awaited=False) for call in mine]
                except BaseException:  # a cancelled task or an interrupted program does not answer it
                    _give_up(step)
                    raise
                start = partial(_resume, step, {call.id: value for call, value in zip(mine, values, strict=True)})
        except (PoolTimeout, WorkerError, ClosedError) as problem:
            return self._lost(problem)
        return self._finished(step)


async def _in_thread(make: Callable[[], Run | Step], turn: ExitStack) -> Run | Step:
    """The result of `make`, from a thread. If the task is cancelled, the thread cancels the step and ends the turn."""
    held = turn.pop_all()

    def made() -> Run | Step | BaseException:
        try:
            return make()
        except BaseException as problem:  # noqa: BLE001 - raised below
            return problem

    def give_up(result: Run | Step | BaseException) -> None:
        with held:
            if not isinstance(result, BaseException):
                _give_up(result)

    try:
        result = await in_thread(made, start=own_thread, left=give_up)
    except RuntimeError:  # no thread could be started
        held.close()
        raise
    turn.push(held)
    if isinstance(result, BaseException):
        raise result
    return result


def _give_up(step: Run | Step) -> None:
    if not isinstance(step, Run):
        with suppress(MoonboxError):  # it is closed already
            step.cancel()


async def _ask(respond: Respond | None, call: ToolCall, *, awaited: bool) -> Any:
    assert respond is not None
    try:
        value = respond(call)
        if not inspect.isawaitable(value):
            return value
        if awaited:
            return await value
    except Exception as problem:  # noqa: BLE001 - whatever the client raises becomes the script's error
        return _failed(problem, call)
    if inspect.iscoroutine(value):
        value.close()
    return _failed(UsageError("client_calls is asynchronous: use ahandle, areply or an adapter's arun"), call)


def _resume(step: Step, answers: dict[int, Any]) -> Run | Pause:
    """Go on with the client's answers; what it was not asked is run here."""
    return step.resume({call.id: answers[call.id] if call.id in answers else Answer.run() for call in step.calls})


def _failed(problem: Exception, call: ToolCall) -> Answer:
    error = to_tool_error(problem, call.tool)
    return Answer.error(error.message, code=error.code, retryable=bool(error.retryable), data=error.data)
