"""A script that needs approvals, waits over night and calls a flaky service; it fails, is corrected, and undone.

    python examples/overnight.py [JOURNAL]

Stop it at any moment and start it again with the same journal: it goes on where it was, and pays nobody twice.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from moonbox import Answer, Context, Retry, Sandbox, ToolError, tool
from moonbox.errors import UsageError

RUN = "pay-the-night-shift"
SCRIPT = """
local rate = tools.rate{}
local paid = {}
for _, name in ipairs{"ada", "bob"} do
  paid[#paid + 1] = tools.pay{to = name, cents = 100 * rate}
  sleep(night)
end
return paid.sum + 0
"""
CORRECTED = SCRIPT.replace("return paid.sum + 0", "return paid[1].cents + paid[2].cents")


class World:
    """What the tools change: a file to which each call adds a line before it returns."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, what: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(what + "\n")

    def notes(self, first: str = "") -> list[str]:
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        return [line for line in lines if line.startswith(first)]

    def approve(self, call: Any) -> Any:
        """In place of a person."""
        self.note(f"asked {call.arguments['to']}")
        return call.allow(by="ann")

    def decide(self, call: Any) -> Any:
        """Of a call that was under way in a crash: what the bank says."""
        done = self.notes(f"{call.tool} {call.key} ")
        return Answer.value({"id": done[0].split()[2], "cents": 300}) if done else "retry"

    def tools(self) -> list[Any]:
        @tool(hints={"read_only": True}, retry=Retry(times=4, first=0.01, on=("unavailable",)))
        def rate() -> int:
            """Euros for a shift. The service fails every second time."""
            self.note("rate")
            if len(self.notes("rate")) % 2:
                raise ToolError("the service is away", code="unavailable")
            return 3

        def undo_pay(id: str, context: Context) -> None:
            self.note(f"undo_pay {context.idempotency_key} {id}")

        @tool(policy="approve", undo=undo_pay)
        def pay(to: str, cents: int, context: Context) -> dict[str, Any]:
            """Pay somebody."""
            self.note(f"pay {context.idempotency_key} {to} {cents}")
            return {"id": to, "cents": cents}

        return [rate, pay]


def go_on(box: Sandbox, world: World, night: float) -> None:
    """From wherever it is: run the script, continue it, correct it, and in the end undo it."""
    while True:
        known = box.journal.look_up(RUN)
        if known is None:
            box.run(SCRIPT, run_id=RUN, inputs={"night": night})
        elif not known.has_ended:
            box.resume(RUN, world.decide)
        elif known.state != "ok":
            print(f"it failed: {known.state}; corrected, it gives", box.patch(RUN, CORRECTED, world.decide).value)
        elif known.undone != "yes":
            try:
                box.undo(RUN, world.decide)
            except UsageError:  # the process was killed when all was undone
                continue
        else:
            return


def main() -> None:
    journal = sys.argv[1] if len(sys.argv) > 1 else f"{tempfile.mkdtemp()}/state.db"
    world = World(Path(f"{journal}-world"))
    with Sandbox(world.tools(), journal=journal, approve=world.approve) as box:
        go_on(box, world, night=1.0)  # 8 * 3600 in earnest
    print(*world.notes(), sep="\n")


if __name__ == "__main__":
    main()
