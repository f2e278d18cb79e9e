"""A Sandbox with functions of its own: moonbox repl --tools examples/functions.py:box

Scripts call them by their bare names, with positional arguments: euros(1250), parse_date("3 May 2026").weekday.
"""

from datetime import datetime
from typing import Any

from moonbox import Sandbox, tool


@tool
def price(item: str) -> int:
    """The price of an item in cents."""
    return len(item) * 125


def euros(cents: int) -> str:
    """euros(cents) -> text such as "12.50 €"."""
    return f"{cents / 100:.2f} €"


def parse_date(text: str) -> dict[str, Any]:
    """parse_date(text) -> {year, month, day, weekday} of a date such as "3 May 2026"."""
    day = datetime.strptime(text, "%d %B %Y")
    return {"year": day.year, "month": day.month, "day": day.day, "weekday": f"{day:%A}"}


box = Sandbox([price])
box.define("euros", euros)
box.define("parse_date", parse_date)
box.define("vat", 0.19, doc="vat: the rate of the value added tax")

if __name__ == "__main__":
    with box:
        print(
            box.run('return euros(tools.price{item = "kettle"} * (1 + vat)), parse_date("3 May 2026").weekday').values
        )
