"""The demo's tools for the console: expenses to read, and a payment that a person must approve."""

from __future__ import annotations

import time

from expenses import get_expenses

from moonbox import tool

__all__ = ["get_expenses", "pay_back"]


@tool(policy="approve", hints={"destructive": True})
def pay_back(employee_id: int, cents: int) -> str:
    """Pay an amount back to one employee."""
    time.sleep(0.05)  # as a bank would take its time
    return f"paid {cents / 100:.2f} to employee {employee_id}"
