"""A sample tool that a person must approve: it pays money back."""

from __future__ import annotations

import time

from moonbox import tool


@tool(policy="approve", hints={"destructive": True})
def pay_back(employee_id: int, cents: int) -> str:
    """Pay an amount back to one employee."""
    time.sleep(0.05)  # as a bank would take its time
    return f"paid {cents / 100:.2f} to employee {employee_id}"
