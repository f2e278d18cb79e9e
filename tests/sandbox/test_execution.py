"""The state machine of a run, without a worker, a thread or a socket: frames and times go in, what to do comes out."""

from __future__ import annotations

import json
import marshal
from typing import TYPE_CHECKING, Any

import pytest

from moonbox import Limits, tool
from moonbox.errors import ToolError, WorkerError
from moonbox.languages.registry import LANGUAGES, EngineError
from moonbox.runs.calls import CallPath
from moonbox.runs.environment import Additions
from moonbox.runs.execution import GRACE, LONGEST_GRACE, Execution
from moonbox.runs.record import RunRecord
from moonbox.runs.services import Services, ToolKnowledge
from moonbox.runs.settings import Settings
from moonbox.tools.toolbox import Toolbox
from moonbox.values import pack
from moonbox.worker import protocol
from tests.runs import error_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.runs.call_entry import CallEntry


@tool(timeout=5)
def timed() -> int:
    """Has a timeout of its own."""
    return 1


@tool
def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


def make(limits: Limits | None = None, additions: Additions | None = None, **options: Any) -> Execution:
    settings = Settings(
        toolbox=Toolbox.of([timed, add]), limits=limits or Limits(), language=LANGUAGES["lua"], additions=Additions()
    )
    services = Services(tools=ToolKnowledge(settings.language, settings.toolbox.learned))
    path = CallPath(settings, services, settings.toolbox, additions or Additions(), settings.limits)
    record = RunRecord(path, "the source", "id", {}, {})
    for name, value in options.items():
        setattr(record, name, value)
    return Execution(record, sources=[(1, "the source")])


class Worker:
    """What an Execution needs to know of its worker: here also how much processor time it has spent."""

    native = False

    def __init__(self, cpu: Callable[[], float] | None = None) -> None:
        self.cpu = cpu


def calls(execution: Execution, *items: Any) -> None:
    execution.frame(protocol.CALLS, json.dumps(items).encode())


def value(execution: Execution, *values: Any) -> None:
    spent = protocol.SPENT.pack(-1, 10, 0.5, 0)
    execution.frame(protocol.VALUE, spent + json.dumps(values).encode())


def sent(execution: Execution) -> list[tuple[int, Any]]:
    """The frames that the machine wants to be sent."""
    data = execution.outgoing()
    frames: list[tuple[int, Any]] = []
    while data:
        kind, length = protocol.HEADER.unpack_from(data)
        end = protocol.HEADER.size + length
        payload = data[protocol.HEADER.size : end]
        if kind == protocol.RUN:
            number, seed = protocol.RUN_HEAD.unpack_from(payload)
            frames.append((kind, (payload[protocol.RUN_HEAD.size :], number, seed)))
        else:
            frames.append((kind, payload[0] if kind == protocol.HALT else marshal.loads(payload)))
        data = data[end:]
    return frames


def test_a_run_without_calls() -> None:
    execution = make(seed=7)
    execution.begin(protocol.pack_run(b"return 1", 1, 7), Worker())  # type: ignore[arg-type]
    assert sent(execution) == [(protocol.RUN, (b"return 1", 1, 7))]
    assert sent(execution) == []
    execution.frame(protocol.OUTPUT, b"hello\n")
    over_before = execution.over
    value(execution, 1, None)
    assert (over_before, execution.over) == (False, True)
    run = execution.finish()
    assert (run.values, run.output, run.error, run.calls) == ((1, None), "hello\n", None, ())
    assert (run.usage.cpu, run.usage.peak_memory, run.seed) == (0.5, 10, 7)


