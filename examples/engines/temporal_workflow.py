"""A script inside a Temporal workflow: the workflow keeps the answers, and each call of the script is an activity.

pip install . 'temporalio>=1.35,<2'
temporal server start-dev                # in another terminal
python temporal_workflow.py
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from moonbox import Answer, Run, Sandbox, tool

QUEUE = "expenses"
SCRIPT = """
local totals = parallel.map(employees, function(id)
  return list.sum(tools.get_expenses{employee_id = id}, "cents")
end)
local paid = 0
for place, total in ipairs(totals) do
  if total > 1000 then paid = paid + tools.pay{employee_id = employees[place], cents = total}.cents end
end
return paid
"""


@tool(hints={"read_only": True})
def get_expenses(employee_id: int) -> list[dict[str, Any]]:
    """Expense items of one employee."""
    return [{"item": "train", "cents": 500 * employee_id}, {"item": "hotel", "cents": 400}]


@tool
def pay(employee_id: int, cents: int) -> dict[str, int]:
    """Pay an employee's expenses."""
    with Path("payments.txt").open("a", encoding="utf-8") as payments:
        payments.write(f"{employee_id} {cents}\n")
    return {"cents": cents}


class Activities:
    """What touches the world: the sandbox with its tools."""

    def __init__(self) -> None:
        self.box = Sandbox([get_expenses, pay])

    @activity.defn
    def advance(self, employees: list[int], answers: list[list[dict[str, Any]]]) -> dict[str, Any]:
        """Run the script from its beginning with these answers: the calls that it makes next, or its value."""
        with self.box.repl() as repl:
            pause = repl.start(SCRIPT, inputs={"employees": employees})
            for batch in answers:
                assert not isinstance(pause, Run)
                pause = pause.resume(
                    [Answer.error(each["error"]) if "error" in each else Answer.value(each["value"]) for each in batch]
                )
            if isinstance(pause, Run):
                return {"value": pause.unwrap()}
            calls = [{"tool": call.tool, "arguments": call.arguments} for call in pause.calls]
            pause.cancel()
        return {"calls": calls}

    @activity.defn
    def perform(self, name: str, arguments: Any) -> dict[str, Any]:
        """Make one call."""
        run = self.box.call(name, arguments)
        return {"value": run.value} if run.error is None else {"error": str(run.error)}


@workflow.defn
class Settle:
    """Goes from batch to batch. Its history has every answer, so that any worker can continue it."""

    @workflow.run
    async def run(self, employees: list[int]) -> Any:
        minute, once = timedelta(minutes=1), RetryPolicy(maximum_attempts=1)
        answers: list[list[dict[str, Any]]] = []
        while True:
            step = await workflow.execute_activity_method(
                Activities.advance, args=[employees, answers], start_to_close_timeout=minute
            )
            if "value" in step:
                return step["value"]
            calls = [
                workflow.execute_activity_method(
                    Activities.perform,
                    args=[call["tool"], call["arguments"]],
                    start_to_close_timeout=minute,
                    retry_policy=once,  # more where all tools are read-only or idempotent
                )
                for call in step["calls"]
            ]
            answers.append(list(await asyncio.gather(*calls)))


async def main() -> None:
    client = await Client.connect("localhost:7233")
    activities = Activities()
    with ThreadPoolExecutor() as threads:
        async with Worker(
            client,
            task_queue=QUEUE,
            workflows=[Settle],
            activities=[activities.advance, activities.perform],
            activity_executor=threads,
        ):
            paid = await client.execute_workflow(Settle.run, [1, 2, 3], id="settle-september", task_queue=QUEUE)
    print("paid:", paid, "cents")
    activities.box.close()


if __name__ == "__main__":
    asyncio.run(main())
