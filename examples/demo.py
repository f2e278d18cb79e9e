"""The expenses story: a model needs one number out of two thousand items, and writes one script to get it."""

from __future__ import annotations

import datetime as dt
import json
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, Group
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from moonbox import Sandbox, tool
from moonbox.audit.reports import timeline_text
from moonbox.tools.signature import render
from moonbox.wording import seconds, size

if TYPE_CHECKING:
    from moonbox import Run

WIDTH = 92
SCRIPT = """
-- What did the team spend on travel in the first quarter?
local ids = {}
for id = 1, 20 do ids[id] = id end

local totals = parallel.map(ids, function(id)
  local sum = 0
  for _, item in ipairs(tools.get_expenses{employee_id = id}) do
    if item.category == "travel" and item.date < "2026-04-01" then
      sum = sum + item.cents
    end
  end
  return sum
end, {concurrency = 5})

local cents = 0
for _, sum in ipairs(totals) do cents = cents + sum end
return cents / 100
"""


def main() -> None:
    """Run the script and show the story."""
    show(Console(width=min(WIDTH, Console().width)), run())


def run() -> Run:
    """What a model's script comes to, in a sandbox with one tool."""
    with Sandbox(tools=[get_expenses]) as sandbox:
        return sandbox.run(SCRIPT)


def show(console: Console, run: Run) -> None:
    """The question, the script, its result, its calls, and what it saved."""
    run.unwrap()
    source = Syntax(run.source.strip(), "lua", theme="ansi_dark", background_color="default")
    listed = Text("it may call  ", "dim") + Text(render(get_expenses, "signature", name="tools.get_expenses"), "cyan")
    console.print(
        Panel(Group(source, Text(), listed), title="what the model wrote", box=box.ROUNDED, border_style="dim")
    )
    console.print(Text.assemble("\nit returns  ", (f"{run.value:,.2f}", "bold green"), "\n"))
    console.print(Text(f"its {len(run.calls)} calls, five at a time, in {seconds(run.usage.wall)}", "bold"))
    for line in timeline_text(run, console.width):
        console.print(line, soft_wrap=True)
    console.print(Text("\nwhat the model has to read", "bold"))
    console.print(_comparison(run))
    console.print(Text("a token is taken as four bytes, which is a rough rule", "dim"))
    console.print(Text.assemble("\nTry it yourself in your browser: ", ("make console", "bold cyan")))


def _comparison(run: Run) -> Table:
    """One script beside the same calls made one by one through the model."""
    results = [_bytes(call.result) for call in run.calls]
    calls = [_bytes({"name": call.tool, "arguments": call.arguments}) for call in run.calls]
    items = sum(len(call.result) for call in run.calls)
    answer = len(run.for_model().encode())
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    table.add_column("a tool call each", justify="right")
    table.add_column("one script", justify="right", style="green")
    table.add_row(
        "calls that the model writes", f"{len(calls)} ({size(sum(calls))})", f"1 ({size(len(run.source.encode()))})"
    )
    table.add_row("items in its context", f"{items:,}", "0")
    table.add_row("bytes in its context", f"{sum(results):,}", f"{answer:,}")
    table.add_row("tokens, roughly", f"{sum(results) // 4:,}", f"{max(1, answer // 4):,}")
    return table


def _bytes(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


# The tool: the expenses of a team of twenty, behind a service that takes its time

ITEMS = 100
_MERCHANTS = {
    "travel": ("Northline Rail", "Blue Harbour Air", "City Cabs", "Hotel Meridian"),
    "meals": ("Corner Bakery", "Noodle House", "Café Lumen"),
    "software": ("Plotwise", "Inkdrop Studio", "Cloud Attic"),
    "office": ("Paper & Pine", "Deskworks"),
}


@dataclass(frozen=True)
class Expense:
    """One item."""

    id: int
    date: str
    category: str
    merchant: str
    cents: int
    note: str


@tool(hints={"read_only": True})
def get_expenses(employee_id: int) -> list[Expense]:
    """Expense items of one employee (1 to 20) in this half-year."""
    if not 1 <= employee_id <= 20:
        raise ValueError(f"there is no employee {employee_id}")
    chance = random.Random(employee_id)
    time.sleep(chance.uniform(0.010, 0.035))  # as a service on the network would
    return [_item(chance, employee_id * 1000 + number) for number in range(ITEMS)]


def _item(chance: random.Random, id: int) -> Expense:
    category = chance.choice(tuple(_MERCHANTS))
    day = dt.date(2026, 1, 1) + dt.timedelta(days=chance.randrange(181))
    return Expense(
        id=id,
        date=day.isoformat(),
        category=category,
        merchant=chance.choice(_MERCHANTS[category]),
        cents=chance.randrange(400, 48_000),
        note=chance.choice(("", "client visit", "team day", "approved by phone", "see attached receipt")),
    )


if __name__ == "__main__":
    main()