def test_calls_are_started_and_their_answers_go_together() -> None:
    execution = make()
    calls(execution, [1, "tools.add", [{"a": 1}]], [2, "tools.add", [2]], [3, "sys.time", []])
    first, second = execution.starting
    assert (first.index, first.arguments, second.arguments) == (1, {"a": 1}, [2])
    execution.answer(second, "ok", pack(3), None)
    execution.answer(first, "error", None, ToolError("no", code="x", tool="add"))
    ((kind, answers),) = sent(execution)
    assert kind == protocol.ANSWERS
    assert [(call, ok) for call, ok, _ in answers] == [(3, True), (2, True), (1, False)]
    assert answers[2][2] == {"code": "x", "message": "no", "retryable": False, "tool": "add"}
    value(execution)
    assert [(call.status, call.batch) for call in execution.finish().calls] == [("error", 1), ("ok", 1)]


def test_a_late_answer_is_ignored() -> None:
    execution = make()
    calls(execution, [1, "tools.add", [1]])
    entry = execution.starting.popleft()
    execution.frame(protocol.CANCEL, b"[1, 99]")
    assert (entry.status, entry.left) == ("cancelled", True)
    execution.answer(entry, "ok", pack(2), None)
    assert sent(execution) == []
    value(execution)
    execution.answer(entry, "ok", pack(2), None)
    assert [call.status for call in execution.finish().calls] == ["cancelled"]


def test_answers_can_be_held_back() -> None:
    execution = make()
    calls(execution, [1, "tools.add", [1]])
    execution.ledger.holds_answers = True
    execution.answer(execution.starting.popleft(), "ok", pack(2), None)
    assert sent(execution) == []
    execution.ledger.holds_answers = False
    assert sent(execution) == [(protocol.ANSWERS, [(1, True, 2)])]


def begun(execution: Execution, number: int, name: str, timeout: float | None) -> CallEntry:
    calls(execution, [number, f"tools.{name}", []])
    entry = execution.starting.popleft()
    entry.begin(timeout)
    return entry


def test_the_next_deadline_is_the_nearest() -> None:
    execution = make(Limits(timeout=100))
    run_deadline = execution.deadline()
    assert run_deadline is not None
    slow = begun(execution, 1, "timed", 5)
    quick = begun(execution, 2, "timed", 3)
    begun(execution, 3, "add", None)
    assert execution.deadline() == quick.deadline
    assert quick.deadline is not None
    cancelled: list[str] = []
    quick.cancel = lambda: cancelled.append("quick")
    execution.tick(quick.deadline)
    assert (quick.status, slow.status, cancelled) == ("timeout", "in_flight", ["quick"])
    assert execution.deadline() == slow.deadline
    ((_, ((call, ok, error),)),) = sent(execution)
    assert (call, ok, error["code"], error["retryable"]) == (2, False, "timeout", True)
    execution.answer(quick, "ok", pack(1), None)
    assert sent(execution) == []


@pytest.mark.parametrize(
    ("spent", "ends_at"),
    [
        # With others beside it, half of the time or less is its own: it had its chance after 0.5 seconds.
        ({GRACE: 0.0, 2 * GRACE: 0.4}, (3 * GRACE, 0.6)),
        ({LONGEST_GRACE - 0.001: 0.0}, (LONGEST_GRACE, 0.0)),
    ],
    ids=["it hardly got to run", "it does not run at all"],
)
def test_a_worker_that_is_short_of_time_has_more_of_it_to_stop(
    spent: dict[float, float], ends_at: tuple[float, float]
) -> None:
    used, stopped = 7.0, 1000.0
    execution = make(Limits(timeout=100))
    execution.clock.worker = Worker(lambda: used)  # type: ignore[assignment]
    execution.stop(protocol.REASON_CANCELLED, stopped)
    for after, seconds in spent.items():
        used = 7.0 + seconds
        execution.tick(stopped + after)
        assert execution.deadline() == pytest.approx(stopped + min(after + GRACE / 4, LONGEST_GRACE))
    used = 7.0 + ends_at[1]
    with pytest.raises(WorkerError, match="it did not stop"):
        execution.tick(stopped + ends_at[0])


