"""A sample tool: the expenses of a team of twenty, behind a service that takes its time."""

from __future__ import annotations

import datetime as dt
import random
import time
from dataclasses import dataclass

from moonbox import tool

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
