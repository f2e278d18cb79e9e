"""A script inside a DBOS workflow: each batch of calls is a step, and DBOS does not repeat a step that is done.

pip install . 'dbos>=3.3,<4'
python dbos_workflow.py          # kill it at any moment and start it again: it goes on where it was
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dbos import DBOS, DBOSConfig, SetWorkflowID

from moonbox import Answer, Run, Sandbox, tool

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


box = Sandbox([get_expenses, pay])


@DBOS.step()
def perform(calls: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    """Make a batch of calls; DBOS keeps what it returns."""
    done = []
    for name, arguments in calls:
        run = box.call(name, arguments)
        done.append({"value": run.value} if run.error is None else {"error": str(run.error)})
    return done


@DBOS.workflow()
def settle(employees: list[int]) -> Any:
    """The script. When DBOS recovers it, it runs from its beginning and gets the results of the steps that are done."""
    with box.repl() as repl:
        pause = repl.start(SCRIPT, inputs={"employees": employees})
        while not isinstance(pause, Run):
            results = perform([(call.tool, call.arguments) for call in pause.calls])
            pause = pause.resume(
                [Answer.error(each["error"]) if "error" in each else Answer.value(each["value"]) for each in results]
            )
    return pause.unwrap()


def main() -> None:
    config: DBOSConfig = {
        "name": "expenses",
        "system_database_url": "sqlite:///workflows.sqlite",
        "application_version": "1",  # workflows of another version are not recovered
        "log_level": "ERROR",
    }
    DBOS(config=config)
    DBOS.launch()  # recovers what a crash cut off
    with SetWorkflowID("settle-september"):  # the same id: the same workflow
        handle = DBOS.start_workflow(settle, [1, 2, 3])
    print("paid:", handle.get_result(), "cents")
    DBOS.destroy()
    box.close()


if __name__ == "__main__":
    main()
