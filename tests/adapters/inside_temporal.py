"""Temporal's workflow and activities, run for real; only its server, which keeps the history, is stood for here.

The workflow is replayed with the history so far, as a worker does it. The activities that it then asks for are run, and
their results added to the history, until the workflow is over.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temporalio.api.common.v1 import ActivityType, Payloads, WorkflowType
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import History, HistoryEvent
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.client import WorkflowHistory
from temporalio.converter import default as default_converter
from temporalio.testing import ActivityEnvironment
from temporalio.worker import (
    Interceptor,
    Replayer,
    StartActivityInput,
    UnsandboxedWorkflowRunner,
    WorkflowInboundInterceptor,
    WorkflowOutboundInterceptor,
)

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "engines"))
import temporal_workflow as example

if TYPE_CHECKING:
    import pytest

asked: list[tuple[str, tuple[Any, ...]]] = []
results: list[Any] = []


class Listening(WorkflowInboundInterceptor):
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        class Noting(WorkflowOutboundInterceptor):
            def start_activity(self, input: StartActivityInput) -> Any:
                asked.append((input.activity, tuple(input.args)))
                return super().start_activity(input)

        super().init(Noting(outbound))

    async def execute_workflow(self, input: Any) -> Any:
        result = await super().execute_workflow(input)
        results.append(result)
        return result


class Listener(Interceptor):
    def workflow_interceptor_class(self, input: Any) -> type[WorkflowInboundInterceptor]:
        return Listening


def packed(*values: Any) -> Payloads:
    return Payloads(payloads=default_converter().payload_converter.to_payloads(values))


class Server:
    """The history of one workflow."""

    def __init__(self, employees: list[int]) -> None:
        self.history = History()
        started = self.add("WORKFLOW_EXECUTION_STARTED").workflow_execution_started_event_attributes
        started.workflow_type.CopyFrom(WorkflowType(name="Settle"))
        started.task_queue.CopyFrom(TaskQueue(name=example.QUEUE))
        started.input.CopyFrom(packed(employees))
        started.original_execution_run_id = started.first_execution_run_id = "run"
        started.workflow_execution_timeout.FromSeconds(60)
        started.attempt = 1
        self.task()

    def add(self, kind: str) -> HistoryEvent:
        event = self.history.events.add(
            event_id=len(self.history.events) + 1, event_type=EventType.Value(f"EVENT_TYPE_{kind}")
        )
        event.event_time.FromSeconds(1_800_000_000 + event.event_id)
        return event

    def task(self) -> None:
        """A worker has taken the workflow."""
        scheduled = self.add("WORKFLOW_TASK_SCHEDULED")
        scheduled.workflow_task_scheduled_event_attributes.task_queue.CopyFrom(TaskQueue(name=example.QUEUE))
        started = self.add("WORKFLOW_TASK_STARTED")
        started.workflow_task_started_event_attributes.scheduled_event_id = scheduled.event_id
        completed = self.add("WORKFLOW_TASK_COMPLETED").workflow_task_completed_event_attributes
        completed.scheduled_event_id, completed.started_event_id = scheduled.event_id, started.event_id
        self.task_completed = len(self.history.events)

    def activities(self, first: int, done: list[tuple[str, tuple[Any, ...], Any]]) -> None:
        """These were scheduled together, and have these results."""
        scheduled = []
        for number, (name, arguments, _) in enumerate(done, first):
            event = self.add("ACTIVITY_TASK_SCHEDULED")
            attributes = event.activity_task_scheduled_event_attributes
            attributes.activity_id = str(number)
            attributes.activity_type.CopyFrom(ActivityType(name=name))
            attributes.task_queue.CopyFrom(TaskQueue(name=example.QUEUE))
            attributes.input.CopyFrom(packed(*arguments))
            attributes.workflow_task_completed_event_id = self.task_completed
            scheduled.append(event.event_id)
        for event_id, (_, _, result) in zip(scheduled, done, strict=True):
            started = self.add("ACTIVITY_TASK_STARTED")
            started.activity_task_started_event_attributes.scheduled_event_id = event_id
            completed = self.add("ACTIVITY_TASK_COMPLETED").activity_task_completed_event_attributes
            completed.scheduled_event_id, completed.started_event_id = event_id, started.event_id
            completed.result.CopyFrom(packed(result))
        self.task()

    async def replay(self, **options: Any) -> None:
        """Run the workflow's code against the history, as a worker that has never seen it; raises where they differ."""
        history = WorkflowHistory("settle", list(self.history.events))
        await Replayer(workflows=[example.Settle], **options).replay_workflow(history)


async def settled(tmp_path: Path) -> tuple[Any, Server, list[str]]:
    activities = example.Activities()
    server, known = Server([1, 2, 3]), 0
    names: list[str] = []
    try:
        while True:
            asked.clear()
            results.clear()
            await server.replay(interceptors=[Listener()], workflow_runner=UnsandboxedWorkflowRunner())
            if results:
                return results[0], server, names
            new = asked[known:]
            assert new
            done = []
            for name, arguments in new:
                run = getattr(activities, name)
                done.append((name, arguments, ActivityEnvironment().run(run, *arguments)))
                names.append(name)
            server.activities(known + 1, done)
            known += len(new)
    finally:
        activities.box.close()


def test_the_workflow_makes_each_call_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    value, server, names = asyncio.run(settled(tmp_path))
    assert value == 3300
    assert (tmp_path / "payments.txt").read_text() == "2 1400\n3 1900\n"
    assert names == ["advance", *["perform"] * 3, "advance", "perform", "advance", "perform", "advance"]
    asyncio.run(server.replay())  # in Temporal's own sandbox, which refuses what a workflow must not do
    assert (tmp_path / "payments.txt").read_text() == "2 1400\n3 1900\n"