def test_time_runs_out() -> None:
    execution = make(Limits(timeout=100), number=3)
    deadline = execution.deadline()
    assert deadline is not None
    execution.tick(deadline - 0.001)
    assert not execution.stopping
    begun(execution, 1, "add", None)
    execution.tick(deadline)
    assert execution.interrupting == protocol.REASON_TIME
    assert sent(execution) == [(protocol.HALT, protocol.REASON_TIME)]
    assert execution.deadline() == deadline + GRACE
    execution.tick(deadline + GRACE - 0.001)
    with pytest.raises(WorkerError, match="it did not stop"):
        execution.tick(deadline + GRACE)
    execution.lose(WorkerError("it did not stop"))
    run = execution.finish()
    assert (error_of(run).kind, error_of(run).limit, run.state_lost) == ("limit", "time", True)
    assert [call.status for call in run.calls] == ["in_flight"]


def test_the_clock_stands_still() -> None:
    execution = make(Limits(timeout=100))
    deadline = execution.deadline()
    changes: list[bool] = []
    execution.clock.changed = lambda: changes.append(True)
    with execution.clock.standing_still():
        execution.clock.pause()
        assert execution.deadline() is None
        execution.clock.go_on()
        assert (execution.deadline(), changes) == (None, [])
    assert deadline is not None
    assert (execution.deadline() or 0) > deadline
    assert changes == [True]


def test_what_comes_while_it_stops_is_not_done() -> None:
    execution = make()
    execution.stop(protocol.REASON_CANCELLED, 0.0)
    execution.stop(protocol.REASON_TIME, 50.0)  # the first reason holds
    assert sent(execution) == [(protocol.HALT, protocol.REASON_CANCELLED)]
    calls(execution, [1, "tools.add", [1]])
    assert not execution.starting
    execution.frame(protocol.DONE, json.dumps(DONE).encode())
    run = execution.finish()
    assert error_of(run).kind == "cancelled"
    assert [call.status for call in run.calls] == ["cancelled"]


DONE = {
    "kind": "stop", "limit": "cancelled", "message": "", "operations": 5, "memory": 0, "cpu": 0.0, "cut": 0,
    "values": [], "frames": [], "extra": {},
}  # fmt: skip


def test_a_call_that_has_not_begun_when_the_run_stops_is_not_made() -> None:
    execution = make()
    calls(execution, [1, "tools.add", [1]], [2, "tools.add", [2]])
    begun = execution.starting.popleft()
    waiting = execution.starting[0]
    execution.stop(protocol.REASON_CANCELLED, 100.0)
    assert not execution.starting
    assert [(entry.status, entry.left) for entry in (begun, waiting)] == [("in_flight", False), ("cancelled", True)]


def test_a_script_that_is_refused_costs_no_frame() -> None:
    execution = make()
    execution.refuse(EngineError("stop", "too long", limit="memory"))
    assert execution.over
    assert sent(execution) == []
    run = execution.finish()
    assert (error_of(run).kind, error_of(run).limit, run.state_lost) == ("limit", "memory", False)


@pytest.mark.parametrize(
    ("problem", "status", "message"),
    [
        ("gone", "signal 9", "ended unexpectedly (signal 9)"),
        ("gone", "", "ended unexpectedly (the worker is gone)"),
        ("broke", "", "had to be ended (bad frame)"),
    ],
)
def test_a_lost_worker(problem: str, status: str, message: str) -> None:
    from moonbox.worker.link import Gone

    execution = make()
    execution.lose(Gone() if problem == "gone" else WorkerError("bad frame"), status)
    run = execution.finish()
    assert error_of(run).message == f"the worker process {message}; what the scripts had defined is lost"
    assert (error_of(run).kind, run.state_lost) == ("crashed", True)


def test_more_than_a_worker_may_send() -> None:
    limits = Limits(max_memory=1 << 20, max_output=100)
    execution = make(limits)
    with pytest.raises(WorkerError, match="more output than max_output"):
        execution.frame(protocol.OUTPUT, b"x" * 101)
    execution = make(limits)
    with pytest.raises(WorkerError, match="more than 4 times max_memory"):
        for _ in range(6):
            execution.frame(protocol.CANCEL, b"[" + b" " * (1 << 20) + b"]")
